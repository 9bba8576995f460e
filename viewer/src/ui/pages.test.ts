// Small decisions of the page's parts that need no page.
import { describe, expect, it } from "vitest";
import { AnswerError } from "../data/errors";
import { fileName } from "./export";
import type { Recording } from "../data/types";
import { madeFirst, shownAtStart, toggled } from "./header";
import { closest, viewAround } from "./moving";
import { foundTitle } from "./search";
import { startError } from "./start";
import { differenceText, numberRows } from "./whatif";
import { bytes, change, chooseUnits, count, percent, place, when } from "./words";

describe("recordings shown", () => {
  it("are never none", () => {
    expect(toggled([0], 0, false)).toEqual([0]);
    expect(toggled([0, 1], 0, false)).toEqual([1]);
    expect(toggled([0], 1, true)).toEqual([0, 1]);
  });

  it("are at the start those of one file or one time", () => {
    const run = (r: number, path: string, start: string, state = "ready") => ({ r, path, state, start_unix_nanos: start, from_nanos: 0, to_nanos: 5e9 }) as Recording;
    const start = "1700000000000000000";
    expect(shownAtStart([run(0, "a", start), run(1, "b", "1700000004000000000"), run(2, "c", "1700000006000000000")])).toEqual([0, 1]);
    expect(shownAtStart([run(0, "a", ""), run(1, "a", ""), run(2, "b", "")])).toEqual([0, 1]);
    expect(shownAtStart([run(0, "a", start, "failed"), run(1, "b", "")])).toEqual([0]);
    expect(shownAtStart([])).toEqual([0]);
  });

  it("begin with the one that was made the first", () => {
    expect(madeFirst([0, 1, 2], 2)).toEqual([2, 0, 1]);
    expect(madeFirst([0, 1], 5)).toEqual([5]);
  });
});

describe("jumps", () => {
  it("move what is in view only when it must", () => {
    expect(viewAround(5, 0, 10)).toEqual({ from: 0, to: 10 });
    expect(viewAround(50, 0, 10)).toEqual({ from: 45, to: 55 });
    expect(viewAround(50, null, null)).toEqual({ from: null, to: null });
  });

  it("take the line itself before lines that only call it, and not line 12 for line 1", () => {
    const groups = [{ name: "a.py:12 f" }, { name: "b.py:3 g" }, { name: "a.py:1 f" }];
    expect(closest(groups, "a.py:1")).toBe(groups[2]);
    expect(closest(groups, "gone.py:1")).toBe(groups[0]);
    expect(closest([], "a.py:1")).toBeNull();
    expect(closest([{ name: "axpy:1" }, { name: "a.py:1" }], "a.py:1")?.name).toBe("a.py:1");
  });
});

describe("words", () => {
  it("say what is not known by a dash", () => {
    expect([bytes(null), bytes(NaN), count(undefined), percent(null), change(undefined)]).toEqual(["–", "–", "–", "–", "–"]);
    expect(when(null)).toBe("at a moment that is not known");
  });

  it("follow the units", () => {
    chooseUnits("GB");
    expect(bytes(1.5e9)).toBe("1.50 GB");
    chooseUnits("GiB");
    expect(bytes(1.5 * 2 ** 30)).toBe("1.50 GiB");
  });

  it("never round to all or nothing", () => {
    expect([0, 0.00001, 0.5, 0.99999, 1].map(percent)).toEqual(["0.0%", "<0.1%", "50.0%", ">99.9%", "100.0%"]);
  });

  it("name rows that are no lines", () => {
    expect(place({ kind: "before_recording", file: "x" })).toBe("before the recording");
    expect(place({ file: "/a/b.py", line: 3, function: "f" })).toBe("b.py:3 f");
    expect(place(null)).toBe("no Python line");
  });
});

describe("errors at the start", () => {
  it("say what to do", () => {
    expect(startError(new AnswerError(403, "no cookie")).sentences[0]).toContain("Open the link that memviz view printed");
    expect(startError(new AnswerError(0, "gone")).sentences[0]).toContain("Run memviz view");
    expect(startError(new Error("odd")).sentences[0]).toBe("odd");
  });
});

it("file names keep to what every system takes", () => {
  expect(fileName("../..\\a b<c>:d.memviz", "timeline", "svg")).toBe("a-b-c-d.memviz-timeline.svg");
  expect(fileName("…", "cache", "csv")).toBe("memviz-cache.csv");
});

it("a search that finds nothing says what to try", () => {
  expect(foundTitle({ groups: [], left_out: 0 }, "x")).toContain("Try");
  expect(foundTitle({ groups: [{ name: "a", key: "a", bytes: 1, count: 1, event: 1 }], left_out: 2 }, "a")).toContain("1 group with “a” in the name or a stack, 2 more not listed");
});

describe("what-if", () => {
  const numbers = (peak: number, rate: number | null) => ({
    peak_active: { event: 1, bytes: peak },
    peak_reserved: { event: 1, bytes: peak },
    hit_rate: rate,
    hits: 1,
    misses: 2,
    os_allocations: 2,
    os_bytes: 10,
    evictions: 0,
    out_of_memory: null,
    policy: "",
    cache_limit: null,
    memory_limit: null,
  });
  const curves = { active: new Float64Array(), cached: new Float64Array(), reserved: new Float64Array() };

  it("says replayed less recorded, and a dash when one is missing", () => {
    const rows = numberRows({ ...numbers(3, 0.5), ...curves, recorded: numbers(10, null) });
    expect(differenceText(rows[0]!)).toBe("−7 B");
    expect(differenceText(rows.find((row) => row.kind === "share")!)).toBe("–");
  });

  it("stands an answer with holes", () => {
    const holes = { ...curves, recorded: {} } as unknown as Parameters<typeof numberRows>[0];
    expect(numberRows(holes).every((row) => differenceText(row) === "–")).toBe(true);
  });
});
