// State to URL query and back. Only what differs from START is written, so the plain address is the plain view; what
// is unknown or makes no sense is read as START has it, because people edit addresses.
//
// Not here: when the URL is written (store.ts).

import { START, type PageName, type State, type Tab } from "./state";
import type { AxisName, By } from "../data/types";

const PAGES: readonly PageName[] = ["timeline", "growth", "pinned", "cache", "retrace", "leaks", "compare", "whatif", "report"];
const TABS: readonly Tab[] = ["table", "flame", "block", "range"];
const AXES: readonly AxisName[] = ["time", "event", "step"];
const BYS: readonly By[] = ["line", "module", "primitive", "dtype", "annotation", "device", "thread", "step"];

/** More recordings than one page can show legibly; an address that asks for more is cut. */
const MOST_SHOWN = 64;
/** Longer text in an address is not a person's. */
const LONGEST_TEXT = 4096;

interface Codec<T> {
  write(value: T): string;
  /** Undefined when the text is no such value. */
  read(text: string): T | undefined;
}

const oneOf = <T extends string>(words: readonly T[]): Codec<T> => ({
  write: (value) => value,
  read: (text) => words.find((word) => word === text),
});

const text: Codec<string> = {
  write: (value) => value,
  read: (value) => (value.length <= LONGEST_TEXT ? value : undefined),
};

const flag: Codec<boolean> = {
  write: (value) => (value ? "1" : "0"),
  read: (value) => (value === "1" ? true : value === "0" ? false : undefined),
};

const number: Codec<number> = {
  write: String,
  read(value) {
    const parsed = value.trim() === "" ? NaN : Number(value);
    return Number.isFinite(parsed) ? parsed : undefined;
  },
};

const index: Codec<number> = {
  write: String,
  read: (value) => (/^\d{1,15}$/.test(value) ? Number(value) : undefined),
};

const indices: Codec<number[]> = {
  write: (value) => value.join(","),
  read(value) {
    const parts = value.split(",").map(index.read);
    if (parts.some((part) => part === undefined)) return undefined;
    return [...new Set(parts as number[])].slice(0, MOST_SHOWN);
  },
};

/** Null is what START has, so it is never written; the codec of the rest serves. */
const orNull = <T>(codec: Codec<T>): Codec<T | null> => ({
  write: (value) => (value === null ? "" : codec.write(value)),
  read: codec.read,
});

const CODECS: { readonly [Field in keyof State]: readonly [name: string, codec: Codec<State[Field]>] } = {
  page: ["page", oneOf(PAGES)],
  shown: ["shown", indices],
  axis: ["axis", oneOf(AXES)],
  from: ["from", orNull(number)],
  to: ["to", orNull(number)],
  low: ["low", orNull(number)],
  high: ["high", orNull(number)],
  by: ["by", oneOf(BYS)],
  areas: ["areas", flag],
  event: ["event", orNull(index)],
  other: ["other", orNull(index)],
  range: ["range", flag],
  block: ["block", orNull(index)],
  tab: ["tab", oneOf(TABS)],
  group: ["group", orNull(text)],
  filter: ["filter", text],
  search: ["search", text],
  units: ["units", oneOf(["GiB", "GB"] as const)],
  policy: ["policy", text],
  device: ["device", text],
  cacheLimit: ["cache_limit", orNull(index)],
  memoryLimit: ["memory_limit", orNull(index)],
};

const FIELDS = Object.keys(CODECS) as (keyof State)[];

/** The query without its question mark; empty for START. */
export function queryFromState(state: State): string {
  const query = new URLSearchParams();
  for (const field of FIELDS) writeField(query, state, field);
  return query.toString();
}

function writeField<Field extends keyof State>(query: URLSearchParams, state: State, field: Field): void {
  const [name, codec] = CODECS[field];
  if (state[field] === null) return;
  // Empty text is a value beside null, so null is not compared as text.
  const written = codec.write(state[field]);
  if (START[field] === null || written !== codec.write(START[field])) query.set(name, written);
}

/** `query` with or without its question mark. */
export function stateFromQuery(query: string): State {
  const parameters = new URLSearchParams(query);
  const state: State = { ...START, shown: [...START.shown] };
  for (const field of FIELDS) readField(parameters, state, field);
  return withSense(state);
}

function readField<Field extends keyof State>(query: URLSearchParams, state: State, field: Field): void {
  const [name, codec] = CODECS[field];
  const value = query.get(name);
  const parsed = value === null ? undefined : codec.read(value);
  if (parsed !== undefined) state[field] = parsed;
}

/** Pairs that mean something only together. */
function withSense(state: State): State {
  if (state.from === null || state.to === null || state.from >= state.to) state.from = state.to = null;
  if (state.low === null || state.high === null || state.low >= state.high) state.low = state.high = null;
  if (state.event === null) state.other = null;
  if (state.other === null) state.range = false;
  return state;
}
