// Rows of a table without a page: sorting, filtering, CSV. What is shown and what is exported is decided here.
//
// Not here: elements (table.ts).

import { shorten } from "../draw/format";

const LONGEST_CELL = 400;
const LONGEST_TOOLTIP = 2000;

/** What a cell is sorted and exported by. Null: not known, always last. */
export type Value = string | number | null;

export interface Column<Row> {
  id: string;
  title: string;
  /** What the numbers mean, as a tooltip of the heading. */
  about?: string;
  /** Right aligned, largest first at the first click. */
  numeric?: boolean;
  value(row: Row): Value;
  /** What is shown; the value as text when left out. */
  text?(row: Row): string;
  /** Tooltip: the exact number, the whole path. */
  exact?(row: Row): string;
}

export interface Order {
  id: string;
  descending: boolean;
}

/** Stable; rows without a value stay last in both directions. */
export function sortRows<Row>(rows: readonly Row[], columns: readonly Column<Row>[], order: Order | null): Row[] {
  const column = columns.find((one) => one.id === order?.id);
  if (!column || !order) return [...rows];
  const sign = order.descending ? -1 : 1;
  return [...rows].sort((a, b) => compare(column.value(a), column.value(b), sign));
}

function compare(a: Value, b: Value, sign: number): number {
  if (isUnknown(a) || isUnknown(b)) return Number(isUnknown(a)) - Number(isUnknown(b));
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return sign * String(a).localeCompare(String(b), "en", { numeric: true });
}

function isUnknown(value: Value): boolean {
  return value === null || (typeof value === "number" && Number.isNaN(value));
}

/** Rows that have every word of `filter` somewhere in their words, in any case. */
export function filterRows<Row>(rows: readonly Row[], filter: string, words: (row: Row) => string): Row[] {
  const wanted = filter.toLowerCase().split(/\s+/).filter((word) => word !== "");
  if (wanted.length === 0) return [...rows];
  return rows.filter((row) => {
    const text = words(row).toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}

/** What the next click on a heading asks for: numbers largest first, words from a. */
export function nextOrder<Row>(column: Column<Row>, now: Order | null): Order {
  if (now?.id === column.id) return { id: column.id, descending: !now.descending };
  return { id: column.id, descending: column.numeric === true };
}

/** What a cell shows. A name of megabytes would stop the page; it is cut in the middle, and whole in the export. */
export function shown<Row>(column: Column<Row>, row: Row): string {
  const value = column.value(row);
  return shorten(column.text ? column.text(row) : isUnknown(value) ? "–" : String(value), LONGEST_CELL);
}

/** The tooltip of a cell, if it has one. */
export function exactly<Row>(column: Column<Row>, row: Row): string | null {
  return column.exact ? shorten(column.exact(row), LONGEST_TOOLTIP) || null : null;
}

/** RFC 4180 with exact values. A text that a spreadsheet would run as a formula gets an apostrophe before it. */
export function csvOf<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const lines = rows.map((row) => columns.map((column) => csvCell(column.value(row))));
  return [columns.map((column) => csvCell(column.title)), ...lines].map((cells) => cells.join(",") + "\r\n").join("");
}

function csvCell(value: Value): string {
  if (value === null) return "";
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
