// The run replayed under other limits, another policy or on another machine, while the sliders move.
//
// The newest question wins: older ones are given up. Curves of the replay are drawn over those of the recording, and a
// table has the numbers of both with their difference.

import type { Recording, WhatIf, WhatIfChoices, WhatIfNumbers } from "../data/types";
import { isAborted, sentenceOf } from "../data/errors";
import { paletteFor } from "../draw/colors";
import { drawRuns } from "../draw/curves";
import { countDrawn, fitScreen, isDark } from "./canvas";
import { fill, h, say } from "./dom";
import { empty, failure, makeLoader } from "./loader";
import type { TableView } from "./moment";
import { mainRecording } from "./moving";
import type { Column } from "./rows";
import { SLIDER_STEPS, bytesAt, positionOf } from "./slider";
import { type Table, makeTable } from "./table";
import type { Context } from "./view";
import { partInView, wholeOf } from "./viewport";
import { UNKNOWN, bytes, change, chosenUnits, count, countChange, exactBytes, isNumber, percent } from "./words";

type Known = number | null;

/** A row of the comparison, with how its numbers are said. */
export interface NumberRow {
  name: string;
  recorded: Known;
  replayed: Known;
  kind: "bytes" | "count" | "share";
}

export function numberRows(answer: WhatIf): NumberRow[] {
  const row = (name: string, kind: NumberRow["kind"], get: (numbers: WhatIfNumbers) => Known): NumberRow => ({
    name,
    kind,
    recorded: get(answer.recorded) ?? null,
    replayed: get(answer) ?? null,
  });
  return [
    row("Peak active", "bytes", (numbers) => numbers.peak_active?.bytes),
    row("Peak reserved", "bytes", (numbers) => numbers.peak_reserved?.bytes),
    row("Hit rate of the cache", "share", (numbers) => numbers.hit_rate),
    row("Reused from the cache", "count", (numbers) => numbers.hits),
    row("New from the system", "count", (numbers) => numbers.misses),
    row("Allocations of the system", "count", (numbers) => numbers.os_allocations),
    row("Bytes made by the system", "bytes", (numbers) => numbers.os_bytes),
    row("Evictions", "count", (numbers) => numbers.evictions),
  ];
}

export function differenceText(row: NumberRow): string {
  if (row.recorded === null || row.replayed === null) return UNKNOWN;
  const less = row.replayed - row.recorded;
  if (row.kind === "bytes") return change(less);
  if (row.kind === "count") return countChange(less);
  return `${less > 0 ? "+" : less < 0 ? "−" : "±"}${(Math.abs(less) * 100).toFixed(1)} points`;
}

/** What the replay says first. */
export function whatifSentence(answer: WhatIf): string {
  if (answer.out_of_memory) {
    return `Out of memory at event ${count(answer.out_of_memory.event)}, with ${bytes(answer.out_of_memory.bytes)} asked for or held.`;
  }
  const less = (answer.peak_reserved?.bytes ?? 0) - (answer.recorded.peak_reserved?.bytes ?? 0);
  const peak = less === 0 ? "the same peak of reserved memory" : `a peak of reserved memory that is ${bytes(Math.abs(less))} ${less < 0 ? "lower" : "higher"}`;
  return `The run would end as it did, with ${peak}.`;
}

const numberText = (kind: NumberRow["kind"], number: Known) => (kind === "bytes" ? bytes(number) : kind === "count" ? count(number) : percent(number));

const side = (id: "recorded" | "replayed", title: string): Column<NumberRow> => ({
  id,
  title,
  numeric: true,
  value: (row) => row[id],
  text: (row) => numberText(row.kind, row[id]),
  exact: (row) => (row.kind === "bytes" ? exactBytes(row[id]) : ""),
});

const COLUMNS: Column<NumberRow>[] = [
  { id: "name", title: "Number", value: (row) => row.name },
  side("recorded", "Recorded"),
  side("replayed", "Replayed"),
  {
    id: "difference",
    title: "Difference",
    numeric: true,
    value: (row) => (row.recorded === null || row.replayed === null ? null : row.replayed - row.recorded),
    text: differenceText,
  },
];

export function makeWhatIf(context: Context): TableView {
  const loader = makeLoader("the choices of the replay");
  const canvas = h("canvas", { class: "curves", role: "img", "aria-label": "memory over time, recorded and replayed; the numbers are in the table" });
  const legend = h("ul", { class: "legend" }, ["recorded reserved", "recorded active", "replayed reserved", "replayed active", "memory limit"].map((text, at) => h("li", { class: `key${at}` }, text)));
  const sentence = h("p", { class: "first", role: "status" });
  const problem = h("div");
  const table: Table<NumberRow> = makeTable({ caption: "The run as recorded and as replayed", columns: COLUMNS });
  const result = h("div", { class: "verdict plain" }, sentence);
  const head = h("div", { class: "heading" }, h("h2", {}, "What-if"), h("p", { class: "note" }, "The recorded allocations, replayed under another cache limit, memory limit, policy or machine."));
  const element = h("article", { class: "report whatif" }, head, loader.element, problem, result, canvas, legend, table.element);
  let abort = new AbortController();
  let asked = "";
  let drawn: WhatIf | null = null;

  const draw = () => {
    const screen = fitScreen(canvas);
    if (!screen || !drawn) return;
    screen.context.clearRect(0, 0, screen.width, screen.height);
    const box = { x: 0, y: 0, width: screen.width, height: screen.height };
    // Only the replay's curves are in its answer; those of the recording come from the bands.
    drawRuns(screen.context, { recorded, replayed: drawn, limit: drawn.memory_limit }, box, paletteFor(isDark()));
    countDrawn(canvas);
  };
  let recorded: { active: Float64Array; reserved: Float64Array } | null = null;
  let recordedKey = "";

  const show = (answer: WhatIf) => {
    drawn = answer;
    fill(problem);
    say(sentence, whatifSentence(answer));
    result.className = `verdict ${answer.out_of_memory ? "bad" : "plain"}`;
    table.show(numberRows(answer));
    draw();
  };

  const ask = (recording: Recording) => {
    const { state } = context.store;
    const part = partInView(state, wholeOf([recording], state.axis));
    const window = { r: recording.r, axis: state.axis, ...part, columns: Math.max(64, Math.min(1200, Math.round(canvas.clientWidth))) };
    const options = { policy: state.policy, device: state.device, cache_limit: state.cacheLimit, memory_limit: state.memoryLimit };
    const key = JSON.stringify([window, options, chosenUnits()]);
    if (key === asked) return;
    asked = key;
    abort.abort();
    abort = new AbortController();
    const { signal } = abort;
    context.source.whatif(window, options, signal).then(
      (answer) => signal.aborted || show(answer),
      (error: unknown) => isAborted(error) || signal.aborted || fill(problem, failure(sentenceOf(error), () => again(recording))),
    );
    const windowKey = JSON.stringify(window);
    if (windowKey === recordedKey) return;
    recordedKey = windowKey;
    context.source.bands(window).then(
      (bands) => {
        if (windowKey !== recordedKey) return;
        recorded = bands;
        draw();
      },
      () => undefined,
    );
  };
  const again = (recording: Recording) => {
    asked = "";
    fill(problem);
    ask(recording);
  };
  const observer = new ResizeObserver(draw);
  observer.observe(canvas);

  return {
    element,
    update() {
      const recording = mainRecording(context);
      const why = recording === null ? "No recording is shown." : whyNot(recording);
      const parts = [result, canvas, legend, table.element, problem];
      for (const part of parts) part.hidden = why !== null;
      if (!recording || why !== null) return loader.put(`why ${why}`, empty(why ?? ""));
      const question = () => context.source.whatifChoices(recording.r);
      loader.ask(`${recording.r} ${chosenUnits()}`, question, (choices, box) => fill(box, controls(context, choices)));
      ask(recording);
    },
    csv: () => (drawn ? table.csv() : null),
    close() {
      observer.disconnect();
      abort.abort();
      loader.put("closed");
    },
  };
}

function whyNot(recording: Recording): string | null {
  if (recording.state === "failed") return `${recording.name} could not be read: ${recording.error ?? "no reason is known"}`;
  if (recording.state === "reading") return `${recording.name} is still being read; then it can be replayed.`;
  return typeof recording.can.whatif === "string" ? recording.can.whatif : null;
}

function controls(context: Context, choices: WhatIfChoices): HTMLElement {
  const { state } = context.store;
  const menu = (label: string, field: "policy" | "device", items: WhatIfChoices["policies"]) => {
    const about = h("span", { class: "note" });
    const onchange = () => {
      context.store.set({ [field]: select.value });
      tell();
    };
    const select = h("select", { onchange }, h("option", { value: "" }, "as recorded"), items.map(({ name }) => h("option", { value: name }, name)));
    const tell = () => say(about, items.find(({ name }) => name === select.value)?.about ?? "");
    select.value = state[field];
    tell();
    return h("div", { class: "control" }, h("label", {}, `${label} `, select), about);
  };
  return h(
    "div",
    { class: "sliders" },
    slider(context, "Cache limit", "cacheLimit", choices.cache_limit, choices.largest),
    slider(context, "Memory limit", "memoryLimit", choices.memory_limit, choices.largest),
    menu("Policy", "policy", choices.policies ?? []),
    menu("Machine", "device", choices.devices ?? []),
  );
}

function slider(context: Context, title: string, field: "cacheLimit" | "memoryLimit", recorded: number | null, largest: number): HTMLElement {
  const most = isNumber(largest) && largest > 0 ? largest : 2 ** 40;
  const output = h("output", {});
  const start = context.store.state[field];
  const input = h("input", { type: "range", min: 0, max: SLIDER_STEPS, value: positionOf(start ?? recorded ?? most, most) });
  const tell = (chosen: number | null) => {
    const text = chosen === null ? `as recorded (${recorded === null ? "none known" : bytes(recorded)})` : bytes(chosen);
    say(output, text);
    output.title = chosen === null ? "" : exactBytes(chosen);
    input.setAttribute("aria-valuetext", text);
    reset.disabled = chosen === null;
  };
  const put = (chosen: number | null) => {
    context.store.set({ [field]: chosen });
    tell(chosen);
  };
  const back = () => {
    input.value = String(positionOf(recorded ?? most, most));
    put(null);
  };
  const reset = h("button", { type: "button", onclick: back, "aria-label": `${title}: as recorded` }, "As recorded");
  input.addEventListener("input", () => put(bytesAt(Number(input.value), most)));
  tell(start);
  return h("div", { class: "control" }, h("label", {}, `${title} `, input), output, reset);
}
