import { describe, expect, test } from "vitest";
import { START, type State } from "./state";
import { queryFromState, stateFromQuery } from "./url";

/** Mulberry32: the same states in every run. */
function makeRandom(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const TEXTS = ["", "train.py:12", "a&b=c#d?e", "100 %+1", "<img src=x onerror=alert(1)>", "ünï\u0000code 🐈", "null", "  "];

function randomState(random: () => number): State {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!;
  const index = (): number => Math.floor(random() * 1e9);
  const pair = (): [number, number] | [null, null] => {
    if (random() < 0.3) return [null, null];
    const from = (random() - 0.5) * 10 ** Math.floor(random() * 15);
    return [from, from + 1 + random() * 1e6];
  };
  const [from, to] = pair();
  const [low, high] = pair();
  const event = random() < 0.3 ? null : index();
  const other = event === null || random() < 0.5 ? null : index();
  return {
    page: pick(["timeline", "growth", "whatif", "report"]), axis: pick(["time", "event", "step"]), by: pick(["line", "dtype", "step"]),
    tab: pick(["table", "flame", "block", "range"]), shown: pick([[0], [1], [3, 0, 2], []]), from, to, low, high, event, other,
    areas: random() < 0.5, units: pick(["GiB", "GB"]), range: other !== null && random() < 0.5, block: random() < 0.5 ? null : index(),
    group: random() < 0.3 ? null : pick(TEXTS), filter: pick(TEXTS), search: pick(TEXTS), policy: pick(TEXTS), device: pick(TEXTS),
    cacheLimit: random() < 0.5 ? null : index(), memoryLimit: random() < 0.5 ? null : 0,
  };
}

describe("the address", () => {
  test("of the plain view is empty", () => {
    expect(queryFromState(START)).toBe("");
    expect(stateFromQuery("")).toEqual(START);
  });

  test("holds only what differs", () => {
    expect(queryFromState({ ...START, event: 12, areas: true, shown: [2, 0] })).toBe("shown=2%2C0&areas=1&event=12");
  });

  test("gives every state back", () => {
    const random = makeRandom(6);
    for (let round = 0; round < 500; round++) {
      const state = randomState(random);
      // No recording shown is no view; an address can't ask for it.
      if (state.shown.length === 0) state.shown = [0];
      expect(stateFromQuery(`?${queryFromState(state)}`)).toEqual(state);
    }
  });

  test.each([
    ["page=admin&axis=__proto__&by=constructor&tab=0", START],
    ["from=5&to=5", START],
    ["from=9&to=5", START],
    ["from=NaN&to=1e999", START],
    ["from=1", START],
    ["low=&high=3", START],
    ["event=-1&other=3&range=1", START],
    ["event=1.5", START],
    ["event=99999999999999999999", START],
    ["range=1", START],
    ["areas=yes&nobody=knows", START],
    ["shown=a", START],
    ["shown=", START],
    [`filter=${"x".repeat(5000)}`, START],
    ["shown=1,1,2", { ...START, shown: [1, 2] }],
    ["event=3&range=1", { ...START, event: 3 }],
  ])("%s falls back", (query, expected) => {
    expect(stateFromQuery(query)).toEqual(expected);
  });

  test("doesn't let one state change another", () => {
    stateFromQuery("").shown.push(9);
    expect(START.shown).toEqual([0]);
  });
});
