// Draws a replayed run over the recorded one: filled for what was recorded, a strong line for what would have been.

import type { Palette } from "./colors";
import { makeScale, type Scale } from "./scale";
import { within, type Box, type Surface } from "./surface";

/** Bytes by column; all of one length. */
export interface Run {
  active: ArrayLike<number>;
  reserved: ArrayLike<number>;
}

export function highestOfRuns(runs: readonly Run[]): number {
  let highest = 1;
  for (const run of runs) {
    for (let column = 0; column < run.reserved.length; column++) {
      highest = Math.max(highest, run.reserved[column]! || 0, run.active[column]! || 0);
    }
  }
  return highest;
}

/** `limit`: the memory limit of the replay, or null. Either run may still be on its way. */
export function drawRuns(
  surface: Surface,
  runs: { recorded: Run | null; replayed: Run | null; limit: number | null },
  box: Box,
  palette: Palette,
): void {
  const { recorded, replayed, limit } = runs;
  const highest = highestOfRuns([recorded, replayed].filter((run) => run !== null));
  const heights = makeScale(0, highest * 1.08, box.y + box.height, box.y);
  within(surface, box, () => {
    if (recorded !== null) {
      fillUnder(surface, recorded.reserved, box, heights, palette.rest);
      fillUnder(surface, recorded.active, box, heights, palette.restLine);
    }
    if (replayed !== null) {
      line(surface, replayed.reserved, box, heights, palette.cached, []);
      line(surface, replayed.active, box, heights, palette.active, []);
    }
    if (limit !== null && limit <= highest * 1.08) line(surface, [limit], box, heights, palette.limit, [6, 3]);
  });
}

function steps(surface: Surface, values: ArrayLike<number>, box: Box, heights: Scale): void {
  const width = box.width / Math.max(1, values.length);
  for (let column = 0; column < values.length; column++) {
    const y = heights.pixel(values[column]!);
    surface.lineTo(box.x + column * width, y);
    surface.lineTo(box.x + (column + 1) * width, y);
  }
}

function fillUnder(surface: Surface, values: ArrayLike<number>, box: Box, heights: Scale, color: string): void {
  surface.fillStyle = color;
  surface.beginPath();
  surface.moveTo(box.x, box.y + box.height);
  steps(surface, values, box, heights);
  surface.lineTo(box.x + box.width, box.y + box.height);
  surface.closePath();
  surface.fill();
}

function line(surface: Surface, values: ArrayLike<number>, box: Box, heights: Scale, color: string, dash: number[]): void {
  if (values.length === 0) return;
  surface.strokeStyle = color;
  surface.lineWidth = 1.5;
  surface.setLineDash(dash);
  surface.beginPath();
  surface.moveTo(box.x, heights.pixel(values[0]!));
  steps(surface, values, box, heights);
  surface.stroke();
  surface.setLineDash([]);
}
