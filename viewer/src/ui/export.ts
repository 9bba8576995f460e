// Saves what is seen: PNG of the canvases as they are, SVG drawn anew from the same answers, CSV of the table.
//
// Not here: how a surface becomes SVG (svg.ts), rows of CSV (rows.ts).

import { sentenceOf } from "../data/errors";
import { drawAreas } from "../draw/areas";
import { bandsHeight, drawBands } from "../draw/bands";
import { drawBricks } from "../draw/bricks";
import { paletteFor } from "../draw/colors";
import { AXIS_HEIGHT, drawAxis, drawByteTicks } from "../draw/overlay";
import { makeScale } from "../draw/scale";
import { isDark } from "./canvas";
import { mainRecording } from "./moving";
import { SvgSurface } from "./svg";
import type { Context } from "./view";
import { bytesInView, partInView, wholeOf } from "./viewport";
import { chosenUnits } from "./words";

const SVG_WIDTH = 1400;
const SVG_HEIGHT = 600;

/** "train-timeline.svg": letters, digits, dots and dashes only, as every system takes. */
export function fileName(recording: string, what: string, suffix: string): string {
  const name = recording.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[-.]+|-+$/g, "").slice(0, 80);
  return `${name || "memviz"}-${what}.${suffix}`;
}

export function saveCsv(context: Context, csv: string | null): string {
  if (csv === null) return "no table is shown";
  save(context, "csv", new Blob([csv], { type: "text/csv" }));
  return "the table was saved as CSV";
}

/** All canvases within an element, at their places. */
export async function savePng(context: Context, within: Element): Promise<string> {
  const canvases = [...within.querySelectorAll("canvas")].filter((canvas) => canvas.width > 0 && canvas.clientWidth > 0);
  if (canvases.length === 0) return "nothing is drawn here that could be saved as PNG";
  const boxes = canvases.map((canvas) => canvas.getBoundingClientRect());
  const left = Math.min(...boxes.map((box) => box.left));
  const top = Math.min(...boxes.map((box) => box.top));
  const scale = window.devicePixelRatio || 1;
  const page = document.createElement("canvas");
  page.width = Math.ceil((Math.max(...boxes.map((box) => box.right)) - left) * scale);
  page.height = Math.ceil((Math.max(...boxes.map((box) => box.bottom)) - top) * scale);
  const surface = page.getContext("2d");
  if (!surface) return "this browser gives no canvas to draw on";
  surface.fillStyle = paletteFor(isDark()).background;
  surface.fillRect(0, 0, page.width, page.height);
  canvases.forEach((canvas, at) => {
    const box = boxes[at]!;
    surface.drawImage(canvas, (box.left - left) * scale, (box.top - top) * scale, box.width * scale, box.height * scale);
  });
  const blob = await new Promise<Blob | null>((resolve) => page.toBlob(resolve, "image/png"));
  if (!blob) return "the picture is too large to be saved as PNG; make the window smaller";
  save(context, "png", blob);
  return "the picture was saved as PNG";
}

export async function saveSvg(context: Context): Promise<string> {
  const recording = mainRecording(context);
  if (!recording) return "no recording is shown";
  try {
    save(context, "svg", new Blob([await svgOf(context)], { type: "image/svg+xml" }));
    return "the picture was saved as SVG";
  } catch (error) {
    return sentenceOf(error);
  }
}

async function svgOf(context: Context): Promise<string> {
  const recording = mainRecording(context)!;
  const { state } = context.store;
  const part = partInView(state, wholeOf([recording], state.axis));
  const window = { r: recording.r, axis: state.axis, ...part, columns: SVG_WIDTH };
  const range = bytesInView(state, [recording]);
  const [scene, bands] = await Promise.all([
    context.source.timeline({ ...window, ...range, rows: SVG_HEIGHT, by: state.by, areas: state.areas }),
    context.source.bands(window),
  ]);
  const palette = paletteFor(isDark());
  const above = bandsHeight(bands);
  const height = above + SVG_HEIGHT + AXIS_HEIGHT;
  const surface = new SvgSurface(SVG_WIDTH, height);
  const scale = makeScale(part.from, part.to, 0, SVG_WIDTH);
  surface.fillStyle = palette.background;
  surface.fillRect(0, 0, SVG_WIDTH, height);
  drawBands(surface, bands, { x: 0, y: 0, width: SVG_WIDTH, height: above }, scale, palette);
  const box = { x: 0, y: above, width: SVG_WIDTH, height: SVG_HEIGHT };
  (scene.area === null ? drawBricks : drawAreas)(surface, scene, box, { palette, highlighted: state.group, selected: state.block });
  drawByteTicks(surface, box, range, palette, chosenUnits());
  drawAxis(surface, { x: 0, y: above + SVG_HEIGHT, width: SVG_WIDTH, height: AXIS_HEIGHT }, state.axis, scale, palette);
  return surface.finish(`memviz: ${recording.name}`);
}

function save(context: Context, suffix: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = fileName(mainRecording(context)?.name ?? "", context.store.state.page, suffix);
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
