// The page of `memviz growth`: does memory grow from step to step, and which lines do it.

import type { Growth, LineGrowth, LoopGrowth, StepAmount } from "../../data/shapes";
import { h } from "../dom";
import type { TableView } from "../moment";
import { jumpToEvent } from "../moving";
import type { Context } from "../view";
import { isNumber, list, nanos } from "../words";
import { type Tables, bytesColumn, changeColumn, countChangeColumn, countColumn, lineAction, lineColumn, makeReport, textColumn, verdict } from "./page";
import { growthSentences, loopName, mainLoop, verdictTone, verdictWords } from "./sentences";

const CUTS: [value: string, text: string][] = [
  ["", "steps if marked, otherwise evaluations"],
  ["step", "marked steps"],
  ["eval", "evaluations of one line"],
  ["100ms", "every 100 ms"],
  ["1s", "every second"],
  ["10s", "every 10 seconds"],
];

export function makeGrowth(context: Context): TableView {
  const onchange = () => view.update();
  const select = h("select", { onchange }, CUTS.map(([value, text]) => h("option", { value }, text)));
  const view = makeReport<Growth>(context, {
    title: "Growth",
    about: "The lowest active memory of each step, and the lines that hold more in the end than in the beginning.",
    command: "growth",
    controls: h("div", { class: "controls" }, h("label", {}, "Cut the run by ", select)),
    asks: () => ({ options: ["--top", "200", ...(select.value === "" ? [] : ["--every", select.value])] }),
    draw(growth, tables) {
      const loop = mainLoop(growth);
      return [
        verdict(growthSentences(growth), verdictTone(loop?.verdict)),
        loop && linesOf(context, tables, loop),
        loop && stepsOf(context, tables, loop),
        loopsOf(context, tables, list(growth.loops)),
      ];
    },
  });
  return view;
}

function linesOf(context: Context, tables: Tables, loop: LoopGrowth): HTMLElement | null {
  return tables.add<LineGrowth>(
    {
      caption: "Lines that hold more at the end of it",
      columns: [
        lineColumn("Line", (row) => row),
        changeColumn("Bytes a step", (row) => row.bytes_trend?.slope),
        bytesColumn("Held", (row) => row.bytes),
        countChangeColumn("Buffers a step", (row) => row.buffers_trend?.slope),
        countColumn("Buffers", (row) => row.count),
        textColumn("Verdict", (row) => verdictWords(row.bytes_trend?.verdict)),
      ],
      actions: lineAction(context, (row) => row),
      none: "No line holds more at the end than at the beginning.",
    },
    list(loop.lines),
  );
}

function stepsOf(context: Context, tables: Tables, loop: LoopGrowth): HTMLElement | null {
  const stride = loop.stride ?? 1;
  const rows = list(loop.series).map((step, at) => ({ ...step, number: at * stride }));
  return tables.add<StepAmount & { number: number }>(
    {
      caption: "Its steps: lowest and highest active bytes of each",
      columns: [
        countColumn("Step", (row) => row.number),
        { id: "until", title: "Until", numeric: true, value: (row) => row.time_nanos ?? null, text: (row) => nanos(row.time_nanos) },
        bytesColumn("Lowest", (row) => row.lowest?.bytes),
        bytesColumn("Highest", (row) => row.highest_bytes),
        countColumn("Buffers", (row) => row.lowest?.count),
      ],
      actions: (row) => {
        const event = row.after_events;
        if (!isNumber(event)) return null;
        const label = `show the end of step ${row.number} in the timeline`;
        return h("button", { type: "button", class: "icon", title: label, "aria-label": label, onclick: () => void jumpToEvent(context, event) }, "→");
      },
    },
    rows,
  );
}

function loopsOf(context: Context, tables: Tables, loops: readonly LoopGrowth[]): HTMLElement | null {
  if (loops.length < 2) return null;
  return tables.add<LoopGrowth>(
    {
      caption: "All loops, in order of time",
      columns: [
        textColumn("Loop", loopName),
        countColumn("Steps", (row) => row.steps),
        changeColumn("Bytes a step", (row) => row.bytes?.slope),
        countChangeColumn("Buffers a step", (row) => row.buffers?.slope),
        textColumn("Verdict", (row) => verdictWords(row.verdict)),
      ],
      actions: lineAction(context, (row) => row.evaluated_at),
    },
    loops,
  );
}
