// The page of `memviz cache`: how well MLX's buffer cache works, and what clearing it would give back.

import type { Cache, CacheLine, MomentAt, NearMiss, NotReused, SizeClass } from "../../data/shapes";
import { h } from "../dom";
import type { TableView } from "../moment";
import type { Column } from "../rows";
import type { Context } from "../view";
import { bytes, list, nanos, percent } from "../words";
import { amountColumn, bytesColumn, countColumn, lineAction, lineColumn, makeReport, momentButton, textColumn, verdict } from "./page";
import { cacheSentences } from "./sentences";

type Served = Pick<CacheLine, "hits" | "misses" | "hit_rate">;

const served = <Row extends Served>(): Column<Row>[] => [
  countColumn("Hit rate", (row) => row.hit_rate, percent),
  amountColumn("Reused", (row) => row.hits),
  amountColumn("New", (row) => row.misses),
];

export function makeCache(context: Context): TableView {
  return makeReport<Cache>(context, {
    title: "Cache",
    about: "Which allocations reused a buffer of MLX's cache, which came new, and what lay in it for nothing.",
    command: "cache",
    draw: (cache, tables) => [
      verdict(cacheSentences(cache)),
      moments(context, cache),
      tables.add<CacheLine>(
        {
          caption: "Hits and misses, by the line that built the array",
          columns: [lineColumn("Line", (row) => row.line), ...served<CacheLine>()],
          actions: lineAction(context, (row) => row.line),
          none: "No allocation asked the cache.",
        },
        list(cache.lines),
      ),
      tables.add<SizeClass>(
        {
          caption: "Hits and misses, by size of the request",
          columns: [bytesColumn("From", (row) => row.from_bytes, "up to twice that, itself left out"), ...served<SizeClass>()],
        },
        list(cache.sizes),
      ),
      tables.add<NearMiss>(
        {
          caption: "New although a buffer of nearly the right size was cached",
          columns: [
            lineColumn("Line", (row) => row.line),
            countColumn("Allocations", (row) => row.count),
            bytesColumn("Bytes", (row) => row.bytes),
            textColumn("The cached one is", (row) => row.kind?.replaceAll("_", " ")),
            bytesColumn("Asked first", (row) => row.first_asked_bytes),
            bytesColumn("Cached then", (row) => row.first_cached_bytes),
          ],
          actions: lineAction(context, (row) => row.line),
          none: "No size defeats the cache.",
        },
        list(cache.near_misses),
      ),
      tables.add<NotReused>(
        {
          caption: "In the cache for nothing, by the line that used it last",
          columns: [
            lineColumn("Line", (row) => row.line),
            amountColumn("Evicted", (row) => row.evicted),
            amountColumn("Left at the end", (row) => row.left),
          ],
          actions: lineAction(context, (row) => row.line),
          none: "Everything that went into the cache was used again.",
        },
        list(cache.not_reused),
      ),
    ],
  });
}

/** What clear_cache would have given back, and when. */
function moments(context: Context, cache: Cache): HTMLElement {
  const rows: [string, MomentAt | null | undefined][] = [
    ["most was cached", cache.most_cached],
    ["peak active", cache.peak_active],
    ["peak reserved", cache.peak_reserved],
    ["the end", cache.end],
  ];
  const items = rows.map(([name, moment]) => [
    h("dt", {}, name),
    h("dd", {}, `${bytes(moment?.cached_bytes)} at ${nanos(moment?.time_nanos)} `, momentButton(context, moment, "Show")),
  ]);
  return h("section", {}, h("h3", {}, "What mx.clear_cache() would have given back"), h("dl", { class: "facts" }, items));
}
