// Numbers as text: bytes exact and short, times, counts. The same words in the picture, its tables and its export.

export type ByteUnits = "GiB" | "GB";

const BYTE_STEPS: Readonly<Record<ByteUnits, { base: number; names: readonly string[] }>> = {
  GiB: { base: 1024, names: ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] },
  GB: { base: 1000, names: ["B", "kB", "MB", "GB", "TB", "PB"] },
};

/** `1,234,567`; groups of three by commas, as the command line writes them. */
export function formatCount(count: number): string {
  if (!Number.isFinite(count)) return "unknown";
  const [whole, part] = digits(Math.abs(count)).split(".");
  const grouped = whole!.replace(/\B(?=(\d{3})+$)/g, ",");
  return `${count < 0 ? "−" : ""}${grouped}${part === undefined ? "" : `.${part}`}`;
}

/** Without an exponent, which from 1e21 on only BigInt writes. */
function digits(size: number): string {
  if (size >= 1e21) return BigInt(size).toString();
  return size < 1e-6 ? size.toFixed(0) : String(size);
}

/** `1,073,741,824 B`: every digit. */
export function formatBytesExact(bytes: number): string {
  return Number.isFinite(bytes) ? `${formatCount(bytes)} B` : "unknown";
}

/** `1.50 GiB`: three digits that matter; below one unit of a thousand, exact. */
export function formatBytes(bytes: number, units: ByteUnits = "GiB"): string {
  if (!Number.isFinite(bytes)) return "unknown";
  const { base, names } = BYTE_STEPS[units];
  let value = Math.abs(bytes);
  let step = 0;
  // A value that rounds to a whole next unit is written in it: 1.00 MiB, not 1024 KiB.
  while (step < names.length - 1 && Number(threeDigits(value, step)) >= base) {
    value /= base;
    step++;
  }
  return `${bytes < 0 ? "−" : ""}${threeDigits(value, step)} ${names[step]}`;
}

/** `+1.50 GiB` or `−1.50 GiB`, for differences. */
export function formatBytesChange(bytes: number, units: ByteUnits = "GiB"): string {
  return bytes > 0 ? `+${formatBytes(bytes, units)}` : formatBytes(bytes, units);
}

function threeDigits(value: number, step: number): string {
  if (step === 0) return String(Math.round(value));
  return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

const TIME_STEPS: readonly { nanos: number; name: string }[] = [
  { nanos: 3_600e9, name: "h" },
  { nanos: 60e9, name: "min" },
  { nanos: 1e9, name: "s" },
  { nanos: 1e6, name: "ms" },
  { nanos: 1e3, name: "µs" },
];

/** `12.3 ms`, `3 min 4.5 s`, `250 ns`. */
export function formatNanos(nanos: number): string {
  if (!Number.isFinite(nanos)) return "unknown";
  const sign = nanos < 0 ? "−" : "";
  const size = Math.abs(nanos);
  if (size >= 59.95e9) return sign + clock(size);
  // 999,600 ns would round to "1000 µs", so a unit begins where rounding reaches it.
  const step = TIME_STEPS.slice(2).find((one) => size >= one.nanos * 0.9995);
  if (step === undefined) return `${sign}${Math.round(size)} ns`;
  return `${sign}${plain(size / step.nanos)} ${step.name}`;
}

function clock(nanos: number): string {
  const tenths = Math.round(nanos / 1e8);
  const hours = Math.floor(tenths / 36_000);
  const minutes = Math.floor((tenths % 36_000) / 600);
  const seconds = (tenths % 600) / 10;
  if (hours > 0) return `${hours} h ${minutes} min ${Math.floor(seconds)} s`;
  return `${minutes} min ${seconds} s`;
}

/** Three digits without zeros at the end. */
function plain(value: number): string {
  return String(Number(value.toPrecision(3)));
}

/** `12.3 %` of a part from 0 to 1. */
export function formatPercent(part: number): string {
  return Number.isFinite(part) ? `${(part * 100).toFixed(1)} %` : "unknown";
}

/** Cut in the middle, which keeps the line number of `…/long/path/train.py:42`. */
export function shorten(text: string, most: number): string {
  if (text.length <= most) return text;
  const tail = Math.ceil((most - 1) / 2);
  return `${text.slice(0, Math.max(0, most - 1 - tail))}…${text.slice(text.length - tail)}`;
}
