// What the page's buttons, rows and keys do to the state: jumps, links from reports, the cursor into view.
//
// Not here: which key or button does it.

import { sentenceOf } from "../data/errors";
import type { AxisName, Moment, Place, PlaceName, Recording } from "../data/types";
import type { StackLine } from "../data/shapes";
import { baseName } from "./frames";
import type { Context } from "./view";

/** The recording that panels speak of. */
export function mainRecording(context: Context): Recording | null {
  const { recordings } = context.recordings();
  return recordings.find((one) => one.r === context.store.state.shown[0]) ?? recordings[0] ?? null;
}

/** The moment that panels speak of: the cursor, otherwise the peak. */
export function shownMoment(context: Context): Moment {
  return context.store.state.event ?? mainRecording(context)?.peak_active.event ?? 0;
}

/** The part of the axis that shows `at`: as it is when `at` is in it, otherwise moved so that `at` is in the middle. */
export function viewAround(at: number, from: number | null, to: number | null): { from: number | null; to: number | null } {
  if (from === null || to === null || (at >= from && at <= to)) return { from, to };
  const half = (to - from) / 2;
  return { from: at - half, to: at + half };
}

export function positionOn(axis: AxisName, place: Place): number {
  if (axis === "event") return place.event;
  return axis === "step" ? (place.step ?? 0) : place.time;
}

/** Sets the cursor to a place with a name. Answers a sentence when that is impossible. */
export async function jump(context: Context, name: PlaceName): Promise<string> {
  const recording = mainRecording(context);
  if (!recording) return "no recording is shown";
  try {
    const place = await context.source.place(recording.r, { name, event: shownMoment(context) });
    moveTo(context, place);
    return `cursor at event ${place.event}`;
  } catch (error) {
    return sentenceOf(error);
  }
}

/** Sets the cursor to a moment, and shows it on the timeline. */
export async function jumpToEvent(context: Context, event: Moment, group: string | null = null): Promise<void> {
  const recording = mainRecording(context);
  if (!recording) return;
  const change = { page: "timeline" as const, event, other: null, range: false, ...(group === null ? {} : { group }) };
  context.store.set(change, "push");
  try {
    const place = await context.source.place(recording.r, { event });
    const { axis, from, to } = context.store.state;
    context.store.set(viewAround(positionOn(axis, place), from, to));
  } catch {
    // The cursor is set; only that it is in view could not be made sure of.
  }
}

function moveTo(context: Context, place: Place): void {
  const { axis, from, to } = context.store.state;
  context.store.set({ event: place.event, other: null, range: false, ...viewAround(positionOn(axis, place), from, to) }, "push");
}

/** Finds the group of a line and shows it on the timeline when it held most. Answers a sentence when there is none. */
export async function showLine(context: Context, line: StackLine | null | undefined): Promise<string> {
  const recording = mainRecording(context);
  if (!recording || !line?.file) return "this row has no line to show";
  try {
    const at = `${baseName(line.file)}:${line.line ?? 0}`;
    const found = await context.source.find(recording.r, at, "line");
    const group = closest(found.groups, at);
    if (!group) return `no allocation of ${at} was found`;
    context.store.set({ by: "line", tab: "table", filter: "" });
    await jumpToEvent(context, group.event, group.key);
    return `${at} is highlighted, when it held most`;
  } catch (error) {
    return sentenceOf(error);
  }
}

/** The group of the line itself, rather than one that only has it on a stack. */
export function closest<G extends { name: string }>(groups: readonly G[], at: string): G | null {
  const own = groups.find((group) => new RegExp(`${escape(at)}(?!\\d)`).test(group.name));
  return own ?? groups[0] ?? null;
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");
}
