// Asks for an answer and shows it: loading, failed, or there. Of several questions only the newest is shown.
//
// A recording that is still being read answers "not yet"; it is asked again after a while, as long as nobody asks anew.
// Not here: what is asked, how an answer looks.

import { AnswerError, isAborted, sentenceOf } from "../data/errors";
import { fill, h } from "./dom";

const AGAIN_MILLIS = 400;
/** Answers that come sooner are shown without a word about loading, which would only flicker. */
const PATIENCE_MILLIS = 150;

export interface Loader {
  readonly element: HTMLElement;
  /** Asks unless `key` is what was asked last. `show` fills the element. */
  ask<T>(key: string, question: (signal: AbortSignal) => Promise<T>, show: (answer: T, element: HTMLElement) => void): void;
  /** Forgets what is under way and shows this. */
  put(key: string, ...children: (Node | string)[]): void;
  /** Asks again at the next `ask`. */
  forget(): void;
}

export function makeLoader(what: string, className = "loaded"): Loader {
  const element = h("div", { class: className });
  let asked = "";
  let abort = new AbortController();
  const begin = (key: string): AbortSignal => {
    asked = key;
    abort.abort();
    abort = new AbortController();
    return abort.signal;
  };
  const ask: Loader["ask"] = (key, question, show) => {
    if (key === asked) return;
    const signal = begin(key);
    const wait = window.setTimeout(() => {
      if (signal.aborted) return;
      element.setAttribute("aria-busy", "true");
      if (element.childElementCount === 0) fill(element, loading(what));
    }, PATIENCE_MILLIS);
    const done = (put: () => void) => {
      window.clearTimeout(wait);
      if (signal.aborted) return;
      element.removeAttribute("aria-busy");
      put();
    };
    const attempt = (): void => {
      question(signal).then(
        (answer) => done(() => showSafely(() => show(answer, element), element, what)),
        (error: unknown) => {
          if (isAborted(error) || signal.aborted) return;
          if (error instanceof AnswerError && error.reading) {
            if (element.childElementCount === 0) fill(element, loading(what));
            window.setTimeout(() => signal.aborted || attempt(), AGAIN_MILLIS);
            return;
          }
          const again = () => {
            asked = "";
            ask(key, question, show);
          };
          done(() => fill(element, failure(sentenceOf(error), again)));
        },
      );
    };
    attempt();
  };
  return {
    element,
    ask,
    put(key, ...children) {
      if (key === asked) return;
      begin(key);
      element.removeAttribute("aria-busy");
      fill(element, ...children);
    },
    forget() {
      asked = "";
    },
  };
}

/** A part that can't be drawn says so; the others stay usable. */
function showSafely(show: () => void, element: HTMLElement, what: string): void {
  try {
    show();
  } catch (error) {
    fill(element, failure(`${what} could not be drawn: ${sentenceOf(error)}`, null));
  }
}

export function loading(what: string): HTMLElement {
  return h("p", { class: "loading" }, `Asking for ${what}…`);
}

/** What went wrong, and a button when asking again may help. */
export function failure(sentence: string, again: (() => void) | null): HTMLElement {
  const button = again && h("button", { type: "button", onclick: again }, "Try again");
  return h("div", { class: "failure", role: "alert" }, h("p", {}, sentence), button);
}

/** Nothing is there, and what to do about it. */
export function empty(sentence: string, ...more: Node[]): HTMLElement {
  return h("div", { class: "empty" }, h("p", {}, sentence), more);
}
