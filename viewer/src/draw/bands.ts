// Draws the bands above a picture: curves of active, cached and reserved bytes with the limits in force, ribbons of
// spans by lane, and marks.
//
// Not here: which part is in view (the Bands say), cursors.

import { colorOfKey, type Palette } from "./colors";
import { formatBytes, type ByteUnits } from "./format";
import { makeScale, type Scale } from "./scale";
import { FONT, fitText, within, type Box, type Surface } from "./surface";
import { columnAt } from "../data/geometry";
import type { Bands } from "../data/types";

const CURVES_HEIGHT = 78;
const LEGEND_HEIGHT = 15;
const LANE_HEIGHT = 15;
const MARKS_HEIGHT = 16;
const LONGEST_MARK = 140;
/** A trace may have a lane for each of thousands of threads; the rest is named in `lanesLeftOut`. */
export const MOST_LANES = 12;

export const bandsHeight = (bands: Bands | null): number =>
  CURVES_HEIGHT + (bands === null ? 0 : shownLanes(bands) * LANE_HEIGHT) + MARKS_HEIGHT;

const shownLanes = (bands: Bands): number => Math.min(MOST_LANES, bands.lanes.length);

export const lanesLeftOut = (bands: Bands): number => bands.lanes.length - shownLanes(bands);

/** Beyond this many times the run's own curves, another one would press them flat. */
const MOST_ABOVE = 1.5;

/** The top of the curves: reserved memory, and what is not far above it. */
export function highestOf(bands: Bands): number {
  const own = Math.max(1, largest(bands.active), largest(bands.cached), largest(bands.reserved));
  let top = own;
  for (const values of [bands.cacheLimit, bands.memoryLimit, bands.deviceUsed]) {
    const high = largest(values);
    if (high <= own * MOST_ABOVE) top = Math.max(top, high);
  }
  return top;
}

/** 0 when nothing is known. */
function largest(values: Float64Array): number {
  let high = 0;
  for (const value of values) if (value > high) high = value;
  return high;
}

/** The x scale is of the whole box, for the window `from`..`to` in view, which may differ from the window of `bands`. */
export function drawBands(surface: Surface, bands: Bands, box: Box, scale: Scale, palette: Palette, units: ByteUnits = "GiB"): void {
  const curves = { ...box, height: CURVES_HEIGHT };
  within(surface, box, () => {
    drawCurvesOf(surface, bands, curves, scale, palette, units);
    drawLanes(surface, bands, { ...box, y: box.y + CURVES_HEIGHT }, scale, palette);
    drawMarks(surface, bands, { ...box, y: box.y + CURVES_HEIGHT + shownLanes(bands) * LANE_HEIGHT, height: MARKS_HEIGHT }, scale, palette);
  });
}

interface Curve {
  name: string;
  values: Float64Array;
  color: string;
  dash: number[];
  width: number;
}

function curvesOf(bands: Bands, palette: Palette): Curve[] {
  return [
    { name: "cache limit", values: bands.cacheLimit, color: palette.cached, dash: [2, 3], width: 1 },
    { name: "memory limit", values: bands.memoryLimit, color: palette.limit, dash: [6, 3], width: 1 },
    { name: "device used", values: bands.deviceUsed, color: palette.device, dash: [4, 2], width: 1.5 },
    { name: "reserved", values: bands.reserved, color: palette.reserved, dash: [], width: 1.5 },
    { name: "cached", values: bands.cached, color: palette.cached, dash: [], width: 1.5 },
    { name: "active", values: bands.active, color: palette.active, dash: [], width: 2 },
  ];
}

function drawCurvesOf(surface: Surface, bands: Bands, box: Box, scale: Scale, palette: Palette, units: ByteUnits): void {
  const top = highestOf(bands);
  const heights = makeScale(0, top * 1.06, box.y + box.height - 1, box.y + LEGEND_HEIGHT);
  const curves = curvesOf(bands, palette).filter((curve) => largest(curve.values) > 0 || curve.name === "active");
  for (const curve of curves) {
    if (largest(curve.values) > top) continue;
    surface.strokeStyle = curve.color;
    surface.lineWidth = curve.width;
    surface.setLineDash(curve.dash);
    traceCurve(surface, curve.values, bands, scale, heights);
  }
  surface.setLineDash([]);
  drawLegend(surface, curves.reverse(), top, box, palette, units);
}

/** Names and highest values; a curve that is far above is only told of here. */
function drawLegend(surface: Surface, curves: Curve[], top: number, box: Box, palette: Palette, units: ByteUnits): void {
  surface.font = FONT;
  surface.textBaseline = "middle";
  surface.textAlign = "left";
  let x = box.x + 4;
  for (const curve of curves) {
    const high = largest(curve.values);
    const text = `${curve.name} ${high > top ? "↑ " : ""}${formatBytes(high, units)}`;
    if (x + 22 + text.length * 6 > box.x + box.width) return surface.fillText("…", x, box.y + LEGEND_HEIGHT / 2);
    surface.fillStyle = curve.color;
    surface.fillRect(x, box.y + LEGEND_HEIGHT / 2 - 1, 10, 3);
    surface.fillStyle = palette.faint;
    surface.fillText(text, x + 14, box.y + LEGEND_HEIGHT / 2);
    x += 26 + surface.measureText(text).width;
  }
}

/** The curves at a position, in words, top down. */
export function curvesAt(bands: Bands, at: number, palette: Palette, units: ByteUnits): string[] {
  const column = columnAt({ ...bands.window, columns: bands.active.length }, at);
  return curvesOf(bands, palette)
    .reverse()
    .filter((curve) => Number.isFinite(curve.values[column]))
    .map((curve) => `${curve.name} ${formatBytes(curve.values[column]!, units)}`);
}

/** Steps, not slopes: memory jumps. NaN makes a gap. */
function traceCurve(surface: Surface, values: Float64Array, bands: Bands, scale: Scale, heights: Scale): void {
  const width = (bands.window.to - bands.window.from) / Math.max(1, values.length);
  surface.beginPath();
  let last = NaN;
  for (let column = 0; column < values.length; column++) {
    const value = values[column]!;
    const x = scale.pixel(bands.window.from + column * width);
    const y = heights.pixel(value);
    if (Number.isNaN(value)) {
      if (!Number.isNaN(last)) surface.lineTo(x, last);
    } else if (Number.isNaN(last)) surface.moveTo(x, y);
    else if (y !== last) {
      surface.lineTo(x, last);
      surface.lineTo(x, y);
    }
    last = y;
  }
  if (!Number.isNaN(last)) surface.lineTo(scale.pixel(bands.window.to), last);
  surface.stroke();
}

function drawLanes(surface: Surface, bands: Bands, box: Box, scale: Scale, palette: Palette): void {
  surface.font = FONT;
  surface.textBaseline = "middle";
  surface.textAlign = "left";
  for (let span = 0; span < bands.spanLane.length; span++) {
    const lane = bands.spanLane[span]!;
    if (lane >= MOST_LANES) continue;
    const place = spanBox(bands, span, box, scale);
    if (place !== null) drawSpan(surface, bands, span, place, palette);
  }
}

/** Null when nothing of it is in the box. */
function spanBox(bands: Bands, span: number, box: Box, scale: Scale): Box | null {
  const left = Math.max(box.x, scale.pixel(bands.spanFrom[span]!));
  const right = Math.min(box.x + box.width, scale.pixel(bands.spanTo[span]!));
  if (!(right >= left)) return null;
  return { x: left, y: box.y + bands.spanLane[span]! * LANE_HEIGHT + 1, width: Math.max(1, right - left), height: LANE_HEIGHT - 2 };
}

function drawSpan(surface: Surface, bands: Bands, span: number, place: Box, palette: Palette): void {
  const label = bands.labels[bands.spanLabel[span]!]!;
  const joined = bands.spanCount[span]! > 1;
  surface.globalAlpha = joined ? 0.5 : 0.38;
  surface.fillStyle = joined ? palette.reserved : colorOfKey(label, palette.dark);
  const gap = place.width > 3 ? 1 : 0;
  surface.fillRect(place.x, place.y, place.width - gap, place.height);
  surface.globalAlpha = 1;
  const text = fitText(joined ? `${bands.spanCount[span]} spans` : label, place.width - 6);
  if (text === "") return;
  surface.fillStyle = palette.text;
  surface.fillText(text, place.x + 3, place.y + place.height / 2);
}

function drawMarks(surface: Surface, bands: Bands, box: Box, scale: Scale, palette: Palette): void {
  surface.font = FONT;
  surface.textBaseline = "middle";
  surface.textAlign = "left";
  for (const [at, mark] of bands.marks.entries()) {
    const x = scale.pixel(mark.at);
    if (x < box.x - 4 || x > box.x + box.width + 4) continue;
    surface.fillStyle = mark.kind === "oom" ? palette.bad : palette.mark;
    surface.beginPath();
    surface.moveTo(x, box.y + 2);
    surface.lineTo(x + 4, box.y + 9);
    surface.lineTo(x - 4, box.y + 9);
    surface.closePath();
    surface.fill();
    // A label ends where the next mark stands.
    const next = bands.marks[at + 1];
    const room = next === undefined ? LONGEST_MARK : Math.min(LONGEST_MARK, scale.pixel(next.at) - x - 12);
    const text = fitText(markText(mark), room);
    if (text !== "") surface.fillText(text, x + 6, box.y + 7);
  }
}

export function markText(mark: Bands["marks"][number]): string {
  const label = mark.label === "" ? mark.kind.replace(/_/g, " ") : mark.label;
  return mark.count > 1 ? `${label} ×${mark.count}` : label;
}

/** Whether a point is on the curves. */
export const isOnCurves = (box: Box, y: number): boolean => y >= box.y && y < box.y + CURVES_HEIGHT;

/** What is under a point: a span or a mark, as text; null for neither. */
export function hitBands(bands: Bands, box: Box, scale: Scale, x: number, y: number): { text: string; count: number } | null {
  const lane = Math.floor((y - box.y - CURVES_HEIGHT) / LANE_HEIGHT);
  if (y >= box.y + CURVES_HEIGHT && lane < shownLanes(bands)) return hitSpan(bands, box, scale, x, lane);
  if (lane < shownLanes(bands)) return null;
  const mark = bands.marks.find((one) => Math.abs(scale.pixel(one.at) - x) <= 5);
  return mark === undefined ? null : { text: markText(mark), count: mark.count };
}

function hitSpan(bands: Bands, box: Box, scale: Scale, x: number, lane: number): { text: string; count: number } | null {
  // The last drawn lies on top.
  for (let span = bands.spanLane.length - 1; span >= 0; span--) {
    if (bands.spanLane[span] !== lane) continue;
    const place = spanBox(bands, span, { ...box, y: box.y + CURVES_HEIGHT }, scale);
    if (place === null || x < place.x || x >= place.x + place.width) continue;
    const count = bands.spanCount[span]!;
    const label = bands.labels[bands.spanLabel[span]!]!;
    return { text: count > 1 ? `${count} spans, the first ${label}` : label, count };
  }
  return null;
}
