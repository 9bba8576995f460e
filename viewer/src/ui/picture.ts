// One recording on the timeline: its bands and its picture, for whatever part the timeline says is in view.
//
// It asks for what is in view and meanwhile shows the last answer, stretched to its place: panning and zooming only
// copy pixels. Not here: what gestures do (timeline.ts), what is drawn how (draw/).

import { areaAt } from "../draw/areas";
import { bandsHeight, curvesAt, drawBands, hitBands, isOnCurves, lanesLeftOut } from "../draw/bands";
import { drawSelected, hitBrick } from "../draw/bricks";
import { paletteFor } from "../draw/colors";
import { AXIS_HEIGHT, drawAxis, drawByteTicks, drawCursors, type Cursors } from "../draw/overlay";
import { rasterScene } from "../draw/raster";
import { makeScale, type Scale } from "../draw/scale";
import { fitText, FONT, type Box } from "../draw/surface";
import { bandsRequest, timelineRequest } from "../data/request";
import { Asker } from "./asker";
import { countDrawn, fitScreen, isDark, measureFrame, type Screen } from "./canvas";
import { h, say } from "./dom";
import type { Point } from "./gestures";
import { chosenUnits } from "./words";
import type { Bands, Scene, Source, Viewport } from "../data/types";

/** What a picture shows, in its own recording's positions. */
export interface InView {
  view: Omit<Viewport, "columns" | "rows">;
  highlighted: string | null;
  selected: number | null;
  cursors: Cursors;
  /** Pixels high, without the axis. */
  height: number;
}

/** What is under a point of a picture. */
export interface Hit {
  scene: Scene;
  column: number;
  height: number;
  /** Index into the bricks, or -1. */
  brick: number;
  /** Index into the groups, or -1. */
  group: number;
}

const MOST_FAINT_LANES = 160;

export class Picture {
  readonly canvas = h("canvas", { role: "img", tabindex: 0, "aria-label": "memory timeline, being read" });
  readonly bandsCanvas = h("canvas", { "aria-hidden": "true" });
  private readonly name = h("h3", { class: "picture-name", hidden: true });
  private readonly state = h("p", { class: "state", role: "status", hidden: true });
  readonly element = h("section", { class: "picture" }, this.name, h("div", { class: "bands" }, this.bandsCanvas), this.canvas, this.state);

  private scene: Scene | null = null;
  private bands: Bands | null = null;
  private shown: InView | null = null;
  /** The scene's pixels, and what they were drawn from. */
  private readonly bitmap = document.createElement("canvas");
  private painted = "";
  private scenesSeen = 0;
  private frame = 0;
  private fresh = { scene: false, bands: false };

  private readonly scenes: Asker<Scene>;
  private readonly curves: Asker<Bands>;

  constructor(
    readonly r: number,
    private readonly source: Source,
  ) {
    this.canvas.style.display = this.bandsCanvas.style.display = "block";
    this.canvas.style.width = this.bandsCanvas.style.width = "100%";
    // That a recording is still being read is said by the timeline, with how far it is.
    const reading = (): void => undefined;
    const refused = (sentence: string): void => {
      this.scene = null;
      this.message(sentence);
      this.drawSoon();
    };
    this.scenes = new Asker<Scene>({ failed: refused, reading, answer: (scene) => this.takeScene(scene) });
    this.curves = new Asker<Bands>({ failed: (why) => this.message(why), reading, answer: (bands) => this.takeBands(bands) });
  }

  /** A name is shown when there are several pictures. */
  entitle(name: string | null): void {
    say(this.name, name ?? "");
    this.name.hidden = name === null;
  }

  /** Shows a sentence below the picture; "" for none. */
  message(sentence: string): void {
    say(this.state, sentence);
    this.state.hidden = sentence === "";
  }

  show(shown: InView): void {
    this.shown = shown;
    setHeight(this.canvas, shown.height + AXIS_HEIGHT);
    setHeight(this.bandsCanvas, bandsHeight(this.bands));
    measureFrame(() => this.draw());
    this.ask();
  }

  close(): void {
    this.scenes.stop();
    this.curves.stop();
    cancelAnimationFrame(this.frame);
  }

  /** The box of the picture within its canvas, in CSS pixels. */
  get box(): Box {
    return { x: 0, y: 0, width: Math.max(1, this.canvas.clientWidth), height: Math.max(1, this.canvas.clientHeight - AXIS_HEIGHT) };
  }

  /** Pixels to positions of this recording. */
  get scale(): Scale {
    const { from, to } = this.shown?.view ?? { from: 0, to: 1 };
    return makeScale(from, to, 0, this.box.width);
  }

  hit(at: Point): Hit | null {
    const { scene, shown } = this;
    if (scene === null || shown === null || at.y > this.box.height) return null;
    const { column, height, brick } = hitBrick(scene, boxOfScene(scene, shown, this.box), at.x, at.y);
    const group = brick >= 0 ? scene.bricks!.group[brick]! : areaAt(scene, column, height);
    return { scene, column, height, brick, group };
  }

  /** What the bands have under a point, in words; empty for nothing. */
  hitBands(at: Point): string[] {
    if (this.bands === null) return [];
    const box = { x: 0, y: 0, width: this.bandsCanvas.clientWidth, height: this.bandsCanvas.clientHeight };
    if (isOnCurves(box, at.y)) return curvesAt(this.bands, this.scale.value(at.x), paletteFor(isDark()), chosenUnits());
    const hit = hitBands(this.bands, box, this.scale, at.x, at.y);
    return hit === null ? [] : [hit.text];
  }

  private takeScene(scene: Scene): void {
    this.scene = scene;
    this.scenesSeen++;
    this.fresh.scene = true;
    this.message("");
    this.drawSoon();
  }

  private takeBands(bands: Bands): void {
    this.bands = bands;
    this.fresh.bands = true;
    this.drawSoon();
  }

  private drawSoon(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.shown !== null && this.show(this.shown));
  }

  private ask(): void {
    const viewport = this.wanted();
    if (viewport === null) return;
    const { r, axis, from, to, columns, by, areas } = viewport;
    this.scenes.want({
      key: timelineRequest(viewport),
      kind: `${axis} ${by} ${areas}`,
      ask: (signal) => this.source.timeline(viewport, signal),
    });
    const window = { r, axis, from, to, columns };
    this.curves.want({ key: bandsRequest(window), kind: axis, ask: (signal) => this.source.bands(window, signal) });
  }

  private wanted(): Viewport | null {
    const screen = fitScreen(this.canvas);
    if (screen === null || this.shown === null) return null;
    const rows = Math.max(1, Math.round((this.box.height * screen.rows) / screen.height));
    return { ...this.shown.view, columns: screen.columns, rows };
  }

  private draw(): void {
    const { shown } = this;
    const screen = fitScreen(this.canvas);
    if (shown === null || screen === null) return;
    this.drawPicture(screen, shown);
    const above = fitScreen(this.bandsCanvas);
    if (above !== null) this.drawBandsOn(above, shown);
  }

  private drawPicture(screen: Screen, shown: InView): void {
    const { context } = screen;
    const palette = paletteFor(isDark());
    const { box, scale } = this;
    context.fillStyle = palette.background;
    context.fillRect(0, 0, screen.width, screen.height);
    if (this.scene !== null && this.scene.view.axis === shown.view.axis) {
      this.paint(this.scene, shown, palette.dark);
      copyScene(context, this.bitmap, this.scene, shown, box);
    }
    drawByteTicks(context, box, shown.view, palette, chosenUnits());
    drawCursors(context, box, shown.cursors, scale, palette);
    drawAxis(context, { x: 0, y: box.height, width: box.width, height: AXIS_HEIGHT }, shown.view.axis, scale, palette);
    if (this.fresh.scene && this.scene !== null && isOf(this.scene, shown)) {
      this.fresh.scene = false;
      countDrawn(this.canvas);
    }
  }

  /** Draws the scene's own pixels, once for each answer, highlight, selection and palette. */
  private paint(scene: Scene, shown: InView, dark: boolean): void {
    const key = `${this.scenesSeen} ${dark} ${shown.selected} ${shown.highlighted}`;
    const { columns, rows } = scene.view;
    if (key === this.painted || columns === 0 || rows === 0) return;
    this.painted = key;
    this.bitmap.width = columns;
    this.bitmap.height = rows;
    const surface = this.bitmap.getContext("2d");
    if (surface === null) return;
    const options = { palette: paletteFor(dark), highlighted: shown.highlighted, selected: shown.selected };
    const pixels = new Uint8ClampedArray(rasterScene(scene, options).buffer);
    surface.putImageData(new ImageData(pixels, columns, rows), 0, 0);
    drawSelected(surface, scene, { x: 0, y: 0, width: columns, height: rows }, options);
  }

  private drawBandsOn(screen: Screen, shown: InView): void {
    const { context } = screen;
    const palette = paletteFor(isDark());
    const box = { x: 0, y: 0, width: screen.width, height: screen.height };
    context.fillStyle = palette.background;
    context.fillRect(0, 0, screen.width, screen.height);
    if (this.bands !== null && this.bands.window.axis === shown.view.axis) {
      drawBands(context, this.bands, box, this.scale, palette, chosenUnits());
      this.sayLanesLeftOut(context, box, palette.faint);
    }
    drawCursors(context, box, shown.cursors, this.scale, palette);
    const { from, to } = shown.view;
    if (this.fresh.bands && this.bands?.window.from === from && this.bands.window.to === to) {
      this.fresh.bands = false;
      countDrawn(this.bandsCanvas);
    }
  }

  private sayLanesLeftOut(context: CanvasRenderingContext2D, box: Box, color: string): void {
    const left = this.bands === null ? 0 : lanesLeftOut(this.bands);
    if (left === 0) return;
    context.font = FONT;
    context.fillStyle = color;
    context.textAlign = "right";
    context.fillText(fitText(`${left} more lanes not drawn`, MOST_FAINT_LANES), box.width - 4, box.height - 8);
  }
}

/** Whether an answer is of exactly what is in view, so that nothing more will come. The server may round positions. */
function isOf(scene: Scene, shown: InView): boolean {
  const { view } = scene;
  const near = (a: number, b: number, span: number): boolean => Math.abs(a - b) <= Math.abs(span) * 1e-6;
  const span = shown.view.to - shown.view.from;
  return near(view.from, shown.view.from, span) && near(view.to, shown.view.to, span) && near(view.high, shown.view.high, shown.view.high);
}

/** Where a scene lies on the canvas while another part is in view. */
function boxOfScene(scene: Scene, shown: InView, box: Box): Box {
  const { from, to, low, high } = shown.view;
  const x = makeScale(from, to, box.x, box.x + box.width);
  const y = makeScale(low, high, box.y + box.height, box.y);
  const left = x.pixel(scene.view.from);
  const top = y.pixel(scene.view.high);
  return { x: left, y: top, width: x.pixel(scene.view.to) - left, height: y.pixel(scene.view.low) - top };
}

/** Copies the part of the bitmap that is in view; the whole of it, enlarged a million times, would be cut by the browser. */
function copyScene(context: CanvasRenderingContext2D, bitmap: HTMLCanvasElement, scene: Scene, shown: InView, box: Box): void {
  const whole = boxOfScene(scene, shown, box);
  const left = Math.max(box.x, whole.x);
  const right = Math.min(box.x + box.width, whole.x + whole.width);
  const top = Math.max(box.y, whole.y);
  const bottom = Math.min(box.y + box.height, whole.y + whole.height);
  if (!(right > left && bottom > top) || bitmap.width === 0 || bitmap.height === 0) return;
  const perX = bitmap.width / whole.width;
  const perY = bitmap.height / whole.height;
  context.imageSmoothingEnabled = false;
  context.drawImage(
    bitmap,
    (left - whole.x) * perX, (top - whole.y) * perY, (right - left) * perX, (bottom - top) * perY,
    left, top, right - left, bottom - top,
  );
}

function setHeight(canvas: HTMLCanvasElement, pixels: number): void {
  const height = `${pixels}px`;
  if (canvas.style.height !== height) canvas.style.height = height;
}
