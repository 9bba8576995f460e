// Frames to the types of types.ts: which array is which field, and that their lengths fit together, so that drawing
// can index without asking.
//
// Not here: bytes (frame.ts), where they come from (http.ts, pack.ts).

import { FrameError, type Decoded } from "./frame";
import type { Bands, Flame, Group, Scene, Viewport, WhatIf, WhatIfNumbers, Window } from "./types";

const ROOT = 4294967295;

export function sceneOf(frame: Decoded, asked: Viewport): Scene {
  const view = { ...asked, ...viewOf(frame, asked), columns: whole(frame, "columns"), rows: whole(frame, "rows") };
  const { columns } = view;
  const groups = listOf<Group>(frame, "groups");
  const scene: Scene = {
    view,
    groups,
    small: numberOf(frame, "small", 0),
    moment: sized("moment", frame.u32("moment"), columns),
    active: sized("active", frame.f64("active"), columns),
    lowest: sized("lowest", frame.f64("lowest"), columns),
    rest: sized("rest", frame.f64("rest"), columns),
    outside: frame.has("outside") ? sized("outside", frame.f64("outside"), columns) : new Float64Array(columns),
    bricks: null,
    area: null,
  };
  if (frame.has("area")) scene.area = sized("area", frame.f64("area"), groups.length * columns);
  else scene.bricks = bricksOf(frame, groups.length);
  return scene;
}

function viewOf(frame: Decoded, asked: Viewport): Pick<Viewport, "from" | "to" | "low" | "high"> {
  return {
    from: numberOf(frame, "from", asked.from),
    to: numberOf(frame, "to", asked.to),
    low: numberOf(frame, "low", asked.low),
    high: numberOf(frame, "high", asked.high),
  };
}

function bricksOf(frame: Decoded, groups: number): NonNullable<Scene["bricks"]> {
  const block = frame.u32("brick_block");
  const runFrom = frame.u32("run_from");
  const bricks = {
    block,
    size: sized("brick_size", frame.f64("brick_size"), block.length),
    group: sized("brick_group", frame.u32("brick_group"), block.length),
    run: sized("brick_run", frame.u32("brick_run"), block.length + 1),
    runFrom,
    runTo: sized("run_to", frame.u32("run_to"), runFrom.length),
    runBottom: sized("run_bottom", frame.f32("run_bottom"), runFrom.length),
  };
  below("brick_group", bricks.group, groups);
  below("brick_run", bricks.run, runFrom.length + 1);
  return bricks;
}

export function bandsOf(frame: Decoded, window: Window): Bands {
  const active = frame.f64("active");
  const { length } = active;
  const spanLane = frame.u32("span_lane");
  const spans = spanLane.length;
  const bands: Bands = {
    window: { ...window, columns: length },
    labels: listOf<string>(frame, "labels"),
    lanes: listOf<Bands["lanes"][number]>(frame, "lanes"),
    marks: listOf<Bands["marks"][number]>(frame, "marks"),
    active,
    cached: sized("cached", frame.f64("cached"), length),
    reserved: sized("reserved", frame.f64("reserved"), length),
    cacheLimit: sized("cache_limit", frame.f64("cache_limit"), length),
    memoryLimit: sized("memory_limit", frame.f64("memory_limit"), length),
    deviceUsed: sized("device_used", frame.f64("device_used"), length),
    spanLane,
    spanLabel: sized("span_label", frame.u32("span_label"), spans),
    spanFrom: sized("span_from", frame.f64("span_from"), spans),
    spanTo: sized("span_to", frame.f64("span_to"), spans),
    spanCount: sized("span_count", frame.u32("span_count"), spans),
  };
  below("span_lane", spanLane, bands.lanes.length);
  below("span_label", bands.spanLabel, bands.labels.length);
  return bands;
}

export function flameOf(frame: Decoded): Flame {
  const parent = frame.u32("parent");
  const { length } = parent;
  const names = listOf<string>(frame, "names");
  const compared = frame.has("other_bytes");
  const flame: Flame = {
    names,
    total: numberOf(frame, "total", 0),
    otherTotal: compared ? numberOf(frame, "other_total", 0) : null,
    parent,
    name: sized("name", frame.u32("name"), length),
    own: sized("own", frame.u8("own"), length),
    bytes: sized("bytes", frame.f64("bytes"), length),
    count: sized("count", frame.u32("count"), length),
    otherBytes: compared ? sized("other_bytes", frame.f64("other_bytes"), length) : null,
    otherCount: compared ? sized("other_count", frame.u32("other_count"), length) : null,
  };
  below("name", flame.name, names.length);
  checkTree(parent);
  return flame;
}

/** Depth first means that a parent always stands before its children; a cycle cannot pass. */
function checkTree(parent: Uint32Array): void {
  for (let node = 0; node < parent.length; node++) {
    const above = parent[node]!;
    if (node === 0 ? above !== ROOT : above >= node) {
      throw new FrameError(`node ${node} of the flame graph has parent ${above}, expected one before it; reload the page`);
    }
  }
}

export function whatIfOf(frame: Decoded): WhatIf {
  const active = frame.f64("active");
  const recorded = frame.header["recorded"];
  if (typeof recorded !== "object" || recorded === null) {
    throw new FrameError("the replay's answer has no object `recorded`; reload the page");
  }
  return {
    ...(frame.header as unknown as WhatIfNumbers),
    recorded: recorded as WhatIfNumbers,
    active,
    cached: sized("cached", frame.f64("cached"), active.length),
    reserved: sized("reserved", frame.f64("reserved"), active.length),
  };
}

function sized<T extends { length: number }>(name: string, array: T, expected: number): T {
  if (array.length === expected) return array;
  throw new FrameError(`array ${name} has ${array.length} elements, expected ${expected}; reload the page`);
}

function below(name: string, array: Uint32Array, limit: number): void {
  for (const index of array) {
    if (index >= limit) throw new FrameError(`array ${name} holds ${index}, expected less than ${limit}; reload the page`);
  }
}

function listOf<T>(frame: Decoded, name: string): T[] {
  const value = frame.header[name];
  if (Array.isArray(value)) return value as T[];
  throw new FrameError(`header of the answer has no list ${name}; reload the page`);
}

function numberOf(frame: Decoded, name: string, otherwise: number): number {
  const value = frame.header[name];
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}

function whole(frame: Decoded, name: string): number {
  const value = frame.header[name];
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
  throw new FrameError(`header field ${name} is ${JSON.stringify(value) ?? "missing"}, expected a whole number; reload the page`);
}
