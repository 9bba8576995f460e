// What lies over a picture: ticks with labels, cursors, a range. In CSS pixels of the whole canvas.

import type { Palette } from "./colors";
import type { ByteUnits } from "./format";
import { axisTicks, byteTicks, type Scale } from "./scale";
import { FONT, type Box, type Surface } from "./surface";
import type { AxisName } from "../data/types";

/** The strip below a picture that holds the labels of its axis. */
export const AXIS_HEIGHT = 18;
const PIXELS_PER_TICK = 110;
const PIXELS_PER_BYTE_TICK = 48;

export function drawByteTicks(surface: Surface, box: Box, bytes: { low: number; high: number }, palette: Palette, units: ByteUnits): void {
  surface.font = FONT;
  surface.textAlign = "left";
  surface.textBaseline = "bottom";
  surface.lineWidth = 1;
  for (const tick of byteTicks(bytes.low, bytes.high, Math.floor(box.height / PIXELS_PER_BYTE_TICK), units)) {
    if (tick.at === 0) continue;
    const y = Math.round(box.y + box.height * (1 - (tick.at - bytes.low) / (bytes.high - bytes.low))) + 0.5;
    surface.globalAlpha = 0.35;
    surface.strokeStyle = palette.faint;
    line(surface, box.x, y, box.x + box.width, y);
    surface.globalAlpha = 0.8;
    surface.fillStyle = palette.background;
    surface.fillRect(box.x, y - 13, tick.label.length * 6 + 8, 12);
    surface.globalAlpha = 1;
    surface.fillStyle = palette.text;
    surface.fillText(tick.label, box.x + 4, y - 1);
  }
}

/** `box` is the strip below the picture. */
export function drawAxis(surface: Surface, box: Box, axis: AxisName, scale: Scale, palette: Palette): void {
  surface.fillStyle = palette.background;
  surface.fillRect(box.x, box.y, box.width, box.height);
  surface.font = FONT;
  surface.textBaseline = "middle";
  surface.textAlign = "left";
  surface.strokeStyle = palette.faint;
  surface.lineWidth = 1;
  for (const tick of axisTicks(axis, scale.from, scale.to, Math.floor(box.width / PIXELS_PER_TICK))) {
    const x = Math.round(scale.pixel(tick.at)) + 0.5;
    line(surface, x, box.y, x, box.y + 5);
    // A label that the edge would cut tells a wrong number.
    if (x + 4 + tick.label.length * 6.5 > box.x + box.width) continue;
    surface.fillStyle = palette.text;
    surface.fillText(tick.label, x + 4, box.y + box.height / 2 + 1);
  }
}

export interface Cursors {
  event: number | null;
  other: number | null;
  /** The part between them counts. */
  range: boolean;
}

/** Positions on the axis; null for none. */
export function drawCursors(surface: Surface, box: Box, cursors: Cursors, scale: Scale, palette: Palette): void {
  const { event, other } = cursors;
  if (cursors.range && event !== null && other !== null) {
    const left = Math.max(box.x, Math.min(scale.pixel(event), scale.pixel(other)));
    const right = Math.min(box.x + box.width, Math.max(scale.pixel(event), scale.pixel(other)));
    surface.fillStyle = palette.range;
    if (right > left) surface.fillRect(left, box.y, right - left, box.height);
  }
  if (other !== null) cursorLine(surface, box, scale.pixel(other), palette.otherCursor, [4, 3]);
  if (event !== null) cursorLine(surface, box, scale.pixel(event), palette.cursor, []);
}

function cursorLine(surface: Surface, box: Box, x: number, color: string, dash: number[]): void {
  if (!(x >= box.x - 1 && x <= box.x + box.width + 1)) return;
  surface.strokeStyle = color;
  surface.lineWidth = 1.5;
  surface.setLineDash(dash);
  line(surface, x, box.y, x, box.y + box.height);
  surface.setLineDash([]);
}

function line(surface: Surface, fromX: number, fromY: number, toX: number, toY: number): void {
  surface.beginPath();
  surface.moveTo(fromX, fromY);
  surface.lineTo(toX, toY);
  surface.stroke();
}
