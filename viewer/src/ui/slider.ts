// A slider over sizes: even steps are even factors, with 0 at the left end and the largest at the right one. Pure.

export const SLIDER_STEPS = 240;
/** The smallest size beside 0 is this part of the largest, or a MiB when that is less. */
const SMALLEST_PART = 4096;
const MIB = 2 ** 20;

/** Sizes are multiples of this: a power of two, a MiB at most. */
function unitOf(most: number): number {
  return Math.min(MIB, 2 ** Math.max(0, Math.floor(Math.log2(Math.max(1, most / SMALLEST_PART)))));
}

/** Bytes at a position from 0 to `SLIDER_STEPS`. */
export function bytesAt(position: number, most: number): number {
  const top = Math.max(most, 2);
  if (position <= 0) return 0;
  if (position >= SLIDER_STEPS) return top;
  const unit = unitOf(top);
  const part = (position - 1) / (SLIDER_STEPS - 1);
  return Math.min(top, Math.round((top / unit) ** part) * unit);
}

/** The position nearest to so many bytes. */
export function positionOf(bytes: number, most: number): number {
  const top = Math.max(most, 2);
  if (bytes <= 0) return 0;
  if (bytes >= top) return SLIDER_STEPS;
  const unit = unitOf(top);
  const part = Math.log(Math.max(1, bytes / unit)) / Math.log(top / unit);
  return Math.round(1 + part * (SLIDER_STEPS - 1));
}
