// A canvas with as many pixels as the screen gives it, and a measured draw.

export interface Screen {
  readonly canvas: HTMLCanvasElement;
  /** CSS pixels. */
  readonly width: number;
  readonly height: number;
  /** Pixels of the device. */
  readonly columns: number;
  readonly rows: number;
  readonly context: CanvasRenderingContext2D;
}

export const MOST_COLUMNS = 4096;
export const MOST_ROWS = 2048;

/** Sizes the canvas to its place on the page; null while it has none. One unit of the context is one CSS pixel. */
export function fitScreen(canvas: HTMLCanvasElement): Screen | null {
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  const context = canvas.getContext("2d");
  if (width < 2 || height < 2 || context === null) return null;
  const density = window.devicePixelRatio || 1;
  const columns = Math.min(MOST_COLUMNS, Math.round(width * density));
  const rows = Math.min(MOST_ROWS, Math.round(height * density));
  if (canvas.width !== columns) canvas.width = columns;
  if (canvas.height !== rows) canvas.height = rows;
  context.setTransform(columns / width, 0, 0, rows / height, 0, 0);
  return { canvas, width, height, columns, rows, context };
}

/** Measures that are kept for whoever reads them; a page may stay open for days. */
const KEPT_MEASURES = 5000;
let measured = 0;

/** Draws and leaves a performance measure, which the bench and the browser's tools read. */
export function measureFrame(draw: () => void): void {
  const start = performance.now();
  draw();
  if (measured++ % KEPT_MEASURES === KEPT_MEASURES - 1) performance.clearMeasures("memviz-frame");
  performance.measure("memviz-frame", { start, end: performance.now() });
}

/** Counts on the canvas's `data-drawn`: a fresh answer for what is in view has been drawn. */
export function countDrawn(canvas: HTMLCanvasElement): void {
  canvas.dataset["drawn"] = String(Number(canvas.dataset["drawn"] ?? "0") + 1);
}

/** Whether the page is dark: chosen on the page, otherwise by the system. */
export function isDark(): boolean {
  const chosen = document.documentElement.dataset["theme"];
  if (chosen === "dark" || chosen === "light") return chosen === "dark";
  return window.matchMedia("(prefers-color-scheme: dark)").matches;
}
