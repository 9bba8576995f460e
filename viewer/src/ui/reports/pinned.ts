// The page of `memviz pinned`: what keeps memory alive beyond its use.

import type { Pinned, PinnedByView, Waiting, WithoutArray } from "../../data/shapes";
import { h } from "../dom";
import type { TableView } from "../moment";
import type { Context } from "../view";
import { count, list, shortPlace } from "../words";
import { bytesColumn, countColumn, lineAction, lineColumn, makeReport, momentButton, textColumn, verdict } from "./page";
import { pinnedSentences, viewAdvice } from "./sentences";

export function makePinned(context: Context): TableView {
  return makeReport<Pinned>(context, {
    title: "Pinned",
    about: "Memory that is kept alive by small views, by arrays that wait for an evaluation, or by no array at all, at the peak.",
    command: "pinned",
    cannot: ({ can }) => (typeof can.pinned === "string" ? can.pinned : null),
    draw(pinned, tables) {
      const advice = viewAdvice(pinned);
      return [
        verdict(pinnedSentences(pinned)),
        h("div", { class: "buttons" }, momentButton(context, pinned.moment, "Show this moment")),
        tables.add<PinnedByView>(
          {
            caption: "Small views that keep big buffers alive, by the line that built the buffer",
            columns: [
              lineColumn("Buffer built at", (row) => row.buffer),
              bytesColumn("Pinned", (row) => row.pinned_bytes, "bytes that no array reaches"),
              bytesColumn("Buffers", (row) => row.bytes),
              bytesColumn("In use", (row) => row.reached_bytes),
              countColumn("Count", (row) => row.count),
              textColumn("Kept by", (row) => `${row.primitive || "an array"} at ${shortPlace(row.view)}`),
            ],
            actions: lineAction(context, (row) => row.buffer),
            none: "No small view keeps a big buffer alive.",
          },
          list(pinned.views),
        ),
        advice && h("p", {}, advice),
        tables.add<Waiting>(
          {
            caption: "Arrays that wait for an evaluation, by the line that built them",
            columns: [
              lineColumn("Line", (row) => row.line),
              countColumn("Arrays", (row) => row.count),
              bytesColumn("Hold", (row) => row.holds?.bytes),
              countColumn("Buffers", (row) => row.holds?.count),
              bytesColumn("Will need", (row) => row.needs_bytes),
              textColumn("Of", (row) => list(row.held_lines).map((held) => `${count(held.count)} of ${shortPlace(held.line)}`).join(", ")),
            ],
            actions: lineAction(context, (row) => row.line),
            none: "No array waits for an evaluation.",
          },
          list(pinned.waiting),
        ),
        tables.add<WithoutArray>(
          {
            caption: "Buffers that no array alive uses, by the line that built them",
            columns: [
              lineColumn("Line", (row) => row.line),
              bytesColumn("Bytes", (row) => row.bytes),
              countColumn("Buffers", (row) => row.count),
              textColumn("Why", (row) => (row.kind === "scratch" ? "scratch" : row.kind === "arrays_died" ? "arrays died" : (row.kind ?? null))),
              textColumn("Primitive", (row) => row.primitive || "an array"),
            ],
            actions: lineAction(context, (row) => row.line),
            none: "Every active buffer is used by an array.",
          },
          list(pinned.without_arrays),
        ),
        h("p", { class: "note" }, "References from Python are not recorded: an array that is alive is held by a variable, a list, a NumPy view or a cycle."),
      ];
    },
  });
}
