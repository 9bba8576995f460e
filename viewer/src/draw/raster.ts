// The same picture as bricks.ts and areas.ts, as pixels of an array: what the page shows.
//
// A canvas without a graphics card takes 10 to 30 ms for some thousand rectangles; writing the pixels takes 1 to 3.
// One column is one pixel wide, one row one pixel high. The line along the stack lies just above it and covers no brick.
//
// Not here: exports, which draw at any size (bricks.ts), the selected block's frame.

import { rowBytes } from "../data/geometry";
import { colorOfKey, type Palette } from "./colors";
import { HATCH_PIXELS, SEAM_FROM_PIXELS, SEAM_PIXELS, type SceneOptions } from "./bricks";
import type { Scene } from "../data/types";

/** `columns` × `rows` pixels of the scene's view, row after row, as RGBA in little-endian words. */
export function rasterScene(scene: Scene, options: SceneOptions): Uint32Array<ArrayBuffer> {
  const { columns, rows } = scene.view;
  const pixels = new Uint32Array(columns * rows);
  const tops = Int32Array.from({ length: columns }, (_, column) => rowOf(scene, scene.active[column]!));
  fillRest(pixels, tops, rows, options.palette);
  if (scene.area !== null) fillAreas(pixels, scene, scene.area, options);
  if (scene.bricks !== null) fillBricks(pixels, scene, scene.bricks, options);
  drawEdge(pixels, tops, rows, wordOf(options.palette.outline));
  drawBeyond(pixels, scene, wordOf(options.palette.bad));
  return pixels;
}

/** The first row of pixels below a height, cut to the picture. */
function rowOf(scene: Scene, bytes: number): number {
  return cut(scene.view.rows - (bytes - scene.view.low) / (rowBytes(scene) || Infinity), scene.view.rows);
}

const cut = (row: number, rows: number): number => Math.min(rows, Math.max(0, Math.round(row)));

function fillRest(pixels: Uint32Array, tops: Int32Array, rows: number, palette: Palette): void {
  const columns = tops.length;
  const [background, rest, hatch] = [palette.background, palette.rest, palette.restLine].map(wordOf) as [number, number, number];
  for (let row = 0, at = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++, at++) {
      pixels[at] = row < tops[column]! ? background : (row + column) % HATCH_PIXELS === 0 ? hatch : rest;
    }
  }
}

function colorsOf(scene: Scene, { palette, highlighted }: SceneOptions): Uint32Array {
  return Uint32Array.from(scene.groups, ({ key }) =>
    wordOf(highlighted !== null && key !== highlighted ? palette.dimmed : colorOfKey(key, palette.dark)),
  );
}

function fillBricks(pixels: Uint32Array, scene: Scene, bricks: NonNullable<Scene["bricks"]>, options: SceneOptions): void {
  const { columns, rows } = scene.view;
  const colors = colorsOf(scene, options);
  const bytesPerRow = rowBytes(scene);
  for (let brick = 0; brick < bricks.block.length; brick++) {
    const color = colors[bricks.group[brick]!]!;
    const tall = bytesPerRow > 0 ? bricks.size[brick]! / bytesPerRow : 0;
    for (let run = bricks.run[brick]!; run < bricks.run[brick + 1]!; run++) {
      const bottom = cut(rows - bricks.runBottom[run]!, rows);
      const top = cut(rows - bricks.runBottom[run]! - tall, rows);
      const from = Math.min(columns, bricks.runFrom[run]!);
      const to = Math.min(columns, bricks.runTo[run]!);
      const seam = bottom - top >= SEAM_FROM_PIXELS ? SEAM_PIXELS : 0;
      fillBlock(pixels, columns, from, to, top, top + seam, darker(color));
      fillBlock(pixels, columns, from, to, top + seam, bottom, color);
    }
  }
}

/** Three quarters of each part: the brick's own colour, so a seam is not taken for the rest. */
export function darker(word: number): number {
  const of = (shift: number): number => ((((word >>> shift) & 0xff) * 3) >> 2) << shift;
  return (0xff000000 | of(16) | of(8) | of(0)) >>> 0;
}

/** From here on `fill` is faster than a loop. */
const WIDE_PIXELS = 12;

function fillBlock(pixels: Uint32Array, columns: number, from: number, to: number, top: number, bottom: number, color: number): void {
  for (let row = top; row < bottom; row++) {
    const start = row * columns;
    if (to - from >= WIDE_PIXELS) pixels.fill(color, start + from, start + to);
    else for (let at = start + from; at < start + to; at++) pixels[at] = color;
  }
}

function fillAreas(pixels: Uint32Array, scene: Scene, area: Float64Array, options: SceneOptions): void {
  const { columns } = scene.view;
  const colors = colorsOf(scene, options);
  for (let column = 0; column < columns; column++) {
    let height = 0;
    let bottom = rowOf(scene, 0);
    for (let group = 0; group < colors.length; group++) {
      height += area[group * columns + column]!;
      const top = rowOf(scene, height);
      for (let row = top; row < bottom; row++) pixels[row * columns + column] = colors[group]!;
      bottom = top;
    }
  }
}

function drawEdge(pixels: Uint32Array, tops: Int32Array, rows: number, color: number): void {
  const columns = tops.length;
  for (let column = 0; column < columns; column++) {
    const top = tops[column]!;
    // Neighbours that are higher are joined by a line in this column, where nothing else is.
    const higher = Math.min(top - 1, column > 0 ? tops[column - 1]! : rows, column + 1 < columns ? tops[column + 1]! : rows);
    for (let row = Math.max(0, higher); row < top; row++) pixels[row * columns + column] = color;
  }
}

function drawBeyond(pixels: Uint32Array, scene: Scene, color: number): void {
  const { columns, rows, high } = scene.view;
  for (let column = 0; column < columns; column++) {
    if (!(scene.active[column]! > high * (1 + 1e-9))) continue;
    for (let row = 0; row < Math.min(2, rows); row++) pixels[row * columns + column] = color;
  }
}

const words = new Map<string, number>();
const MOST_WORDS = 4096;

/** A colour of colors.ts, `#rrggbb` or `hsl(h s% l%)`, as a pixel. */
export function wordOf(color: string): number {
  let word = words.get(color);
  if (word !== undefined) return word;
  const [red, green, blue] = color.startsWith("#") ? fromHex(color) : fromHsl(color);
  word = (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
  if (words.size >= MOST_WORDS) words.clear();
  words.set(color, word);
  return word;
}

type Rgb = [red: number, green: number, blue: number];

const fromHex = (color: string): Rgb => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16)) as Rgb;

/** CSS Color 4, section 7.1. */
function fromHsl(color: string): Rgb {
  const [hue, saturation, lightness] = (color.match(/[\d.]+/g) ?? []).map(Number) as [number, number, number];
  const amplitude = (saturation / 100) * Math.min(lightness / 100, 1 - lightness / 100);
  return [0, 8, 4].map((offset) => {
    const part = (offset + hue / 30) % 12;
    return Math.round(255 * (lightness / 100 - amplitude * Math.max(-1, Math.min(part - 3, 9 - part, 1))));
  }) as Rgb;
}
