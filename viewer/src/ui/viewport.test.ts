import { describe, expect, test } from "vitest";
import { START } from "../state/state";
import { bytesInView, changeFor, clockOffset, panned, partInView, sharesClock, wholeOf, zoomed } from "./viewport";
import type { Recording } from "../data/types";

const recording = (r: number, start: string, to: number, events = 10): Recording =>
  ({ r, start_unix_nanos: start, from_nanos: 0, to_nanos: to, events, steps: r === 0 ? [2, 5] : null, peak_active: { event: 1, nanos: 1, bytes: 100 * (r + 1) } }) as Recording;

describe("recordings on one clock", () => {
  const first = recording(0, "1700000000000000000", 1000);
  const later = recording(1, "1700000000000000400", 1000, 50);

  test("are moved by the difference of their starts, exactly", () => {
    expect(clockOffset(later, first, "time")).toBe(400);
    expect(clockOffset(first, later, "time")).toBe(-400);
    expect(clockOffset(later, first, "event")).toBe(0);
    expect(clockOffset(recording(1, "", 5), first, "time")).toBe(0);
    expect(clockOffset(recording(1, "-3e5", 5), first, "time")).toBe(0);
  });

  test("that did not run at the same time begin at their own starts", () => {
    const nextDay = recording(1, "1700000000000001001", 1000);
    expect([clockOffset(nextDay, first, "time"), clockOffset(first, nextDay, "time")]).toEqual([0, 0]);
    expect([sharesClock(nextDay, first, "time"), sharesClock(later, first, "time"), sharesClock(nextDay, first, "event")]).toEqual([false, true, true]);
  });

  test("have a whole that holds them all", () => {
    expect(wholeOf([first, later], "time")).toEqual({ from: 0, to: 1400 });
    expect(wholeOf([first, later], "event")).toEqual({ from: 0, to: 50 });
    expect(wholeOf([first, later], "step")).toEqual({ from: 2, to: 6 });
    expect(wholeOf([later], "step")).toEqual({ from: 0, to: 1 });
    expect(wholeOf([recording(0, "", 0)], "time")).toEqual({ from: 0, to: 1 });
    expect(wholeOf([], "time")).toEqual({ from: 0, to: 1 });
  });

  test("share their height", () => {
    expect(bytesInView(START, [first, later])).toEqual({ low: 0, high: 210 });
    expect(bytesInView({ ...START, low: 5, high: 9 }, [first])).toEqual({ low: 5, high: 9 });
  });
});

describe("what is in view", () => {
  const whole = { from: 0, to: 1000 };

  test("is the whole without a part", () => {
    expect(partInView(START, whole)).toBe(whole);
    expect(partInView({ ...START, from: 1, to: 2 }, whole)).toEqual({ from: 1, to: 2 });
  });

  test("keeps the position under the pointer, and stays within the whole", () => {
    for (let step = 0; step < 200; step++) {
      const from = (step * 37) % 900;
      const part = { from, to: from + 10 + (step % 90) };
      const around = part.from + ((step % 11) / 10) * (part.to - part.from);
      const near = zoomed(part, 0.5, around, whole, "event");
      expect((around - near.from) / (near.to - near.from)).toBeCloseTo((around - part.from) / (part.to - part.from), 9);
      for (const moved of [near, zoomed(part, 30, around, whole, "event"), panned(part, 3, whole), panned(part, -30, whole)]) {
        expect(moved.from).toBeGreaterThanOrEqual(0);
        expect(moved.to).toBeLessThanOrEqual(1000 + 1e-9);
        expect(moved.to).toBeGreaterThan(moved.from);
      }
    }
  });

  test("is not zoomed to nothing", () => {
    const near = zoomed({ from: 500, to: 505 }, 1e-9, 502, whole, "event");
    expect(near.to - near.from).toBeCloseTo(4, 9);
    const tiny = zoomed({ from: 0, to: 2 }, 0.5, 1, { from: 0, to: 2 }, "event");
    expect(tiny).toEqual({ from: 0, to: 2 });
  });

  test("goes into the address short, and as nothing when it is all", () => {
    expect(changeFor(whole, whole)).toEqual({ from: null, to: null });
    expect(changeFor({ from: 123456789.123, to: 223456789.123 }, { from: 0, to: 1e9 })).toEqual({ from: 123457000, to: 223457000 });
    const narrow = changeFor({ from: 1e9 + 0.123456789, to: 1e9 + 10.1 }, { from: 0, to: 1e10 });
    expect(narrow.to! - narrow.from!).toBeGreaterThan(9.9);
  });
});
