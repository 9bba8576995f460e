// The page of `memviz report`, `peak` and `advise`: what used the memory, and what to do about it.

import type { Advise, HeldGroup, LineTotal, Peak, Rest, Summary, SweepPoint } from "../../data/shapes";
import { h } from "../dom";
import type { TableView } from "../moment";
import type { Context } from "../view";
import { amount, bytes, count, counted, exactBytes, list, percent, shortPlace } from "../words";
import { type Tables, bytesColumn, countColumn, lineAction, lineColumn, makeReport, momentButton, textColumn, verdict } from "./page";
import { adviceSentences, endingSentence, summarySentences } from "./sentences";

type Item<List> = NonNullable<List> extends readonly (infer Row)[] ? Row : never;

export function makeReportPage(context: Context): TableView {
  const parts = [makeSummary(context), makeAdvise(context), makePeak(context)];
  const element = h("div", {}, parts.map((part) => part.element));
  return {
    element,
    update: () => parts.forEach((part) => part.update()),
    csv: () => parts.map((part) => part.csv()).filter((text) => text !== null).join("\r\n") || null,
    close: () => parts.forEach((part) => part.close?.()),
  };
}

function makeSummary(context: Context): TableView {
  return makeReport<Summary>(context, {
    title: "Report",
    about: "What used the memory at its peak, and which lines built it: memviz report.",
    command: "report",
    draw: (summary, tables) => [
      verdict(summarySentences(summary), summary.checked?.result === "violated" || endingSentence(summary.ended) ? "bad" : "plain"),
      h(
        "div",
        { class: "buttons" },
        momentButton(context, summary.peak_active, "Show the active peak"),
        momentButton(context, summary.peak_reserved, "Show the reserved peak"),
        momentButton(context, summary.end, "Show the end"),
      ),
      next(summary),
      lines(context, tables, "Most bytes at the active peak", summary.top_by_bytes, summary.rest_by_bytes),
      lines(context, tables, "Most buffers at the active peak", summary.top_by_count, summary.rest_by_count),
      ranks(tables, summary),
      actions(tables, summary),
      device(summary),
      events(summary),
    ],
  });
}

function lines(context: Context, tables: Tables, caption: string, rows: LineTotal[] | null | undefined, rest: Rest | null | undefined): HTMLElement | null {
  return tables.add<LineTotal>(
    {
      caption,
      columns: [
        lineColumn("Line", (row) => row),
        bytesColumn("Bytes", (row) => row.bytes),
        countColumn("Buffers", (row) => row.count),
        textColumn("Primitives", (row) => list(row.primitives).map((one) => one.primitive || "leaf array").join(", ")),
      ],
      actions: lineAction(context, (row) => row),
      none: "Nothing was active.",
    },
    list(rows),
    restRow(rest),
  );
}

function restRow(rest: Rest | null | undefined): LineTotal[] {
  if (!rest?.lines) return [];
  return [{ function: `${counted(rest.lines, "smaller line")} left out`, bytes: rest.bytes ?? null, count: rest.count ?? null }];
}

function next(summary: Summary): HTMLElement | null {
  const items = list(summary.next).map((one) => h("li", {}, h("code", {}, `memviz ${one.command ?? ""}`), `: ${one.because ?? ""}`));
  return items.length > 0 ? h("section", {}, h("h3", {}, "What to ask next"), h("ul", {}, items)) : null;
}

function ranks(tables: Tables, summary: Summary): HTMLElement | null {
  return tables.add<Item<Summary["ranks"]>>(
    {
      caption: "Peaks of all processes",
      columns: [
        textColumn("Process", (row) => (row.rank === null || row.rank === undefined ? row.label : `rank ${row.rank}`)),
        bytesColumn("Active", (row) => row.peak_active_bytes),
        bytesColumn("Reserved", (row) => row.peak_reserved_bytes),
      ],
    },
    list(summary.ranks),
  );
}

function actions(tables: Tables, summary: Summary): HTMLElement | null {
  return tables.add<Item<Summary["actions"]>>(
    {
      caption: "What the allocator did",
      columns: [
        textColumn("Action", (row) => row.action),
        countColumn("Events", (row) => row.events),
        bytesColumn("Bytes", (row) => row.bytes),
      ],
    },
    list(summary.actions),
  );
}

function device(summary: Summary): HTMLElement | null {
  const seen = summary.device;
  if (!seen) return null;
  const facts: [string, number | null | undefined][] = [
    ["In use on the device", seen.used_bytes],
    ["Of", seen.total_bytes],
    ["By MLX", seen.mlx_bytes],
    ["Outside of MLX's count", seen.outside_bytes],
    ["In memory pools", seen.pool_bytes],
  ];
  const items = facts.map(([name, size]) => [h("dt", {}, name), h("dd", { title: exactBytes(size) }, bytes(size))]);
  return h("section", {}, h("h3", {}, "What the driver said when most was in use"), h("dl", { class: "facts" }, items));
}

function events(summary: Summary): HTMLElement {
  const seen = summary.events;
  return h(
    "p",
    { class: "note" },
    `Events: ${count(seen?.seen)} seen, ${count(seen?.recorded)} recorded, ${count(seen?.dropped)} dropped, ${count(seen?.filtered)} below the smallest size, ${count(seen?.lost)} lost.`,
    summary.is_window === true && " Older events fell out of the ring: peaks, lines and rates are those of the events that were kept.",
  );
}

function makeAdvise(context: Context): TableView {
  return makeReport<Advise>(context, {
    title: "Advice",
    about: "What to do about the cache, from replays of this recording: memviz advise.",
    command: "advise",
    cannot: ({ can }) => (typeof can.whatif === "string" ? can.whatif : null),
    draw: (advise, tables) => [
      h("ul", { class: "advice" }, adviceSentences(advise).map((sentence) => h("li", {}, sentence))),
      tables.add<SweepPoint>(
        {
          caption: "What each halving of that limit costs",
          columns: [
            bytesColumn("Cache limit", (row) => row.cache_limit_bytes),
            countColumn("Hits", (row) => row.hit_rate, percent),
            bytesColumn("Made by the system", (row) => row.made?.bytes),
            countColumn("Buffers made", (row) => row.made?.count),
            bytesColumn("Peak", (row) => row.peak_reserved_bytes),
          ],
        },
        list(advise.halvings),
      ),
    ],
  });
}

function makePeak(context: Context): TableView {
  return makeReport<Peak>(context, {
    title: "Peak",
    about: "All that was held when most was active, and which of it was temporary: memviz peak.",
    command: "peak",
    asks: () => ({ options: ["--top", "500"] }),
    draw: (peak, tables) => [
      verdict([
        `${amount(peak.total)} were active.`,
        `Temporary, made and freed by the evaluation under way: ${amount(peak.temporary)}. Surviving: ${amount(peak.surviving)}.`,
        ...(peak.evaluated_at ? [`The evaluation was at ${shortPlace(peak.evaluated_at)}.`] : []),
      ]),
      tables.add<HeldGroup>(
        {
          caption: "Held at the active peak, by line",
          columns: [
            lineColumn("Line", (row) => row),
            bytesColumn("Bytes", (row) => row.bytes),
            countColumn("Buffers", (row) => row.count),
            bytesColumn("Temporary", (row) => row.temporary?.bytes),
            textColumn("Primitives", (row) => list(row.primitives).map((one) => one.primitive || "leaf array").join(", ")),
          ],
          actions: lineAction(context, (row) => row),
          none: "Nothing was active.",
        },
        list(peak.groups),
        restRow(peak.rest),
      ),
    ],
  });
}
