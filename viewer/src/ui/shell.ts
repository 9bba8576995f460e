// The frame of the page: head, navigation, the page that is open, status. It hears keys and keeps the parts current.
//
// Not here: any part itself.

import type { PageName } from "../state/state";
import { h, say } from "./dom";
import { saveCsv, savePng, saveSvg } from "./export";
import { makeFacts, makeRecordings } from "./header";
import { makeHelp } from "./help";
import { type Action, actionOf, isField } from "./keys";
import { empty } from "./loader";
import type { TableView } from "./moment";
import { jump, mainRecording } from "./moving";
import { makeFilter, makePanel } from "./panel";
import { makeCache } from "./reports/cache";
import { makeCompare } from "./reports/compare";
import { makeGrowth } from "./reports/growth";
import { makeLeaks } from "./reports/leaks";
import { announce } from "./reports/page";
import { makePinned } from "./reports/pinned";
import { makeReportPage } from "./reports/report";
import { makeRetrace } from "./reports/retrace";
import { makeSearch } from "./search";
import { makeTimeline } from "./timeline";
import { makeToolbar } from "./toolbar";
import type { Context, View } from "./view";
import { makeWhatIf } from "./whatif";
import { chooseUnits } from "./words";

export const PAGES: readonly (readonly [PageName, string])[] = [
  ["timeline", "Timeline"],
  ["growth", "Growth"],
  ["leaks", "Leaks"],
  ["pinned", "Pinned"],
  ["cache", "Cache"],
  ["retrace", "Retrace"],
  ["compare", "Compare"],
  ["whatif", "What-if"],
  ["report", "Report"],
];

const MAKE: Record<PageName, (context: Context) => TableView> = {
  timeline: makeTimelinePage,
  growth: makeGrowth,
  leaks: makeLeaks,
  pinned: makePinned,
  cache: makeCache,
  retrace: makeRetrace,
  compare: makeCompare,
  whatif: makeWhatIf,
  report: makeReportPage,
};

/** Pages whose tables the filter box filters. */
const FILTERED: readonly PageName[] = ["growth", "leaks", "pinned", "cache", "retrace", "compare", "report"];

/** Typing into the search box asks after a pause. */
const PAUSE_MILLIS = 200;

export function makeShell(context: Context): View {
  const { store } = context;
  const pages = new Map<PageName, TableView>();
  const help = makeHelp();
  const header = makeRecordings(context);
  const facts = makeFacts(context);
  const search = makeSearch(context);
  const searchBox = makeSearchBox(context);
  const units = makeUnits(context);
  const nav = makeNav(context);
  const filter = makeFilter(context, "Filter the tables of this page");
  const main = h("main", { id: "main", tabindex: -1 }, filter.element);
  const csv = () => pages.get(store.state.page)?.csv() ?? null;
  const skip = (event: Event) => {
    // The fragment of the address holds the state of a page opened from disk.
    event.preventDefault();
    main.focus();
  };
  const element = h(
    "div",
    { class: "shell" },
    h("a", { class: "skip", href: "#main", onclick: skip }, "Skip to the content"),
    h(
      "header",
      { class: "top" },
      h("h1", {}, "memviz"),
      header.element,
      h("div", { class: "tools" }, searchBox.element, units.element, makeExportMenu(context, main, csv), h("button", { type: "button", "aria-keyshortcuts": "?", title: "keys and gestures", onclick: () => help.open() }, "Help")),
      search.element,
    ),
    facts.element,
    nav.element,
    main,
    h("footer", {}, h("p", { id: "status", role: "status" }), h("p", { class: "version" }, `memviz ${context.recordings().version}`)),
    help.element,
  );

  function update(): void {
    const { page, units: chosen } = store.state;
    chooseUnits(chosen);
    for (const part of [header, facts, search, searchBox, units, nav, filter]) part.update();
    filter.element.hidden = !FILTERED.includes(page);
    const name = mainRecording(context)?.name;
    document.title = [name, PAGES.find(([one]) => one === page)?.[1], "memviz"].filter(Boolean).join(" – ");
    openPage(page).update();
  }

  function openPage(page: PageName): TableView {
    let view = pages.get(page);
    if (!view) {
      view = MAKE[page](context);
      pages.set(page, view);
      main.append(view.element);
    }
    for (const [name, one] of pages) one.element.hidden = name !== page;
    return view;
  }

  document.addEventListener("keydown", (event) => {
    if (help.element.open) return;
    const action = actionOf(event, isField(event.target));
    if (!action || event.defaultPrevented) return;
    event.preventDefault();
    act(context, action, { help: () => help.open(), search: () => searchBox.focus() });
  });
  return { element, update };
}

function act(context: Context, action: Action, open: { help(): void; search(): void }): void {
  const { store } = context;
  if (action.do === "help") open.help();
  else if (action.do === "search") open.search();
  else if (action.do === "page") store.set({ page: action.page, filter: "" }, "push");
  else if (action.do === "tab") store.set({ page: "timeline", tab: action.tab }, "push");
  else if (action.do === "units") store.set({ units: store.state.units === "GiB" ? "GB" : "GiB" });
  else if (action.do === "areas") store.set({ areas: !store.state.areas }, "push");
  else if (action.do === "jump") void jump(context, action.to).then(announce);
  else clearOne(context);
}

/** Takes back the last thing that was chosen. */
function clearOne({ store }: Context): void {
  const { search, group, range, other, event } = store.state;
  if (document.activeElement instanceof HTMLInputElement) document.activeElement.blur();
  if (search !== "") store.set({ search: "" });
  else if (group !== null) store.set({ group: null });
  else if (range || other !== null) store.set({ range: false, other: null });
  else if (event !== null) store.set({ event: null });
}

function makeTimelinePage(context: Context): TableView {
  const toolbar = makeToolbar(context);
  const timeline = makeTimeline(context);
  const panel = makePanel(context);
  const nothing = h("div", { hidden: true });
  const picture = h("section", { class: "stage", "aria-label": "Timeline" }, h("h2", { class: "unseen" }, "Timeline"), toolbar.element, nothing, timeline.element);
  const element = h("div", { class: "split" }, picture, panel.element);
  return {
    element,
    update() {
      const recording = mainRecording(context);
      const isEmpty = recording?.state === "ready" && recording.events + recording.blocks === 0;
      nothing.hidden = !isEmpty;
      if (isEmpty && nothing.childElementCount === 0) nothing.append(howToRecord());
      for (const part of [toolbar, timeline, panel]) part.update();
    },
    csv: () => panel.csv(),
  };
}

function howToRecord(): HTMLElement {
  return empty(
    "Nothing was recorded: this recording has no allocations. The program may have ended before it used MLX, or recording began after it.",
    h("p", {}, "Record a script by ", h("code", {}, "memviz run train.py"), ", or a part of one by ", h("code", {}, 'with mlx_memviz.record("run.memviz"):')),
  );
}

function makeNav(context: Context): View {
  const links = PAGES.map(([page, text]) => {
    const onclick = () => context.store.set({ page, filter: "" }, "push");
    return h("button", { type: "button", onclick }, text);
  });
  return {
    element: h("nav", { "aria-label": "Pages" }, h("ul", {}, links.map((link) => h("li", {}, link)))),
    update() {
      PAGES.forEach(([page], at) => {
        if (page === context.store.state.page) links[at]!.setAttribute("aria-current", "page");
        else links[at]!.removeAttribute("aria-current");
      });
    },
  };
}

function makeUnits(context: Context): View {
  const select = h("select", { "aria-label": "Units of sizes" }, ["GiB", "GB"].map((value) => h("option", { value }, value)));
  select.addEventListener("change", () => context.store.set({ units: select.value === "GB" ? "GB" : "GiB" }));
  return {
    element: select,
    update() {
      select.value = context.store.state.units;
    },
  };
}

function makeSearchBox(context: Context): View & { focus(): void } {
  let timer = 0;
  const put = () => context.store.set({ search: input.value });
  const oninput = () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(put, PAUSE_MILLIS);
  };
  const onsubmit = (event: Event) => {
    event.preventDefault();
    window.clearTimeout(timer);
    put();
  };
  const input = h("input", { type: "search", placeholder: "Search  /", "aria-label": "Search lines, modules and stacks", "aria-keyshortcuts": "/", spellcheck: "false", autocomplete: "off", oninput });
  return {
    element: h("form", { role: "search", onsubmit }, input),
    update() {
      if (document.activeElement !== input) input.value = context.store.state.search;
    },
    focus() {
      input.focus();
      input.select();
    },
  };
}

function makeExportMenu(context: Context, main: HTMLElement, csv: () => string | null): HTMLElement {
  const items: [string, () => string | Promise<string>][] = [
    ["PNG of what is seen", () => savePng(context, main)],
    ["SVG of the timeline", () => saveSvg(context)],
    ["CSV of the table", () => saveCsv(context, csv())],
  ];
  const buttons = items.map(([text, save]) => {
    const onclick = async () => {
      menu.open = false;
      announce(await save());
    };
    return h("button", { type: "button", onclick: () => void onclick() }, text);
  });
  const menu = h("details", { class: "menu" }, h("summary", {}, "Export"), h("div", { class: "menu-items" }, buttons));
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    event.preventDefault();
    menu.open = false;
    menu.querySelector("summary")?.focus();
  });
  return menu;
}

/** A sentence instead of the page, when there is nothing to show at all. */
export function makeStartError(title: string, sentences: readonly string[]): HTMLElement {
  const heading = h("h1", {});
  say(heading, title);
  return h("main", { class: "start-error", role: "alert" }, heading, sentences.map((sentence) => h("p", {}, sentence)));
}
