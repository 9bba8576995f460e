// A table that is sorted by its headings. The same one for moments, ranges and reports.
//
// Rows are elements of the page, each number is text that can be selected and has its exact value as tooltip.
// Not here: sorting and filtering as such (rows.ts).

import { type Column, type Order, csvOf, exactly, filterRows, nextOrder, shown, sortRows } from "./rows";
import { type Child, fill, h } from "./dom";

/** Rows on the page at first: more make typing into the filter slow. "Show all" shows the others. */
const FIRST_ROWS = 300;

export interface TableOptions<Row> {
  caption: string;
  columns: Column<Row>[];
  /** Rows come in this order when left out: as given. */
  order?: Order;
  /** A cell with buttons in front of each row. */
  actions?(row: Row): Child;
  /** What stands below the first cell: bars, remarks. */
  below?(row: Row): Child;
  /** Marks a row as the highlighted one. */
  isMarked?(row: Row): boolean;
  /** Said when there are no rows at all. */
  none?: string;
}

export interface Table<Row> {
  readonly element: HTMLElement;
  /** Rows, and rows below a line that are neither sorted nor filtered: totals, what was left out. */
  show(rows: readonly Row[], footer?: Row[]): void;
  filter(text: string): void;
  /** Again, with the same rows: another one is marked. */
  draw(): void;
  csv(): string;
}

export function makeTable<Row>(options: TableOptions<Row>): Table<Row> {
  const { columns } = options;
  let rows: readonly Row[] = [];
  let footer: Row[] = [];
  let filter = "";
  let order: Order | null = options.order ?? null;
  let all = false;

  const head = h("tr");
  const body = h("tbody");
  const foot = h("tfoot");
  const count = h("p", { class: "count", role: "status" });
  const table = h("table", {}, h("caption", {}, options.caption), h("thead", {}, head), body, foot);
  const scroller = h("div", { class: "table", role: "region", tabindex: 0, "aria-label": options.caption }, table);
  const element = h("div", { class: "tablebox" }, scroller, count);

  const words = (row: Row) => columns.map((column) => `${shown(column, row)} ${exactly(column, row) ?? ""}`).join(" ");
  const visible = () => sortRows(filterRows(rows, filter, words), columns, order);

  function drawHead(): void {
    const cells = columns.map((column) => {
      const sorted = order?.id === column.id ? (order.descending ? "descending" : "ascending") : null;
      const onclick = () => {
        order = nextOrder(column, order);
        draw();
        head.querySelector<HTMLElement>(`[data-column="${column.id}"]`)?.focus();
      };
      const button = h("button", { type: "button", "data-column": column.id, title: column.about, onclick }, column.title);
      return h("th", { scope: "col", class: column.numeric ? "number" : "", "aria-sort": sorted }, button);
    });
    fill(head, cells, options.actions && h("td", { class: "actions" }));
  }

  function cellsOf(row: Row, isBody: boolean): Node[] {
    const cells = columns.map((column, at) => {
      const props = { class: column.numeric ? "number" : "", title: exactly(column, row) };
      if (at > 0) return h("td", props, shown(column, row));
      return h("th", { ...props, scope: "row" }, h("span", { class: "name" }, shown(column, row)), isBody && options.below?.(row));
    });
    return options.actions ? [...cells, h("td", { class: "actions" }, isBody && options.actions(row))] : cells;
  }

  function draw(): void {
    const focused = focusedButton(body);
    drawHead();
    const wanted = visible();
    const put = all ? wanted : wanted.slice(0, FIRST_ROWS);
    const made = put.map((row) => h("tr", { class: options.isMarked?.(row) ? "marked" : "" }, cellsOf(row, true)));
    fill(body, made);
    fill(foot, footer.map((row) => h("tr", {}, cellsOf(row, false))));
    const more = wanted.length - put.length;
    const showAll = () => {
      all = true;
      draw();
    };
    fill(
      count,
      rows.length === 0 && (options.none ?? "No rows."),
      filter !== "" && rows.length > 0 && `${wanted.length} of ${rows.length} rows match “${filter}”. `,
      more > 0 && h("button", { type: "button", onclick: showAll }, `Show ${more} more rows`),
    );
    scroller.hidden = rows.length === 0 && footer.length === 0;
    if (focused >= 0) body.querySelectorAll("button")[focused]?.focus();
  }

  return {
    element,
    show(newRows, newFooter = []) {
      rows = newRows;
      footer = newFooter;
      draw();
    },
    filter(text) {
      if (text === filter) return;
      filter = text;
      draw();
    },
    draw,
    csv: () => csvOf(columns, [...visible(), ...footer]),
  };
}

/** Which button of the body has the focus, to give it back after a draw. */
function focusedButton(body: HTMLElement): number {
  return body.contains(document.activeElement) ? [...body.querySelectorAll("button")].indexOf(document.activeElement as HTMLButtonElement) : -1;
}
