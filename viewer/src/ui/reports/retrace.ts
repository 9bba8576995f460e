// The page of `memviz retrace`: which compiled functions are traced again and again, and what each trace keeps.

import type { Retrace, TracedFunction } from "../../data/shapes";
import { h } from "../dom";
import type { TableView } from "../moment";
import type { Context } from "../view";
import { list, shortPlace } from "../words";
import { amountColumn, bytesColumn, countColumn, lineAction, lineColumn, makeReport, momentButton, textColumn, verdict } from "./page";
import { retraceReason, retraceSentences } from "./sentences";

export function makeRetrace(context: Context): TableView {
  return makeReport<Retrace>(context, {
    title: "Retrace",
    about: "Compiled functions that were traced, why they were traced again, and what the traces keep alive.",
    command: "retrace",
    cannot: ({ can }) => (typeof can.retrace === "string" ? can.retrace : null),
    draw: (retrace, tables) => [
      verdict(retraceSentences(retrace), list(retrace.functions).some((row) => (row.traces ?? 0) > 1) ? "bad" : "good"),
      h("div", { class: "buttons" }, momentButton(context, retrace.moment, "Show this moment")),
      tables.add<TracedFunction>(
        {
          caption: "Compiled functions, by the first line of the body that builds an array",
          columns: [
            lineColumn("Body", (row) => row.body),
            countColumn("Traces", (row) => row.traces),
            countColumn("Kept", (row) => row.alive),
            countColumn("Shapes", (row) => row.signatures),
            countColumn("Buffers made", (row) => row.made?.count),
            bytesColumn("Bytes made", (row) => row.made?.bytes),
            countColumn("Arrays kept", (row) => row.kept_arrays),
            amountColumn("Used from elsewhere", (row) => row.captured),
            textColumn("Why", retraceReason),
            textColumn("Called at", (row) => list(row.calls).map((call) => shortPlace(call?.[0])).join(", ")),
          ],
          actions: lineAction(context, (row) => row.body),
          none: "No trace of a compiled function was seen.",
        },
        list(retrace.functions),
      ),
    ],
  });
}
