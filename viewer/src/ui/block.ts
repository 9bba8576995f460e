// All that is known of one allocation: sizes, origin, life, stacks, who had its address before and after.
//
// Not here: choosing it (timeline.ts).

import type { Block, Frame } from "../data/types";
import { type Child, fill, h } from "./dom";
import { baseName, editorLink, foldFrames, foldTitle } from "./frames";
import { empty, makeLoader } from "./loader";
import { jumpToEvent, mainRecording } from "./moving";
import type { MakeView, Context } from "./view";
import { UNKNOWN, bytes, chosenUnits, count, exactBytes, nanos } from "./words";

type Fact = [name: string, value: Child];

export const makeBlock: MakeView = (context) => {
  const loader = makeLoader("this allocation");
  return {
    element: loader.element,
    update() {
      const recording = mainRecording(context);
      const id = context.store.state.block;
      if (!recording || recording.state === "failed" || id === null) {
        loader.put("none", empty("No allocation is chosen. Click one in the timeline."));
        return;
      }
      const key = JSON.stringify([recording.r, id, chosenUnits()]);
      loader.ask(key, () => context.source.block(recording.r, id), (block, element) => fill(element, draw(context, block)));
    },
    close: () => loader.put("closed"),
  };
};

function draw(context: Context, block: Block): Node[] {
  return [
    h("div", { class: "heading" }, h("h2", {}, `Allocation ${count(block.id)}: `, h("span", { title: exactBytes(block.size) }, bytes(block.size)))),
    tenants(context, block),
    h("dl", { class: "facts" }, factsOf(context, block).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    stack("Built at", block.built, "No Python line was seen when it was built."),
    stack("Evaluated at", block.evaluated, "No evaluation was seen."),
    ...(block.died || block.freed.length > 0 ? [stack("Freed at", block.freed, "No Python line was seen when it was freed.")] : []),
    arrays(context, block),
  ];
}

/** Exact wherever the short form isn't. */
export function sizeFact(size: number, asked: number | null): string {
  const more = asked !== null && size > asked ? `, ${bytes(size - asked)} more than asked for` : "";
  return `${exactBytes(size)}${more}`;
}

function factsOf(context: Context, block: Block): Fact[] {
  const shape = block.shape === null ? UNKNOWN : `[${block.shape.join(", ")}]`;
  return [
    ["Size", sizeFact(block.size, block.asked)],
    ["Asked for", block.asked === null ? UNKNOWN : exactBytes(block.asked)],
    ["Primitive", block.primitive || "none"],
    ["Array", `${block.dtype || UNKNOWN} ${shape}`],
    ["Annotation", block.annotation || "none"],
    ["Step", block.step === null ? UNKNOWN : count(block.step)],
    ["Kind", block.is_temporary ? "temporary: made and freed within an evaluation" : "outlived its evaluation"],
    ["Born", block.born ? [momentLink(context, block.born.event), ` at ${nanos(block.born.nanos)}`] : UNKNOWN],
    ["Died", block.died ? [momentLink(context, block.died.event), ` at ${nanos(block.died.nanos)}`] : "alive at the end"],
    ["Freed", block.freed_how || UNKNOWN],
    ["Lifetime", nanos(block.lifetime_nanos)],
    ["Memory", block.from_cache ? "reused from the cache" : "new from the system"],
    ["Address", `${block.address}, used by ${count(block.address_used)} allocations`],
    ["Device", [block.device || UNKNOWN, block.stream === null ? "" : `, stream ${block.stream}`]],
    ["Thread", block.thread || UNKNOWN],
  ];
}

function tenants(context: Context, block: Block): HTMLElement {
  const to = (id: number | null, text: string) => {
    const onclick = () => context.store.set({ block: id }, "push");
    return h("button", { type: "button", disabled: id === null, onclick }, text);
  };
  return h(
    "div",
    { class: "buttons", role: "group", "aria-label": "Other allocations at this address" },
    to(block.previous_tenant, "← Previous at this address"),
    to(block.next_tenant, "Next at this address →"),
  );
}

function momentLink(context: Context, event: number): HTMLElement {
  return h("button", { type: "button", class: "link", onclick: () => void jumpToEvent(context, event) }, `event ${count(event)}`);
}

function stack(title: string, frames: readonly Frame[], none: string): HTMLElement {
  if (frames.length === 0) return h("section", { class: "stack" }, h("h3", {}, title), h("p", { class: "note" }, none));
  const items = foldFrames(frames).map((fold) => {
    if (fold.own) return h("li", { class: "own" }, frameLine(fold.frame));
    const inner = h("ol", {}, fold.frames.map((frame) => h("li", {}, frameLine(frame))));
    return h("li", { class: "library" }, h("details", {}, h("summary", {}, foldTitle(fold.frames)), inner));
  });
  return h("section", { class: "stack" }, h("h3", {}, title), h("ol", {}, items));
}

function frameLine(frame: Frame): Node[] {
  const where = `${baseName(frame.file)}:${frame.line}`;
  const link = editorLink(frame.path, frame.line);
  const text = h("span", { class: "where", title: `${frame.path || frame.file}:${frame.line}` }, where);
  const open = link === null ? null : h("a", { href: link, class: "open", title: `open ${where} in the editor`, "aria-label": `open ${where} in the editor` }, "open");
  return [h("span", { class: "function" }, frame.name), h("span", {}, " "), text, ...(open ? [h("span", {}, " "), open] : [])];
}

function arrays(context: Context, block: Block): HTMLElement {
  if (block.arrays === null) {
    return h("p", { class: "note" }, "Who held it is not recorded. Record with memviz run --level arrays to see it.");
  }
  const items = block.arrays.map((array) =>
    h("li", {}, `${array.what} `, h("span", { class: "where" }, array.built), " from ", momentLink(context, array.born_event),
      array.died_event === null ? " to the end" : [" to ", momentLink(context, array.died_event)]),
  );
  return h("section", { class: "stack" }, h("h3", {}, "Arrays that held it"), items.length > 0 ? h("ul", {}, items) : h("p", { class: "note" }, "None."));
}
