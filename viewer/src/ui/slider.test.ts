import { expect, it } from "vitest";
import { SLIDER_STEPS, bytesAt, positionOf } from "./slider";

const GIB = 2 ** 30;

it("goes from nothing to the largest in rising whole MiB", () => {
  const sizes = Array.from({ length: SLIDER_STEPS + 1 }, (_, at) => bytesAt(at, 64 * GIB));
  expect(sizes[0]).toBe(0);
  expect(sizes.at(-1)).toBe(64 * GIB);
  for (let at = 1; at < sizes.length; at++) {
    expect(sizes[at]!).toBeGreaterThanOrEqual(sizes[at - 1]!);
    expect(sizes[at]! % 2 ** 20).toBe(0);
  }
});

it("has even factors: the middle is the geometric mean", () => {
  const middle = bytesAt(1 + (SLIDER_STEPS - 1) / 2, 2 ** 40);
  expect(middle / 2 ** 30).toBeCloseTo(1, 1);
});

it("comes back to the same size, but for a unit", () => {
  for (const most of [3_454_752, GIB, 192 * GIB]) {
    for (let at = 0; at <= SLIDER_STEPS; at++) {
      const size = bytesAt(at, most);
      // Neighbouring positions may be less than a unit apart.
      const unit = Math.min(2 ** 20, 2 ** Math.floor(Math.log2(most / 4096)));
      expect(Math.abs(bytesAt(positionOf(size, most), most) - size)).toBeLessThanOrEqual(unit);
    }
  }
});

it("stands any number", () => {
  expect(positionOf(1e30, GIB)).toBe(SLIDER_STEPS);
  expect(positionOf(-1, GIB)).toBe(0);
  expect(positionOf(5, GIB)).toBe(1);
  expect(bytesAt(SLIDER_STEPS, 0)).toBe(2);
  expect(bytesAt(1, 3_454_752)).toBe(512);
});
