// The flame graph of what was live at the cursor, or of the difference of two moments; and the same as a table.
//
// A click zooms in, a click on the top frame or Escape zooms out. Without a cursor it is of the active peak, as all
// panels are. Not here: the drawing (draw/flame.ts).

import { paletteFor } from "../draw/colors";
import { changeOf, drawFlame, flameHeight, hitFlame, layoutFlame, zoomTo, type FlameLayout, type FlameView } from "../draw/flame";
import { formatBytes, formatBytesChange, formatBytesExact, formatCount, formatPercent, shorten } from "../draw/format";
import { flameRequest } from "../data/request";
import { Asker } from "./asker";
import { countDrawn, fitScreen, isDark, measureFrame } from "./canvas";
import { h, say } from "./dom";
import { makeTooltip } from "./tooltip";
import { chosenUnits } from "./words";
import type { Context, MakeView, View } from "./view";
import type { Flame } from "../data/types";

const LONGEST_NAME = 100;
const TABLE_ROWS = 50;

export const makeFlame: MakeView = (context: Context): View => {
  const flame = new FlameGraph(context);
  return { element: flame.element, update: () => flame.update(), close: () => flame.close() };
};

class FlameGraph {
  private readonly canvas = h("canvas", { class: "flame", role: "img", tabindex: 0, "aria-label": "flame graph" });
  private readonly state = h("p", { class: "state", role: "status", hidden: true });
  private readonly rows = h("tbody");
  private readonly head = h("tr");
  private readonly table = h(
    "details",
    { class: "flame-table" },
    h("summary", {}, `The ${TABLE_ROWS} largest frames as a table`),
    h("table", {}, h("thead", {}, this.head), this.rows),
  );
  private readonly tooltip = makeTooltip();
  readonly element = h("div", { class: "flame-view" }, this.state, this.canvas, this.table, this.tooltip.element);

  private flame: Flame | null = null;
  private layout: FlameLayout | null = null;
  private view: FlameView = { left: 0, width: 1, firstLevel: 0, zoomed: 0 };
  private hovered = -1;
  private fresh = false;
  private frame = 0;
  private readonly asker: Asker<Flame>;
  private readonly sizes = new ResizeObserver(() => this.drawSoon());
  private readonly dark = window.matchMedia("(prefers-color-scheme: dark)");
  private readonly redraw = (): void => this.drawSoon();

  constructor(private readonly context: Context) {
    this.canvas.style.display = "block";
    this.canvas.style.width = "100%";
    this.asker = new Asker<Flame>({
      answer: (flame) => this.take(flame),
      failed: (sentence) => this.clear(sentence),
      reading: () => this.clear("the recording is still being read; the flame graph comes when it is there"),
    });
    this.sizes.observe(this.element);
    this.dark.addEventListener("change", this.redraw);
    this.listen();
  }

  update(): void {
    const { store, source } = this.context;
    const { shown, event, other } = store.state;
    const recording = this.context.recordings().recordings.find((one) => one.r === shown[0]);
    if (recording === undefined || recording.state === "failed") {
      this.asker.forget();
      return this.clear("no recording that can be read is shown; choose one above");
    }
    const at = event ?? recording.peak_active.event;
    const key = flameRequest(recording.r, at, other ?? undefined);
    this.asker.want({ key, kind: key, ask: (signal) => source.flame(recording.r, at, other ?? undefined, signal) });
    this.drawSoon();
  }

  close(): void {
    this.asker.stop();
    this.sizes.disconnect();
    this.dark.removeEventListener("change", this.redraw);
    cancelAnimationFrame(this.frame);
  }

  private take(flame: Flame): void {
    this.flame = flame;
    this.layout = layoutFlame(flame);
    this.fresh = true;
    this.zoom(0);
    const empty = flame.total === 0 && (flame.otherTotal ?? 0) === 0;
    this.message(empty ? "nothing was live at this moment; choose another one on the timeline" : (flame.nearest ?? ""));
    this.canvas.hidden = empty;
    this.canvas.style.display = empty ? "none" : "block";
    this.canvas.setAttribute("aria-label", describe(flame));
    this.fillTable(flame);
  }

  private clear(sentence: string): void {
    this.flame = this.layout = null;
    this.message(sentence);
    this.rows.replaceChildren();
    this.canvas.style.display = "none";
  }

  private message(sentence: string): void {
    say(this.state, sentence);
    this.state.hidden = sentence === "";
  }

  private zoom(node: number): void {
    if (this.layout === null) return;
    this.view = zoomTo(this.layout, node);
    this.hovered = -1;
    this.drawSoon();
  }

  private drawSoon(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => measureFrame(() => this.draw()));
  }

  private draw(): void {
    const { flame, layout, view } = this;
    if (flame === null || layout === null) return;
    const height = `${flameHeight(layout, view)}px`;
    if (this.canvas.style.height !== height) this.canvas.style.height = height;
    const screen = fitScreen(this.canvas);
    if (screen === null) return;
    const palette = paletteFor(isDark());
    screen.context.fillStyle = palette.background;
    screen.context.fillRect(0, 0, screen.width, screen.height);
    drawFlame(screen.context, flame, layout, view, { x: 0, y: 0, width: screen.width, height: screen.height }, { palette, hovered: this.hovered });
    if (!this.fresh) return;
    this.fresh = false;
    countDrawn(this.canvas);
  }

  private listen(): void {
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.leave());
    this.canvas.addEventListener("click", (event) => {
      const node = this.nodeAt(event);
      if (node >= 0) this.zoom(node === this.view.zoomed ? this.parentOf(node) : node);
    });
    this.canvas.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || this.view.zoomed === 0) return;
      event.stopPropagation();
      this.zoom(0);
    });
  }

  private parentOf(node: number): number {
    return node > 0 ? (this.flame?.parent[node] ?? 0) : 0;
  }

  private nodeAt(event: MouseEvent): number {
    if (this.layout === null) return -1;
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    return hitFlame(this.layout, this.view, { x: 0, y: 0, width, height }, event.clientX - left, event.clientY - top);
  }

  private hover(event: MouseEvent): void {
    const node = this.nodeAt(event);
    if (node !== this.hovered) this.drawSoon();
    this.hovered = node;
    if (node < 0 || this.flame === null) return this.tooltip.hide();
    this.tooltip.show(event.clientX, event.clientY, wordsOf(this.flame, node));
  }

  private leave(): void {
    this.tooltip.hide();
    if (this.hovered >= 0) this.drawSoon();
    this.hovered = -1;
  }

  private fillTable(flame: Flame): void {
    const compared = flame.otherBytes !== null;
    const heads = compared ? ["Frame", "Change", "Bytes", "Bytes at the other", "Blocks"] : ["Frame", "Bytes", "Exactly", "Blocks"];
    this.head.replaceChildren(...heads.map((head) => h("th", { scope: "col" }, head)));
    this.rows.replaceChildren(...largest(flame).map((node) => row(flame, node, compared)));
  }
}

/** Frames without the root, by the size of the change, or by bytes. */
function largest(flame: Flame): number[] {
  const weight = (node: number): number => Math.abs(changeOf(flame, node));
  const nodes = Array.from({ length: Math.max(0, flame.parent.length - 1) }, (_, at) => at + 1);
  return nodes.sort((a, b) => weight(b) - weight(a) || a - b).slice(0, TABLE_ROWS);
}

function row(flame: Flame, node: number, compared: boolean): HTMLElement {
  const units = chosenUnits();
  const name = h("th", { scope: "row" }, shorten(flame.names[flame.name[node]!]!, LONGEST_NAME));
  const bytes = flame.bytes[node]!;
  const cells = compared
    ? [formatBytesChange(changeOf(flame, node), units), formatBytes(bytes, units), formatBytes(flame.otherBytes![node]!, units), formatCount(flame.count[node]!)]
    : [formatBytes(bytes, units), formatBytesExact(bytes), formatCount(flame.count[node]!)];
  return h("tr", {}, name, cells.map((cell) => h("td", {}, cell)));
}

function wordsOf(flame: Flame, node: number): string[] {
  const units = chosenUnits();
  const bytes = flame.bytes[node]!;
  const words = [
    shorten(flame.names[flame.name[node]!]!, LONGEST_NAME),
    `${formatBytes(bytes, units)} (${formatBytesExact(bytes)}) in ${formatCount(flame.count[node]!)} blocks`,
  ];
  if (flame.total > 0) words.push(`${formatPercent(bytes / flame.total)} of what was live`);
  if (flame.otherBytes === null) return words;
  const other = flame.otherBytes[node]!;
  return [...words, `${formatBytes(other, units)} at the other moment: ${formatBytesChange(changeOf(flame, node), units)}`];
}

function describe(flame: Flame): string {
  const units = chosenUnits();
  const total = `Flame graph of ${formatBytes(flame.total, units)}, ${formatBytesExact(flame.total)}`;
  const other = flame.otherTotal === null ? "" : `, and of ${formatBytes(flame.otherTotal, units)} at the other moment`;
  return `${total}${other}. The largest frames are in the table below.`;
}
