import { describe, expect, it } from "vitest";
import type { MomentTable } from "../data/types";
import { differenceOf, footerRows, momentColumns, momentRows } from "./moment";
import { csvOf, sortRows } from "./rows";

const ANSWER: MomentTable = {
  schema: 1,
  event: 7,
  nanos: 10,
  step: null,
  by: "line",
  active: { bytes: 100, count: 10 },
  cached: { bytes: 0, count: 0 },
  groups: [
    { name: "a", key: "a", bytes: 60, count: 6 },
    { name: "b", key: "b", bytes: 30, count: 3 },
  ],
  left_out: { groups: 1, bytes: 10, count: 1 },
};

const WITH_OTHER: MomentTable = {
  ...ANSWER,
  other_active: { bytes: 40, count: 4 },
  groups: [
    { name: "a", key: "a", bytes: 60, count: 6, other_bytes: 10, other_count: 1 },
    { name: "b", key: "b", bytes: 30, count: 3, other_bytes: 25, other_count: 2 },
  ],
};

const sum = (rows: { bytes: number; count: number }[], field: "bytes" | "count") => rows.reduce((total, row) => total + row[field], 0);

describe("rows of a moment", () => {
  it("add up to the total with what is left out", () => {
    const [rest, total] = footerRows(ANSWER);
    const rows = [...momentRows(ANSWER), rest!];
    expect(sum(rows, "bytes")).toBe(total!.bytes);
    expect(sum(rows, "count")).toBe(total!.count);
    expect(total!.bytes).toBe(100);
  });

  it("have no row for what is left out when nothing is", () => {
    expect(footerRows({ ...ANSWER, left_out: { groups: 0, bytes: 0, count: 0 } })).toHaveLength(1);
  });

  it("have no share of nothing", () => {
    expect(momentRows({ ...ANSWER, active: { bytes: 0, count: 0 } })[0]!.share).toBeNull();
  });
});

describe("two moments", () => {
  it("add up in the second moment too, also what is left out", () => {
    const [rest, total] = footerRows(WITH_OTHER);
    const listed = WITH_OTHER.groups.reduce((all, row) => all + row.other_bytes!, 0);
    expect(listed + rest!.other_bytes!).toBe(total!.other_bytes);
    expect(rest!.other_bytes).toBe(5);
    expect(rest!.other_count).toBe(1);
  });

  it("differ by second less first", () => {
    expect(WITH_OTHER.groups.map(differenceOf)).toEqual([-50, -5]);
    expect(differenceOf(ANSWER.groups[0]!)).toBeNull();
  });

  it("sort by the difference and export it exactly", () => {
    const columns = momentColumns("Line", true);
    const sorted = sortRows(momentRows(WITH_OTHER), columns, { id: "difference", descending: true });
    expect(sorted.map((row) => row.name)).toEqual(["b", "a"]);
    expect(csvOf(columns, sorted.slice(0, 1))).toBe("Line,First,Second,Change,Count,± count\r\nb,30,25,-5,3,-1\r\n");
  });
});
