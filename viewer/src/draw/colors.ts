// Colours: one per group, from its key alone, so that a line has its colour in every picture, table and session.
//
// Hues are 30 steps of the circle at two weights, each readable on its own background; text is never drawn in them.

export interface Palette {
  background: string;
  text: string;
  faint: string;
  grid: string;
  /** What is too small to be a brick, and what is not of the highlighted group. */
  rest: string;
  restLine: string;
  dimmed: string;
  outline: string;
  selected: string;
  cursor: string;
  otherCursor: string;
  range: string;
  active: string;
  cached: string;
  reserved: string;
  limit: string;
  device: string;
  mark: string;
  bad: string;
  dark: boolean;
}

export const LIGHT: Palette = {
  background: "#ffffff", text: "#1b1f24", faint: "#57606a", grid: "#e3e7eb", rest: "#d5dae0", restLine: "#aeb6bf",
  dimmed: "#e4e7ea", outline: "#3b434b", selected: "#000000", cursor: "#b3005e", otherCursor: "#0a58b5", range: "rgba(10, 88, 181, 0.14)",
  active: "#0a58b5", cached: "#8a5a00", reserved: "#57606a", limit: "#c02020", device: "#6b3fa0", mark: "#57606a", bad: "#c02020", dark: false,
};

export const DARK: Palette = {
  background: "#14181d", text: "#e8ecf0", faint: "#a3adb8", grid: "#2a3138", rest: "#3a424b", restLine: "#59636e",
  dimmed: "#2b3138", outline: "#aab4bf", selected: "#ffffff", cursor: "#ff79b8", otherCursor: "#79b8ff", range: "rgba(121, 184, 255, 0.18)",
  active: "#79b8ff", cached: "#e3b341", reserved: "#a3adb8", limit: "#ff7b72", device: "#c9a6ff", mark: "#a3adb8", bad: "#ff7b72", dark: true,
};

export const paletteFor = (dark: boolean): Palette => (dark ? DARK : LIGHT);

const HUES = 30;

/** FNV-1a over UTF-16 units: small, and the same in every browser for ever. */
export function hashOfKey(key: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) {
    hash ^= key.charCodeAt(at);
    hash = Math.imul(hash, 0x01000193);
  }
  // The low bits of FNV are poorly mixed for keys that differ in the last letter.
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  return (hash ^ (hash >>> 12)) >>> 0;
}

const cache = new Map<string, string>();
/** Keys come from traces and may be without end. */
const MOST_CACHED = 20_000;

/** The colour of a group in every picture and table. */
export function colorOfKey(key: string, dark: boolean): string {
  const name = dark ? `d${key}` : `l${key}`;
  const known = cache.get(name);
  if (known !== undefined) return known;
  const color = colorOfIndex(hashOfKey(key) % (HUES * 2), dark);
  if (cache.size >= MOST_CACHED) cache.clear();
  cache.set(name, color);
  return color;
}

/** One of 60 colours: 30 hues, each strong and soft. */
export function colorOfIndex(index: number, dark: boolean): string {
  const hue = Math.round(((index % HUES) * 360) / HUES);
  const soft = Math.floor(index / HUES) % 2 === 1;
  const saturation = soft ? 42 : 66;
  const lightness = dark ? (soft ? 64 : 52) : soft ? 68 : 54;
  return `hsl(${hue} ${saturation}% ${lightness}%)`;
}

/** Of a difference as a part of the largest, -1 (all less) to 1 (all more): blue through grey to red. */
export function colorOfChange(part: number, dark: boolean): string {
  const size = Math.min(1, Math.abs(Number.isFinite(part) ? part : 0));
  const strength = Math.round(Math.sqrt(size) * 70);
  const lightness = Math.round(dark ? 34 + size * 16 : 84 - size * 26);
  return `hsl(${part >= 0 ? 8 : 212} ${size === 0 ? 0 : strength}% ${lightness}%)`;
}

/** Of a frame in a flame graph: the user's own code is bright, libraries are grey. */
export function colorOfFrame(name: string, own: boolean, dark: boolean): string {
  if (!own) return dark ? "#3a424b" : "#d5dae0";
  const hue = 18 + (hashOfKey(name) % 36);
  return dark ? `hsl(${hue} 58% 40%)` : `hsl(${hue} 84% 72%)`;
}
