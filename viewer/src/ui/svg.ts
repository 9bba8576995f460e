// A surface that writes SVG: what draws on a canvas draws into a file. Text is escaped; nothing of a trace becomes markup.
//
// Implements what drawing uses of a 2D context (draw/surface.ts), as far as drawing uses it: clips are rectangles or
// paths, text is measured by an average letter.

import type { Surface } from "../draw/surface";

const LETTER_WIDTH = 6;

interface Kept {
  fillStyle: string;
  strokeStyle: string;
  lineWidth: number;
  globalAlpha: number;
  font: string;
  textAlign: CanvasTextAlign;
  textBaseline: CanvasTextBaseline;
  dash: number[];
  /** Groups opened since `save`. */
  groups: number;
}

export class SvgSurface implements Surface {
  fillStyle: string | CanvasGradient | CanvasPattern = "#000";
  strokeStyle: string | CanvasGradient | CanvasPattern = "#000";
  lineWidth = 1;
  globalAlpha = 1;
  font = "11px sans-serif";
  textAlign: CanvasTextAlign = "left";
  textBaseline: CanvasTextBaseline = "alphabetic";

  private readonly parts: string[] = [];
  private readonly kept: Kept[] = [];
  private path: string[] = [];
  private dash: number[] = [];
  private groups = 0;
  private clips = 0;

  constructor(
    private readonly width: number,
    private readonly height: number,
  ) {}

  /** The file. */
  finish(title: string): string {
    while (this.kept.length > 0) this.restore();
    const size = `width="${num(this.width)}" height="${num(this.height)}" viewBox="0 0 ${num(this.width)} ${num(this.height)}"`;
    return `<svg xmlns="http://www.w3.org/2000/svg" ${size}>\n<title>${escapeXml(title)}</title>\n${this.parts.join("\n")}\n</svg>\n`;
  }

  save(): void {
    const { lineWidth, globalAlpha, font, textAlign, textBaseline, dash, groups } = this;
    this.kept.push({ fillStyle: String(this.fillStyle), strokeStyle: String(this.strokeStyle), lineWidth, globalAlpha, font, textAlign, textBaseline, dash, groups });
    this.groups = 0;
  }

  restore(): void {
    const kept = this.kept.pop();
    if (!kept) return;
    this.parts.push("</g>".repeat(this.groups));
    Object.assign(this, kept);
  }

  clip(): void {
    this.clips += 1;
    this.groups += 1;
    const id = `clip${this.clips}`;
    this.parts.push(`<clipPath id="${id}"><path d="${this.path.join("")}"/></clipPath><g clip-path="url(#${id})">`);
  }

  translate(x: number, y: number): void {
    this.groups += 1;
    this.parts.push(`<g transform="translate(${num(x)} ${num(y)})">`);
  }

  beginPath(): void {
    this.path = [];
  }

  closePath(): void {
    this.path.push("Z");
  }

  moveTo(x: number, y: number): void {
    this.path.push(`M${num(x)} ${num(y)}`);
  }

  lineTo(x: number, y: number): void {
    this.path.push(`${this.path.length === 0 ? "M" : "L"}${num(x)} ${num(y)}`);
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.path.push(`M${num(x)} ${num(y)}h${num(width)}v${num(height)}h${num(-width)}Z`);
  }

  fill(): void {
    if (this.path.length > 0) this.parts.push(`<path d="${this.path.join("")}" ${this.filled()}/>`);
  }

  stroke(): void {
    if (this.path.length > 0) this.parts.push(`<path d="${this.path.join("")}" fill="none" ${this.stroked()}/>`);
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    this.parts.push(`<rect ${rectangle(x, y, width, height)} ${this.filled()}/>`);
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    this.parts.push(`<rect ${rectangle(x, y, width, height)} fill="none" ${this.stroked()}/>`);
  }

  clearRect(): void {}

  fillText(text: string, x: number, y: number): void {
    const anchor = { center: "middle", right: "end", end: "end", left: "start", start: "start" }[this.textAlign];
    const base = { middle: "central", top: "hanging", hanging: "hanging" }[String(this.textBaseline)] ?? "auto";
    const font = `font-size="11" font-family="system-ui, sans-serif" text-anchor="${anchor}" dominant-baseline="${base}"`;
    this.parts.push(`<text x="${num(x)}" y="${num(y)}" ${font} ${this.filled()}>${escapeXml(text)}</text>`);
  }

  measureText(text: string): TextMetrics {
    return { width: text.length * LETTER_WIDTH } as TextMetrics;
  }

  setLineDash(dash: Iterable<number>): void {
    this.dash = [...dash];
  }

  private filled(): string {
    return `fill="${escapeXml(String(this.fillStyle))}"${this.opacity()}`;
  }

  private stroked(): string {
    const dash = this.dash.length > 0 ? ` stroke-dasharray="${this.dash.map(num).join(" ")}"` : "";
    return `stroke="${escapeXml(String(this.strokeStyle))}" stroke-width="${num(this.lineWidth)}"${dash}${this.opacity()}`;
  }

  private opacity(): string {
    return this.globalAlpha < 1 ? ` opacity="${num(this.globalAlpha)}"` : "";
  }
}

function rectangle(x: number, y: number, width: number, height: number): string {
  return `x="${num(x)}" y="${num(y)}" width="${num(Math.max(0, width))}" height="${num(Math.max(0, height))}"`;
}

/** Two digits behind the point; what is no number is 0, as a file with NaN does not open. */
function num(value: number): string {
  return Number.isFinite(value) ? String(Math.round(value * 100) / 100) : "0";
}

/** Text for XML: markup escaped, characters that XML can't have replaced. */
export function escapeXml(text: string): string {
  return text
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu, "\ufffd")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}
