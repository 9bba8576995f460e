// Where things are in a Scene: which column, which block at which height. Pure; shared by drawing and the pack.

import type { Scene, Window } from "./types";

type Bricks = NonNullable<Scene["bricks"]>;

/** Axis units of one column; 0 for an empty window. */
export function columnWidth(window: Window): number {
  return window.columns > 0 ? Math.max(0, (window.to - window.from) / window.columns) : 0;
}

/** The column that holds `at`, clamped to the window. */
export function columnAt(window: Window, at: number): number {
  const width = columnWidth(window);
  const column = width > 0 ? Math.floor((at - window.from) / width) : 0;
  return Math.min(Math.max(0, window.columns - 1), Math.max(0, column));
}

/** First index of rising `values` that is not below `value`. */
export function lowerBound(values: ArrayLike<number>, value: number, from = 0, to = values.length): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Bytes of one row of the picture. */
export function rowBytes(scene: Scene): number {
  const { low, high, rows } = scene.view;
  return rows > 0 ? (high - low) / rows : 0;
}

/** The brick at a column and a height in bytes from the bottom of the stack, as an index into `bricks.block`; -1 for none. */
export function brickAt(scene: Scene, column: number, height: number): number {
  const { bricks } = scene;
  const row = rowBytes(scene);
  if (bricks === null || row <= 0) return -1;
  for (let brick = 0; brick < bricks.block.length; brick++) {
    const run = runAt(bricks, brick, column);
    if (run < 0) continue;
    const bottom = scene.view.low + bricks.runBottom[run]! * row;
    if (height >= bottom && height < bottom + bricks.size[brick]!) return brick;
  }
  return -1;
}

/** The run of a brick that covers `column`, or -1. */
export function runAt(bricks: Bricks, brick: number, column: number): number {
  const first = bricks.run[brick]!;
  const end = bricks.run[brick + 1]!;
  if (first >= end || bricks.runFrom[first]! > column || bricks.runTo[end - 1]! <= column) return -1;
  for (let run = first; run < end; run++) {
    if (bricks.runFrom[run]! <= column && column < bricks.runTo[run]!) return run;
  }
  return -1;
}
