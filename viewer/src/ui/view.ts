// What every part of the page is to the frame around it.

import type { Recordings, Source } from "../data/types";
import type { Store } from "../state/store";

/** What a part gets: where answers come from, what is shown, and what there is. */
export interface Context {
  source: Source;
  store: Store;
  /** The newest answer about the recordings. */
  recordings(): Recordings;
}

/** A part of the page. It draws itself again when `update` is called; it asks for data itself and forgets late answers. */
export interface View {
  readonly element: HTMLElement;
  update(): void;
  /** Called when the part leaves the page. */
  close?(): void;
}

export type MakeView = (context: Context) => View;
