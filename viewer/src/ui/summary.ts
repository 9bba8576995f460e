// A picture in words: for screen readers, and in place of a picture that can't be drawn.

import { formatBytes, formatBytesExact, formatCount, formatNanos } from "../draw/format";
import { chosenUnits } from "./words";
import type { Part } from "./viewport";
import type { AxisName, Recording } from "../data/types";
import type { State } from "../state/state";

/** What a sighted person reads off the picture first: the part in view, the peak, the end, the cursor. */
export function describe(recording: Recording, state: State, part: Part): string {
  const peak = recording.peak_active;
  const units = chosenUnits();
  const words = [
    `Memory of ${recording.name} ${rangeWords(state.axis, part)}.`,
    `Active peak ${formatBytes(peak.bytes, units)}, ${formatBytesExact(peak.bytes)}, at event ${formatCount(peak.event)}, ${formatNanos(peak.nanos)}.`,
    `Active at the end ${formatBytes(recording.end_active, units)}.`,
  ];
  if (state.event !== null && state.shown[0] === recording.r) words.push(`Cursor at event ${formatCount(state.event)}.`);
  words.push("Arrow keys move the cursor by an event, with Shift by a pixel; what is live there is in the table.");
  return words.join(" ");
}

function rangeWords(axis: AxisName, { from, to }: Part): string {
  if (axis === "time") return `from ${formatNanos(from)} to ${formatNanos(to)}`;
  return `from ${axis} ${formatCount(Math.round(from * 100) / 100)} to ${formatCount(Math.round(to * 100) / 100)}`;
}

/** What to say instead of a picture, and what to do; null when there is one. */
export function stateSentence(recording: Recording, axis: AxisName): string | null {
  if (recording.state === "failed") return recording.error ?? `${recording.name} can't be read; run \`memviz check\` on the file`;
  if (recording.state === "reading") return `reading ${recording.name}: ${Math.floor(recording.read * 100)} %`;
  if (axis === "step" && recording.steps === null) {
    return `${recording.name} has no steps; choose time or events as the axis, or record with \`mlx_memviz.step()\` at each step`;
  }
  if (recording.events > 0 || recording.blocks > 0) return null;
  return `${recording.name} holds no events: nothing was allocated while it was recorded; start recording before the arrays are evaluated`;
}
