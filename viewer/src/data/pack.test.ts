import { describe, expect, test } from "vitest";
import { brickSums, encodeFrame, encodeScene, makeScene, VIEW } from "./fixtures";
import { momentDifference } from "./difference";
import { packSource } from "./pack";
import { timelineRequest } from "./request";
import { resampleScene } from "./resample";
import type { MomentTable, Recording, Scene, Viewport } from "./types";

interface Answer {
  request: string;
  body: ArrayBuffer | object;
}

async function packed(answers: Answer[]): Promise<string> {
  const parts = answers.map(({ body }) => (body instanceof ArrayBuffer ? new Uint8Array(body) : new TextEncoder().encode(JSON.stringify(body))));
  const bytes: number[] = [];
  const listed = answers.map(({ request, body }, index) => {
    const entry = { request, kind: body instanceof ArrayBuffer ? "frame" : "json", at: bytes.length, length: parts[index]!.length };
    bytes.push(...parts[index]!);
    return entry;
  });
  const frame = encodeFrame({ answers: listed, left_out: [] }, { bytes: ["u8", bytes] });
  const gzip = new Blob([frame]).stream().pipeThrough(new CompressionStream("gzip"));
  return btoa(String.fromCharCode(...new Uint8Array(await new Response(gzip).arrayBuffer())));
}

const scenePart = (from: number, to: number, moments: number): Scene => {
  const scene = makeScene();
  scene.view = { ...VIEW, from, to };
  scene.moment = scene.moment.map((_, column) => moments + column);
  return scene;
};
const stored = (scene: Scene): Answer => ({ request: timelineRequest(scene.view), body: encodeScene(scene) });
const table = (event: number, groups: [string, number][], leftOut = 0): MomentTable => ({
  schema: 1, event, nanos: event, step: null, by: "line",
  active: { bytes: groups.reduce((sum, [, bytes]) => sum + bytes, 0), count: groups.length }, cached: { bytes: 0, count: 0 },
  groups: groups.map(([key, bytes]) => ({ key, name: key, bytes, count: 1 })),
  left_out: { groups: leftOut, bytes: 0, count: 0 },
});
const recording = { r: 0, events: 8, blocks: 2, from_nanos: 0, steps: null, peak_active: { event: 3, nanos: 30, bytes: 60 }, peak_reserved: { event: 4, nanos: 40, bytes: 60 } } as Recording;

const whole = scenePart(0, 8, 0);
const half = scenePart(4, 8, 100);
const other = { ...scenePart(0, 8, 50), view: { ...VIEW, by: "dtype" as const } };
const answers: Answer[] = [
  { request: "recordings", body: { schema: 1, version: "1", form: "page", left_out: [], recordings: [recording] } },
  stored(whole), stored(half), stored(other),
  { request: "moment?r=0&event=2&by=line", body: table(2, [["a", 5]]) },
  { request: "moment?r=0&event=6&by=line", body: table(6, [["a", 1], ["b", 9]]) },
  {
    request: "whatif?r=0&axis=event&from=0&to=8&columns=4&policy=&device=&cache_limit=&memory_limit=",
    body: encodeFrame({ recorded: { hits: 3 }, hits: 3 }, { active: ["f64", [1, 5, 2, 3]], cached: ["f64", [0, 0, 1, 1]], reserved: ["f64", [1, 5, 5, 5]] }),
  },
  { request: "report?command=peak&r=0&option=--by&option=a%20b", body: { peak: 1 } },
];

describe("a pack", () => {
  test("answers a window from the finest tile that holds it", async () => {
    const source = packSource(await packed(answers));
    const right = await source.timeline({ ...VIEW, from: 5, to: 7, columns: 4 });
    expect([...right.moment]).toEqual([102, 103, 104, 105]);
    const across = await source.timeline({ ...VIEW, from: 2, to: 6, columns: 4 });
    expect([...across.moment]).toEqual([2, 3, 4, 5]);
    expect(across.view).toEqual({ ...VIEW, from: 2, to: 6, columns: 4 });
  });

  test("matches the grouping, and names what it holds instead", async () => {
    const source = packSource(await packed(answers));
    expect([...(await source.timeline({ ...VIEW, by: "dtype" })).moment][0]).toBe(50);
    await expect(source.timeline({ ...VIEW, by: "module" })).rejects.toThrow(/holds bricks by dtype, bricks by line, not bricks by module/);
    await expect(source.timeline({ ...VIEW, areas: true })).rejects.toMatchObject({ status: 404 });
    await expect(source.timeline({ ...VIEW, r: 1 })).rejects.toThrow(/no picture over this axis/);
  });

  test("answers with the nearest moment and says so", async () => {
    const source = packSource(await packed(answers));
    expect(await source.moment(0, 6, "line")).toEqual(table(6, [["a", 1], ["b", 9]]));
    const near = await source.moment(0, 3, "line");
    expect([near.event, near.nearest]).toEqual([2, "event 2, the nearest that this page holds to event 3"]);
    expect((await source.moment(0, 4, "line")).event).toBe(2);
    await expect(source.moment(0, 4, "step")).rejects.toThrow(/does not hold what was live by step/);
  });

  test("finds a request however it is escaped, and refuses what it doesn't hold", async () => {
    const source = packSource(await packed(answers));
    expect(await source.report("peak", [0], ["--by", "a b"])).toEqual({ peak: 1 });
    await expect(source.report("peak", [0], [])).rejects.toThrow(/open the recording with `memviz view`/);
    await expect(source.block(0, 3)).rejects.toThrow(/does not hold the block 3/);
    await expect(source.flame(0, 3)).rejects.toMatchObject({ status: 404 });
  });

  test("answers a replay as recorded for any window, and no other", async () => {
    const source = packSource(await packed(answers));
    const asRecorded = { policy: "", device: "", cache_limit: null, memory_limit: null };
    const replay = await source.whatif({ ...VIEW, columns: 2 }, asRecorded);
    expect([[...replay.active], [...replay.reserved], replay.recorded.hits]).toEqual([[5, 3], [5, 5], 3]);
    await expect(source.whatif(VIEW, { ...asRecorded, cache_limit: 0 })).rejects.toThrow(/a replay under these settings/);
  });

  test("places moments by its pictures", async () => {
    const source = packSource(await packed(answers));
    expect(await source.place(0, { axis: "event", at: 5.2 })).toMatchObject({ event: 5 });
    expect(await source.place(0, { name: "peak-active", event: 0 })).toMatchObject({ event: 3, time: 30, step: null });
    expect((await source.place(0, { event: 99 })).event).toBe(8);
    expect(await source.at(0, 3, 35)).toBe(7);
    expect(await source.at(0, 3, 99)).toBeNull();
  });

  test("that was cut or forged is refused with a sentence", async () => {
    const text = await packed(answers);
    await expect(packSource(text.slice(0, text.length / 2)).recordings()).rejects.toThrow(/was cut, ask for the page again/);
    await expect(packSource("!").recordings()).rejects.toMatchObject({ status: 500 });
    const beyond = encodeFrame({ answers: [{ request: "recordings", kind: "json", at: 1, length: 9 }] }, { bytes: ["u8", [1, 2]] });
    const gzip = new Blob([beyond]).stream().pipeThrough(new CompressionStream("gzip"));
    const forged = btoa(String.fromCharCode(...new Uint8Array(await new Response(gzip).arrayBuffer())));
    await expect(packSource(forged).recordings()).rejects.toThrow(/ends beyond the pack/);
  });
});

describe("a resampled tile", () => {
  const columnsOf: number[] = [1, 3, 4, 8, 16, 37];
  const windows: [number, number][] = [[0, 8], [1, 5], [5.5, 6.25], [-4, 20]];

  test.each(columnsOf)("keeps every column's sum at %i columns", (columns) => {
    for (const [from, to] of windows) {
      for (const [low, high] of [[0, 100], [35, 100], [0, 25]] as const) {
        const view: Viewport = { ...VIEW, from, to, columns, low, high, rows: 50 };
        const scene = resampleScene(makeScene(), view);
        const sums = brickSums(scene);
        for (let column = 0; column < columns; column++) {
          expect(sums[column]! + scene.rest[column]! + scene.outside[column]!, `${from}..${to} ${low}..${high}`).toBe(scene.active[column]);
        }
      }
    }
  });

  test("takes the highest of the columns it joins, and moves bricks to the new rows", () => {
    const scene = resampleScene(makeScene(), { ...VIEW, columns: 2, rows: 50, high: 50 });
    expect([...scene.active]).toEqual([60, 60]);
    expect([...scene.moment]).toEqual([3, 5]);
    expect([...scene.bricks!.runBottom]).toEqual([0, 30]);
    expect([...scene.lowest]).toEqual([39, 29]);
  });
});

test("the difference of two moments has the groups of both, the largest change first", () => {
  const difference = momentDifference(table(2, [["a", 5], ["c", 1]]), table(6, [["a", 1], ["b", 9]], 3));
  expect(difference.groups.map((group) => [group.key, group.bytes, group.other_bytes])).toEqual([["b", 0, 9], ["a", 5, 1], ["c", 1, 0]]);
  expect(difference.other_active?.bytes).toBe(10);
  expect(difference.nearest).toMatch(/3 small groups/);
});
