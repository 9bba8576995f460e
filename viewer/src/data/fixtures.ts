// Answers made for tests: frames as bytes, and a small scene whose sums are known. Imported by tests only.

import type { Bands, Scene, Viewport } from "./types";

const TYPES = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f32: Float32Array, f64: Float64Array } as const;
type TypeName = keyof typeof TYPES;

/** The bytes of a frame, written as formats/view.md says. */
export function encodeFrame(header: Record<string, unknown>, arrays: Record<string, [TypeName, ArrayLike<number>]>): ArrayBuffer {
  const listed: Record<string, { type: string; at: number; length: number }> = {};
  let end = 0;
  for (const [name, [type, values]] of Object.entries(arrays)) {
    const at = Math.ceil(end / 8) * 8;
    listed[name] = { type, at, length: values.length };
    end = at + values.length * TYPES[type].BYTES_PER_ELEMENT;
  }
  let text = JSON.stringify({ ...header, arrays: listed });
  while ((8 + new TextEncoder().encode(text).length) % 8 !== 0) text += " ";
  const head = new TextEncoder().encode(text);
  const bytes = new ArrayBuffer(8 + head.length + end);
  new Uint8Array(bytes).set(new TextEncoder().encode("MVV1"));
  new DataView(bytes).setUint32(4, head.length, true);
  new Uint8Array(bytes).set(head, 8);
  for (const [name, [type, values]] of Object.entries(arrays)) {
    new TYPES[type](bytes, 8 + head.length + listed[name]!.at, values.length).set(values);
  }
  return bytes;
}

export const VIEW: Viewport = { r: 0, axis: "event", from: 0, to: 8, columns: 8, low: 0, high: 100, rows: 100, by: "line", areas: false };

/**
 * Eight columns of 0 to 100 bytes. Block 3 (30 bytes) lives in columns 0 to 5 at the bottom; block 7 (20 bytes) in 2 to 7:
 * on block 3 while that lives, at the bottom after. The rest is 10 bytes in every column.
 */
export function makeScene(): Scene {
  const columns = 8;
  const active = Float64Array.from({ length: columns }, (_, column) => 10 + (column < 6 ? 30 : 0) + (column >= 2 ? 20 : 0));
  return {
    view: { ...VIEW },
    groups: [{ name: "train.py:1", key: "a" }, { name: "train.py:2", key: "b" }],
    small: 4,
    moment: Uint32Array.from({ length: columns }, (_, column) => column + 1),
    active,
    lowest: active.map((bytes) => bytes - 1),
    rest: new Float64Array(columns).fill(10),
    outside: new Float64Array(columns),
    bricks: {
      block: Uint32Array.of(3, 7),
      size: Float64Array.of(30, 20),
      group: Uint32Array.of(0, 1),
      run: Uint32Array.of(0, 1, 3),
      runFrom: Uint32Array.of(0, 2, 6),
      runTo: Uint32Array.of(6, 6, 8),
      runBottom: Float32Array.of(0, 30, 0),
    },
    area: null,
  };
}

/** The arrays of a scene as the server sends them. */
export function encodeScene(scene: Scene): ArrayBuffer {
  const { view, bricks, area } = scene;
  const header = { ...view, groups: scene.groups, small: scene.small };
  const arrays: Record<string, [TypeName, ArrayLike<number>]> = {
    moment: ["u32", scene.moment], active: ["f64", scene.active], lowest: ["f64", scene.lowest], rest: ["f64", scene.rest], outside: ["f64", scene.outside],
  };
  if (area !== null) arrays["area"] = ["f64", area];
  if (bricks !== null) {
    Object.assign(arrays, {
      brick_block: ["u32", bricks.block], brick_size: ["f64", bricks.size], brick_group: ["u32", bricks.group], brick_run: ["u32", bricks.run],
      run_from: ["u32", bricks.runFrom], run_to: ["u32", bricks.runTo], run_bottom: ["f32", bricks.runBottom],
    });
  }
  return encodeFrame(header, arrays);
}

/** Bytes of bricks in each column. */
export function brickSums(scene: Scene): number[] {
  const sums = new Array<number>(scene.view.columns).fill(0);
  const bricks = scene.bricks!;
  for (let brick = 0; brick < bricks.block.length; brick++) {
    for (let run = bricks.run[brick]!; run < bricks.run[brick + 1]!; run++) {
      for (let column = bricks.runFrom[run]!; column < bricks.runTo[run]!; column++) sums[column]! += bricks.size[brick]!;
    }
  }
  return sums;
}

export function makeBands(): Bands {
  return {
    window: { r: 0, axis: "event", from: 0, to: 8, columns: 4 },
    labels: ["step 1", "step 2", "forward"],
    lanes: [{ kind: "step", name: "steps" }, { kind: "annotation", name: "annotations" }],
    marks: [{ at: 1, event: 1, kind: "oom", label: "", count: 1 }, { at: 7, event: 7, kind: "snapshot", label: "saved", count: 3 }],
    active: Float64Array.of(10, 20, 15, 5),
    cached: Float64Array.of(0, 0, 5, 15),
    reserved: Float64Array.of(10, 20, 20, 20),
    cacheLimit: Float64Array.of(NaN, NaN, 25, 25),
    memoryLimit: new Float64Array(4).fill(NaN),
    deviceUsed: new Float64Array(4).fill(NaN),
    spanLane: Uint32Array.of(0, 0, 1),
    spanLabel: Uint32Array.of(0, 1, 2),
    spanFrom: Float64Array.of(0, 4, 0),
    spanTo: Float64Array.of(4, 8, 2),
    spanCount: Uint32Array.of(1, 5, 1),
  };
}
