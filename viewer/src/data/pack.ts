// A Source over the pack inside a self-contained page: answers that the server gave when the page was written.
//
// What is stored is found by its request; a picture of any window is made from the finest stored tile that covers it;
// a moment that isn't stored is answered by the nearest one that is, which the answer says. Everything else is an
// AnswerError that names the way to see it.
//
// Not here: the bytes of the pack (unpack.ts), redrawing a tile (resample.ts), positions (positions.ts).

import { bandsOf, flameOf, sceneOf, whatIfOf } from "./answers";
import { AnswerError, STATUS } from "./errors";
import { brickAt, columnWidth } from "./geometry";
import { decoded } from "./http";
import { nearestMoments } from "./nearest";
import { momentDifference } from "./difference";
import { placeFromTiles } from "./positions";
import * as ask from "./request";
import { resampleBands, resampleScene, resampleWhatIf } from "./resample";
import { unpack, type Pack, type Stored } from "./unpack";
import type {
  AxisName, Bands, Block, Flame, Found, MomentTable, Place, RangeTable, Recordings, Scene, Source, Viewport, WhatIf, WhatIfChoices, WhatIfOptions, Window,
} from "./types";

/** The script element that holds the pack. */
export const PACK_ID = "memviz-pack";

/** What a tile must have in common with what is asked. */
const SCENE_KEYS = ["r", "axis", "by", "areas"] as const;
const BANDS_KEYS = ["r", "axis"] as const;
const WHATIF_KEYS = ["r", "axis", "policy", "device", "cache_limit", "memory_limit"] as const;

/** The text of the script element; it is unpacked once, by the first question. */
export function packSource(base64: string): Source {
  let opened: Promise<Tiles> | null = null;
  const tiles = (): Promise<Tiles> => (opened ??= unpack(base64).then((pack) => new Tiles(pack)));
  const stored = async <T>(request: string, what: string): Promise<T> => (await tiles()).pack.json<T>(request, what);
  return {
    recordings: () => stored<Recordings>(ask.recordingsRequest(), "list of recordings"),
    timeline: async (view) => (await tiles()).scene(view),
    bands: async (window) => (await tiles()).bands(window),
    place: async (r, of) => place(await tiles(), r, of),
    at: async (r, event, height) => blockAt(await tiles(), r, event, height),
    block: (r, id) => stored<Block>(ask.blockRequest(r, id), `block ${id}`),
    moment: async (r, event, by, other) => moment(await tiles(), r, event, by, other),
    flame: async (r, event, other) => flame(await tiles(), r, event, other),
    range: (r, from, to) => stored<RangeTable>(ask.rangeRequest(r, from, to), "range"),
    find: (r, text, by) => stored<Found>(ask.findRequest(r, text, by), "search"),
    report: (command, r, options) => stored<unknown>(ask.reportRequest(command, r, options), `report ${command}`),
    whatif: async (window, options) => (await tiles()).whatif(window, options),
    whatifChoices: (r) => stored<WhatIfChoices>(ask.whatifChoicesRequest(r), "replay"),
  };
}

/** Decoded tiles that are kept; a screen needs two per recording. */
const KEPT_TILES = 24;

/** The pictures of a pack. */
export class Tiles {
  private readonly kept = new Map<string, Scene | Bands>();

  constructor(readonly pack: Pack) {}

  scene(view: Viewport): Scene {
    const wanted = { r: String(view.r), axis: view.axis, by: view.by, areas: view.areas ? "1" : "" };
    const tile = finestCover(this.pack.of("timeline", wanted, SCENE_KEYS), view);
    if (tile === null) throw this.noScene(view);
    return resampleScene(this.sceneTile(tile), view);
  }

  bands(window: Window): Bands {
    const wanted = { r: String(window.r), axis: window.axis };
    const tile = finestCover(this.pack.of("bands", wanted, BANDS_KEYS), window);
    if (tile === null) throw notStored(`the curves of recording ${window.r} over ${window.axis}`);
    return resampleBands(this.bandsTile(tile), window);
  }

  whatif(window: Window, options: WhatIfOptions): WhatIf {
    const { r, axis } = window;
    const wanted = { r: String(r), axis, policy: options.policy, device: options.device };
    const limits = { cache_limit: String(options.cache_limit ?? ""), memory_limit: String(options.memory_limit ?? "") };
    const tile = finestCover(this.pack.of("whatif", { ...wanted, ...limits }, WHATIF_KEYS), window);
    if (tile === null) throw notStored("a replay under these settings");
    return decoded(() => resampleWhatIf(whatIfOf(this.pack.frameOf(tile)), windowOf(tile), window));
  }

  /** All pictures of a recording over an axis, whatever they show. */
  scenesOver(r: number, axis: AxisName): Stored[] {
    return this.pack.of("timeline", { r: String(r), axis }, ["r", "axis"]);
  }

  sceneTile(tile: Stored): Scene {
    return this.keep(tile, () => sceneOf(this.pack.frameOf(tile), viewOf(tile)));
  }

  private bandsTile(tile: Stored): Bands {
    return this.keep(tile, () => bandsOf(this.pack.frameOf(tile), windowOf(tile)));
  }

  private keep<T extends Scene | Bands>(tile: Stored, make: () => T): T {
    const known = this.kept.get(tile.request) as T | undefined;
    const value = known ?? decoded(make);
    // The newest stands last; a Map keeps the order of insertion.
    this.kept.delete(tile.request);
    this.kept.set(tile.request, value);
    if (this.kept.size > KEPT_TILES) this.kept.delete(this.kept.keys().next().value!);
    return value;
  }

  private noScene(view: Viewport): AnswerError {
    const has = new Set(this.scenesOver(view.r, view.axis).map((tile) => {
      return `${tile.parameters.get("areas") === "1" ? "areas" : "bricks"} by ${tile.parameters.get("by")}`;
    }));
    const asked = `${view.areas ? "areas" : "bricks"} by ${view.by} over ${view.axis}`;
    const found = has.size === 0 ? "no picture over this axis" : [...has].sort().join(", ");
    return new AnswerError(STATUS.notStored, `this page holds ${found}, not ${asked}; choose one of these, or open the recording with \`memviz view\``);
  }
}

/** The tile with the narrowest columns among those that hold all of `asked`; the widest tile when none does. */
export function finestCover(tiles: readonly Stored[], asked: Window): Stored | null {
  // Positions travel as decimal text, and a window may stand half a column beyond the end.
  const slack = Math.max(columnWidth(asked), (asked.to - asked.from) * 1e-9);
  let best: Stored | null = null;
  let widest: Stored | null = null;
  for (const tile of tiles) {
    const { from, to, columns } = windowOf(tile);
    if (columns <= 0) continue;
    if (widest === null || to - from > span(widest)) widest = tile;
    if (from > asked.from + slack || to < asked.to - slack) continue;
    if (best === null || columnWidth(windowOf(tile)) < columnWidth(windowOf(best))) best = tile;
  }
  return best ?? widest;
}

const span = (tile: Stored): number => tile.number("to") - tile.number("from");

export function windowOf(tile: Stored): Window {
  return {
    r: tile.number("r"),
    axis: (tile.parameters.get("axis") ?? "time") as AxisName,
    from: tile.number("from"),
    to: tile.number("to"),
    columns: tile.number("columns"),
  };
}

function viewOf(tile: Stored): Viewport {
  return {
    ...windowOf(tile),
    low: tile.number("low"),
    high: tile.number("high"),
    rows: tile.number("rows"),
    by: (tile.parameters.get("by") ?? "line") as Viewport["by"],
    areas: tile.parameters.get("areas") === "1",
  };
}

function notStored(what: string): AnswerError {
  return new AnswerError(STATUS.notStored, `this page does not hold ${what}; open the recording with \`memviz view\` to see it`);
}

async function place(tiles: Tiles, r: number, of: ask.PlaceOf): Promise<Place> {
  const stored = tiles.pack.find(ask.placeRequest(r, of));
  if (stored !== null) return tiles.pack.jsonOf<Place>(stored);
  const { recordings } = tiles.pack.json<Recordings>(ask.recordingsRequest(), "list of recordings");
  const recording = recordings.find((one) => one.r === r);
  if (recording === undefined) throw notStored(`recording ${r}`);
  return placeFromTiles(tiles, recording, of);
}

/** Exact for bricks of the stored pictures; what is no brick there is not known here. */
function blockAt(tiles: Tiles, r: number, event: number, height: number): number | null {
  for (const tile of tiles.scenesOver(r, "event").concat(tiles.scenesOver(r, "time"), tiles.scenesOver(r, "step"))) {
    if (tile.parameters.get("areas") === "1") continue;
    const scene = tiles.sceneTile(tile);
    const column = scene.moment.indexOf(event);
    const brick = column < 0 ? -1 : brickAt(scene, column, height);
    if (brick >= 0) return scene.bricks!.block[brick]!;
  }
  return null;
}

function moment(tiles: Tiles, r: number, event: number, by: string, other?: number): MomentTable {
  const read = (asked: number): MomentTable => {
    const found = nearestMoments(tiles.pack.of("moment", { r: String(r), by, other: "" }, ["r", "by", "other"]), asked);
    if (found === null) throw notStored(`what was live by ${by} in recording ${r}`);
    const table = tiles.pack.jsonOf<MomentTable>(found.stored);
    return found.note === null ? table : { ...table, nearest: found.note };
  };
  return other === undefined ? read(event) : momentDifference(read(event), read(other));
}

function flame(tiles: Tiles, r: number, event: number, other?: number): Flame {
  if (other !== undefined) {
    const stored = tiles.pack.find(ask.flameRequest(r, event, other));
    if (stored === null) throw notStored(`the difference of moments ${event} and ${other} as a flame graph`);
    return decoded(() => flameOf(tiles.pack.frameOf(stored)));
  }
  const found = nearestMoments(tiles.pack.of("flame", { r: String(r), other: "" }, ["r", "other"]), event);
  if (found === null) throw notStored(`a flame graph of recording ${r}`);
  const answer = decoded(() => flameOf(tiles.pack.frameOf(found.stored)));
  return found.note === null ? answer : { ...answer, nearest: found.note };
}
