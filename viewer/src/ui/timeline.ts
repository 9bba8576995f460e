// The interactive timeline: one picture for each recording shown, all on one clock with one cursor.
//
// Every gesture and key changes the Store, and everything drawn follows from it, so a link shows the same. Not here:
// pixels of one recording (picture.ts), arithmetic of what is in view (viewport.ts), panels.

import { listenToGestures, type Point } from "./gestures";
import { h } from "./dom";
import { Hover } from "./hover";
import { Picture } from "./picture";
import { Places } from "./places";
import { describe, stateSentence } from "./summary";
import { listenToKeys } from "./timeline_keys";
import { bytesInView, changeFor, clockOffset, panned, partInView, sharesClock, wholeOf, zoomed, type Part } from "./viewport";
import type { Context, MakeView, View } from "./view";
import type { Recording } from "../data/types";
import type { State } from "../state/state";

const LOWEST_PICTURE = 120;
const SMALL_PICTURE = 170;
const MOST_OF_WINDOW = 0.5;

export const makeTimeline: MakeView = (context: Context): View => {
  const timeline = new Timeline(context);
  return { element: timeline.element, update: () => timeline.update(), close: () => timeline.close() };
};

export class Timeline {
  private readonly list = h("div", { class: "pictures" });
  private readonly hover: Hover;
  readonly element: HTMLElement;
  private readonly pictures = new Map<number, Picture>();
  private readonly places: Places;
  /** A range while it is being drawn, in positions of the shared clock. */
  private drawing: Part | null = null;
  private frame = 0;
  private readonly undo: (() => void)[] = [];

  constructor(readonly context: Context) {
    this.hover = new Hover(context.source);
    this.element = h("div", { class: "timeline" }, this.list, this.hover.element);
    this.places = new Places(context.source, () => this.updateSoon());
    this.undo.push(listenToKeys(this), this.watchPage());
  }

  get state(): State {
    return this.context.store.state;
  }

  /** Recordings shown, the first first; those that don't exist are left out. */
  get shown(): Recording[] {
    const { recordings } = this.context.recordings();
    return this.state.shown.map((r) => recordings.find((one) => one.r === r)).filter((one) => one !== undefined);
  }

  get whole(): Part {
    return wholeOf(this.shown, this.state.axis);
  }

  get part(): Part {
    return partInView(this.state, this.whole);
  }

  update(): void {
    const { shown } = this;
    this.keepPictures(shown);
    if (shown.length === 0) return;
    for (const recording of shown) this.showOne(recording, shown);
  }

  close(): void {
    for (const undo of this.undo) undo();
    for (const picture of this.pictures.values()) picture.close();
    this.pictures.clear();
    cancelAnimationFrame(this.frame);
    this.hover.close();
  }

  updateSoon(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.update());
  }

  /** Moves what is in view by a part of its width. */
  pan(by: number): void {
    this.look(panned(this.part, by, this.whole));
  }

  /** Zooms around a position, or around the middle. */
  zoom(factor: number, around?: number): void {
    const { part } = this;
    this.look(zoomed(part, factor, around ?? (part.from + part.to) / 2, this.whole, this.state.axis));
  }

  all(): void {
    this.context.store.set({ from: null, to: null, low: null, high: null }, "push");
  }

  /** Moves the cursor by events; from the peak, where the panel is, when there is none. */
  moveCursor(events: number): void {
    const first = this.shown[0];
    if (first === undefined) return;
    const now = this.state.event ?? first.peak_active.event;
    const event = Math.min(first.events, Math.max(0, now + events));
    this.context.store.set({ event });
    this.keepInView(first, event);
  }

  async moveCursorByPixels(pixels: number): Promise<void> {
    const first = this.shown[0];
    if (first === undefined) return;
    const { axis } = this.state;
    const now = this.state.event ?? first.peak_active.event;
    const at = this.places.position(first.r, now, axis);
    const picture = this.pictures.get(first.r);
    if (at === null || picture === undefined) return;
    const width = (this.part.to - this.part.from) / picture.box.width;
    const place = await this.context.source.place(first.r, { axis, at: at + pixels * width }).catch(() => null);
    // Where a pixel holds no event, the cursor still moves on.
    if (place !== null) this.moveCursor(place.event === now ? Math.sign(pixels) : place.event - now);
  }

  private keepInView(recording: Recording, event: number): void {
    const at = this.places.position(recording.r, event, this.state.axis);
    const { from, to } = this.part;
    if (at !== null && (at < from || at > to)) this.look(panned(this.part, (at - (from + to) / 2) / (to - from), this.whole));
  }

  private look(part: Part): void {
    this.context.store.set(changeFor(part, this.whole));
  }

  private keepPictures(shown: Recording[]): void {
    for (const [r, picture] of this.pictures) {
      if (shown.some((one) => one.r === r)) continue;
      picture.close();
      this.pictures.delete(r);
    }
    for (const { r } of shown) if (!this.pictures.has(r)) this.pictures.set(r, this.makePicture(r));
    // By number, so that a click, which makes a recording the first, moves nothing.
    const elements = [...this.pictures.values()].sort((a, b) => a.r - b.r).map((picture) => picture.element);
    const same = elements.length === this.list.childElementCount && elements.every((one, at) => this.list.children[at] === one);
    const none = h("p", { class: "state" }, "No recording is shown; choose one above.");
    if (elements.length === 0) this.list.replaceChildren(none);
    else if (!same) this.list.replaceChildren(...elements);
  }

  private makePicture(r: number): Picture {
    const picture = new Picture(r, this.context.source);
    for (const canvas of [picture.canvas, picture.bandsCanvas]) {
      listenToGestures(canvas, {
        pan: (dx, dy) => this.panPixels(picture, dx, dy),
        zoom: (factor, around, vertical) => (vertical ? this.zoomBytes(picture, factor, around) : this.zoom(factor, this.sharedAt(picture, around.x))),
        click: (at, keys) => void this.click(picture, at, keys.second, canvas === picture.canvas),
        range: (from, to, done) => void this.drawRange(picture, from, to, done),
        whole: () => this.all(),
        hover: (at) => this.hover.over(picture, at, canvas === picture.canvas),
      });
    }
    return picture;
  }

  private showOne(recording: Recording, shown: Recording[]): void {
    const picture = this.pictures.get(recording.r)!;
    const { state } = this;
    const apart = recording.state !== "ready" || sharesClock(recording, shown[0]!, state.axis) ? "" : ", at another time: from its own start";
    picture.entitle(shown.length > 1 ? recording.name + apart : null);
    picture.canvas.setAttribute("aria-label", describe(recording, state, this.part));
    const sentence = stateSentence(recording, state.axis);
    if (sentence !== null) {
      picture.message(sentence);
      picture.canvas.hidden = picture.bandsCanvas.hidden = true;
      picture.canvas.style.display = picture.bandsCanvas.style.display = "none";
      return;
    }
    picture.canvas.hidden = picture.bandsCanvas.hidden = false;
    picture.canvas.style.display = picture.bandsCanvas.style.display = "block";
    const first = shown[0]!;
    const offset = clockOffset(recording, first, state.axis);
    picture.show({
      view: {
        r: recording.r, axis: state.axis, by: state.by, areas: state.areas,
        from: this.part.from - offset, to: this.part.to - offset, ...bytesInView(state, shown),
      },
      highlighted: state.group,
      selected: recording.r === first.r ? state.block : null,
      cursors: this.cursors(first, offset),
      height: this.heightOf(shown.length),
    });
  }

  private heightOf(pictures: number): number {
    const room = Math.round((window.innerHeight * MOST_OF_WINDOW) / pictures);
    return pictures === 1 ? Math.max(SMALL_PICTURE, room) : Math.max(LOWEST_PICTURE, Math.min(SMALL_PICTURE, room));
  }

  private cursors(first: Recording, offset: number): { event: number | null; other: number | null; range: boolean } {
    const { event, other, range, axis } = this.state;
    if (this.drawing !== null) return { event: this.drawing.from - offset, other: this.drawing.to - offset, range: true };
    const at = (moment: number | null): number | null => {
      const position = moment === null ? null : this.places.position(first.r, moment, axis);
      return position === null ? null : position - offset;
    };
    return { event: at(event), other: at(other), range };
  }

  private offsetOf(picture: Picture): number {
    const { shown } = this;
    const recording = shown.find((one) => one.r === picture.r);
    return recording === undefined ? 0 : clockOffset(recording, shown[0]!, this.state.axis);
  }

  /** A pixel of a picture as a position on the shared clock. */
  private sharedAt(picture: Picture, x: number): number {
    return picture.scale.value(x) + this.offsetOf(picture);
  }

  private panPixels(picture: Picture, dx: number, dy: number): void {
    const { low, high } = this.state;
    if (low !== null && high !== null && dy !== 0) {
      const bytes = Math.max(-low, (dy / picture.box.height) * (high - low));
      this.context.store.set({ low: Math.round(low + bytes), high: Math.round(high + bytes) });
    }
    if (dx !== 0) this.pan(-dx / picture.box.width);
  }

  private zoomBytes(picture: Picture, factor: number, around: Point): void {
    const { low, high } = bytesInView(this.state, this.shown);
    const at = low + (1 - around.y / picture.box.height) * (high - low);
    const next = { low: Math.max(0, Math.round(at - (at - low) * factor)), high: Math.round(at + (high - at) * factor) };
    const fit = bytesInView({ ...this.state, low: null, high: null }, this.shown);
    const everything = next.low <= 0 && next.high >= fit.high;
    if (everything) this.context.store.set({ low: null, high: null });
    else if (next.high - next.low > 16) this.context.store.set(next);
  }

  /** A recording that is clicked becomes the first: panels speak of it, and positions are on its clock. */
  private focus(picture: Picture): Partial<State> {
    const { shown, from, to } = this.state;
    if (shown[0] === picture.r) return {};
    const offset = this.offsetOf(picture);
    const moved = from === null || to === null ? {} : { from: from - offset, to: to - offset };
    return { shown: [picture.r, ...shown.filter((r) => r !== picture.r)], event: null, other: null, range: false, block: null, ...moved };
  }

  /** The moment of a click is the one that the column shows, so that the block under the pointer is the one clicked. */
  private async click(picture: Picture, at: Point, second: boolean, inPicture: boolean): Promise<void> {
    const { source, store } = this.context;
    const hit = inPicture ? picture.hit(at) : null;
    const { axis } = this.state;
    const position = picture.scale.value(at.x);
    const of = hit === null ? { axis, at: position } : { event: hit.scene.moment[hit.column] ?? 0 };
    try {
      const place = await source.place(picture.r, of);
      this.places.know(picture.r, place);
      const change = this.focus(picture);
      if (second) return store.set({ ...change, other: place.event, range: false }, "push");
      store.set({ ...change, event: place.event, ...(this.state.range ? { other: null, range: false } : {}) }, "push");
      if (hit === null) return;
      const block = await source.at(picture.r, place.event, hit.height);
      // Above the stack is no block: the selection goes, the moment stays.
      if (this.state.event === place.event) store.set(block === null ? { block: null } : { block, tab: "block" });
    } catch (error) {
      picture.message(error instanceof Error ? error.message : String(error));
    }
  }

  private async drawRange(picture: Picture, from: Point, to: Point, done: boolean): Promise<void> {
    const ends = [from.x, to.x].map((x) => picture.scale.value(x)).sort((a, b) => a - b) as [number, number];
    if (!done) {
      const offset = this.offsetOf(picture);
      this.drawing = { from: ends[0] + offset, to: ends[1] + offset };
      return this.updateSoon();
    }
    const { axis } = this.state;
    try {
      const places = await Promise.all(ends.map((at) => this.context.source.place(picture.r, { axis, at })));
      for (const place of places) this.places.know(picture.r, place);
      const change = { event: places[0]!.event, other: places[1]!.event, range: true, tab: "range" } as const;
      this.context.store.set({ ...this.focus(picture), ...change }, "push");
    } catch (error) {
      picture.message(error instanceof Error ? error.message : String(error));
    } finally {
      this.drawing = null;
      this.updateSoon();
    }
  }

  /** Sizes and colours of the page change without the State. */
  private watchPage(): () => void {
    const again = (): void => this.updateSoon();
    const sizes = new ResizeObserver(again);
    sizes.observe(this.element);
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", again);
    window.addEventListener("resize", again);
    return () => {
      sizes.disconnect();
      dark.removeEventListener("change", again);
      window.removeEventListener("resize", again);
    };
  }
}
