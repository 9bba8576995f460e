// Every request as text, with its parameters in the order of formats/view.md: what http.ts fetches and what pack.ts
// looks up, so both ask in the same words.
//
// Not here: who answers.

import type { AxisName, By, Moment, PlaceName, Viewport, WhatIfOptions, Window } from "./types";

type Value = string | number;

/** `path?a=1&b=2`; parameters that are null or undefined are left out. */
export function request(path: string, parameters: readonly (readonly [string, Value | null | undefined])[]): string {
  const words: string[] = [];
  for (const [name, value] of parameters) {
    if (value !== null && value !== undefined) words.push(`${name}=${encodeURIComponent(String(value))}`);
  }
  return words.length === 0 ? path : `${path}?${words.join("&")}`;
}

const ofWindow = (window: Window): [string, Value][] => [
  ["r", window.r],
  ["axis", window.axis],
  ["from", window.from],
  ["to", window.to],
  ["columns", window.columns],
];

export const recordingsRequest = (): string => "recordings";

export const timelineRequest = (view: Viewport): string =>
  request("timeline", [
    ...ofWindow(view),
    ["low", view.low],
    ["high", view.high],
    ["rows", view.rows],
    ["by", view.by],
    ["areas", view.areas ? 1 : null],
  ]);

export const bandsRequest = (window: Window): string => request("bands", ofWindow(window));

export type PlaceOf = { axis: AxisName; at: number } | { event: Moment } | { name: PlaceName; event: Moment };

export function placeRequest(r: number, of: PlaceOf): string {
  if ("axis" in of) return request("place", [["r", r], ["axis", of.axis], ["at", of.at]]);
  if ("name" in of) return request("place", [["r", r], ["name", of.name], ["event", of.event]]);
  return request("place", [["r", r], ["event", of.event]]);
}

export const atRequest = (r: number, event: Moment, height: number): string =>
  request("at", [["r", r], ["event", event], ["height", height]]);

export const blockRequest = (r: number, id: number): string => request("block", [["r", r], ["id", id]]);

export const momentRequest = (r: number, event: Moment, by: By, other?: Moment): string =>
  request("moment", [["r", r], ["event", event], ["by", by], ["other", other]]);

export const flameRequest = (r: number, event: Moment, other?: Moment): string =>
  request("flame", [["r", r], ["event", event], ["other", other]]);

export const rangeRequest = (r: number, from: Moment, to: Moment): string =>
  request("range", [["r", r], ["from", from], ["to", to]]);

export const findRequest = (r: number, text: string, by: By): string =>
  request("find", [["r", r], ["text", text], ["by", by]]);

export const reportRequest = (command: string, r: readonly number[], options: readonly string[]): string =>
  request("report", [
    ["command", command],
    ...r.map((one): [string, Value] => ["r", one]),
    ...options.map((one): [string, Value] => ["option", one]),
  ]);

// Empty parameters mean "as recorded" and are written, as the format lists them all.
export const whatifRequest = (window: Window, options: WhatIfOptions): string =>
  request("whatif", [
    ...ofWindow(window),
    ["policy", options.policy],
    ["device", options.device],
    ["cache_limit", options.cache_limit ?? ""],
    ["memory_limit", options.memory_limit ?? ""],
  ]);

export const whatifChoicesRequest = (r: number): string => request("whatif/choices", [["r", r]]);
