// What the search box found: groups, each a jump to when it held most. Opens below the box, closes by Esc.
//
// Not here: the box itself (shell.ts).

import { shorten } from "../draw/format";
import type { Found } from "../data/types";
import { fill, h } from "./dom";
import { makeLoader } from "./loader";
import { jumpToEvent, mainRecording } from "./moving";
import type { MakeView } from "./view";
import { bytes, chosenUnits, count, counted, exactBytes } from "./words";

/** "12 groups", "100 groups, 7 more not listed". */
export function foundTitle(found: Found, text: string): string {
  if (found.groups.length === 0) return `Nothing has “${text}” in its name or stack. Try a file name, a function or a primitive.`;
  const more = found.left_out > 0 ? `, ${count(found.left_out)} more not listed` : "";
  return `${counted(found.groups.length, "group")} with “${text}” in the name or a stack${more}`;
}

export const makeSearch: MakeView = (context) => {
  const loader = makeLoader("what was found", "found");
  const element = h("section", { class: "search-results", "aria-label": "Search results", hidden: true }, loader.element);
  const close = () => context.store.set({ search: "" });
  const draw = (found: Found, box: HTMLElement, text: string) => {
    const items = found.groups.map((group) =>
      h(
        "li",
        {},
        h("button", { type: "button", class: "link", title: shorten(group.name, 2000), onclick: () => void jumpToEvent(context, group.event, group.key) }, shorten(group.name, 400)),
        h("span", { title: exactBytes(group.bytes) }, `${bytes(group.bytes)} in ${counted(group.count, "allocation")} of the whole run`),
      ),
    );
    fill(
      box,
      h("div", { class: "bar-between" }, h("p", { role: "status" }, foundTitle(found, text)), h("button", { type: "button", onclick: close }, "Close")),
      items.length > 0 && h("ul", {}, items),
    );
  };
  return {
    element,
    update() {
      const { search, by } = context.store.state;
      const text = search.trim();
      const recording = mainRecording(context);
      element.hidden = text === "" || !recording;
      if (text === "" || !recording) return loader.put("none");
      const key = JSON.stringify([recording.r, text, by, chosenUnits()]);
      loader.ask(key, (signal) => context.source.find(recording.r, text, by, signal), (found, box) => draw(found, box, text));
    },
  };
};
