// The head of the page: which recordings there are and how far they are read, and the facts of the one shown first.
//
// Not here: what is drawn of them.

import { shorten } from "../draw/format";
import type { Recording } from "../data/types";
import { fill, h, say } from "./dom";
import { mainRecording } from "./moving";
import { endingSentence } from "./reports/sentences";
import type { Context, View } from "./view";
import { bytes, count, exactBytes, isNumber, nanos } from "./words";

/** What changes when another recording is spoken of: moments and blocks are numbers of one recording. */
const NOTHING_CHOSEN = { event: null, other: null, range: false, block: null, group: null };

/** Recordings shown after `r` is switched on or off; never none. */
export function toggled(shown: readonly number[], r: number, on: boolean): number[] {
  const others = shown.filter((one) => one !== r);
  if (on) return [...others, r];
  return others.length > 0 ? others : [r];
}

/** Recordings shown after `r` was made the first. */
export function madeFirst(shown: readonly number[], r: number): number[] {
  return shown.includes(r) ? [r, ...shown.filter((one) => one !== r)] : [r];
}

/** More small multiples at the start would be too low to read. */
const MOST_AT_START = 8;

/** Recordings shown when the address names none: the first and those that belong to it, by file or by the clock. */
export function shownAtStart(recordings: readonly Recording[]): number[] {
  const [first] = recordings;
  if (!first) return [0];
  const together = recordings.filter((one) => one.state !== "failed" && (one.path === first.path || overlap(first, one)));
  return together.length > 0 ? together.slice(0, MOST_AT_START).map(({ r }) => r) : [first.r];
}

function overlap(a: Recording, b: Recording): boolean {
  if (!a.start_unix_nanos || !b.start_unix_nanos) return false;
  // Milliseconds are enough here, and keep within what a number holds.
  const at = (one: Recording, nanos: number) => (Number(one.start_unix_nanos) + nanos) / 1e6;
  return at(a, a.from_nanos) <= at(b, b.to_nanos) && at(b, b.from_nanos) <= at(a, a.to_nanos);
}

interface Chip {
  element: HTMLElement;
  update(recording: Recording, isAlone: boolean): void;
}

export function makeRecordings(context: Context): View {
  const element = h("div", { class: "recordings", role: "group", "aria-label": "Recordings" });
  const chips = new Map<number, Chip>();
  return {
    element,
    update() {
      const { recordings } = context.recordings();
      for (const recording of recordings) {
        let chip = chips.get(recording.r);
        if (!chip) {
          chip = makeChip(context, recording.r);
          chips.set(recording.r, chip);
          element.append(chip.element);
        }
        chip.update(recording, recordings.length === 1);
      }
    },
  };
}

function makeChip(context: Context, r: number): Chip {
  const change = (shown: number[]) => {
    const isSame = shown[0] === context.store.state.shown[0];
    context.store.set({ shown, ...(isSame ? {} : NOTHING_CHOSEN) }, "push");
  };
  const box = h("input", { type: "checkbox", onchange: () => change(toggled(context.store.state.shown, r, box.checked)) });
  const name = h("button", { type: "button", class: "name", onclick: () => change(madeFirst(context.store.state.shown, r)) });
  const progress = h("progress", { max: 1 });
  const state = h("span", { class: "chip-state" });
  const element = h("div", { class: "chip" }, box, name, progress, state);
  return {
    element,
    update(recording, isAlone) {
      const { shown } = context.store.state;
      const isFirst = (mainRecording(context)?.r ?? -1) === r;
      box.checked = shown.includes(r);
      box.hidden = isAlone;
      box.setAttribute("aria-label", `show ${recording.name}`);
      say(name, shorten(recording.name, 120));
      name.title = shorten(recording.path, 2000);
      name.setAttribute("aria-pressed", String(isFirst));
      element.classList.toggle("first", isFirst);
      element.classList.toggle("failed", recording.state === "failed");
      progress.hidden = recording.state !== "reading";
      progress.value = isNumber(recording.read) ? recording.read : 0;
      progress.setAttribute("aria-label", `reading ${recording.name}`);
      say(state, stateText(recording));
    },
  };
}

export function stateText(recording: Recording): string {
  if (recording.state === "failed") return "could not be read";
  if (recording.state === "reading") return `reading, ${Math.floor((recording.read || 0) * 100)}%`;
  const rank = recording.rank === null ? "" : `rank ${recording.rank}, `;
  return `${rank}${recording.device}`;
}

export function makeFacts(context: Context): View {
  const element = h("section", { class: "about", "aria-label": "About the recording" });
  let drawn = "";
  return {
    element,
    update() {
      const recording = mainRecording(context);
      const { left_out: leftOut, form } = context.recordings();
      const key = JSON.stringify([recording, leftOut, bytes(1e9)]);
      if (key === drawn) return;
      drawn = key;
      if (!recording) return fill(element, h("p", {}, "There is no recording. Run memviz view FILE."));
      fill(
        element,
        recording.state === "failed" && failed(recording),
        ending(recording),
        recording.state !== "failed" && h("dl", { class: "factline" }, factsOf(recording).map(([name, value, exact]) => h("div", {}, h("dt", {}, name), h("dd", { title: exact }, value)))),
        sentences(`What may be missing (${recording.notes.length})`, recording.notes),
        sentences(form === "page" ? `What was left out of this page (${leftOut.length})` : `What is left out (${leftOut.length})`, leftOut),
      );
    },
  };
}

function failed(recording: Recording): HTMLElement {
  return h("div", { class: "failure", role: "alert" }, h("p", {}, `${recording.name} could not be read: ${recording.error ?? "no reason is known"}`), h("p", { class: "note" }, "Other recordings stay usable. Record again, or copy the file again if it was cut on its way."));
}

function ending(recording: Recording): HTMLElement | null {
  const sentence = endingSentence(recording.ending);
  if (!sentence) return null;
  const where = recording.ending?.where ? ` At ${recording.ending.where}.` : "";
  return h("p", { class: "ending" }, sentence + where);
}

export function factsOf(recording: Recording): [name: string, value: string, exact?: string][] {
  const rows: [string, string, string?][] = [
    ["Peak active", bytes(recording.peak_active?.bytes), exactBytes(recording.peak_active?.bytes)],
    ["Peak reserved", bytes(recording.peak_reserved?.bytes), exactBytes(recording.peak_reserved?.bytes)],
    ["At the end", bytes(recording.end_active), exactBytes(recording.end_active)],
    ["Events", count(recording.events)],
    ["Over", nanos((recording.to_nanos ?? 0) - Math.min(0, recording.from_nanos ?? 0))],
    ["Device", [recording.device, recording.backend].filter(Boolean).join(", ") || "–"],
  ];
  if (recording.mlx_version) rows.push(["MLX", recording.mlx_version]);
  if (recording.kind === "torch") rows.push(["Format", "PyTorch snapshot"]);
  if (recording.command) rows.push(["Command", shorten(recording.command, 400), shorten(recording.command, 2000)]);
  return rows;
}

function sentences(title: string, all: readonly string[]): HTMLElement | null {
  if (all.length === 0) return null;
  return h("details", { class: "notes" }, h("summary", {}, title), h("ul", {}, all.map((sentence) => h("li", {}, sentence))));
}
