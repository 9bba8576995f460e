// The range between two moments: what was allocated, freed, survived, and how the cache served it, by line.

import type { RangeTable } from "../data/types";
import { fill, h } from "./dom";
import { empty, makeLoader } from "./loader";
import type { TableView } from "./moment";
import { mainRecording } from "./moving";
import type { Column } from "./rows";
import { type Table, makeTable } from "./table";
import type { Context } from "./view";
import { amount, bytes, chosenUnits, count, counted, exactBytes, nanos, percent } from "./words";

type Row = RangeTable["groups"][number];
type Key = "allocated" | "survived";

const size = (key: Key, title: string): Column<Row> => ({
  id: key,
  title,
  numeric: true,
  value: (row) => row[`${key}_bytes`],
  text: (row) => bytes(row[`${key}_bytes`]),
  exact: (row) => exactBytes(row[`${key}_bytes`]),
});

const number = (key: Key, title: string): Column<Row> => ({
  id: `${key}_count`,
  title,
  numeric: true,
  value: (row) => row[`${key}_count`],
  text: (row) => count(row[`${key}_count`]),
});

export const RANGE_COLUMNS: Column<Row>[] = [
  { id: "name", title: "Line", value: (row) => row.name, exact: (row) => row.name },
  size("allocated", "Allocated"),
  number("allocated", "Count"),
  size("survived", "Survived"),
  number("survived", "Alive"),
];

export function makeRange(context: Context): TableView {
  const loader = makeLoader("this range");
  let table: Table<Row> | null = null;
  let marked: string | null = null;
  return {
    element: loader.element,
    update() {
      const recording = mainRecording(context);
      const { event, other, filter, group } = context.store.state;
      if (!recording || recording.state === "failed" || event === null || other === null) {
        table = null;
        loader.put("none", empty("No range is chosen. Drag over the timeline with Shift held."));
        return;
      }
      const [from, to] = [Math.min(event, other), Math.max(event, other)];
      const key = JSON.stringify([recording.r, from, to, chosenUnits()]);
      loader.ask(key, (signal) => context.source.range(recording.r, from, to, signal), (answer, element) => {
        table ??= tableOf(context);
        table.filter(context.store.state.filter);
        table.show(answer.groups, footer(answer));
        fill(element, heading(answer), table.element);
      });
      table?.filter(filter);
      if (group !== marked) table?.draw();
      marked = group;
    },
    csv: () => table?.csv() ?? null,
    close: () => loader.put("closed"),
  };
}

function tableOf(context: Context): Table<Row> {
  return makeTable<Row>({
    caption: "Allocated in this range, by line",
    columns: RANGE_COLUMNS,
    none: "Nothing was allocated in this range.",
    isMarked: (row) => row.key === context.store.state.group,
  });
}

/** The total; of what is left out the server tells what was allocated, the rest of "survived" is then its part. */
export function footer(answer: RangeTable): Row[] {
  const total = rowOf("Total", answer.allocated, answer.survived);
  const left = answer.left_out;
  if (!left || left.groups === 0) return [total];
  const listed = answer.groups.reduce((sum, row) => sum + row.survived_bytes, 0);
  const counts = answer.groups.reduce((sum, row) => sum + row.survived_count, 0);
  const survived = { bytes: answer.survived.bytes - listed, count: answer.survived.count - counts };
  return [rowOf(`${counted(left.groups, "smaller line")} left out`, left, survived), total];
}

function rowOf(name: string, allocated: { bytes: number; count: number }, survived: { bytes: number; count: number }): Row {
  return {
    name,
    key: "",
    allocated_bytes: allocated.bytes,
    allocated_count: allocated.count,
    survived_bytes: survived.bytes,
    survived_count: survived.count,
  };
}

function heading(answer: RangeTable): HTMLElement {
  const all = answer.hit.count + answer.missed.count;
  const facts: [string, { bytes: number; count: number }][] = [
    ["Allocated", answer.allocated],
    ["Freed", answer.freed],
    ["Survived", answer.survived],
    ["Reused from the cache", answer.hit],
    ["New from the system", answer.missed],
    ["Given back to the system", answer.to_os],
  ];
  return h(
    "div",
    { class: "heading" },
    h("h2", {}, `Range: event ${count(answer.from)} to ${count(answer.to)}, ${nanos(answer.nanos)}`),
    h("dl", { class: "facts" }, facts.map(([name, sum]) => [h("dt", {}, name), h("dd", { title: exactBytes(sum.bytes) }, amount(sum))])),
    h("p", {}, all > 0 ? `${percent(answer.hit.count / all)} of allocations reused a cached buffer.` : "No allocation asked the cache."),
  );
}
