// Mouse, trackpad, touch and pen on a canvas, as what they mean: pan, zoom, click, range, hover.
//
// Points are CSS pixels within the element. Not here: what panning does.

export interface Point {
  x: number;
  y: number;
}

export interface Keys {
  second: boolean;
}

export interface Gestures {
  /** Moved by so many pixels. */
  pan(dx: number, dy: number): void;
  /** Factor below 1 shows less; `vertical` for the bytes. */
  zoom(factor: number, around: Point, vertical: boolean): void;
  click(at: Point, keys: Keys): void;
  /** While a range is drawn, and `done` when it stands. */
  range(from: Point, to: Point, done: boolean): void;
  whole(): void;
  /** Null when the pointer left. */
  hover(at: Point | null): void;
}

const CLICK_PIXELS = 4;
const LINE_PIXELS = 16;
/** A wheel's notch is 100 to 120 pixels: a sixth more or less. */
const ZOOM_PER_PIXEL = 0.0015;

type Hold = { kind: "press" | "pan" | "range" | "pinch" };

export function listenToGestures(element: HTMLElement, gestures: Gestures): void {
  // The page still scrolls by a vertical swipe; everything else is ours.
  element.style.touchAction = "pan-y";
  listenToWheel(element, gestures);
  const pointers = new Map<number, Point>();
  let start: Point = { x: 0, y: 0 };
  let hold: Hold | null = null;

  element.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    element.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, pointOf(element, event));
    gestures.hover(null);
    if (pointers.size === 2) hold = { kind: "pinch" };
    else if (pointers.size === 1) {
      start = pointOf(element, event);
      hold = { kind: "press" };
    }
  });
  element.addEventListener("pointermove", (event) => {
    const now = pointOf(element, event);
    const before = pointers.get(event.pointerId);
    if (before === undefined || hold === null) return gestures.hover(now);
    if (hold.kind === "pinch") return pinch(pointers, event.pointerId, now, gestures);
    if (hold.kind === "press" && distance(start, now) >= CLICK_PIXELS) hold = { kind: event.shiftKey ? "range" : "pan" };
    if (hold.kind === "pan") gestures.pan(now.x - before.x, now.y - before.y);
    if (hold.kind === "range") gestures.range(start, now, false);
    if (hold.kind !== "press") pointers.set(event.pointerId, now);
  });
  const finish = (event: PointerEvent, cancelled: boolean): void => {
    if (!pointers.delete(event.pointerId) || hold === null) return;
    const at = pointOf(element, event);
    if (!cancelled && hold.kind === "press") gestures.click(at, { second: event.altKey || event.ctrlKey || event.metaKey });
    if (!cancelled && hold.kind === "range") gestures.range(start, at, true);
    // The finger that is left after a pinch pans on.
    hold = pointers.size > 0 ? { kind: "pan" } : null;
  };
  element.addEventListener("pointerup", (event) => finish(event, false));
  element.addEventListener("pointercancel", (event) => finish(event, true));
  element.addEventListener("pointerleave", () => gestures.hover(null));
  element.addEventListener("dblclick", () => gestures.whole());
  // Ctrl-click opens a menu on a Mac, where it means the second moment here.
  element.addEventListener("contextmenu", (event) => {
    if (event.ctrlKey) event.preventDefault();
  });
}

function listenToWheel(element: HTMLElement, gestures: Gestures): void {
  const onWheel = (event: WheelEvent): void => {
    event.preventDefault();
    const pixels = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? 1 : LINE_PIXELS;
    const dx = event.deltaX * pixels;
    const dy = event.deltaY * pixels;
    const pinched = event.ctrlKey || event.metaKey;
    if (!pinched && (event.shiftKey || Math.abs(dx) > Math.abs(dy))) return gestures.pan(-(dx || dy), 0);
    // A trackpad's pinch arrives as ctrl and small deltas.
    const factor = Math.exp(clamp(dy, 240) * ZOOM_PER_PIXEL * (pinched && Math.abs(dy) < 50 ? 5 : 1));
    gestures.zoom(factor, pointOf(element, event), event.altKey);
  };
  element.addEventListener("wheel", onWheel, { passive: false });
}

function pinch(pointers: Map<number, Point>, id: number, now: Point, gestures: Gestures): void {
  const other = [...pointers].find(([one]) => one !== id)?.[1];
  const before = pointers.get(id);
  pointers.set(id, now);
  if (other === undefined || before === undefined) return;
  gestures.zoom(Math.max(4, Math.abs(before.x - other.x)) / Math.max(4, Math.abs(now.x - other.x)), middle(now, other), false);
  gestures.pan((now.x - before.x) / 2, 0);
}

const clamp = (value: number, most: number): number => Math.min(most, Math.max(-most, value));
const distance = (a: Point, b: Point): number => Math.hypot(a.x - b.x, a.y - b.y);
const middle = (a: Point, b: Point): Point => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });

function pointOf(element: HTMLElement, event: MouseEvent): Point {
  const box = element.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}
