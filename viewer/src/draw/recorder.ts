// A surface that remembers what was drawn on it. Imported by tests only.

import type { Box, Surface } from "./surface";

export interface Rect extends Box {
  style: string;
}

export class Recorder {
  readonly rects: Rect[] = [];
  readonly strokes: Rect[] = [];
  readonly texts: { text: string; x: number; y: number }[] = [];
  /** Polygons that were filled, with their style. */
  readonly fills: { style: string; points: [number, number][] }[] = [];
  readonly lines: { style: string; points: [number, number][] }[] = [];
  depth = 0;
  private points: [number, number][] = [];
  fillStyle = "";
  strokeStyle = "";
  lineWidth = 1;
  globalAlpha = 1;
  font = "";
  textAlign = "left";
  textBaseline = "alphabetic";

  surface(): Surface {
    return this as unknown as Surface;
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    this.rects.push({ x, y, width, height, style: this.fillStyle });
  }
  strokeRect(x: number, y: number, width: number, height: number): void {
    this.strokes.push({ x, y, width, height, style: this.strokeStyle });
  }
  clearRect(): void {}
  beginPath(): void {
    this.points = [];
  }
  closePath(): void {}
  moveTo(x: number, y: number): void {
    this.points.push([x, y]);
  }
  lineTo(x: number, y: number): void {
    this.points.push([x, y]);
  }
  rect(): void {}
  fill(): void {
    this.fills.push({ style: this.fillStyle, points: [...this.points] });
  }
  stroke(): void {
    this.lines.push({ style: this.strokeStyle, points: [...this.points] });
  }
  fillText(text: string, x: number, y: number): void {
    this.texts.push({ text, x, y });
  }
  measureText(text: string): { width: number } {
    return { width: text.length * 6 };
  }
  save(): void {
    this.depth++;
  }
  restore(): void {
    this.depth--;
  }
  clip(): void {}
  translate(): void {}
  setLineDash(): void {}
}

/** The area of a polygon, by the shoelace formula. */
export function areaOf(points: readonly (readonly [number, number])[]): number {
  let twice = 0;
  points.forEach(([x, y], at) => {
    const [nextX, nextY] = points[(at + 1) % points.length]!;
    twice += x * nextY - nextX * y;
  });
  return Math.abs(twice) / 2;
}
