// Numbers and places as words for the page, in the units that the reader chose. Unknown is "–", never an exception.
//
// Not here: sentences of reports (reports/sentences.ts).

import type { LineTotal, MomentAt, StackLine } from "../data/shapes";
import type { Amount } from "../data/types";
import { type ByteUnits, formatBytes, formatBytesChange, formatBytesExact, formatCount, formatNanos } from "../draw/format";
import { baseName } from "./frames";

export const UNKNOWN = "–";

type Known = number | null | undefined;

let units: ByteUnits = "GiB";

export function chosenUnits(): ByteUnits {
  return units;
}

/** The page calls this before it draws; words are made in these units from then on. */
export function chooseUnits(chosen: ByteUnits): void {
  units = chosen;
}

/** "1.50 GiB", "17 B". */
export function bytes(size: Known): string {
  return isNumber(size) ? formatBytes(size, units) : UNKNOWN;
}

/** "+1.50 GiB", "−3 B", "±0 B". */
export function change(size: Known): string {
  if (!isNumber(size)) return UNKNOWN;
  return size === 0 ? "±0 B" : formatBytesChange(size, units);
}

/** "1,204,331 B". */
export function exactBytes(size: Known): string {
  return isNumber(size) ? formatBytesExact(size) : "not known";
}

/** "1,204,331"; two digits behind the point at most. */
export function count(number: Known): string {
  return isNumber(number) ? formatCount(Math.round(number * 100) / 100) : UNKNOWN;
}

export function countChange(number: Known): string {
  if (!isNumber(number)) return UNKNOWN;
  return number > 0 ? `+${count(number)}` : number === 0 ? "±0" : count(number);
}

/** "1 buffer", "3 buffers". */
export function counted(number: Known, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** "85 µs", "2 min 3.5 s". */
export function nanos(time: Known): string {
  return isNumber(time) ? formatNanos(time) : UNKNOWN;
}

/** "97.3%". Never "100.0%" for less than all, nor "0.0%" for more than nothing. */
export function percent(share: Known): string {
  if (!isNumber(share)) return UNKNOWN;
  const tenths = Math.round(share * 1000);
  if (share < 1 && tenths >= 1000) return ">99.9%";
  if (share > 0 && tenths < 1) return "<0.1%";
  return `${(tenths / 10).toFixed(1)}%`;
}

/** "3.0 GiB in 12 buffers". */
export function amount(sum: Amount | null | undefined): string {
  return `${bytes(sum?.bytes)} in ${counted(sum?.count, "buffer")}`;
}

/** "train.py:12 step", or what a row without a line stands for. */
export function place(line: (StackLine & { kind?: string | null }) | null | undefined): string {
  const special = specialPlace(line?.kind);
  if (special) return special;
  if (!line?.file && !line?.function) return "no Python line";
  const at = line.line ? `:${line.line}` : "";
  return [`${baseName(line.file ?? "")}${at}`, line.function].filter(Boolean).join(" ");
}

/** "train.py:12" within a sentence. */
export function shortPlace(line: StackLine | null | undefined): string {
  return line?.file ? `${baseName(line.file)}${line.line ? `:${line.line}` : ""}` : "no Python line";
}

/** The whole path. */
export function fullPlace(line: LineTotal | StackLine | null | undefined): string {
  return line?.file ? `${line.file}${line.line ? `:${line.line}` : ""}${line.function ? ` in ${line.function}` : ""}` : "";
}

function specialPlace(kind: string | null | undefined): string | null {
  if (kind === "before_recording") return "before the recording";
  if (kind === "no_python_line") return "no Python line";
  return kind === "not_listed" ? "not listed one by one" : null;
}

/** "at 1.204 s, event 3,331, step 2". */
export function when(moment: MomentAt | null | undefined): string {
  if (!moment) return "at a moment that is not known";
  const step = isNumber(moment.step) ? `, step ${count(moment.step)}` : "";
  return `at ${nanos(moment.time_nanos)}, event ${count(moment.after_events)}${step}`;
}

export function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

/** The elements of a list that may be missing or something else. */
export function list<T>(value: readonly T[] | null | undefined): readonly T[] {
  return Array.isArray(value) ? value : [];
}
