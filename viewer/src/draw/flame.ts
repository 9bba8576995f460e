// Draws a Flame as icicles: the root on top, each frame as wide as its bytes. With a second moment a frame is as wide
// as both together, which keeps children within their parent, and its colour says which way it changed.

import { colorOfChange, colorOfFrame, type Palette } from "./colors";
import { FONT, fitText, type Box, type Surface } from "./surface";
import type { Flame } from "../data/types";

export const FRAME_HEIGHT = 18;
/** Canvases have a largest size; what is deeper is reached by zooming in. */
export const MOST_LEVELS = 160;
/** Levels above the zoomed frame that stay in view, to find the way back. */
const LEVELS_ABOVE = 3;

/** Where each node is, as parts of the root's width. */
export interface FlameLayout {
  left: Float64Array;
  width: Float64Array;
  depth: Uint32Array;
  levels: number;
}

export function layoutFlame(flame: Flame): FlameLayout {
  const { length } = flame.parent;
  const layout = { left: new Float64Array(length), width: new Float64Array(length), depth: new Uint32Array(length), levels: 0 };
  const filled = new Float64Array(length);
  const total = weightOf(flame, 0);
  for (let node = 0; node < length; node++) {
    const width = total > 0 ? weightOf(flame, node) / total : 0;
    layout.width[node] = width;
    if (node > 0) {
      const above = flame.parent[node]!;
      layout.depth[node] = layout.depth[above]! + 1;
      layout.left[node] = layout.left[above]! + filled[above]!;
      filled[above]! += width;
    }
    layout.levels = Math.max(layout.levels, layout.depth[node]! + 1);
  }
  return layout;
}

const weightOf = (flame: Flame, node: number): number => (flame.bytes[node] ?? 0) + (flame.otherBytes?.[node] ?? 0);

/** What of a layout is seen: the part of the root's width, and the first level. */
export interface FlameView {
  left: number;
  width: number;
  firstLevel: number;
  zoomed: number;
}

export function zoomTo(layout: FlameLayout, node: number): FlameView {
  const at = node < layout.left.length ? node : 0;
  const depth = layout.depth[at] ?? 0;
  // A frame without bytes has no width to zoom into.
  if (!(layout.width[at]! > 0)) return { left: 0, width: 1, firstLevel: 0, zoomed: 0 };
  return { left: layout.left[at]!, width: layout.width[at]!, firstLevel: Math.max(0, depth - LEVELS_ABOVE), zoomed: at };
}

export function flameHeight(layout: FlameLayout, view: FlameView): number {
  return Math.min(MOST_LEVELS, Math.max(1, layout.levels - view.firstLevel)) * FRAME_HEIGHT;
}

export interface FlameOptions {
  palette: Palette;
  hovered: number;
}

export function drawFlame(surface: Surface, flame: Flame, layout: FlameLayout, view: FlameView, box: Box, options: FlameOptions): void {
  surface.font = FONT;
  surface.textBaseline = "middle";
  surface.textAlign = "left";
  const largest = largestChange(flame);
  // A trace that knows nobody's own code would be all grey.
  const someOwn = flame.own.includes(1);
  for (let node = 0; node < flame.parent.length; node++) {
    const place = frameBox(layout, view, node, box);
    if (place !== null) drawFrame(surface, flame, node, place, { largest, bright: !someOwn || flame.own[node] === 1 }, options);
  }
}

function largestChange(flame: Flame): number {
  let largest = 0;
  if (flame.otherBytes === null) return 0;
  for (let node = 0; node < flame.bytes.length; node++) largest = Math.max(largest, Math.abs(changeOf(flame, node)));
  return largest;
}

/** From the cursor to the second moment; without one, the bytes. */
export const changeOf = (flame: Flame, node: number): number =>
  flame.otherBytes === null ? flame.bytes[node]! : flame.otherBytes[node]! - flame.bytes[node]!;

function drawFrame(surface: Surface, flame: Flame, node: number, place: Box, look: { largest: number; bright: boolean }, { palette, hovered }: FlameOptions): void {
  const name = flame.names[flame.name[node]!]!;
  surface.fillStyle =
    flame.otherBytes === null
      ? colorOfFrame(name, look.bright, palette.dark)
      : colorOfChange(look.largest > 0 ? changeOf(flame, node) / look.largest : 0, palette.dark);
  surface.fillRect(place.x, place.y, Math.max(0.5, place.width - (place.width > 2 ? 1 : 0)), place.height - 1);
  if (node === hovered) {
    surface.strokeStyle = palette.selected;
    surface.lineWidth = 1;
    surface.strokeRect(place.x + 0.5, place.y + 0.5, Math.max(1, place.width - 2), place.height - 2);
  }
  const text = fitText(name, place.width - 6);
  if (text === "") return;
  surface.fillStyle = palette.text;
  surface.fillText(text, place.x + 3, place.y + place.height / 2);
}

/** Null for frames that are out of view or narrower than a quarter of a pixel. */
function frameBox(layout: FlameLayout, view: FlameView, node: number, box: Box): Box | null {
  const level = layout.depth[node]! - view.firstLevel;
  if (level < 0 || level >= MOST_LEVELS) return null;
  const left = Math.max(0, ((layout.left[node]! - view.left) / view.width) * box.width);
  const right = Math.min(box.width, ((layout.left[node]! + layout.width[node]! - view.left) / view.width) * box.width);
  if (right - left < 0.25) return null;
  return { x: box.x + left, y: box.y + level * FRAME_HEIGHT, width: right - left, height: FRAME_HEIGHT };
}

/** The frame under a point, -1 for none. */
export function hitFlame(layout: FlameLayout, view: FlameView, box: Box, x: number, y: number): number {
  const level = Math.floor((y - box.y) / FRAME_HEIGHT) + view.firstLevel;
  const part = view.left + ((x - box.x) / Math.max(1, box.width)) * view.width;
  if (x < box.x || x >= box.x + box.width || y < box.y) return -1;
  for (let node = 0; node < layout.depth.length; node++) {
    if (layout.depth[node] !== level) continue;
    if (part >= layout.left[node]! && part < layout.left[node]! + layout.width[node]!) return node;
  }
  return -1;
}
