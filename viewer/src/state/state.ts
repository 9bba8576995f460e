// What the page shows, as one value: everything of it is in the URL, so that a link opens the same view.
//
// Not here: answers of the server (data/), pixels (draw/).

import type { AxisName, By, Moment } from "../data/types";

export type PageName =
  | "timeline"
  | "growth"
  | "pinned"
  | "cache"
  | "retrace"
  | "leaks"
  | "compare"
  | "whatif"
  | "report";

export type Tab = "table" | "flame" | "block" | "range";

export interface State {
  page: PageName;
  /** Recordings shown, in order; the first is the one that panels speak of. */
  shown: number[];
  axis: AxisName;
  /** Part of the axis in view; null for all of it. */
  from: number | null;
  to: number | null;
  /** Bytes at the bottom and top of the picture; null to fit. */
  low: number | null;
  high: number | null;
  by: By;
  /** Stacked areas instead of bricks. */
  areas: boolean;
  /** The cursor, a second moment beside it, and whether the two are a range. Null: no cursor; the panel shows the peak. */
  event: Moment | null;
  other: Moment | null;
  range: boolean;
  /** The selected block. */
  block: number | null;
  tab: Tab;
  /** Highlighted group key, filter of tables, text searched for. */
  group: string | null;
  filter: string;
  search: string;
  /** Sizes by 1024 or by 1000. */
  units: "GiB" | "GB";
  /** What-if: "" and null mean as recorded. */
  policy: string;
  device: string;
  cacheLimit: number | null;
  memoryLimit: number | null;
}

export const START: State = {
  page: "timeline",
  shown: [0],
  axis: "time",
  from: null,
  to: null,
  low: null,
  high: null,
  by: "line",
  areas: false,
  event: null,
  other: null,
  range: false,
  block: null,
  tab: "table",
  group: null,
  filter: "",
  search: "",
  units: "GiB",
  policy: "",
  device: "",
  cacheLimit: null,
  memoryLimit: null,
};
