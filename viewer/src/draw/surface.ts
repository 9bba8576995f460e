// What drawing uses of a 2D context: few enough calls that a test can record them all.

export type Surface = Pick<
  CanvasRenderingContext2D,
  | "fillStyle" | "strokeStyle" | "lineWidth" | "globalAlpha" | "font" | "textAlign" | "textBaseline"
  | "fillRect" | "strokeRect" | "clearRect" | "beginPath" | "closePath" | "moveTo" | "lineTo" | "rect" | "fill" | "stroke" | "fillText" | "measureText"
  | "save" | "restore" | "clip" | "translate" | "setLineDash"
>;

/** A part of a surface, in its pixels. */
export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export const FONT = '11px system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';

/** Runs `draw` and lets nothing of it outside the box. */
export function within(surface: Surface, box: Box, draw: () => void): void {
  surface.save();
  surface.beginPath();
  surface.rect(box.x, box.y, box.width, box.height);
  surface.clip();
  draw();
  surface.restore();
}

/** Text cut to a width in pixels by its average letter, without measuring each. */
export function fitText(text: string, width: number, letterWidth = 6): string {
  const most = Math.floor(width / letterWidth);
  if (most < 2) return "";
  const clean = text.length > 400 ? text.slice(0, 400) : text;
  return clean.length <= most ? clean : `${clean.slice(0, most - 1)}…`;
}
