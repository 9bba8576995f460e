// Draws the bricks of a Scene: the stack's outline filled as "the rest", and every brick on it at its own height.
//
// Columns become pixels by the box's width, bytes by its height; the box may be larger or smaller than the scene was
// asked for. Not here: asking, cursors, text.

import { brickAt, columnAt, rowBytes } from "../data/geometry";
import { colorOfKey, type Palette } from "./colors";
import { within, type Box, type Surface } from "./surface";
import type { Scene } from "../data/types";

export interface SceneOptions {
  palette: Palette;
  /** Key of the group that stands out; the others are dimmed. */
  highlighted: string | null;
  selected: number | null;
}

/** A brick of this many pixels or more has a seam above it, so neighbours of one colour stay apart. */
export const SEAM_FROM_PIXELS = 7;
export const SEAM_PIXELS = 1;
export const HATCH_PIXELS = 6;

/** From bytes to a y within the box, which has `low` at its bottom. */
export function yOfBytes(scene: Scene, box: Box, bytes: number): number {
  const { low, high } = scene.view;
  const part = high > low ? (bytes - low) / (high - low) : 0;
  return box.y + box.height * (1 - part);
}

export function drawBricks(surface: Surface, scene: Scene, box: Box, options: SceneOptions): void {
  within(surface, box, () => {
    drawRest(surface, scene, box, options.palette);
    if (scene.bricks !== null) drawRuns(surface, scene, scene.bricks, box, options);
    drawOutline(surface, scene, box, options.palette);
    drawBeyond(surface, scene, box, options.palette);
  });
}

/** The whole stack in grey with hatching; bricks cover their part, what stays visible is the rest. */
export function drawRest(surface: Surface, scene: Scene, box: Box, palette: Palette): void {
  surface.save();
  traceActive(surface, scene, box);
  surface.fillStyle = palette.rest;
  surface.fill();
  surface.clip();
  surface.strokeStyle = palette.restLine;
  surface.lineWidth = 1;
  surface.beginPath();
  for (let x = -box.height; x < box.width; x += HATCH_PIXELS) {
    surface.moveTo(box.x + x, box.y + box.height);
    surface.lineTo(box.x + x + box.height, box.y);
  }
  surface.stroke();
  surface.restore();
}

function traceActive(surface: Surface, scene: Scene, box: Box): void {
  const columns = scene.view.columns;
  const width = box.width / Math.max(1, columns);
  const floor = box.y + box.height;
  surface.beginPath();
  surface.moveTo(box.x, floor);
  traceSteps(surface, scene, box, width);
  surface.lineTo(box.x + columns * width, floor);
  surface.closePath();
}

/** The edge of the stack, one level piece for each stretch of equal height. */
function traceSteps(surface: Surface, scene: Scene, box: Box, width: number): void {
  let last = NaN;
  for (let column = 0; column < scene.view.columns; column++) {
    const y = clampY(box, yOfBytes(scene, box, scene.active[column]!));
    if (y === last) continue;
    if (!Number.isNaN(last)) surface.lineTo(box.x + column * width, last);
    surface.lineTo(box.x + column * width, y);
    last = y;
  }
  if (!Number.isNaN(last)) surface.lineTo(box.x + scene.view.columns * width, last);
}

/** Far outside, where float arithmetic of the rasteriser breaks down, a pixel beyond the edge serves. */
function clampY(box: Box, y: number): number {
  return Math.min(box.y + box.height + 1, Math.max(box.y - 1, y));
}

function drawRuns(surface: Surface, scene: Scene, bricks: NonNullable<Scene["bricks"]>, box: Box, options: SceneOptions): void {
  const order = orderByGroup(scene, bricks);
  let group = -1;
  for (const brick of order) {
    if (bricks.group[brick] !== group) {
      group = bricks.group[brick]!;
      surface.fillStyle = colorOfGroup(scene, group, options);
    }
    fillBrick(surface, scene, brick, box);
  }
  drawSelected(surface, scene, box, options);
}

function colorOfGroup(scene: Scene, group: number, { palette, highlighted }: SceneOptions): string {
  const key = scene.groups[group]!.key;
  return highlighted !== null && key !== highlighted ? palette.dimmed : colorOfKey(key, palette.dark);
}

const orders = new WeakMap<Scene, Uint32Array>();

/** Changing the colour costs more than a rectangle, so bricks of a group are drawn together. They never overlap. */
function orderByGroup(scene: Scene, bricks: NonNullable<Scene["bricks"]>): Uint32Array {
  const known = orders.get(scene);
  if (known !== undefined) return known;
  const next = new Uint32Array(scene.groups.length + 1);
  for (const group of bricks.group) next[group + 1]!++;
  for (let group = 1; group < next.length; group++) next[group]! += next[group - 1]!;
  const order = new Uint32Array(bricks.block.length);
  for (let brick = 0; brick < order.length; brick++) order[next[bricks.group[brick]!]!++] = brick;
  orders.set(scene, order);
  return order;
}

function fillBrick(surface: Surface, scene: Scene, brick: number, box: Box): void {
  eachRun(scene, brick, box, (x, y, width, height) => {
    const seam = height >= SEAM_FROM_PIXELS ? SEAM_PIXELS : 0;
    surface.fillRect(x, y + seam, width, height - seam);
  });
}

/** The rectangles of a brick, cut to the box from above and below. */
function eachRun(scene: Scene, brick: number, box: Box, draw: (x: number, y: number, width: number, height: number) => void): void {
  const bricks = scene.bricks!;
  const { columns, rows } = scene.view;
  const columnPixels = box.width / Math.max(1, columns);
  const rowPixels = box.height / Math.max(1, rows);
  const bytesPerRow = rowBytes(scene);
  const tall = bytesPerRow > 0 ? bricks.size[brick]! / bytesPerRow : 0;
  const floor = box.y + box.height;
  for (let run = bricks.run[brick]!; run < bricks.run[brick + 1]!; run++) {
    const bottom = clampY(box, floor - bricks.runBottom[run]! * rowPixels);
    const top = clampY(box, floor - (bricks.runBottom[run]! + tall) * rowPixels);
    const from = bricks.runFrom[run]! * columnPixels;
    if (bottom > top) draw(box.x + from, top, bricks.runTo[run]! * columnPixels - from, bottom - top);
  }
}

/** The frame of the selected block, where it is a brick. */
export function drawSelected(surface: Surface, scene: Scene, box: Box, options: SceneOptions): void {
  const brick = options.selected === null || scene.bricks === null ? -1 : scene.bricks.block.indexOf(options.selected);
  if (brick < 0) return;
  surface.strokeStyle = options.palette.selected;
  surface.lineWidth = 2;
  eachRun(scene, brick, box, (x, y, width, height) => surface.strokeRect(x, y, width, Math.max(1, height)));
}

export function drawOutline(surface: Surface, scene: Scene, box: Box, palette: Palette): void {
  if (scene.view.columns === 0) return;
  surface.strokeStyle = palette.outline;
  surface.lineWidth = 1;
  surface.beginPath();
  surface.moveTo(box.x, clampY(box, yOfBytes(scene, box, scene.active[0]!)));
  traceSteps(surface, scene, box, box.width / scene.view.columns);
  surface.stroke();
}

/** A line along the edge beyond which the stack goes on. */
function drawBeyond(surface: Surface, scene: Scene, box: Box, palette: Palette): void {
  const width = box.width / Math.max(1, scene.view.columns);
  surface.fillStyle = palette.bad;
  for (let column = 0; column < scene.view.columns; column++) {
    if (scene.active[column]! > scene.view.high * (1 + 1e-9)) surface.fillRect(box.x + column * width, box.y, width, 2);
  }
}

/** What is under a point: the column, the height in bytes, and the brick as an index, -1 for none. */
export function hitBrick(scene: Scene, box: Box, x: number, y: number): { column: number; height: number; brick: number } {
  const { from, to, low, high } = scene.view;
  const column = columnAt(scene.view, from + ((x - box.x) / Math.max(1, box.width)) * (to - from));
  const height = low + (1 - (y - box.y) / Math.max(1, box.height)) * (high - low);
  return { column, height, brick: brickAt(scene, column, height) };
}
