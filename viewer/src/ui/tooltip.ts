// A few lines of text beside the pointer. It is for the eye only: the same is in the panels for screen readers.

import { h } from "./dom";

export interface Tooltip {
  readonly element: HTMLElement;
  /** `x` and `y` in pixels of the window. */
  show(x: number, y: number, lines: readonly string[]): void;
  hide(): void;
}

const AWAY_PIXELS = 14;

export function makeTooltip(): Tooltip {
  const element = h("div", { class: "tooltip", "aria-hidden": "true", hidden: true });
  element.style.position = "fixed";
  element.style.pointerEvents = "none";
  element.style.left = "0";
  element.style.top = "0";
  let shown = "";
  return {
    element,
    show(x, y, lines) {
      const text = lines.join("\n");
      if (text !== shown) element.replaceChildren(...lines.map((line) => h("div", {}, line)));
      shown = text;
      element.hidden = false;
      const { width, height } = element.getBoundingClientRect();
      const left = x + AWAY_PIXELS + width > window.innerWidth ? x - AWAY_PIXELS - width : x + AWAY_PIXELS;
      const top = y + AWAY_PIXELS + height > window.innerHeight ? y - AWAY_PIXELS - height : y + AWAY_PIXELS;
      element.style.transform = `translate(${Math.max(0, Math.round(left))}px, ${Math.max(0, Math.round(top))}px)`;
    },
    hide() {
      element.hidden = true;
    },
  };
}
