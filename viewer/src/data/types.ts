// The answers of the server as types: formats/view.md, word for word. No code here.

/** A moment: the state after so many events. */
export type Moment = number;

export type AxisName = "time" | "event" | "step";

export type By = "line" | "module" | "primitive" | "dtype" | "annotation" | "device" | "thread" | "step";

export interface Amount {
  bytes: number;
  count: number;
}

export interface PeakAt {
  event: Moment;
  nanos: number;
  bytes: number;
}

export interface Recording {
  r: number;
  name: string;
  path: string;
  state: "reading" | "ready" | "failed";
  /** Part of the file that has been read, 0 to 1. */
  read: number;
  error: string | null;
  kind: "memviz" | "torch";
  device: string;
  backend: string;
  rank: number | null;
  command: string;
  mlx_version: string;
  python_version: string;
  level: string;
  events: number;
  blocks: number;
  from_nanos: number;
  to_nanos: number;
  /** Decimal digits, "" when not known. */
  start_unix_nanos: string;
  steps: [number, number] | null;
  peak_active: PeakAt;
  peak_reserved: PeakAt;
  end_active: number;
  end_reserved: number;
  ending: { kind: string; detail: string; where: string } | null;
  notes: string[];
  annotated: boolean;
  can: { pinned: true | string; retrace: true | string; whatif: true | string };
}

export interface Recordings {
  schema: 1;
  version: string;
  form: "server" | "page";
  left_out: string[];
  recordings: Recording[];
}

/** What part of a recording is asked for, in columns. */
export interface Window {
  r: number;
  axis: AxisName;
  from: number;
  to: number;
  columns: number;
}

export interface Viewport extends Window {
  /** Bytes at the bottom and at the top of the picture. */
  low: number;
  high: number;
  rows: number;
  by: By;
  areas: boolean;
}

export interface Group {
  name: string;
  /** The same for the same group in every answer of this recording and `by`. */
  key: string;
}

/** A picture: bricks or areas. See "timeline" in formats/view.md for the meaning of each array. */
export interface Scene {
  view: Viewport;
  groups: Group[];
  small: number;
  moment: Uint32Array;
  active: Float64Array;
  lowest: Float64Array;
  rest: Float64Array;
  outside: Float64Array;
  bricks: {
    block: Uint32Array;
    size: Float64Array;
    group: Uint32Array;
    run: Uint32Array;
    runFrom: Uint32Array;
    runTo: Uint32Array;
    runBottom: Float32Array;
  } | null;
  /** Group after group, `groups.length × columns`. */
  area: Float64Array | null;
}

export interface Bands {
  window: Window;
  labels: string[];
  lanes: { kind: "step" | "annotation" | "evaluation" | "thread"; name: string }[];
  marks: { at: number; event: Moment; kind: string; label: string; count: number }[];
  active: Float64Array;
  cached: Float64Array;
  reserved: Float64Array;
  cacheLimit: Float64Array;
  memoryLimit: Float64Array;
  deviceUsed: Float64Array;
  spanLane: Uint32Array;
  spanLabel: Uint32Array;
  spanFrom: Float64Array;
  spanTo: Float64Array;
  spanCount: Uint32Array;
}

export interface Place {
  event: Moment;
  nanos: number;
  time: number;
  step: number | null;
}

export type PlaceName = "peak-active" | "peak-reserved" | "end" | "start" | "next-step" | "previous-step";

export interface Frame {
  name: string;
  file: string;
  line: number;
  own: boolean;
  /** Absolute, "" when not known. */
  path: string;
}

export interface Block {
  id: number;
  size: number;
  asked: number | null;
  address: string;
  device: string;
  stream: string | number | null;
  thread: string;
  primitive: string;
  shape: number[] | null;
  dtype: string;
  annotation: string;
  step: number | null;
  is_temporary: boolean;
  born: { event: Moment; nanos: number };
  died: { event: Moment; nanos: number } | null;
  freed_how: string;
  lifetime_nanos: number;
  from_cache: boolean;
  address_used: number;
  previous_tenant: number | null;
  next_tenant: number | null;
  built: Frame[];
  evaluated: Frame[];
  freed: Frame[];
  arrays: { what: string; built: string; born_event: Moment; died_event: Moment | null }[] | null;
}

export interface MomentGroup extends Group {
  bytes: number;
  count: number;
  other_bytes?: number;
  other_count?: number;
}

export interface MomentTable {
  schema: 1;
  event: Moment;
  nanos: number;
  step: number | null;
  by: By;
  active: Amount;
  cached: Amount;
  other_active?: Amount;
  groups: MomentGroup[];
  left_out: { groups: number; bytes: number; count: number };
  /** Said by a self-contained page that answers with the nearest moment it holds. */
  nearest?: string;
}

/** A call tree, depth first, the root first. */
export interface Flame {
  names: string[];
  total: number;
  otherTotal: number | null;
  parent: Uint32Array;
  name: Uint32Array;
  own: Uint8Array;
  bytes: Float64Array;
  count: Uint32Array;
  otherBytes: Float64Array | null;
  otherCount: Uint32Array | null;
  /** Said by a self-contained page that answers with the nearest moment it holds. */
  nearest?: string;
}

export interface RangeTable {
  from: Moment;
  to: Moment;
  nanos: number;
  allocated: Amount;
  freed: Amount;
  survived: Amount;
  hit: Amount;
  missed: Amount;
  to_os: Amount;
  groups: (Group & {
    allocated_bytes: number;
    allocated_count: number;
    survived_bytes: number;
    survived_count: number;
  })[];
  left_out: { groups: number; bytes: number; count: number };
}

export interface Found {
  groups: (MomentGroup & { event: Moment })[];
  left_out: number;
}

export interface WhatIfNumbers {
  peak_active: { event: Moment; bytes: number };
  peak_reserved: { event: Moment; bytes: number };
  hit_rate: number | null;
  hits: number;
  misses: number;
  os_allocations: number;
  os_bytes: number;
  evictions: number;
  out_of_memory: { event: Moment; bytes: number } | null;
  policy: string;
  cache_limit: number | null;
  memory_limit: number | null;
}

export interface WhatIf extends WhatIfNumbers {
  recorded: WhatIfNumbers;
  active: Float64Array;
  cached: Float64Array;
  reserved: Float64Array;
}

export interface WhatIfOptions {
  policy: string;
  device: string;
  cache_limit: number | null;
  memory_limit: number | null;
}

export interface WhatIfChoices {
  policies: { name: string; about: string }[];
  devices: { name: string; about: string }[];
  cache_limit: number | null;
  memory_limit: number | null;
  largest: number;
}

/** Where answers come from: a server (http.ts) or the page itself (pack.ts). Every method rejects with `AnswerError`. */
export interface Source {
  recordings(): Promise<Recordings>;
  timeline(view: Viewport, signal?: AbortSignal): Promise<Scene>;
  bands(window: Window, signal?: AbortSignal): Promise<Bands>;
  place(r: number, of: { axis: AxisName; at: number } | { event: Moment } | { name: PlaceName; event: Moment }): Promise<Place>;
  at(r: number, event: Moment, height: number): Promise<number | null>;
  block(r: number, id: number): Promise<Block>;
  moment(r: number, event: Moment, by: By, other?: Moment, signal?: AbortSignal): Promise<MomentTable>;
  flame(r: number, event: Moment, other?: Moment, signal?: AbortSignal): Promise<Flame>;
  range(r: number, from: Moment, to: Moment, signal?: AbortSignal): Promise<RangeTable>;
  find(r: number, text: string, by: By, signal?: AbortSignal): Promise<Found>;
  /** The JSON that `memviz COMMAND … --json` prints. */
  report(command: string, r: number[], options: string[], signal?: AbortSignal): Promise<unknown>;
  whatif(window: Window, options: WhatIfOptions, signal?: AbortSignal): Promise<WhatIf>;
  whatifChoices(r: number): Promise<WhatIfChoices>;
}
