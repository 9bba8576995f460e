// The panel beside the timeline: table, flame graph, allocation and range as tabs, of which the open one is kept current.

import type { Tab } from "../state/state";
import { makeBlock } from "./block";
import { h } from "./dom";
import { makeFlame } from "./flame";
import { type TableView, makeMoment } from "./moment";
import { makeRange } from "./range";
import type { Context, View } from "./view";

const TABS: [Tab, string][] = [
  ["table", "Table"],
  ["flame", "Flame graph"],
  ["block", "Allocation"],
  ["range", "Range"],
];

export function makePanel(context: Context): TableView {
  const { store } = context;
  const views: Record<Tab, View & Partial<TableView>> = {
    table: makeMoment(context),
    flame: makeFlame(context),
    block: makeBlock(context),
    range: makeRange(context),
  };
  const filter = makeFilter(context, "Filter the rows of the table");
  const tabs = TABS.map(([tab, text]) => {
    const onclick = () => store.set({ tab }, "push");
    return h("button", { type: "button", role: "tab", id: `tab-${tab}`, "aria-controls": `panel-${tab}`, onclick }, text);
  });
  const panels = TABS.map(([tab]) => h("div", { role: "tabpanel", id: `panel-${tab}`, "aria-labelledby": `tab-${tab}`, class: `panel-${tab}` }, views[tab].element));
  const onkeydown = (event: KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const at = TABS.findIndex(([tab]) => tab === store.state.tab);
    const next = (at + by + TABS.length) % TABS.length;
    store.set({ tab: TABS[next]![0] }, "push");
    tabs[next]!.focus();
  };
  const list = h("div", { class: "tabs", role: "tablist", "aria-label": "Details", onkeydown }, tabs);
  const element = h("aside", { class: "panel", "aria-label": "Details of the moment" }, list, filter.element, panels);
  return {
    element,
    update() {
      const { tab } = store.state;
      TABS.forEach(([name], at) => {
        tabs[at]!.setAttribute("aria-selected", String(name === tab));
        tabs[at]!.tabIndex = name === tab ? 0 : -1;
        panels[at]!.hidden = name !== tab;
      });
      filter.element.hidden = tab === "flame" || tab === "block";
      filter.update();
      views[tab].update();
    },
    csv: () => views[store.state.tab].csv?.() ?? null,
  };
}

/** A box that filters as one types. */
export function makeFilter(context: Context, label: string): View {
  const oninput = () => context.store.set({ filter: input.value });
  const input = h("input", { type: "search", placeholder: "Filter rows", "aria-label": label, spellcheck: "false", autocomplete: "off", oninput });
  return {
    element: h("div", { class: "filter" }, input),
    update() {
      if (input.value !== context.store.state.filter) input.value = context.store.state.filter;
    },
  };
}
