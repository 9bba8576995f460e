// The table of a moment: what was live, by line or another group, and beside a second moment the difference.
//
// Without a cursor it is the peak. Rows are sorted and filtered here, in the page.
// Not here: the flame graph of the same moment (flame.ts).

import type { MomentGroup, MomentTable, Recording } from "../data/types";
import { fill, h, svg } from "./dom";
import { type Loader, empty, makeLoader } from "./loader";
import { mainRecording, shownMoment } from "./moving";
import type { Column } from "./rows";
import { type Table, makeTable } from "./table";
import type { Context, View } from "./view";
import { bytes, change, chosenUnits, count, countChange, counted, exactBytes, nanos, percent } from "./words";

/** A row: a group, the total, or what the server left out. */
export type MomentRow = MomentGroup & { share: number | null };

/** A part of the page whose table can be exported. */
export type TableView = View & { csv(): string | null };

export function momentRows(answer: MomentTable): MomentRow[] {
  const total = answer.active.bytes;
  return answer.groups.map((group) => ({ ...group, share: total > 0 ? group.bytes / total : null }));
}

/** Left out first, the total last: their sum is the total. */
export function footerRows(answer: MomentTable): MomentRow[] {
  const { active, other_active: other, left_out: left } = answer;
  const total: MomentRow = { name: "Total active", key: "", ...active, share: active.bytes > 0 ? 1 : null };
  if (other) Object.assign(total, { other_bytes: other.bytes, other_count: other.count });
  if (left.groups === 0) return [total];
  const rest: MomentRow = {
    name: `${counted(left.groups, "smaller group")} left out`,
    key: "",
    bytes: left.bytes,
    count: left.count,
    share: active.bytes > 0 ? left.bytes / active.bytes : null,
  };
  if (other) {
    const listed = answer.groups.reduce((sum, group) => sum + (group.other_bytes ?? 0), 0);
    const counts = answer.groups.reduce((sum, group) => sum + (group.other_count ?? 0), 0);
    Object.assign(rest, { other_bytes: other.bytes - listed, other_count: other.count - counts });
  }
  return [rest, total];
}

export function differenceOf(row: MomentGroup): number | null {
  return row.other_bytes === undefined ? null : row.other_bytes - row.bytes;
}

export function momentColumns(by: string, hasOther: boolean): Column<MomentRow>[] {
  const name: Column<MomentRow> = { id: "name", title: by, value: (row) => row.name, exact: (row) => row.name };
  const size: Column<MomentRow> = {
    id: "bytes",
    title: hasOther ? "First" : "Bytes",
    numeric: true,
    value: (row) => row.bytes,
    text: (row) => bytes(row.bytes),
    exact: (row) => exactBytes(row.bytes),
  };
  const number: Column<MomentRow> = {
    id: "count",
    title: "Count",
    about: "number of allocations",
    numeric: true,
    value: (row) => row.count,
    text: (row) => count(row.count),
  };
  const share: Column<MomentRow> = {
    id: "share",
    title: "Share",
    about: "of the active bytes",
    numeric: true,
    value: (row) => row.share,
    text: (row) => percent(row.share),
  };
  return hasOther ? [name, size, ...otherColumns(), number, ...otherCounts()] : [name, size, number, share];
}

function otherColumns(): Column<MomentRow>[] {
  return [
    {
      id: "other",
      title: "Second",
      numeric: true,
      value: (row) => row.other_bytes ?? null,
      text: (row) => bytes(row.other_bytes),
      exact: (row) => exactBytes(row.other_bytes),
    },
    {
      id: "difference",
      title: "Change",
      about: "second moment less first, bytes",
      numeric: true,
      value: differenceOf,
      text: (row) => change(differenceOf(row)),
      exact: (row) => exactBytes(differenceOf(row)),
    },
  ];
}

function otherCounts(): Column<MomentRow>[] {
  const less = (row: MomentRow) => (row.other_count === undefined ? null : row.other_count - row.count);
  return [{ id: "counts", title: "± count", about: "second moment less first, number of allocations", numeric: true, value: less, text: (row) => countChange(less(row)) }];
}

export function makeMoment(context: Context): TableView {
  const loader = makeLoader("the table of this moment");
  // Kept from moment to moment, so that what it is sorted by stays.
  let table: Table<MomentRow> | null = null;
  let shape = "";
  let marked: string | null = null;
  const show = (answer: MomentTable, element: HTMLElement) => {
    const newShape = JSON.stringify([answer.by, answer.other_active !== undefined]);
    if (!table || newShape !== shape) table = tableOf(context, answer);
    shape = newShape;
    marked = context.store.state.group;
    table.filter(context.store.state.filter);
    table.show(momentRows(answer), footerRows(answer));
    fill(element, heading(context, answer), answer.nearest && h("p", { class: "note" }, answer.nearest), table.element);
  };
  return {
    element: loader.element,
    update() {
      const { filter, group } = context.store.state;
      if (!askFor(context, loader, show)) table = null;
      table?.filter(filter);
      if (group !== marked) table?.draw();
      marked = group;
    },
    csv: () => table?.csv() ?? null,
    close: () => loader.put("closed"),
  };
}

function askFor(context: Context, loader: Loader, show: (answer: MomentTable, element: HTMLElement) => void): boolean {
  const recording = mainRecording(context);
  const { by, other } = context.store.state;
  const sentence = recording ? nothingToShow(recording) : "No recording is shown.";
  if (!recording || sentence !== null) {
    loader.put(sentence ?? "", empty(sentence ?? ""));
    return false;
  }
  const event = shownMoment(context);
  const key = JSON.stringify([recording.r, event, context.store.state.event, by, other, chosenUnits(), recording.state]);
  loader.ask(key, (signal) => context.source.moment(recording.r, event, by, other ?? undefined, signal), show);
  return true;
}

function nothingToShow(recording: Recording): string | null {
  if (recording.state === "failed") return "There is no table, as this recording could not be read.";
  if (recording.events + recording.blocks > 0) return null;
  return recording.state === "reading" ? "This recording is still being read." : "Nothing was live: this recording has no allocations.";
}

function tableOf(context: Context, answer: MomentTable): Table<MomentRow> {
  const hasOther = answer.other_active !== undefined;
  return makeTable<MomentRow>({
    caption: hasOther ? "Difference of two moments" : "Live at this moment",
    columns: momentColumns(titleOf(answer.by), hasOther),
    below: (row) => (row.share === null || hasOther ? null : bar(row.share)),
    isMarked: (row) => row.key === context.store.state.group,
    none: "Nothing was live at this moment.",
    actions: (row) => highlight(context, row),
  });
}

function highlight(context: Context, row: MomentRow): HTMLElement {
  const isOn = context.store.state.group === row.key;
  const onclick = () => context.store.set({ group: isOn ? null : row.key }, "push");
  const label = `${isOn ? "stop highlighting" : "highlight"} ${row.name.slice(0, 80)} in the timeline`;
  return h("button", { type: "button", class: "icon", "aria-pressed": String(isOn), "aria-label": label, title: label, onclick }, "◉");
}

/** A share as a bar. An attribute of SVG, as the page may not set styles. */
export function bar(share: number): SVGElement {
  const width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return svg("svg", { class: "bar", "aria-hidden": "true", height: 3, width: "100%" }, svg("rect", { width, height: 3 }));
}

function heading(context: Context, answer: MomentTable): HTMLElement {
  const step = answer.step === null ? "" : `, step ${count(answer.step)}`;
  const where = context.store.state.event === null ? "Peak of active memory" : "Cursor";
  const facts = [
    h("strong", { title: exactBytes(answer.active.bytes) }, bytes(answer.active.bytes)),
    ` active in ${counted(answer.active.count, "allocation")}, `,
    h("span", { title: exactBytes(answer.cached.bytes) }, bytes(answer.cached.bytes)),
    ` cached.`,
  ];
  const against = answer.other_active && answer.other_active.bytes - answer.active.bytes;
  return h(
    "div",
    { class: "heading" },
    h("h2", {}, `${where}: ${nanos(answer.nanos)}, event ${count(answer.event)}${step}`),
    h("p", {}, facts, against !== undefined && ` Second moment: ${change(against)}.`),
  );
}

function titleOf(by: string): string {
  return by === "dtype" ? "Dtype" : by.charAt(0).toUpperCase() + by.slice(1);
}
