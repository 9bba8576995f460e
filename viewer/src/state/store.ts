// Holds the State, tells who listens, and keeps the URL the same as it.
//
// The state lives in the query of the address, or, in a page opened from disk, in its fragment: browsers let such a
// page change nothing else.

import { queryFromState, stateFromQuery } from "./url";
import type { State } from "./state";

export interface Store {
  readonly state: State;
  /** Changes some fields. `push` makes a step of the browser's history, otherwise the URL is replaced. */
  set(change: Partial<State>, how?: "push" | "replace"): void;
  /** Calls `listener` after each change, at most once a frame; returns how to stop. */
  listen(listener: () => void): () => void;
}

/** Safari refuses more than 100 changes of history in 30 seconds; panning would make 60 a second. */
const REPLACE_EVERY_MILLIS = 350;

/** What of the browser's window a store uses. */
export type StoreWindow = Pick<
  Window,
  "location" | "history" | "addEventListener" | "requestAnimationFrame" | "setTimeout" | "clearTimeout"
>;

export function makeStore(window: StoreWindow): Store {
  const address = addressOf(window);
  const listeners = new Set<() => void>();
  let state = stateFromQuery(address.read());
  let frameAsked = false;

  const tell = (): void => {
    if (frameAsked) return;
    frameAsked = true;
    window.requestAnimationFrame(() => {
      frameAsked = false;
      for (const listener of [...listeners]) listener();
    });
  };
  window.addEventListener("popstate", () => {
    address.forget();
    state = stateFromQuery(address.read());
    tell();
  });
  return {
    get state() {
      return state;
    },
    set(change, how = "replace") {
      const before = queryFromState(state);
      state = { ...state, ...change };
      const after = queryFromState(state);
      if (after === before) return;
      if (how === "push") address.push(before, after);
      else address.replace(after);
      tell();
    },
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

interface Address {
  read(): string;
  push(before: string, after: string): void;
  replace(after: string): void;
  /** Drops a replacement that was not written yet. */
  forget(): void;
}

function addressOf(window: StoreWindow): Address {
  const inQuery = /^https?:$/.test(window.location.protocol);
  const url = (query: string): string =>
    inQuery ? `${window.location.pathname}${query === "" ? "" : `?${query}`}` : `#${query}`;
  let waiting: string | null = null;
  let timer: number | null = null;

  const write = (): void => {
    if (waiting !== null) quietly(() => window.history.replaceState(null, "", url(waiting!)));
    waiting = null;
  };
  const forget = (): void => {
    if (timer !== null) window.clearTimeout(timer);
    waiting = timer = null;
  };
  return {
    read: () => (inQuery ? window.location.search : window.location.hash.replace(/^#/, "")),
    push(before, after) {
      // The entry that is left must hold the state that Back returns to.
      if (waiting !== null) waiting = before;
      write();
      forget();
      quietly(() => window.history.pushState(null, "", url(after)));
    },
    replace(after) {
      waiting = after;
      if (timer !== null) return;
      write();
      timer = window.setTimeout(() => {
        timer = null;
        write();
      }, REPLACE_EVERY_MILLIS);
    },
    forget,
  };
}

/** A sandboxed page may not change its history; it works all the same, only without links. */
function quietly(change: () => void): void {
  try {
    change();
  } catch (error) {
    if (!(error instanceof DOMException)) throw error;
  }
}
