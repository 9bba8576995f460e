// What the reports print with `--json`, field by field as crates/memviz-analyze serializes them. No code here.
//
// Every field may be missing: another version of memviz may have written what this page reads. Pages show "–" then.

import type { Amount } from "./types";

type Maybe<T> = { [K in keyof T]?: T[K] | null };

export type StackLine = Maybe<{ file: string; line: number; function: string }>;

export type MomentAt = Maybe<{
  after_events: number;
  index: number;
  time_nanos: number;
  step: number;
  active_bytes: number;
  cached_bytes: number;
}>;

export type LineTotal = StackLine &
  Maybe<{ kind: string; bytes: number; count: number; primitives: { primitive: string; count: number; bytes: number }[] }>;

export type Rest = Maybe<{ lines: number; bytes: number; count: number }>;

export type Trend = Maybe<{ verdict: string; slope: number; agreeing: number; first: number; last: number; highest: number }>;

export type LineGrowth = LineTotal & Maybe<{ bytes_trend: Trend; buffers_trend: Trend }>;

export type StepAmount = Maybe<{ after_events: number; time_nanos: number; lowest: Amount; highest_bytes: number }>;

export type LoopGrowth = Maybe<{
  every: string;
  evaluated_at: StackLine;
  steps: number;
  stride: number;
  bytes: Trend;
  buffers: Trend;
  verdict: string;
  reason: string;
  steps_to_limit_bytes: number;
  steps_to_limit_buffers: number;
  nanos_to_limit: number;
  lines: LineGrowth[];
  series: StepAmount[];
}>;

export type Growth = Maybe<{ limit_bytes: number; limit_buffers: number; main: number; loops: LoopGrowth[] }>;

export type LeakLine = LineTotal & Maybe<{ oldest_nanos: number; newest_nanos: number }>;

export type Leaks = Maybe<{
  begin: MomentAt;
  end: MomentAt;
  leaked: Amount;
  kept: Amount;
  freed: Amount;
  unlisted_change_bytes: number;
  lines: LeakLine[];
  rest: Rest;
}>;

export type PinnedByView = Maybe<{
  buffer: StackLine;
  view: StackLine;
  primitive: string;
  count: number;
  bytes: number;
  reached_bytes: number;
  pinned_bytes: number;
}>;

export type WithoutArray = Maybe<{ kind: string; line: StackLine; primitive: string; count: number; bytes: number }>;

export type Waiting = Maybe<{
  line: StackLine;
  count: number;
  needs_bytes: number;
  primitives: [string, number][];
  oldest_nanos: number;
  holds: Amount;
  held_lines: Maybe<{ line: StackLine; count: number; bytes: number }>[];
}>;

export type Pinned = Maybe<{
  moment: MomentAt;
  views: PinnedByView[];
  without_arrays: WithoutArray[];
  waiting: Waiting[];
  waiting_count: number;
  waiting_holds: Amount;
  compiled: Amount;
  unknown: Amount;
}>;

export type CacheLine = Maybe<{ line: StackLine; hits: Amount; misses: Amount; hit_rate: number }>;
export type SizeClass = Maybe<{ from_bytes: number; hits: Amount; misses: Amount; hit_rate: number }>;
export type NearMiss = Maybe<{
  line: StackLine;
  kind: string;
  count: number;
  bytes: number;
  first_asked_bytes: number;
  first_cached_bytes: number;
}>;
export type NotReused = Maybe<{ line: StackLine; evicted: Amount; left: Amount }>;

export type Cache = Maybe<{
  hits: Amount;
  misses: Amount;
  hit_rate: number;
  slack_bytes: number;
  lines: CacheLine[];
  sizes: SizeClass[];
  near_misses: NearMiss[];
  entered: Amount;
  passed_by: Amount;
  evicted: Amount;
  largest_eviction: Amount;
  left: Amount;
  not_reused: NotReused[];
  most_cached: MomentAt;
  peak_active: MomentAt;
  peak_reserved: MomentAt;
  end: MomentAt;
  page_bytes: number;
}>;

export type TracedFunction = Maybe<{
  body: StackLine;
  calls: [StackLine, number][];
  traces: number;
  alive: number;
  cause: string;
  signatures: number;
  first_signatures: string[];
  varying: Maybe<{ input: number; axis: number; lengths: number; smallest: number; largest: number }>[];
  made: Amount;
  kept: Amount;
  captured: Amount;
  kept_arrays: number;
}>;

export type Retrace = Maybe<{ moment: MomentAt; functions: TracedFunction[]; traces: number; alive: number }>;

export type ChangedLine = StackLine &
  Maybe<{ kind: string; moved_from: number; before: Amount; after: Amount; change_bytes: number; change_count: number }>;
export type ChangedPrimitive = Maybe<{
  primitive: string;
  before: Amount;
  after: Amount;
  change_bytes: number;
  change_count: number;
}>;

export type Comparison = Maybe<{
  what: string;
  before: MomentAt;
  after: MomentAt;
  before_count: number;
  after_count: number;
  change_bytes: number;
  change_count: number;
  lines: ChangedLine[];
  primitives: ChangedPrimitive[];
  unchanged_lines: number;
}>;

export type Diff = Maybe<{ comparisons: Comparison[] }>;

export type SweepPoint = Maybe<{
  cache_limit_bytes: number;
  hit_rate: number;
  made: Amount;
  peak_reserved_bytes: number;
}>;

/** One shape for all kinds: `kind` says which fields are there. */
export type Advice = NearMiss &
  Maybe<{
    to: SweepPoint;
    saves_bytes: number;
    of_bytes: number;
    costs_bytes: number;
    steps: number;
    device: string;
    fits: boolean;
    peak_bytes: number;
    memory_bytes: number;
  }>;

export type Advise = Maybe<{ now: SweepPoint; advice: Advice[]; halvings: SweepPoint[] }>;

export type HeldGroup = LineTotal & Maybe<{ name: string; temporary: Amount }>;

export type Peak = Maybe<{
  which: string;
  moment: MomentAt;
  total: Amount;
  temporary: Amount;
  surviving: Amount;
  evaluated_at: StackLine;
  groups: HeldGroup[];
  rest: Rest;
}>;

export type Summary = Maybe<{
  command: string[];
  mlx_version: string;
  backend: string;
  python_version: string;
  memviz_version: string;
  duration_nanos: number;
  ended: Maybe<{ kind: string; detail: string; line: StackLine }>;
  rank: number;
  events: Maybe<{ seen: number; recorded: number; dropped: number; filtered: number; lost: number }>;
  is_window: boolean;
  peak_active: MomentAt;
  peak_reserved: MomentAt;
  end: MomentAt;
  top_by_bytes: LineTotal[];
  top_by_count: LineTotal[];
  rest_by_bytes: Rest;
  rest_by_count: Rest;
  hit_rate: number;
  actions: Maybe<{ action: string; events: number; bytes: number }>[];
  device: Maybe<{
    devices: number;
    total_bytes: number;
    used_bytes: number;
    mlx_bytes: number;
    outside_bytes: number;
    pool_bytes: number;
    time_nanos: number;
  }>;
  checked: Maybe<{ result: string; checkpoints: number; violation: string }>;
  notes: string[];
  ranks: Maybe<{ rank: number; label: string; peak_active_bytes: number; peak_reserved_bytes: number }>[];
  next: Maybe<{ command: string; because: string }>[];
}>;
