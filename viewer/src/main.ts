// Starts the page: opens the source, makes the store and the shell, and asks for news while recordings are being read.
//
// Not here: what the page shows (ui/), where answers come from (data/).

import { openSource } from "./data/source";
import type { Recordings } from "./data/types";
import { makeStore } from "./state/store";
import { fill } from "./ui/dom";
import { shownAtStart } from "./ui/header";
import { announce } from "./ui/reports/page";
import { makeShell, makeStartError } from "./ui/shell";
import { startError } from "./ui/start";
import type { Context } from "./ui/view";

const POLL_MILLIS = 300;
async function start(app: HTMLElement): Promise<void> {
  const source = await openSource();
  let recordings = await source.recordings();
  const store = makeStore(window);
  // Which recordings belong together is known when they have been read; until then, and until somebody chooses.
  let chosenHere: number[] | null = /[?#&]shown=/.test(window.location.href) ? null : store.state.shown;
  const choose = () => {
    if (chosenHere === null || store.state.shown.join() !== chosenHere.join()) return;
    chosenHere = shownAtStart(recordings.recordings);
    store.set({ shown: chosenHere });
  };
  choose();
  const context: Context = { source, store, recordings: () => recordings };
  const shell = makeShell(context);
  fill(app, shell.element);
  shell.update();
  store.listen(() => shell.update());
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shell.update());

  const isReading = (all: Recordings) => all.recordings.some(({ state }) => state === "reading");
  const poll = async (): Promise<void> => {
    try {
      recordings = await source.recordings();
      choose();
      shell.update();
    } catch (error) {
      announce(startError(error).title);
    }
    if (isReading(recordings)) window.setTimeout(() => void poll(), POLL_MILLIS);
  };
  if (isReading(recordings)) window.setTimeout(() => void poll(), POLL_MILLIS);
}

const app = document.getElementById("app");
if (app) {
  start(app).catch((error: unknown) => {
    const { title, sentences } = startError(error);
    fill(app, makeStartError(title, sentences));
  });
}
