import { describe, expect, test } from "vitest";
import { formatBytes, formatBytesChange, formatBytesExact, formatCount, formatNanos, formatPercent, shorten } from "./format";

test.each([
  [0, "0"], [999, "999"], [1000, "1,000"], [1234567, "1,234,567"], [-1234, "−1,234"], [1234.5, "1,234.5"],
  [Number.MAX_SAFE_INTEGER, "9,007,199,254,740,991"], [NaN, "unknown"], [1e21, "1,000,000,000,000,000,000,000"],
])("count %d is %s", (count, text) => expect(formatCount(count)).toBe(text));

test.each([
  [0, "0 B", "0 B"], [1023, "1023 B", "1.02 kB"], [1024, "1.00 KiB", "1.02 kB"], [1536, "1.50 KiB", "1.54 kB"],
  [1048575, "1.00 MiB", "1.05 MB"], [999_999, "977 KiB", "1.00 MB"], [10240, "10.0 KiB", "10.2 kB"],
  [1.5 * 2 ** 30, "1.50 GiB", "1.61 GB"], [-2048, "−2.00 KiB", "−2.05 kB"], [2 ** 53, "8.00 PiB", "9.01 PB"], [NaN, "unknown", "unknown"],
])("%d bytes are %s or %s", (bytes, binary, decimal) => {
  expect(formatBytes(bytes)).toBe(binary);
  expect(formatBytes(bytes, "GB")).toBe(decimal);
});

test("no size is written with four digits before the unit's next", () => {
  for (let bytes = 1; bytes < 2 ** 52; bytes = Math.ceil(bytes * 1.013)) {
    for (const [units, base] of [["GiB", 1024], ["GB", 1000]] as const) {
      expect(Number(formatBytes(bytes, units).split(" ")[0]), `${bytes}`).toBeLessThan(base);
    }
  }
});

test("changes carry their sign, exact sizes every digit", () => {
  expect(formatBytesChange(2048)).toBe("+2.00 KiB");
  expect(formatBytesChange(-2048)).toBe("−2.00 KiB");
  expect(formatBytesChange(0)).toBe("0 B");
  expect(formatBytesExact(1073741824)).toBe("1,073,741,824 B");
});

test.each([
  [0, "0 ns"], [250, "250 ns"], [1000, "1 µs"], [999.6, "1 µs"], [85_400, "85.4 µs"], [999_600, "1 ms"], [12_345_678, "12.3 ms"], [1e9, "1 s"],
  [59.9e9, "59.9 s"], [59.99e9, "1 min 0 s"], [184.5e9, "3 min 4.5 s"], [3661e9, "1 h 1 min 1 s"], [-1500, "−1.5 µs"], [Infinity, "unknown"],
])("%d ns are %s", (nanos, text) => expect(formatNanos(nanos)).toBe(text));

describe("text", () => {
  test("is cut in the middle", () => {
    expect(shorten("train.py:12", 11)).toBe("train.py:12");
    expect(shorten("a/very/long/path/train.py:12", 15)).toBe("a/very/…n.py:12");
    expect(shorten("abcdef", 3)).toHaveLength(3);
  });

  test("of a part is a percentage", () => {
    expect(formatPercent(0.1234)).toBe("12.3 %");
    expect(formatPercent(0 / 0)).toBe("unknown");
  });
});
