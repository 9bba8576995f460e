// Moments and positions on the axes, read off the columns of stored pictures: as exact as their columns are narrow.

import { AnswerError, STATUS } from "./errors";
import { columnAt, columnWidth, lowerBound } from "./geometry";
import { finestCover, windowOf, type Tiles } from "./pack";
import type { PlaceOf } from "./request";
import type { AxisName, Moment, Place, PlaceName, Recording, Scene } from "./types";

export function placeFromTiles(tiles: Tiles, recording: Recording, of: PlaceOf): Place {
  return placeOfMoment(tiles, recording, momentOf(tiles, recording, of));
}

function momentOf(tiles: Tiles, recording: Recording, of: PlaceOf): Moment {
  if ("axis" in of) return momentAt(tiles, recording, of.axis, of.at);
  if ("name" in of) return momentNamed(tiles, recording, of.name, of.event);
  return clampMoment(recording, of.event);
}

function momentNamed(tiles: Tiles, recording: Recording, name: PlaceName, event: Moment): Moment {
  switch (name) {
    case "peak-active":
      return recording.peak_active.event;
    case "peak-reserved":
      return recording.peak_reserved.event;
    case "start":
      return 0;
    case "end":
      return recording.events;
    default:
      return momentOfStep(tiles, recording, event, name === "next-step" ? 1 : -1);
  }
}

function momentOfStep(tiles: Tiles, recording: Recording, event: Moment, direction: 1 | -1): Moment {
  const now = positionOf(tiles, recording, "step", event);
  if (now === null) throw new AnswerError(STATUS.notStored, "this recording has no steps; mark them with `mlx_memviz.step()`");
  const step = direction > 0 ? Math.floor(now) + 1 : Math.ceil(now) - 1;
  const [first, last] = recording.steps ?? [step, step];
  return momentAt(tiles, recording, "step", Math.min(last, Math.max(first, step)));
}

function momentAt(tiles: Tiles, recording: Recording, axis: AxisName, at: number): Moment {
  if (axis === "event") return clampMoment(recording, Math.round(at));
  const tile = finestCover(tiles.scenesOver(recording.r, axis), { r: recording.r, axis, from: at, to: at, columns: 1 });
  if (tile === null) throw new AnswerError(STATUS.notStored, `this page holds no picture over ${axis}; choose another axis`);
  const scene = tiles.sceneTile(tile);
  return scene.moment[columnAt(scene.view, at)] ?? 0;
}

function placeOfMoment(tiles: Tiles, recording: Recording, event: Moment): Place {
  const peak = [recording.peak_active, recording.peak_reserved].find((one) => one.event === event);
  const nanos = peak?.nanos ?? positionOf(tiles, recording, "time", event) ?? recording.from_nanos;
  return { event, nanos, time: nanos, step: positionOf(tiles, recording, "step", event) };
}

/** Where a moment is on an axis; null when no stored picture knows. */
function positionOf(tiles: Tiles, recording: Recording, axis: AxisName, event: Moment): number | null {
  if (axis === "event") return event;
  let best: { scene: Scene; width: number } | null = null;
  for (const tile of tiles.scenesOver(recording.r, axis)) {
    const width = columnWidth(windowOf(tile));
    if (best !== null && width >= best.width) continue;
    const scene = tiles.sceneTile(tile);
    if (best === null || holds(scene, event)) best = { scene, width };
  }
  return best === null ? null : positionIn(best.scene, event);
}

const holds = ({ moment }: Scene, event: Moment): boolean =>
  moment.length > 0 && moment[0]! <= event && event <= moment[moment.length - 1]!;

function positionIn({ view, moment }: Scene, event: Moment): number {
  const column = Math.min(lowerBound(moment, event), Math.max(0, moment.length - 1));
  return view.from + (column + 0.5) * columnWidth(view);
}

const clampMoment = (recording: Recording, event: Moment): Moment => Math.min(recording.events, Math.max(0, event));
