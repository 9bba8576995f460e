// The sentences at the head of each report: what it found and why. Numbers are those of the report, in the words of the
// command line where it has any.
//
// Not here: tables and elements.

import type { Advice, Advise, Cache, Comparison, Growth, Leaks, LoopGrowth, Pinned, Retrace, Summary, SweepPoint, TracedFunction } from "../../data/shapes";
import { amount, bytes, change, count, countChange, counted, isNumber, list, nanos, percent, shortPlace, when } from "../words";

const VERDICTS: Record<string, string> = {
  too_few_steps: "too few steps to tell",
  grows: "grows",
  shrinks: "shrinks",
  sawtooth: "sawtooth: it rises and falls, and is no higher in the end",
  warm_up: "warm-up: it rose in the first steps only",
  fills_then_flat: "fills, then stays flat",
  flat: "flat",
};

export type Tone = "good" | "bad" | "plain";

export function verdictWords(verdict: string | null | undefined): string {
  return verdict ? (VERDICTS[verdict] ?? verdict.replaceAll("_", " ")) : "no verdict";
}

export function verdictTone(verdict: string | null | undefined): Tone {
  if (verdict === "grows") return "bad";
  return verdict === "too_few_steps" || !verdict ? "plain" : "good";
}

export function mainLoop(growth: Growth): LoopGrowth | null {
  return list(growth.loops)[growth.main ?? 0] ?? null;
}

export function loopName(loop: LoopGrowth): string {
  if (loop.evaluated_at) return `each evaluation at ${shortPlace(loop.evaluated_at)}`;
  return loop.every === "time" ? "slices of time" : "marked steps";
}

export function growthSentences(growth: Growth): string[] {
  const loop = mainLoop(growth);
  if (!loop) {
    return [
      "No loop was found: no line evaluated often enough, and no steps are marked. Mark them by mlx_memviz.step() at the end of each, or cut the run by time below.",
    ];
  }
  const sentences = [`Active memory over ${counted(loop.steps, "step")} (${loopName(loop)}): ${verdictWords(loop.verdict)}.`];
  if (loop.reason) sentences.push(`Because ${loop.reason}.`);
  sentences.push(`Active: ${bytes(loop.bytes?.first)} to ${bytes(loop.bytes?.last)}, ${change(loop.bytes?.slope)} a step. ` +
    `Buffers: ${count(loop.buffers?.first)} to ${count(loop.buffers?.last)}, ${countChange(loop.buffers?.slope)} a step.`);
  const forecast = forecastSentence(growth, loop);
  return forecast ? [...sentences, forecast] : sentences;
}

function forecastSentence(growth: Growth, loop: LoopGrowth): string | null {
  const parts: string[] = [];
  if (isNumber(loop.steps_to_limit_bytes)) parts.push(`${bytes(growth.limit_bytes)} are reached in ${count(loop.steps_to_limit_bytes)} more steps`);
  if (isNumber(loop.steps_to_limit_buffers)) parts.push(`MLX's ${count(growth.limit_buffers)} buffers in ${count(loop.steps_to_limit_buffers)}`);
  if (parts.length === 0) return null;
  const time = isNumber(loop.nanos_to_limit) ? `; the first of it after ${nanos(loop.nanos_to_limit)} at this pace` : "";
  return `Forecast: ${parts.join(", ")}${time}.`;
}

export function leaksSentences(leaks: Leaks): string[] {
  const from = `${when(leaks.begin)}`;
  const to = `${when(leaks.end)}`;
  const left = leaks.leaked?.bytes ?? 0;
  const verdict = left === 0 ? "Nothing is alive at the end that was not at the beginning." : `${amount(leaks.leaked)} are alive ${to} that were not ${from}.`;
  const unlisted = isNumber(leaks.unlisted_change_bytes) && leaks.unlisted_change_bytes !== 0
    ? [`${change(leaks.unlisted_change_bytes)} are not known one by one.`]
    : [];
  return [
    verdict,
    `Kept over the whole time: ${amount(leaks.kept)}. Freed since the beginning: ${amount(leaks.freed)}.`,
    ...unlisted,
    "Whether that is a leak, only the program knows: weights and caches are alive on purpose.",
  ];
}

export function pinnedSentences(pinned: Pinned): string[] {
  const views = sum(list(pinned.views), (row) => row.pinned_bytes);
  const orphans = sum(list(pinned.without_arrays), (row) => row.bytes);
  const sentences = [
    `${bytes(pinned.moment?.active_bytes)} active ${when(pinned.moment)}.`,
    `By views: ${bytes(views)} that no array reaches, in buffers kept by small views.`,
    `By waiting: ${amount(pinned.waiting_holds)}, held by ${counted(pinned.waiting_count, "array that waits", "arrays that wait")} for an evaluation.`,
    `No array: ${bytes(orphans)} in buffers that no array alive uses.`,
    `By compile: ${amount(pinned.compiled)} made while tracing compiled functions.`,
  ];
  if ((pinned.unknown?.count ?? 0) > 0) sentences.push(`${amount(pinned.unknown)} used by arrays from before the recording: what keeps these is not known.`);
  return sentences;
}

export function viewAdvice(pinned: Pinned): string | null {
  const row = list(pinned.views)[0];
  if (!row) return null;
  return `${amount({ bytes: row.bytes ?? 0, count: row.count ?? 0 })} at ${shortPlace(row.buffer)}: ${bytes(row.reached_bytes)} of views made at ` +
    `${shortPlace(row.view)}. A copy of the view (mx.contiguous, or + 0) lets the buffer go.`;
}

export function cacheSentences(cache: Cache): string[] {
  const all = (cache.hits?.count ?? 0) + (cache.misses?.count ?? 0);
  const rate = isNumber(cache.hit_rate)
    ? `${percent(cache.hit_rate)} of ${count(all)} allocations reused a cached buffer; ${amount(cache.misses)} came new.`
    : "There were no allocations that could reuse a cached buffer.";
  const unused = (cache.evicted?.bytes ?? 0) + (cache.left?.bytes ?? 0);
  return [
    rate,
    `${amount(cache.entered)} went into the cache; ${bytes(unused)} of that were evicted or are left at the end.`,
    `mx.clear_cache() would have given back ${bytes(cache.most_cached?.cached_bytes)} ${when(cache.most_cached)}, when most was cached.`,
  ];
}

export function retraceSentences(retrace: Retrace): string[] {
  const functions = list(retrace.functions);
  if (functions.length === 0) return ["No trace of a compiled function was seen."];
  const again = functions.filter((row) => (row.traces ?? 0) > 1).length;
  return [
    `${counted(retrace.traces, "trace")} of ${counted(functions.length, "compiled function")}, ${count(retrace.alive)} still kept ${when(retrace.moment)}.`,
    again === 0 ? "None was traced more than once." : `${counted(again, "function was", "functions were")} traced more than once.`,
  ];
}

/** Why a function was traced again. */
export function retraceReason(row: TracedFunction): string {
  const traces = count(row.traces);
  switch (row.cause) {
    case "traced_once":
      return "traced once";
    case "new_shapes":
      return `${traces} traces for ${traces} shapes; ${axesOf(row)}`;
    case "new_function":
      return `${traces} traces for the same shapes (${list(row.first_signatures).join("; ")}): mx.compile was called anew, or an argument that is no array changed`;
    case "both":
      return `${traces} traces for ${count(row.signatures)} shapes; ${axesOf(row)}`;
    default:
      return `${traces} traces`;
  }
}

function axesOf(row: TracedFunction): string {
  const axis = list(row.varying)[0];
  if (!axis) return list(row.first_signatures).join("; ");
  return `axis ${count(axis.axis)} of input ${count(axis.input)} has ${count(axis.lengths)} lengths from ${count(axis.smallest)} to ${count(axis.largest)}`;
}

export function comparisonSentence(one: Comparison): string {
  const grew = one.change_bytes ?? 0;
  const verb = grew > 0 ? "grew" : grew < 0 ? "shrank" : "stayed the same";
  const what = one.what === "peak" ? "The peak" : one.what === "end" ? "What is alive at the end" : "Active memory";
  const sizes = `${bytes(one.before?.active_bytes)} to ${bytes(one.after?.active_bytes)}`;
  const buffers = `${count(one.before_count)} to ${count(one.after_count)} buffers (${countChange(one.change_count)})`;
  return `${what} ${verb}: ${sizes} (${change(one.change_bytes)}), ${buffers}. ${counted(one.unchanged_lines, "line is", "lines are")} the same in both.`;
}

export function adviceSentences(advise: Advise): string[] {
  const advice = list(advise.advice);
  if (advice.length === 0) return ["Nothing to change: no other cache limit gains 16 MiB, and no size defeats the cache."];
  return advice.map((one) => adviceSentence(one, advise.now));
}

function adviceSentence(one: Advice, now: SweepPoint | null | undefined): string {
  switch (one.kind) {
    case "raise_limit":
      return `Raise the cache limit: ${limitCall(one.to)}. Then ${reuse(one.to)}; now ${reuse(now)}.`;
    case "lower_limit":
      return `Lower the cache limit: ${limitCall(one.to)} saves ${bytes(one.saves_bytes)} at the peak. Then ${reuse(one.to)}; now ${reuse(now)}.`;
    case "never_reused":
      return `${bytes(one.bytes)} of ${bytes(one.of_bytes)} that went into the cache were never reused, most of ${shortPlace(one.line)}.`;
    case "clear_every_step":
      return `mx.clear_cache() at each of ${count(one.steps)} steps saves ${bytes(one.saves_bytes)} at the peak and has the system make ${bytes(one.costs_bytes)} more.`;
    case "fits":
      return `${one.fits ? "Fits" : "Does not fit"} ${one.device ?? "the machine"}: at most ${bytes(one.peak_bytes)} of ${bytes(one.memory_bytes)}.`;
    case "too_large":
    case "too_small":
    case "defeats_cache":
      return nearMissSentence(one);
    default:
      return `${(one.kind ?? "something").replaceAll("_", " ")}: this page does not know that advice; run memviz advise`;
  }
}

function nearMissSentence(one: Advice): string {
  const kind = one.kind === "too_small" ? "too small" : one.kind === "too_large" ? "too large" : "of another size";
  return `${counted(one.count, "new buffer")} (${bytes(one.bytes)}) at ${shortPlace(one.line)}, although one was cached that is just ${kind}: ` +
    `asked for ${count(one.first_asked_bytes)} bytes, cached ${count(one.first_cached_bytes)}.`;
}

/** "mx.set_cache_limit(96 << 20)". */
export function limitCall(to: SweepPoint | null | undefined): string {
  const mib = Math.floor((to?.cache_limit_bytes ?? 0) / 2 ** 20);
  return mib === 0 ? "mx.set_cache_limit(0)" : `mx.set_cache_limit(${mib} << 20)`;
}

function reuse(point: SweepPoint | null | undefined): string {
  const hits = isNumber(point?.hit_rate) ? `${percent(point.hit_rate)} hits` : "no allocations";
  return `${hits}, ${bytes(point?.made?.bytes)} made by the system, peak ${bytes(point?.peak_reserved_bytes)}`;
}

export function summarySentences(summary: Summary): string[] {
  const active = summary.peak_active;
  const reserved = summary.peak_reserved;
  const sum = (moment: typeof active) => (moment ? (moment.active_bytes ?? 0) + (moment.cached_bytes ?? 0) : null);
  const sentences = [
    `Peak active: ${bytes(active?.active_bytes)} ${when(active)}.`,
    `Peak reserved (active and cached): ${bytes(sum(reserved))} ${when(reserved)}.`,
    `At the end: ${bytes(summary.end?.active_bytes)} active, ${bytes(summary.end?.cached_bytes)} cached.`,
  ];
  const ending = endingSentence(summary.ended);
  if (ending) sentences.unshift(ending);
  if (isNumber(summary.hit_rate)) sentences.push(`${percent(summary.hit_rate)} of allocations reused a cached buffer.`);
  sentences.push(checkedSentence(summary));
  return sentences;
}

export function endingSentence(ended: { kind?: string | null; detail?: string | null } | null | undefined): string | null {
  const detail = ended?.detail ? `: ${ended.detail}` : "";
  if (ended?.kind === "exception") return `The run ended by an exception${detail}.`;
  if (ended?.kind === "signal") return `The run was ended by a signal${detail}.`;
  if (ended?.kind === "cut") return `The recording ends before the run did: the file is cut${detail}.`;
  return null;
}

function checkedSentence(summary: Summary): string {
  const checked = summary.checked;
  if (checked?.result === "violated") return `The numbers are not exact: ${checked.violation ?? "an equation does not hold"}.`;
  if (checked?.result === "ok") return `All equations hold, and ${counted(checked.checkpoints, "checkpoint")} agree with MLX's own counters.`;
  return "Whether the numbers are exact is not known.";
}

function sum<T>(rows: readonly T[], value: (row: T) => number | null | undefined): number {
  return rows.reduce((total, row) => total + (value(row) ?? 0), 0);
}
