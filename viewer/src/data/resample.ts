// A stored tile redrawn for another window: what the server would answer, as far as the tile's resolution goes.
//
// Each column asked for takes one column of the tile, the highest of those it covers, with everything in it, so
// `Σ bricks + rest + outside == active` holds after as before. Moments of columns rise, so columns taken rise too.
//
// Not here: which tile (pack.ts).

import { columnAt, columnWidth, lowerBound, rowBytes } from "./geometry";
import type { Bands, Scene, Viewport, WhatIf, Window } from "./types";

type Bricks = NonNullable<Scene["bricks"]>;

/** For each column of `asked`: the columns of `tile` it covers, end excluded; at least one. */
function covered(tile: Window, asked: Window): { first: Uint32Array; end: Uint32Array } {
  const first = new Uint32Array(asked.columns);
  const end = new Uint32Array(asked.columns);
  const width = columnWidth(asked);
  const tileWidth = columnWidth(tile);
  for (let column = 0; column < asked.columns; column++) {
    const left = columnAt(tile, asked.from + column * width);
    first[column] = left;
    // A tile's column belongs to the asked column that holds its left edge, so none counts twice.
    const right = tileWidth > 0 ? Math.ceil((asked.from + (column + 1) * width - tile.from) / tileWidth) : 0;
    end[column] = Math.min(tile.columns, Math.max(left + 1, right));
  }
  return { first, end };
}

/** `tile` as a Scene of `asked`, which lies within it. */
export function resampleScene(tile: Scene, asked: Viewport): Scene {
  const { first, end } = covered(tile.view, asked);
  const taken = takeHighest(tile.active, first, end);
  const scene: Scene = {
    ...tile,
    view: asked,
    moment: Uint32Array.from(taken, (column) => tile.moment[column]!),
    active: pick(tile.active, taken),
    lowest: Float64Array.from(taken, (_, column) => lowestOf(tile.lowest, first[column]!, end[column]!)),
    rest: pick(tile.rest, taken),
    outside: pick(tile.outside, taken),
  };
  if (tile.area !== null) scene.area = pickAreas(tile.area, tile.groups.length, tile.view.columns, taken);
  if (tile.bricks !== null) scene.bricks = moveBricks(tile, tile.bricks, asked, taken, scene.outside);
  return scene;
}

function takeHighest(active: Float64Array, first: Uint32Array, end: Uint32Array): Uint32Array {
  return Uint32Array.from(first, (from, column) => {
    let best = from;
    for (let at = from + 1; at < end[column]!; at++) if (active[at]! > active[best]!) best = at;
    return best;
  });
}

const pick = (values: Float64Array, taken: Uint32Array): Float64Array => Float64Array.from(taken, (at) => values[at]!);

function lowestOf(values: Float64Array, from: number, end: number): number {
  let lowest = values[from]!;
  for (let at = from + 1; at < end; at++) lowest = Math.min(lowest, values[at]!);
  return lowest;
}

function pickAreas(area: Float64Array, groups: number, columns: number, taken: Uint32Array): Float64Array {
  const picked = new Float64Array(groups * taken.length);
  for (let group = 0; group < groups; group++) {
    for (let column = 0; column < taken.length; column++) {
      picked[group * taken.length + column] = area[group * columns + taken[column]!]!;
    }
  }
  return picked;
}

/** Bricks in the asked columns and rows; those above or below the picture are added to `outside`. */
function moveBricks(tile: Scene, bricks: Bricks, asked: Viewport, taken: Uint32Array, outside: Float64Array): Bricks {
  const kept = { block: [] as number[], size: [] as number[], group: [] as number[], run: [0] };
  const runs = { from: [] as number[], to: [] as number[], bottom: [] as number[] };
  const tileRow = rowBytes(tile);
  const row = asked.rows > 0 ? (asked.high - asked.low) / asked.rows : 1;
  for (let brick = 0; brick < bricks.block.length; brick++) {
    const before = runs.from.length;
    const size = bricks.size[brick]!;
    for (let run = bricks.run[brick]!; run < bricks.run[brick + 1]!; run++) {
      const from = lowerBound(taken, bricks.runFrom[run]!);
      const to = lowerBound(taken, bricks.runTo[run]!, from);
      if (from === to) continue;
      const bottom = tile.view.low + bricks.runBottom[run]! * tileRow;
      if (bottom >= asked.high || bottom + size <= asked.low) {
        for (let column = from; column < to; column++) outside[column]! += size;
      } else {
        runs.from.push(from);
        runs.to.push(to);
        runs.bottom.push((bottom - asked.low) / row);
      }
    }
    if (runs.from.length === before) continue;
    kept.block.push(bricks.block[brick]!);
    kept.size.push(size);
    kept.group.push(bricks.group[brick]!);
    kept.run.push(runs.from.length);
  }
  return {
    block: Uint32Array.from(kept.block),
    size: Float64Array.from(kept.size),
    group: Uint32Array.from(kept.group),
    run: Uint32Array.from(kept.run),
    runFrom: Uint32Array.from(runs.from),
    runTo: Uint32Array.from(runs.to),
    runBottom: Float32Array.from(runs.bottom),
  };
}

export function resampleBands(tile: Bands, asked: Window): Bands {
  const { first, end } = covered(tile.window, asked);
  const highest = (values: Float64Array): Float64Array =>
    Float64Array.from(takeHighest(values, first, end), (at) => values[at]!);
  const last = (values: Float64Array): Float64Array => Float64Array.from(end, (at) => values[at - 1]!);
  return {
    ...tile,
    window: asked,
    marks: tile.marks.filter((mark) => mark.at >= asked.from && mark.at <= asked.to),
    active: highest(tile.active),
    cached: highest(tile.cached),
    reserved: highest(tile.reserved),
    cacheLimit: last(tile.cacheLimit),
    memoryLimit: last(tile.memoryLimit),
    deviceUsed: last(tile.deviceUsed),
    ...spansWithin(tile, asked),
  };
}

/** The curves of a stored replay; its numbers are of the whole run whatever is in view. */
export function resampleWhatIf(stored: WhatIf, tile: Window, asked: Window): WhatIf {
  const { first, end } = covered({ ...tile, columns: stored.active.length }, asked);
  const highest = (values: Float64Array): Float64Array =>
    Float64Array.from(takeHighest(values, first, end), (at) => values[at] ?? 0);
  return { ...stored, active: highest(stored.active), cached: highest(stored.cached), reserved: highest(stored.reserved) };
}

type Spans = Pick<Bands, "spanLane" | "spanLabel" | "spanFrom" | "spanTo" | "spanCount">;

function spansWithin(tile: Bands, asked: Window): Spans {
  const inside: number[] = [];
  for (let span = 0; span < tile.spanLane.length; span++) {
    if (tile.spanTo[span]! >= asked.from && tile.spanFrom[span]! <= asked.to) inside.push(span);
  }
  return {
    spanLane: Uint32Array.from(inside, (span) => tile.spanLane[span]!),
    spanLabel: Uint32Array.from(inside, (span) => tile.spanLabel[span]!),
    spanFrom: Float64Array.from(inside, (span) => tile.spanFrom[span]!),
    spanTo: Float64Array.from(inside, (span) => tile.spanTo[span]!),
    spanCount: Uint32Array.from(inside, (span) => tile.spanCount[span]!),
  };
}
