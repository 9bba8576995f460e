// Makes DOM elements. Text becomes text nodes only: names in traces are hostile and are never read as markup.
//
// Not here: styles (the page's Content-Security-Policy forbids them on elements), where elements go.

export type Child = Node | string | number | null | undefined | false | Child[];

type Handler = (event: never) => void;
export type Props = Record<string, string | number | boolean | null | undefined | Handler>;

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes (`class`, `aria-…`), listeners (`onclick`) and children. `false`, null and undefined are left out. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  apply(element, props);
  append(element, children);
  return element;
}

/** The same for SVG. */
export function svg(tag: string, props: Props = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS(SVG, tag);
  apply(element, props);
  append(element, children);
  return element;
}

/** Replaces what is in an element. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, children);
}

/** Sets the text, and touches the page only when it differs: screen readers announce what changes. */
export function say(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
}

function apply(element: Element, props: Props): void {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value as unknown as EventListener);
    else if (name === "style" || name.startsWith("on")) throw new Error(`${name} is no attribute that a page without inline code may set`);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}
