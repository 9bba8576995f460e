import { describe, expect, test } from "vitest";
import { axisTicks, byteTicks, makeScale } from "./scale";

describe("a scale", () => {
  test("maps both ways", () => {
    const scale = makeScale(100, 300, 10, 50);
    expect([scale.pixel(100), scale.pixel(200), scale.pixel(300)]).toEqual([10, 30, 50]);
    expect(scale.value(30)).toBe(200);
    expect(scale.value(scale.pixel(123.25))).toBeCloseTo(123.25, 9);
  });

  test("of nothing is no division by zero", () => {
    const scale = makeScale(5, 5, 0, 100);
    expect([scale.pixel(7), scale.value(50)]).toEqual([0, 5]);
  });
});

describe("ticks", () => {
  test.each([
    [0, 100, ["0", "20 ns", "40 ns", "60 ns", "80 ns", "100 ns"]],
    [0, 5e6, ["0", "1 ms", "2 ms", "3 ms", "4 ms", "5 ms"]],
    [1.2e9, 1.2e9 + 2e6, ["1.2000 s", "1.2005 s", "1.2010 s", "1.2015 s", "1.2020 s"]],
    [0, 300e9, ["0", "1 min 0 s", "2 min 0 s", "3 min 0 s", "4 min 0 s", "5 min 0 s"]],
    [0, 60e9, ["0", "15 s", "30 s", "45 s", "60 s"]],
  ])("of time %d to %d", (from, to, expected) => {
    const labels = axisTicks("time", from, to, 5).map((tick) => tick.label);
    expect(labels).toEqual(expected);
  });

  test("of events and steps stand on whole numbers", () => {
    expect(axisTicks("event", 0, 1_000_000, 5).map((tick) => tick.label)).toEqual(["0", "200,000", "400,000", "600,000", "800,000", "1,000,000"]);
    expect(axisTicks("step", 3.2, 5.1, 20).map((tick) => tick.at)).toEqual([4, 5]);
  });

  test("of bytes stand on powers of two in GiB, of ten in GB", () => {
    expect(byteTicks(0, 2 ** 30, 4).map((tick) => tick.label)).toEqual(["0", "256 MiB", "512 MiB", "768 MiB", "1 GiB"]);
    expect(byteTicks(0, 1e9, 5, "GB").map((tick) => tick.label)).toEqual(["0", "200 MB", "400 MB", "600 MB", "800 MB", "1 GB"]);
    expect(byteTicks(0, 100, 4, "GB").map((tick) => tick.at)).toEqual([0, 50, 100]);
  });

  test("are inside, rising, apart by one step, not too many, and each label once", () => {
    for (let round = 0; round < 400; round++) {
      const from = ((round * 7919) % 1000) * 10 ** (round % 9);
      const to = from + 10 ** (1 + (round % 12)) * (1 + (round % 7));
      for (const ticks of [axisTicks("time", from, to, 8), axisTicks("event", from, to, 8), byteTicks(from, to, 8), byteTicks(from, to, 8, "GB")]) {
        const slack = (to - from) * 1e-6;
        expect(ticks.length, `${from} ${to}`).toBeGreaterThan(0);
        expect(ticks.length).toBeLessThanOrEqual(17);
        expect(ticks.every((tick) => tick.at >= from - slack && tick.at <= to + slack)).toBe(true);
        expect(new Set(ticks.map((tick) => tick.label)).size, JSON.stringify(ticks)).toBe(ticks.length);
      }
    }
  });

  test("of nothing, backwards and without number are none", () => {
    for (const [from, to] of [[5, 5], [6, 5], [NaN, 1], [0, Infinity]] as const) {
      expect(axisTicks("time", from, to, 5)).toEqual([]);
      expect(byteTicks(from, to, 5)).toEqual([]);
    }
  });
});
