// The page of `memviz leaks`: what is alive at one moment of rest and was not at an earlier one.

import type { LeakLine, Leaks } from "../../data/shapes";
import { h } from "../dom";
import type { TableView } from "../moment";
import type { Context } from "../view";
import { counted, list, nanos } from "../words";
import { bytesColumn, countColumn, lineAction, lineColumn, makeReport, momentButton, textColumn, verdict } from "./page";
import { leaksSentences } from "./sentences";

export function makeLeaks(context: Context): TableView {
  const moment = (name: string, value: string) => h("input", { name, value, size: 8, required: true, spellcheck: "false", autocomplete: "off" });
  const [begin, end] = [moment("begin", "start"), moment("end", "last")];
  const onsubmit = (event: Event) => {
    event.preventDefault();
    view.update();
  };
  const view = makeReport<Leaks>(context, {
    title: "Leaks",
    about: "What is alive at the later of two moments and was not at the earlier one. A moment is start, last, a step (12: its end) or a time (1.5s).",
    command: "leaks",
    controls: h("form", { class: "controls", onsubmit }, h("label", {}, "From ", begin), h("label", {}, "to ", end), h("button", {}, "Compare")),
    asks: () => ({ options: ["--idle", `${begin.value.trim() || "start"}:${end.value.trim() || "last"}`, "--top", "500"] }),
    draw: (leaks, tables) => [
      verdict(leaksSentences(leaks), (leaks.leaked?.bytes ?? 0) === 0 ? "good" : "plain"),
      h("div", { class: "buttons" }, momentButton(context, leaks.begin, "Show the earlier moment"), momentButton(context, leaks.end, "Show the later moment")),
      tables.add<LeakLine>(
        {
          caption: "Left, by the line that built it",
          columns: [
            lineColumn("Line", (row) => row),
            bytesColumn("Bytes", (row) => row.bytes),
            countColumn("Buffers", (row) => row.count),
            countColumn("Oldest", (row) => row.oldest_nanos, nanos),
            countColumn("Newest", (row) => row.newest_nanos, nanos),
            textColumn("Primitives", (row) => list(row.primitives).map((one) => one.primitive || "leaf array").join(", ")),
          ],
          actions: lineAction(context, (row) => row),
          none: "Nothing is left.",
        },
        list(leaks.lines),
        footer(leaks),
      ),
    ],
  });
  return view;
}

function footer(leaks: Leaks): LeakLine[] {
  const total: LeakLine = { function: "Total", bytes: leaks.leaked?.bytes ?? null, count: leaks.leaked?.count ?? null };
  const rest = leaks.rest;
  if (!rest?.lines) return [total];
  return [{ function: `${counted(rest.lines, "smaller line")} left out`, bytes: rest.bytes ?? null, count: rest.count ?? null }, total];
}
