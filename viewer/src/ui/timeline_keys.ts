// Keys of the timeline: W and S zoom, A and D move, F and 0 show all; arrows on a focused picture move the cursor.

import type { Timeline } from "./timeline";

const PAN_PART = 0.15;
const ZOOM_FACTOR = 1.3;

/** Returns how to stop. */
export function listenToKeys(timeline: Timeline): () => void {
  const onKey = (event: KeyboardEvent): void => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (!timeline.element.isConnected || !(letters(timeline, event) || arrows(timeline, event))) return;
    event.preventDefault();
  };
  window.addEventListener("keydown", onKey);
  return () => window.removeEventListener("keydown", onKey);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("input, select, textarea, dialog, [contenteditable]") !== null;
}

function letters(timeline: Timeline, event: KeyboardEvent): boolean {
  switch (event.key.toLowerCase()) {
    case "w":
      timeline.zoom(1 / ZOOM_FACTOR);
      return true;
    case "s":
      timeline.zoom(ZOOM_FACTOR);
      return true;
    case "a":
      timeline.pan(-PAN_PART);
      return true;
    case "d":
      timeline.pan(PAN_PART);
      return true;
    case "f":
    case "0":
      timeline.all();
      return true;
    default:
      return false;
  }
}

/** Only on a picture: elsewhere arrows scroll the page and walk through tables. */
function arrows(timeline: Timeline, event: KeyboardEvent): boolean {
  const onPicture = event.target instanceof HTMLCanvasElement && timeline.element.contains(event.target);
  const direction = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  if (!onPicture) return false;
  if (direction !== 0 && event.shiftKey) void timeline.moveCursorByPixels(direction);
  else if (direction !== 0) timeline.moveCursor(direction);
  else if (event.key === "Home") timeline.moveCursor(-Infinity);
  else if (event.key === "End") timeline.moveCursor(Infinity);
  else return false;
  return true;
}
