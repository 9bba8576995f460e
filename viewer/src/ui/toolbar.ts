// Controls of the timeline: axis, colours, bricks or areas, units, and jumps to places with names.

import type { AxisName, By, PlaceName } from "../data/types";
import { h } from "./dom";
import { jump, mainRecording } from "./moving";
import { announce } from "./reports/page";
import type { Context, View } from "./view";

const BYS: [By, string][] = [
  ["line", "line"],
  ["module", "module"],
  ["primitive", "primitive"],
  ["dtype", "dtype"],
  ["annotation", "annotation"],
  ["device", "device"],
  ["thread", "thread"],
  ["step", "step"],
];

const JUMPS: [PlaceName, text: string, key: string][] = [
  ["peak-active", "Peak active", "p"],
  ["peak-reserved", "Peak reserved", "P"],
  ["end", "End", "e"],
  ["previous-step", "Previous step", "N"],
  ["next-step", "Next step", "n"],
];

export function makeToolbar(context: Context): View {
  const { store } = context;
  const select = <T extends string>(items: [T, string][], change: (value: T) => void) => {
    const element = h("select", {}, items.map(([value, text]) => h("option", { value }, text)));
    element.addEventListener("change", () => change(element.value as T));
    return element;
  };
  const axis = select<AxisName>([["time", "time"], ["event", "event"], ["step", "step"]], (value) => store.set({ axis: value, from: null, to: null }, "push"));
  const by = select<By>(BYS, (value) => store.set({ by: value, group: null }, "push"));
  const form = select<"bricks" | "areas">([["bricks", "bricks"], ["areas", "areas"]], (value) => store.set({ areas: value === "areas" }, "push"));
  const whole = h("button", { type: "button", onclick: () => store.set({ from: null, to: null, low: null, high: null }, "push") }, "Show all");
  const jumps = JUMPS.map(([name, text, key]) =>
    h("button", { type: "button", title: `key ${key}`, "aria-keyshortcuts": key.length === 1 && key === key.toUpperCase() ? `Shift+${key}` : key, onclick: () => void jump(context, name).then(announce) }, text),
  );
  const clear = h("button", { type: "button", onclick: () => store.set({ event: null, other: null, range: false }, "push") }, "Clear cursor");
  const element = h(
    "div",
    { class: "toolbar", role: "group", "aria-label": "Timeline controls" },
    h("label", {}, "Axis ", axis),
    h("label", {}, "Colour by ", by),
    h("label", {}, "As ", form),
    h("span", { class: "jumps", role: "group", "aria-label": "Jump to" }, jumps),
    whole,
    clear,
  );
  return {
    element,
    update() {
      const { state } = store;
      const hasSteps = (mainRecording(context)?.steps ?? null) !== null;
      axis.options[2]!.disabled = !hasSteps;
      const isReady = mainRecording(context)?.state === "ready";
      jumps.forEach((button, at) => (button.disabled = !isReady || (at >= 3 && !hasSteps)));
      axis.value = state.axis;
      by.value = state.by;
      form.value = state.areas ? "areas" : "bricks";
      whole.disabled = state.from === null && state.low === null;
      clear.disabled = state.event === null;
    },
  };
}
