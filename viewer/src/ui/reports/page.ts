// What pages of reports have in common: asking for the report, a head of sentences, tables with links to the timeline.
//
// Not here: what each report shows.

import type { LineTotal, MomentAt, StackLine } from "../../data/shapes";
import type { Amount, Recording } from "../../data/types";
import { type Child, fill, h } from "../dom";
import { empty, makeLoader } from "../loader";
import type { TableView } from "../moment";
import { jumpToEvent, mainRecording, showLine } from "../moving";
import type { Column } from "../rows";
import { type Table, type TableOptions, makeTable } from "../table";
import type { Context } from "../view";
import { amount, bytes, change, chosenUnits, count, countChange, exactBytes, fullPlace, isNumber, place } from "../words";
import type { Tone } from "./sentences";

type Known = number | null | undefined;

/** Tables of one answer: filtered and exported together. */
export class Tables {
  private readonly all: { caption: string; table: Table<never> }[] = [];

  constructor(private readonly context: Context) {}

  /** A table under a heading. Null when there is nothing in it and nothing to say about that. */
  add<Row>(options: TableOptions<Row>, rows: readonly Row[], footer: Row[] = []): HTMLElement | null {
    if (rows.length === 0 && options.none === undefined) return null;
    const table = makeTable(options);
    table.filter(this.context.store.state.filter);
    table.show(rows, footer);
    this.all.push({ caption: options.caption, table: table as unknown as Table<never> });
    return h("section", {}, table.element);
  }

  filter(text: string): void {
    for (const { table } of this.all) table.filter(text);
  }

  csv(): string | null {
    if (this.all.length === 0) return null;
    return this.all.map(({ table }) => table.csv()).join("\r\n");
  }
}

export interface ReportOptions<Answer> {
  title: string;
  about: string;
  command: string;
  /** Recordings and words for the command, from the state; null with a sentence when the question can't be asked. */
  asks?(recording: Recording): { r?: number[]; options?: string[] };
  /** A sentence when the recording can't answer. */
  cannot?(recording: Recording): string | null;
  /** Controls between the head and the answer. */
  controls?: Child;
  draw(answer: Answer, tables: Tables, recording: Recording): Child;
}

/** A part of a page that shows one report. */
export function makeReport<Answer>(context: Context, options: ReportOptions<Answer>): TableView {
  const loader = makeLoader(`the report of memviz ${options.command}`);
  const head = h("div", { class: "heading" }, h("h2", {}, options.title), h("p", { class: "note" }, options.about));
  const element = h("article", { class: "report" }, head, options.controls, loader.element);
  let tables: Tables | null = null;
  return {
    element,
    update() {
      const recording = mainRecording(context);
      const why = recording ? whyNot(recording, options) : "No recording is shown.";
      if (!recording || why !== null) {
        tables = null;
        return loader.put(`why ${why ?? ""}`, empty(why ?? ""));
      }
      const { r = [recording.r], options: words = [] } = options.asks?.(recording) ?? {};
      const key = JSON.stringify([r, words, chosenUnits()]);
      const question = (signal: AbortSignal) => context.source.report(options.command, r, words, signal);
      loader.ask(key, question, (answer, box) => {
        tables = new Tables(context);
        // What isn't an object has no fields, and every field may be missing.
        const known = (typeof answer === "object" && answer !== null ? answer : {}) as Answer;
        fill(box, options.draw(known, tables, recording));
      });
      tables?.filter(context.store.state.filter);
    },
    csv: () => tables?.csv() ?? null,
    close: () => loader.put("closed"),
  };
}

function whyNot<Answer>(recording: Recording, options: ReportOptions<Answer>): string | null {
  if (recording.state === "failed") return `${recording.name} could not be read: ${recording.error ?? "no reason is known"}`;
  if (recording.state === "reading") return `${recording.name} is still being read; the report follows.`;
  return options.cannot?.(recording) ?? null;
}

/** Says first what was found, then why. */
export function verdict(sentences: readonly string[], tone: Tone = "plain"): HTMLElement {
  const [first, ...others] = sentences;
  return h("div", { class: `verdict ${tone}` }, h("p", { class: "first" }, first ?? ""), others.map((sentence) => h("p", {}, sentence)));
}

/** Columns of the tables. `Row` has the value where `get` finds it. */
export const lineColumn = <Row>(title: string, get: (row: Row) => (StackLine & Partial<LineTotal>) | null | undefined): Column<Row> => ({
  id: `line ${title}`,
  title,
  value: (row) => place(get(row)),
  exact: (row) => fullPlace(get(row)),
});

export const textColumn = <Row>(title: string, get: (row: Row) => string | null | undefined): Column<Row> => ({
  id: `text ${title}`,
  title,
  value: (row) => get(row) ?? null,
  exact: (row) => get(row) ?? "",
});

export const bytesColumn = <Row>(title: string, get: (row: Row) => Known, about?: string): Column<Row> => ({
  id: `bytes ${title}`,
  title,
  numeric: true,
  ...(about === undefined ? {} : { about }),
  value: (row) => get(row) ?? null,
  text: (row) => bytes(get(row)),
  exact: (row) => exactBytes(get(row)),
});

export const changeColumn = <Row>(title: string, get: (row: Row) => Known): Column<Row> => ({
  id: `change ${title}`,
  title,
  numeric: true,
  value: (row) => get(row) ?? null,
  text: (row) => change(get(row)),
  exact: (row) => exactBytes(get(row)),
});

export const countColumn = <Row>(title: string, get: (row: Row) => Known, text: (number: Known) => string = count): Column<Row> => ({
  id: `count ${title}`,
  title,
  numeric: true,
  value: (row) => get(row) ?? null,
  text: (row) => text(get(row)),
});

export const countChangeColumn = <Row>(title: string, get: (row: Row) => Known): Column<Row> => countColumn(title, get, countChange);

export const amountColumn = <Row>(title: string, get: (row: Row) => Amount | null | undefined): Column<Row> => ({
  id: `amount ${title}`,
  title,
  numeric: true,
  value: (row) => get(row)?.bytes ?? null,
  text: (row) => (get(row) ? amount(get(row)) : "–"),
  exact: (row) => exactBytes(get(row)?.bytes),
});

/** A button that shows the row's line on the timeline. */
export function lineAction<Row>(context: Context, get: (row: Row) => StackLine | null | undefined): (row: Row) => Child {
  return (row) => {
    const line = get(row);
    if (!line?.file) return null;
    const label = `show ${place(line).slice(0, 80)} in the timeline`;
    const button = h("button", { type: "button", class: "icon", title: label, "aria-label": label, onclick: () => void go() }, "→");
    const go = async () => {
      const said = await showLine(context, line);
      if (context.store.state.page !== "timeline") button.title = said;
      announce(said);
    };
    return button;
  };
}

/** A button that shows a moment on the timeline. */
export function momentButton(context: Context, moment: MomentAt | null | undefined, text: string): HTMLElement | null {
  const event = moment?.after_events;
  if (!isNumber(event)) return null;
  return h("button", { type: "button", onclick: () => void jumpToEvent(context, event) }, text);
}

/** Says something in the status line at the foot of the page, which screen readers read out. */
export function announce(sentence: string): void {
  const status = document.getElementById("status");
  if (status) status.textContent = sentence;
}
