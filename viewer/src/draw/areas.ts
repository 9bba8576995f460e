// Draws a Scene as stacked areas: group on group, the largest at the bottom, the rest on top.

import { drawOutline, drawRest, yOfBytes, type SceneOptions } from "./bricks";
import { colorOfKey } from "./colors";
import { within, type Box, type Surface } from "./surface";
import type { Scene } from "../data/types";

export function drawAreas(surface: Surface, scene: Scene, box: Box, options: SceneOptions): void {
  within(surface, box, () => {
    drawRest(surface, scene, box, options.palette);
    if (scene.area !== null) stack(surface, scene, scene.area, box, options);
    drawOutline(surface, scene, box, options.palette);
  });
}

function stack(surface: Surface, scene: Scene, area: Float64Array, box: Box, { palette, highlighted }: SceneOptions): void {
  const { columns } = scene.view;
  const below = new Float64Array(columns);
  const above = new Float64Array(columns);
  scene.groups.forEach((group, index) => {
    for (let column = 0; column < columns; column++) above[column] = below[column]! + area[index * columns + column]!;
    surface.fillStyle = highlighted !== null && group.key !== highlighted ? palette.dimmed : colorOfKey(group.key, palette.dark);
    fillBetween(surface, scene, box, below, above);
    below.set(above);
  });
}

function fillBetween(surface: Surface, scene: Scene, box: Box, below: Float64Array, above: Float64Array): void {
  const width = box.width / Math.max(1, below.length);
  const y = (bytes: number): number => Math.min(box.y + box.height + 1, Math.max(box.y - 1, yOfBytes(scene, box, bytes)));
  surface.beginPath();
  surface.moveTo(box.x, y(below[0] ?? 0));
  for (let column = 0; column < above.length; column++) {
    surface.lineTo(box.x + column * width, y(above[column]!));
    surface.lineTo(box.x + (column + 1) * width, y(above[column]!));
  }
  for (let column = below.length - 1; column >= 0; column--) {
    surface.lineTo(box.x + (column + 1) * width, y(below[column]!));
    surface.lineTo(box.x + column * width, y(below[column]!));
  }
  surface.closePath();
  surface.fill();
}

/** The group at a column and height, as an index into `groups`; -1 for the rest and for what is above the stack. */
export function areaAt(scene: Scene, column: number, height: number): number {
  if (scene.area === null || height < 0) return -1;
  let top = 0;
  for (let group = 0; group < scene.groups.length; group++) {
    top += scene.area[group * scene.view.columns + column] ?? 0;
    if (height < top) return group;
  }
  return -1;
}
