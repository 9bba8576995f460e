// The stored moment nearest to one that was asked for, and the sentence that says so.

import type { Stored } from "./unpack";

export interface Nearest {
  stored: Stored;
  /** Null when it is the very moment. */
  note: string | null;
}

/** `tables` have a parameter `event`. Of two equally near, the earlier. */
export function nearestMoments(tables: readonly Stored[], event: number): Nearest | null {
  let best: Stored | null = null;
  let bestDistance = Infinity;
  for (const stored of tables) {
    const distance = Math.abs(stored.number("event") - event);
    const earlier = best !== null && distance === bestDistance && stored.number("event") < best.number("event");
    if (distance < bestDistance || earlier) [best, bestDistance] = [stored, distance];
  }
  if (best === null) return null;
  const note = bestDistance === 0 ? null : `event ${best.number("event")}, the nearest that this page holds to event ${event}`;
  return { stored: best, note };
}
