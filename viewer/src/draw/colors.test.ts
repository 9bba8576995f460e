import { expect, test } from "vitest";
import { colorOfChange, colorOfIndex, colorOfKey, DARK, LIGHT, hashOfKey } from "./colors";

test("a key has its colour for ever", () => {
  expect(["a", "train.py:12", "", "ü"].map(hashOfKey)).toMatchInlineSnapshot(`
    [
      187539957,
      515993280,
      447841614,
      3773443454,
    ]
  `);
  expect(colorOfKey("train.py:12", false)).toBe(colorOfKey("train.py:12", false));
  expect(colorOfKey("train.py:12", false)).not.toBe(colorOfKey("train.py:12", true));
});

test("sixty colours differ in each palette", () => {
  for (const dark of [false, true]) {
    expect(new Set(Array.from({ length: 60 }, (_, index) => colorOfIndex(index, dark))).size).toBe(60);
  }
});

test("neighbouring lines seldom share a colour", () => {
  const colors = new Set(Array.from({ length: 24 }, (_, line) => colorOfKey(`train.py:${line}`, false)));
  expect(colors.size).toBeGreaterThanOrEqual(16);
});

test("more and less are different, none is grey, nonsense is none", () => {
  expect(colorOfChange(1, false)).not.toBe(colorOfChange(-1, false));
  expect(colorOfChange(0, false)).toContain(" 0% ");
  expect(colorOfChange(NaN, false)).toBe(colorOfChange(-0, false).replace("hsl(8", "hsl(212"));
});

/** WCAG 2: (L1 + 0.05) / (L2 + 0.05) of relative luminance. */
function contrast(a: string, b: string): number {
  const luminance = (hex: string): number => {
    const [red, green, blue] = [1, 3, 5].map((at) => {
      const part = parseInt(hex.slice(at, at + 2), 16) / 255;
      return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
  };
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high! + 0.05) / (low! + 0.05);
}

test("text and lines stand out as AA asks", () => {
  for (const palette of [LIGHT, DARK]) {
    for (const color of [palette.text, palette.faint]) expect(contrast(color, palette.background)).toBeGreaterThanOrEqual(4.5);
    for (const color of [palette.active, palette.cached, palette.reserved, palette.limit, palette.device, palette.cursor, palette.otherCursor]) {
      expect(contrast(color, palette.background), color).toBeGreaterThanOrEqual(3);
    }
  }
});
