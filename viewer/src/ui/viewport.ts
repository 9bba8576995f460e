// The part of the axis in view: whole, panned, zoomed, and the clock that several recordings share. Pure.
//
// Positions of the State are on the clock of the first recording shown; the others are moved by the difference of
// their starts.

import type { AxisName, Recording } from "../data/types";
import type { State } from "../state/state";

export interface Part {
  from: number;
  to: number;
}

/** The narrowest part worth seeing: a few nanoseconds, events, or millionths of a step. */
const NARROWEST: Readonly<Record<AxisName, number>> = { time: 10, event: 4, step: 1e-4 };

/** Space above the peak, so that it is seen to be one. */
const HEADROOM = 1.05;

/** Nanoseconds to add to a recording's own time to stand on the clock of `first`. */
export function clockOffset(recording: Recording, first: Recording, axis: AxisName): number {
  if (axis !== "time" || recording.r === first.r) return 0;
  if (!isDigits(recording.start_unix_nanos) || !isDigits(first.start_unix_nanos)) return 0;
  const offset = Number(BigInt(recording.start_unix_nanos) - BigInt(first.start_unix_nanos));
  return ranTogether(recording, first, offset) ? offset : 0;
}

/** Ranks of one run overlap; runs of different days would be slivers on one clock, so each begins at its own start. */
function ranTogether(recording: Recording, first: Recording, offset: number): boolean {
  return offset <= first.to_nanos && offset + recording.to_nanos >= 0;
}

/** Whether positions of both are of one clock, which the title says otherwise. */
export function sharesClock(recording: Recording, first: Recording, axis: AxisName): boolean {
  return recording.r === first.r || axis !== "time" || clockOffset(recording, first, axis) !== 0 || recording.start_unix_nanos === first.start_unix_nanos;
}

// BigInt takes minutes over a million digits, which only a forged trace has.
const isDigits = (text: string): boolean => /^\d{1,24}$/.test(text);

/** The whole of what the recordings hold on an axis, never empty. */
export function wholeOf(recordings: readonly Recording[], axis: AxisName): Part {
  let from = Infinity;
  let to = -Infinity;
  for (const recording of recordings) {
    const part = partOf(recording, axis);
    if (part === null) continue;
    const offset = clockOffset(recording, recordings[0]!, axis);
    from = Math.min(from, part.from + offset);
    to = Math.max(to, part.to + offset);
  }
  if (!Number.isFinite(from) || !Number.isFinite(to)) return { from: 0, to: 1 };
  return to > from ? { from, to } : { from, to: from + 1 };
}

function partOf(recording: Recording, axis: AxisName): Part | null {
  if (axis === "time") return { from: Math.min(0, recording.from_nanos), to: recording.to_nanos };
  if (axis === "event") return { from: 0, to: recording.events };
  return recording.steps === null ? null : { from: recording.steps[0], to: recording.steps[1] + 1 };
}

export function partInView(state: State, whole: Part): Part {
  if (state.from === null || state.to === null) return whole;
  return { from: state.from, to: state.to };
}

export function bytesInView(state: State, recordings: readonly Recording[]): { low: number; high: number } {
  if (state.low !== null && state.high !== null) return { low: state.low, high: state.high };
  const peak = Math.max(1, ...recordings.map((one) => one.peak_active.bytes));
  return { low: 0, high: peak * HEADROOM };
}

/** Moved by a part of its width, not beyond the whole. */
export function panned(part: Part, by: number, whole: Part): Part {
  return clamped({ from: part.from + by * (part.to - part.from), to: part.to + by * (part.to - part.from) }, whole);
}

/** `factor` below 1 shows less; the position `around` stays where it is. */
export function zoomed(part: Part, factor: number, around: number, whole: Part, axis: AxisName): Part {
  const span = part.to - part.from;
  const narrowest = Math.min(NARROWEST[axis], whole.to - whole.from);
  const wanted = Math.min(whole.to - whole.from, Math.max(narrowest, span * factor));
  const share = span > 0 ? (around - part.from) / span : 0.5;
  const from = around - share * wanted;
  return clamped({ from, to: from + wanted }, whole);
}

function clamped(part: Part, whole: Part): Part {
  const span = Math.min(part.to - part.from, whole.to - whole.from);
  const from = Math.min(whole.to - span, Math.max(whole.from, part.from));
  return { from, to: from + span };
}

/** As the State has it: null for the whole, and no digits that no pixel shows. */
export function changeFor(part: Part, whole: Part): { from: number | null; to: number | null } {
  const slack = (whole.to - whole.from) * 1e-6;
  if (part.from <= whole.from + slack && part.to >= whole.to - slack) return { from: null, to: null };
  const unit = 10 ** Math.floor(Math.log10(Math.max(1e-9, part.to - part.from)) - 5);
  const round = (value: number): number => (unit >= 1 ? Math.round(value / unit) * unit : Number(value.toFixed(Math.min(12, Math.ceil(-Math.log10(unit))))));
  const from = round(part.from);
  const to = round(part.to);
  return to > from ? { from, to } : { from: part.from, to: part.to };
}
