// The help: all keys and gestures, in a dialog that the browser makes modal and closes by Esc.

import { h } from "./dom";
import { GESTURES, KEYS } from "./keys";

export interface Help {
  readonly element: HTMLDialogElement;
  open(): void;
}

export function makeHelp(): Help {
  const close = () => element.close();
  const rows = (pairs: readonly (readonly [string, string])[], asKeys: boolean) =>
    pairs.map(([key, about]) => h("tr", {}, h("th", { scope: "row" }, asKeys ? h("kbd", {}, key) : key), h("td", {}, about)));
  const table = (caption: string, pairs: readonly (readonly [string, string])[], asKeys: boolean) =>
    h("table", {}, h("caption", {}, caption), h("tbody", {}, rows(pairs, asKeys)));
  const element = h(
    "dialog",
    { class: "help", "aria-labelledby": "help-title" },
    h("div", { class: "bar-between" }, h("h2", { id: "help-title" }, "Keys and gestures"), h("button", { type: "button", onclick: close }, "Close")),
    h("div", { class: "columns", tabindex: 0, role: "region", "aria-label": "All keys and gestures" },
      table("Keys", KEYS.map(({ key, about }) => [key, about] as const), true),
      table("On the timeline", GESTURES, false),
    ),
    h("p", { class: "note" }, "In bricks, each allocation lies on the older ones that are alive; what is smaller than a pixel is drawn together as “the rest”, hatched, so that every column adds up to the active memory."),
  );
  return { element, open: () => element.open || element.showModal() };
}
