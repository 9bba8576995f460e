// Holds the State, tells who listens, and keeps the URL the same as it.

import type { State } from "./state";

export interface Store {
  readonly state: State;
  /** Changes some fields. `push` makes a step of the browser's history, otherwise the URL is replaced. */
  set(change: Partial<State>, how?: "push" | "replace"): void;
  /** Calls `listener` after each change, at most once a frame; returns how to stop. */
  listen(listener: () => void): () => void;
}
