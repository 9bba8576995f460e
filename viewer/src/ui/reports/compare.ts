// The page of `memviz diff`: two recordings, or two moments of one.

import type { ChangedLine, ChangedPrimitive, Comparison, Diff } from "../../data/shapes";
import type { Recording } from "../../data/types";
import { type Child, fill, h } from "../dom";
import type { TableView } from "../moment";
import { mainRecording } from "../moving";
import type { Context } from "../view";
import { list } from "../words";
import { type Tables, bytesColumn, changeColumn, countChangeColumn, countColumn, lineAction, lineColumn, makeReport, textColumn, verdict } from "./page";
import { comparisonSentence } from "./sentences";

export function makeCompare(context: Context): TableView {
  const before = h("select", { onchange: () => view.update() });
  const after = h("select", { onchange: () => view.update() });
  const at = h("input", { value: "start:peak", size: 12, spellcheck: "false", autocomplete: "off" });
  const moments = h("label", {}, "at moments ", at);
  const onsubmit = (event: Event) => {
    event.preventDefault();
    view.update();
  };
  const note = "Before and after may be the same recording at two moments: start, peak, last, a step (12) or a time (1.5s), with a colon between them.";
  const controls = h("form", { class: "controls", onsubmit }, h("label", {}, "Before ", before), h("label", {}, "after ", after), moments, h("button", {}, "Compare"));
  const report = makeReport<Diff>(context, {
    title: "Compare",
    about: note,
    command: "diff",
    controls,
    asks() {
      const [first, second] = [Number(before.value), Number(after.value)];
      if (first !== second) return { r: [first, second] };
      return { r: [first], options: ["--at", at.value.trim() || "start:peak"] };
    },
    draw: (diff, tables) => list(diff.comparisons).map((one) => comparison(context, tables, one)),
  });
  const view: TableView = {
    ...report,
    update() {
      choose(context, before, after);
      moments.hidden = before.value !== after.value;
      report.update();
    },
  };
  return view;
}

/** Keeps what the reader chose; new recordings are added to the menus as they are read. */
function choose(context: Context, before: HTMLSelectElement, after: HTMLSelectElement): void {
  const ready = context.recordings().recordings.filter((one) => one.state === "ready");
  const names = ready.map((one) => `${one.r} ${one.name}`).join("\n");
  if (before.dataset["names"] === names) return;
  const first = mainRecording(context)?.r ?? ready[0]?.r ?? 0;
  const second = context.store.state.shown.find((r) => r !== first) ?? ready.find((one) => one.r !== first)?.r ?? first;
  const [chosenBefore, chosenAfter] = [before.value || String(first), after.value || String(second)];
  before.dataset["names"] = names;
  fill(before, ready.map(option));
  fill(after, ready.map(option));
  before.value = chosenBefore;
  after.value = chosenAfter;
}

function option(recording: Recording): HTMLElement {
  return h("option", { value: recording.r }, `${recording.name} (${recording.device})`);
}

function comparison(context: Context, tables: Tables, one: Comparison): Child {
  const what = one.what ?? "moments";
  const changes = <Row extends ChangedPrimitive>() => [
    changeColumn<Row>("Change", (row) => row.change_bytes),
    bytesColumn<Row>("Before", (row) => row.before?.bytes),
    bytesColumn<Row>("After", (row) => row.after?.bytes),
    countChangeColumn<Row>("Buffers", (row) => row.change_count),
    countColumn<Row>("Buffers after", (row) => row.after?.count),
  ];
  return [
    verdict([comparisonSentence(one)], (one.change_bytes ?? 0) > 0 ? "bad" : "good"),
    tables.add<ChangedLine>(
      {
        caption: `Lines that changed: ${what} against ${what}`,
        columns: [
          lineColumn("Line", (row) => row),
          ...changes<ChangedLine & ChangedPrimitive>(),
          textColumn("Moved from", (row) => (row.moved_from ? `line ${row.moved_from}` : "")),
        ],
        actions: lineAction(context, (row) => row),
        none: "No line changed.",
      },
      list(one.lines),
    ),
    tables.add<ChangedPrimitive>(
      {
        caption: `Primitives that changed: ${what} against ${what}`,
        columns: [textColumn("Primitive", (row) => row.primitive || "leaf array"), ...changes<ChangedPrimitive>()],
      },
      list(one.primitives),
    ),
  ];
}
