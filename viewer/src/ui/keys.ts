// Which key does what. One table: the listener and the help both read it.
//
// WASD, F, 0 and arrows move the timeline and belong to it; nothing here takes them.

import type { PageName, Tab } from "../state/state";
import type { PlaceName } from "../data/types";

export type Action =
  | { do: "jump"; to: PlaceName }
  | { do: "page"; page: PageName }
  | { do: "tab"; tab: Tab }
  | { do: "search" | "help" | "close" | "units" | "areas" };

export interface Key {
  key: string;
  about: string;
  action: Action;
}

export const KEYS: readonly Key[] = [
  { key: "/", about: "search lines, modules and stacks", action: { do: "search" } },
  { key: "?", about: "show this help", action: { do: "help" } },
  { key: "Escape", about: "close the help or the search, then clear highlight, range and cursor", action: { do: "close" } },
  { key: "p", about: "jump to the peak of active memory", action: { do: "jump", to: "peak-active" } },
  { key: "P", about: "jump to the peak of reserved memory", action: { do: "jump", to: "peak-reserved" } },
  { key: "e", about: "jump to the end", action: { do: "jump", to: "end" } },
  { key: "n", about: "jump to the next step", action: { do: "jump", to: "next-step" } },
  { key: "N", about: "jump to the previous step", action: { do: "jump", to: "previous-step" } },
  { key: "t", about: "page: timeline", action: { do: "page", page: "timeline" } },
  { key: "g", about: "page: growth", action: { do: "page", page: "growth" } },
  { key: "l", about: "page: leaks", action: { do: "page", page: "leaks" } },
  { key: "k", about: "page: pinned", action: { do: "page", page: "pinned" } },
  { key: "c", about: "page: cache", action: { do: "page", page: "cache" } },
  { key: "r", about: "page: retrace", action: { do: "page", page: "retrace" } },
  { key: "m", about: "page: compare", action: { do: "page", page: "compare" } },
  { key: "i", about: "page: what-if", action: { do: "page", page: "whatif" } },
  { key: "o", about: "page: report", action: { do: "page", page: "report" } },
  { key: "1", about: "panel: table of the moment", action: { do: "tab", tab: "table" } },
  { key: "2", about: "panel: flame graph of the moment", action: { do: "tab", tab: "flame" } },
  { key: "3", about: "panel: the chosen allocation", action: { do: "tab", tab: "block" } },
  { key: "4", about: "panel: the chosen range", action: { do: "tab", tab: "range" } },
  { key: "b", about: "bricks or areas", action: { do: "areas" } },
  { key: "u", about: "sizes in GiB or GB", action: { do: "units" } },
];

/** What moving on the timeline does; told by the help only. */
export const GESTURES: readonly (readonly [what: string, about: string])[] = [
  ["W and S, or the wheel", "zoom in and out around the pointer; with Alt the height"],
  ["A and D, or a sideways wheel", "move left and right; or drag"],
  ["Click", "set the cursor and choose the allocation under it"],
  ["Alt, Ctrl or ⌘ and a click", "set a second moment: tables and flame graph show the difference"],
  ["Shift and drag", "choose a range"],
  ["Double click, F or 0", "show everything again"],
  ["← and → on a focused picture", "cursor one event back or on; with Shift a pixel; Home and End"],
  ["Pinch", "zoom; on a touch screen two fingers"],
];

interface Pressed {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
}

/** The action of a key press; null when it has none or is typed into a field. Escape works in fields too. */
export function actionOf(pressed: Pressed, isTyping: boolean): Action | null {
  if (pressed.ctrlKey || pressed.metaKey || pressed.altKey) return null;
  if (isTyping && pressed.key !== "Escape") return null;
  return KEYS.find((key) => key.key === pressed.key)?.action ?? null;
}

/** Whether letters typed here are meant as text. */
export function isField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "range", "button"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || target.isContentEditable;
}
