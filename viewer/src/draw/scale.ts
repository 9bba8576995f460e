// Positions and pixels, and where ticks stand.

import { formatBytes, formatCount, formatNanos, type ByteUnits } from "./format";
import type { AxisName } from "../data/types";

/** A line from `from`..`to` onto `start`..`end` pixels. */
export interface Scale {
  readonly from: number;
  readonly to: number;
  pixel(value: number): number;
  value(pixel: number): number;
}

/** An empty range maps everything to the first pixel. */
export function makeScale(from: number, to: number, start: number, end: number): Scale {
  const perUnit = to > from ? (end - start) / (to - from) : 0;
  return {
    from,
    to,
    pixel: (value) => start + (value - from) * perUnit,
    value: (pixel) => (perUnit === 0 ? from : from + (pixel - start) / perUnit),
  };
}

export interface Tick {
  at: number;
  label: string;
}

/** The smallest of `steps` × 10^k, or of `steps` alone when it has no decade, that is at least `least`. */
function niceStep(least: number): number {
  const decade = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5, 10]) if (factor * decade >= least * (1 - 1e-9)) return factor * decade;
  return 10 * decade;
}

const CLOCK_STEPS_NANOS = [60e9, 120e9, 300e9, 600e9, 900e9, 1800e9, 3600e9, 7200e9, 14400e9, 21600e9, 43200e9, 86400e9];

function niceTimeStep(least: number): number {
  const seconds = [1, 2, 5, 10, 15, 30].map((step) => step * 1e9);
  if (least <= 1e9) return Math.max(1, niceStep(least));
  return [...seconds, ...CLOCK_STEPS_NANOS].find((step) => step >= least) ?? niceStep(least / 86400e9) * 86400e9;
}

function niceByteStep(least: number, units: ByteUnits): number {
  if (units === "GB" || least < 1024) return Math.max(1, niceStep(least));
  const unit = 1024 ** Math.floor(Math.log(least) / Math.log(1024));
  const parts = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
  return (parts.find((part) => part * unit >= least) ?? 1024) * unit;
}

/** At most `most` multiples of `step` within the range; indices are multiplied, so rounding does not add up. */
function multiples(from: number, to: number, step: number, most: number): number[] {
  const values: number[] = [];
  if (!(step > 0) || !Number.isFinite(from) || !Number.isFinite(to)) return values;
  for (let index = Math.ceil(from / step - 1e-9); index * step <= to + step * 1e-9 && values.length <= most; index++) {
    // Rounding up to zero gives -0, which is written with a sign.
    values.push(index * step + 0);
  }
  return values;
}

const leastStep = (from: number, to: number, most: number): number => (to - from) / Math.max(1, most);

/** Ticks of an axis, at most about `most`. */
export function axisTicks(axis: AxisName, from: number, to: number, most: number): Tick[] {
  if (!(to > from)) return [];
  const least = leastStep(from, to, most);
  if (axis !== "time") {
    const step = Math.max(1, niceStep(least));
    return multiples(from, to, step, most * 2).map((at) => ({ at, label: formatCount(at) }));
  }
  const step = niceTimeStep(least);
  return multiples(from, to, step, most * 2).map((at) => ({ at, label: timeLabel(at, step) }));
}

/** Enough digits to tell neighbours apart: deep in a long run, 3 digits would repeat. */
function timeLabel(at: number, step: number): string {
  if (at === 0) return "0";
  if (step >= 60e9) return formatNanos(at);
  const [nanos, name] = unitOfTime(Math.max(Math.abs(at), step));
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / nanos) - 1e-9)));
  const value = (at / nanos).toFixed(digits);
  return `${value.replace("-", "−")} ${name}`;
}

function unitOfTime(nanos: number): [number, string] {
  if (nanos >= 1e9) return [1e9, "s"];
  if (nanos >= 1e6) return [1e6, "ms"];
  return nanos >= 1e3 ? [1e3, "µs"] : [1, "ns"];
}

/** Ticks of bytes, at most about `most`. */
export function byteTicks(low: number, high: number, most: number, units: ByteUnits = "GiB"): Tick[] {
  if (!(high > low)) return [];
  const step = niceByteStep(leastStep(low, high, most), units);
  return multiples(low, high, step, most * 2).map((at) => ({ at, label: at === 0 ? "0" : byteLabel(at, step, units) }));
}

function byteLabel(at: number, step: number, units: ByteUnits): string {
  const short = formatBytes(at, units);
  // "1.00 GiB" says no more than "1 GiB", but "1.05" and "1.10" must differ.
  const trimmed = short.replace(/\.(\d*?)0+ /, (_, digits: string) => (digits === "" ? " " : `.${digits} `));
  return step < Math.abs(at) / 200 ? `${formatCount(at)} B` : trimmed;
}
