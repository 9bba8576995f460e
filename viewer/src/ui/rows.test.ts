import { describe, expect, it } from "vitest";
import { type Column, csvOf, filterRows, nextOrder, shown, sortRows } from "./rows";

interface Row {
  name: string;
  bytes: number | null;
}

const COLUMNS: Column<Row>[] = [
  { id: "name", title: "Name", value: (row) => row.name },
  { id: "bytes", title: "Bytes", numeric: true, value: (row) => row.bytes },
];
const ROWS: Row[] = [
  { name: "b.py:2", bytes: 5 },
  { name: "a.py:10", bytes: null },
  { name: "a.py:9", bytes: 50 },
  { name: "c.py:1", bytes: 5 },
];
const names = (rows: Row[]) => rows.map((row) => row.name);

describe("sorting", () => {
  it("keeps the order of equal rows and puts unknown ones last, up and down", () => {
    expect(names(sortRows(ROWS, COLUMNS, { id: "bytes", descending: true }))).toEqual(["a.py:9", "b.py:2", "c.py:1", "a.py:10"]);
    expect(names(sortRows(ROWS, COLUMNS, { id: "bytes", descending: false }))).toEqual(["b.py:2", "c.py:1", "a.py:9", "a.py:10"]);
  });

  it("reads numbers in names as numbers", () => {
    expect(names(sortRows(ROWS, COLUMNS, { id: "name", descending: false }))).toEqual(["a.py:9", "a.py:10", "b.py:2", "c.py:1"]);
  });

  it("leaves rows as they came for no order or an unknown column", () => {
    expect(names(sortRows(ROWS, COLUMNS, null))).toEqual(names(ROWS));
    expect(names(sortRows(ROWS, COLUMNS, { id: "gone", descending: true }))).toEqual(names(ROWS));
  });

  it("begins with the largest number, with the first word, and turns round", () => {
    expect(nextOrder(COLUMNS[1]!, null)).toEqual({ id: "bytes", descending: true });
    expect(nextOrder(COLUMNS[0]!, { id: "bytes", descending: true })).toEqual({ id: "name", descending: false });
    expect(nextOrder(COLUMNS[1]!, { id: "bytes", descending: true })).toEqual({ id: "bytes", descending: false });
  });
});

describe("filtering", () => {
  it("wants every word, in any case and place", () => {
    expect(names(filterRows(ROWS, "PY a", (row) => row.name))).toEqual(["a.py:10", "a.py:9"]);
    expect(filterRows(ROWS, "  ", (row) => row.name)).toHaveLength(4);
    expect(filterRows(ROWS, "a b", (row) => row.name)).toEqual([]);
  });

  it("takes a filter as text, not as a pattern", () => {
    expect(filterRows(ROWS, ".*", (row) => row.name)).toEqual([]);
  });
});

describe("cells", () => {
  it("shows a dash for what is not known", () => {
    expect(shown(COLUMNS[1]!, ROWS[1]!)).toBe("–");
  });

  it("cuts what would stop the page, in the middle, but exports it whole", () => {
    const row = { name: `${"<b>".repeat(1e6)}train.py:42`, bytes: 1 };
    expect(shown(COLUMNS[0]!, row)).toHaveLength(400);
    expect(shown(COLUMNS[0]!, row).endsWith("train.py:42")).toBe(true);
    expect(csvOf(COLUMNS, [row]).length).toBeGreaterThan(3e6);
  });

  it("writes exact numbers and quotes what would break a line", () => {
    const rows = [{ name: 'say "hi", you\n', bytes: 2 ** 53 - 1 }, { name: "x", bytes: null }];
    expect(csvOf(COLUMNS, rows)).toBe('Name,Bytes\r\n"say ""hi"", you\n",9007199254740991\r\nx,\r\n');
  });

  it("keeps names from running as formulas, but negative numbers stay numbers", () => {
    expect(csvOf(COLUMNS, [{ name: "=cmd()", bytes: -1 }])).toBe("Name,Bytes\r\n'=cmd(),-1\r\n");
  });
});
