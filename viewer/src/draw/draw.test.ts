// Drawing on a recorded surface: what is drawn adds up to what the scene says.

import { describe, expect, test } from "vitest";
import { makeBands, makeScene } from "../data/fixtures";
import { areaAt, drawAreas } from "./areas";
import { bandsHeight, curvesAt, drawBands, highestOf, hitBands, lanesLeftOut, MOST_LANES } from "./bands";
import { drawBricks, hitBrick } from "./bricks";
import { colorOfKey, LIGHT } from "./colors";
import { drawRuns, highestOfRuns } from "./curves";
import { drawFlame, flameHeight, FRAME_HEIGHT, hitFlame, layoutFlame, zoomTo } from "./flame";
import { areaOf, Recorder } from "./recorder";
import { makeScale } from "./scale";
import type { Flame, Scene } from "../data/types";

const OPTIONS = { palette: LIGHT, highlighted: null, selected: null };
/** One pixel a column and a tenth of a pixel a byte, where no brick is tall enough for a seam. */
const SMALL = { x: 0, y: 0, width: 8, height: 10 };
const LARGE = { x: 100, y: 50, width: 80, height: 100 };

describe("bricks", () => {
  test("cover their bytes exactly, and with the rest the stack", () => {
    const scene = makeScene();
    const recorder = new Recorder();
    drawBricks(recorder.surface(), scene, SMALL, OPTIONS);
    const bytes = recorder.rects.reduce((sum, rect) => sum + rect.width * rect.height * 10, 0);
    const active = scene.active.reduce((sum, one) => sum + one, 0);
    const rest = scene.rest.reduce((sum, one) => sum + one, 0);
    expect(recorder.rects.length).toBe(3);
    expect(bytes).toBeCloseTo(active - rest, 6);
    const stack = recorder.fills.find((fill) => fill.style === LIGHT.rest)!;
    expect(areaOf(stack.points) * 10).toBeCloseTo(active, 6);
    expect(recorder.depth).toBe(0);
  });

  test("stand at their heights in their group's colour, with a seam when tall", () => {
    const recorder = new Recorder();
    drawBricks(recorder.surface(), makeScene(), LARGE, OPTIONS);
    expect(recorder.rects[0]).toEqual({ x: 100, y: 121, width: 60, height: 29, style: colorOfKey("a", false) });
    expect(recorder.rects[1]).toEqual({ x: 120, y: 101, width: 40, height: 19, style: colorOfKey("b", false) });
  });

  test("of other groups are dimmed, the selected block is framed", () => {
    const recorder = new Recorder();
    drawBricks(recorder.surface(), makeScene(), LARGE, { palette: LIGHT, highlighted: "b", selected: 7 });
    expect(recorder.rects.map((rect) => rect.style)).toEqual([LIGHT.dimmed, colorOfKey("b", false), colorOfKey("b", false)]);
    expect(recorder.strokes.map((rect) => [rect.x, rect.width])).toEqual([[120, 40], [160, 20]]);
  });

  test("beyond the top are told of by a line along the edge", () => {
    const scene = makeScene();
    scene.view.high = 55;
    const recorder = new Recorder();
    drawBricks(recorder.surface(), scene, LARGE, OPTIONS);
    // Only columns 2 to 5 hold 60 bytes.
    expect(recorder.rects.filter((rect) => rect.style === LIGHT.bad).map((rect) => rect.x)).toEqual([120, 130, 140, 150]);
  });

  test("are hit where they are drawn and nowhere else", () => {
    const scene = makeScene();
    const at = (x: number, y: number): number => hitBrick(scene, LARGE, x, y).brick;
    expect([at(100, 149), at(159, 121), at(121, 119), at(179, 149)]).toEqual([0, 0, 1, 1]);
    expect([at(100, 119), at(161, 129), at(121, 99)]).toEqual([-1, -1, -1]);
    const hit = hitBrick(scene, LARGE, 121, 119);
    expect(hit.column).toBe(2);
    expect(hit.height).toBeCloseTo(31, 9);
  });

  test("of an empty scene, or one without height, draw nothing", () => {
    const empty: Scene = { ...makeScene(), active: new Float64Array(0), bricks: null };
    empty.view = { ...empty.view, columns: 0, rows: 0, low: 0, high: 0 };
    const recorder = new Recorder();
    drawBricks(recorder.surface(), empty, LARGE, OPTIONS);
    expect(recorder.rects).toEqual([]);
    expect(hitBrick(empty, LARGE, 120, 60).brick).toBe(-1);
  });
});

describe("areas", () => {
  const scene: Scene = { ...makeScene(), bricks: null, area: Float64Array.from({ length: 16 }, (_, at) => (at < 8 ? 20 : 5)) };
  scene.active = new Float64Array(8).fill(35);

  test("cover their bytes, the largest at the bottom", () => {
    const recorder = new Recorder();
    drawAreas(recorder.surface(), scene, SMALL, OPTIONS);
    const of = (key: string): { points: [number, number][] } => recorder.fills.find((fill) => fill.style === colorOfKey(key, false))!;
    expect(areaOf(of("a").points) * 10).toBeCloseTo(8 * 20, 6);
    expect(areaOf(of("b").points) * 10).toBeCloseTo(8 * 5, 6);
    expect(Math.max(...of("a").points.map(([, y]) => y))).toBe(10);
    expect(Math.max(...of("b").points.map(([, y]) => y))).toBeCloseTo(8, 6);
  });

  test("are hit by height", () => {
    expect([0, 19, 20, 24, 25, 99, -1].map((height) => areaAt(scene, 3, height))).toEqual([0, 0, 1, 1, -1, -1, -1]);
    expect(areaAt(makeScene(), 0, 5)).toBe(-1);
  });
});

describe("bands", () => {
  const box = { x: 0, y: 0, width: 800, height: bandsHeight(makeBands()) };
  const scale = makeScale(0, 8, 0, 400);

  test("draw spans in their lanes, with labels, and marks", () => {
    const recorder = new Recorder();
    drawBands(recorder.surface(), makeBands(), box, scale, LIGHT);
    // The legend's swatches stand above the lanes.
    const spans = recorder.rects.filter((rect) => rect.height > 3);
    expect(spans.map((rect) => [rect.x, rect.width])).toEqual([[0, 199], [200, 199], [0, 99]]);
    expect(recorder.texts.map((text) => text.text)).toEqual([
      "active 20 B", "cached 15 B", "reserved 20 B", "cache limit 25 B", "step 1", "5 spans", "forward", "oom", "saved ×3",
    ]);
    expect(recorder.fills.filter((fill) => fill.style === LIGHT.bad).length).toBe(1);
  });

  test("leave a gap where a limit is not known", () => {
    const recorder = new Recorder();
    drawBands(recorder.surface(), makeBands(), box, scale, LIGHT);
    const limit = recorder.lines[0]!;
    expect(limit.points.every(([x, y]) => x >= 200 && Number.isFinite(y))).toBe(true);
    // Memory limit and device are not known at all and have no line.
    expect(recorder.lines.length).toBe(4);
  });

  test("don't let a limit or the device's memory press the curves flat", () => {
    const bands = makeBands();
    bands.deviceUsed.fill(5000);
    expect([highestOf(makeBands()), highestOf(bands)]).toEqual([25, 25]);
    const recorder = new Recorder();
    drawBands(recorder.surface(), bands, box, scale, LIGHT);
    expect(recorder.lines.some((line) => line.style === LIGHT.device)).toBe(false);
    expect(recorder.texts.map((text) => text.text)).toContain("device used ↑ 4.88 KiB");
  });

  test("tell the curves' values at a position", () => {
    expect(curvesAt(makeBands(), 5, LIGHT, "GiB")).toEqual(["active 15 B", "cached 5 B", "reserved 20 B", "cache limit 25 B"]);
    expect(curvesAt(makeBands(), 1, LIGHT, "GiB")).toEqual(["active 10 B", "cached 0 B", "reserved 10 B"]);
  });

  test("are hit by span and by mark", () => {
    const at = (x: number, y: number): string | undefined => hitBands(makeBands(), box, scale, x, y)?.text;
    expect([at(10, 84), at(300, 84), at(10, 99), at(300, 99), at(52, 114), at(10, 10)]).toEqual([
      "step 1", "5 spans, the first step 2", "forward", undefined, "oom", undefined,
    ]);
  });

  test("say how many lanes they leave out", () => {
    const bands = makeBands();
    bands.lanes = Array.from({ length: MOST_LANES + 5 }, (_, at) => ({ kind: "thread" as const, name: `${at}` }));
    expect(lanesLeftOut(bands)).toBe(5);
    expect(lanesLeftOut(makeBands())).toBe(0);
  });
});

describe("a flame graph", () => {
  const flame: Flame = {
    names: ["all", "main", "train", "load"], total: 100, otherTotal: null,
    parent: Uint32Array.of(4294967295, 0, 1, 1), name: Uint32Array.of(0, 1, 2, 3), own: Uint8Array.of(0, 1, 1, 0),
    bytes: Float64Array.of(100, 80, 50, 30), count: Uint32Array.of(4, 3, 2, 1), otherBytes: null, otherCount: null,
  };
  const box = { x: 0, y: 0, width: 200, height: 3 * FRAME_HEIGHT };
  const layout = layoutFlame(flame);
  const whole = zoomTo(layout, 0);

  test("has children within their parents, side by side", () => {
    expect([...layout.left]).toEqual([0, 0, 0, 0.5]);
    expect([...layout.width]).toEqual([1, 0.8, 0.5, 0.3]);
    expect([layout.levels, flameHeight(layout, whole)]).toEqual([3, 3 * FRAME_HEIGHT]);
  });

  test("draws every frame as wide as its bytes", () => {
    const recorder = new Recorder();
    drawFlame(recorder.surface(), flame, layout, whole, box, { palette: LIGHT, hovered: -1 });
    expect(recorder.rects.map((rect) => rect.width + 1)).toEqual([200, 160, 100, 60]);
    expect(recorder.texts.map((text) => text.text)).toEqual(["all", "main", "train", "load"]);
  });

  test("is hit where frames are, also zoomed", () => {
    const at = (x: number, level: number, view = whole): number => hitFlame(layout, view, box, x, level * FRAME_HEIGHT + 5);
    expect([at(5, 0), at(5, 1), at(5, 2), at(101, 2), at(170, 1), at(170, 2), at(5, 3)]).toEqual([0, 1, 2, 3, -1, -1, -1]);
    const zoomed = zoomTo(layout, 3);
    expect([at(5, 2, zoomed), at(195, 2, zoomed), at(5, 1, zoomed)]).toEqual([3, 3, 1]);
  });

  test("of two moments is as wide as both, and coloured by the change", () => {
    const both: Flame = { ...flame, otherTotal: 100, otherBytes: Float64Array.of(100, 80, 80, 0), otherCount: Uint32Array.of(4, 3, 3, 0) };
    const wide = layoutFlame(both);
    expect([...wide.width]).toEqual([1, 0.8, 0.65, 0.15]);
    const recorder = new Recorder();
    drawFlame(recorder.surface(), both, wide, whole, box, { palette: LIGHT, hovered: -1 });
    const styles = recorder.rects.map((rect) => rect.style);
    // Train grew from the cursor to the second moment, load went: red and blue.
    expect([styles[0] === styles[1], styles[2]!.startsWith("hsl(8 "), styles[3]!.startsWith("hsl(212 ")]).toEqual([true, true, true]);
  });

  test("of nothing has no frames to draw or hit", () => {
    const none: Flame = { ...flame, total: 0, bytes: new Float64Array(4) };
    const flat = layoutFlame(none);
    const recorder = new Recorder();
    drawFlame(recorder.surface(), none, flat, zoomTo(flat, 2), box, { palette: LIGHT, hovered: -1 });
    expect(recorder.rects).toEqual([]);
    expect(hitFlame(flat, zoomTo(flat, 0), box, 5, 5)).toBe(-1);
  });
});

test("a replayed run is drawn over the recorded one, to one height", () => {
  const recorded = { active: [10, 20], reserved: [20, 20] };
  const replayed = { active: [10, 20], reserved: [10, 40] };
  expect(highestOfRuns([recorded, replayed])).toBe(40);
  const recorder = new Recorder();
  drawRuns(recorder.surface(), { recorded, replayed, limit: null }, { x: 0, y: 0, width: 2, height: 43.2 }, LIGHT);
  expect(areaOf(recorder.fills[0]!.points)).toBeCloseTo(40, 6);
  expect(areaOf(recorder.fills[1]!.points)).toBeCloseTo(30, 6);
  expect(recorder.lines.map((line) => line.style)).toEqual([LIGHT.cached, LIGHT.active]);
  expect(Math.min(...recorder.lines[0]!.points.map(([, y]) => y))).toBeCloseTo(3.2, 6);
});
