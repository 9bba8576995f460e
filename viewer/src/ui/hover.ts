// What the tooltip of a picture says: the block or group under the pointer, its size, and the line that built it.

import { formatBytes, formatBytesExact, formatCount, shorten } from "../draw/format";
import { makeTooltip } from "./tooltip";
import { chosenUnits } from "./words";
import type { Point } from "./gestures";
import type { Hit, Picture } from "./picture";
import type { Block, Source } from "../data/types";

const LONGEST_LINE = 90;
/** The pointer rests this long before a block is asked about. */
const REST_MILLIS = 120;
const MOST_KEPT = 500;

export class Hover {
  private readonly tooltip = makeTooltip();
  readonly element = this.tooltip.element;
  private readonly lines = new Map<string, string>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private turn = 0;

  constructor(private readonly source: Source) {}

  over(picture: Picture, at: Point | null, inPicture: boolean): void {
    clearTimeout(this.timer);
    this.turn++;
    const words = at === null ? null : inPicture ? this.ofPicture(picture, at) : ofBands(picture, at);
    if (at === null || words === null) return this.tooltip.hide();
    const box = (inPicture ? picture.canvas : picture.bandsCanvas).getBoundingClientRect();
    this.tooltip.show(box.left + at.x, box.top + at.y, words);
  }

  close(): void {
    clearTimeout(this.timer);
    this.turn++;
    this.tooltip.hide();
  }

  private ofPicture(picture: Picture, at: Point): string[] | null {
    const hit = picture.hit(at);
    if (hit === null) return null;
    const words = wordsOf(hit);
    if (hit.brick >= 0 && hit.scene.view.by !== "line") this.addLine(picture, at, hit, words);
    return words;
  }

  /** Colours by something else than lines don't say which line it was. */
  private addLine(picture: Picture, at: Point, hit: Hit, words: string[]): void {
    const id = hit.scene.bricks!.block[hit.brick]!;
    const key = `${picture.r} ${id}`;
    const known = this.lines.get(key);
    if (known !== undefined) return void words.push(known);
    const { turn } = this;
    this.timer = setTimeout(() => {
      // A line more is no use to say that there is none.
      this.source.block(picture.r, id).then((block) => {
        if (this.lines.size >= MOST_KEPT) this.lines.clear();
        this.lines.set(key, lineOf(block));
        if (turn === this.turn) this.over(picture, at, true);
      }, () => undefined);
    }, REST_MILLIS);
  }
}

function wordsOf({ scene, column, height, brick, group }: Hit): string[] {
  const units = chosenUnits();
  const active = scene.active[column] ?? 0;
  const now = `active ${formatBytes(active, units)} at event ${formatCount(scene.moment[column] ?? 0)}`;
  if (brick >= 0) {
    const size = scene.bricks!.size[brick]!;
    const name = scene.groups[group]!.name;
    return [`${formatBytes(size, units)} (${formatBytesExact(size)})`, shorten(name, LONGEST_LINE), `block ${formatCount(scene.bricks!.block[brick]!)}`, now];
  }
  if (height > active || height < 0) return [now];
  if (group >= 0) {
    const bytes = scene.area![group * scene.view.columns + column]!;
    return [`${formatBytes(bytes, units)} (${formatBytesExact(bytes)})`, shorten(scene.groups[group]!.name, LONGEST_LINE), now];
  }
  return [`the rest: ${formatBytes(scene.rest[column] ?? 0, units)} in blocks too small to draw here`, "zoom in to see them, or click to select one", now];
}

function lineOf(block: Block): string {
  const frame = block.built.find((one) => one.own) ?? block.built[0];
  return frame === undefined ? "built where no Python ran" : shorten(`${frame.file}:${frame.line} ${frame.name}`, LONGEST_LINE);
}

function ofBands(picture: Picture, at: Point): string[] | null {
  const words = picture.hitBands(at);
  return words.length === 0 ? null : words.map((word) => shorten(word, LONGEST_LINE));
}
