import { describe, expect, test } from "vitest";
import { makeScene } from "../data/fixtures";
import { colorOfKey, LIGHT } from "./colors";
import { darker, rasterScene, wordOf } from "./raster";
import type { Scene } from "../data/types";

const OPTIONS = { palette: LIGHT, highlighted: null, selected: null };

/** Pixels by colour; a pixel of the scene of `rows` rows is 100 / rows bytes. */
function counts(scene: Scene, options = OPTIONS): (color: string) => number {
  const pixels = rasterScene(scene, options);
  return (color) => pixels.filter((pixel) => pixel === wordOf(color)).length;
}

function sceneOf(rows: number): Scene {
  const scene = makeScene();
  scene.bricks!.runBottom = scene.bricks!.runBottom.map((bottom) => (bottom * rows) / 100);
  scene.view.rows = rows;
  return scene;
}

describe("pixels", () => {
  test("show the bytes of bricks and rest exactly, the line above covers none", () => {
    const of = counts(sceneOf(10));
    expect(of(colorOfKey("a", false))).toBe(3 * 6);
    expect(of(colorOfKey("b", false))).toBe(2 * 6);
    // 10 bytes in each of 8 columns, grey or hatched.
    expect(of(LIGHT.rest) + of(LIGHT.restLine)).toBe(8);
    // A pixel above each column, and the jumps: 40 to 60 and 60 to 30 bytes.
    expect(of(LIGHT.outline)).toBe(8 + 1 + 2);
  });

  test("of tall bricks end in a darker seam, which is theirs and not the rest's", () => {
    const pixels = rasterScene(sceneOf(100), OPTIONS);
    const count = (word: number): number => pixels.filter((pixel) => pixel === word).length;
    const [a, b] = ["a", "b"].map((key) => wordOf(colorOfKey(key, false))) as [number, number];
    expect([count(a), count(darker(a)), count(b), count(darker(b))]).toEqual([29 * 6, 6, 19 * 6, 6]);
    expect(count(wordOf(LIGHT.rest)) + count(wordOf(LIGHT.restLine))).toBe(10 * 8);
  });

  test("of another part of the bytes are cut, and the edge tells of more", () => {
    const scene = sceneOf(10);
    Object.assign(scene.view, { low: 20, high: 40, rows: 2 });
    scene.bricks!.runBottom = Float32Array.of(-2, 1, -2);
    const of = counts(scene);
    expect(of(LIGHT.bad)).toBe(2 * 4);
    expect(of(colorOfKey("a", false))).toBe(2);
  });

  test("of areas show their bytes", () => {
    const scene: Scene = { ...sceneOf(10), bricks: null, area: Float64Array.from({ length: 16 }, (_, at) => (at < 8 ? 20 : 10)) };
    scene.active = new Float64Array(8).fill(50);
    const of = counts(scene);
    expect([of(colorOfKey("a", false)), of(colorOfKey("b", false)), of(LIGHT.rest) + of(LIGHT.restLine)]).toEqual([16, 8, 16]);
  });

  test("of other groups are dimmed", () => {
    const of = counts(sceneOf(10), { ...OPTIONS, highlighted: "b" } as unknown as typeof OPTIONS);
    expect([of(LIGHT.dimmed), of(colorOfKey("b", false))]).toEqual([18, 12]);
  });

  test("of nothing are none", () => {
    const empty: Scene = { ...makeScene(), active: new Float64Array(0) };
    empty.view = { ...empty.view, columns: 0, rows: 0 };
    expect(rasterScene(empty, OPTIONS).length).toBe(0);
  });
});

test("colours become the pixels that CSS makes of them", () => {
  expect(wordOf("#0a58b5").toString(16)).toBe("ffb5580a");
  expect(wordOf("hsl(0 100% 50%)").toString(16)).toBe("ff0000ff");
  expect(wordOf("hsl(120 100% 25%)").toString(16)).toBe("ff008000");
  expect(wordOf("hsl(210 50% 40%)").toString(16)).toBe("ff996633");
});
