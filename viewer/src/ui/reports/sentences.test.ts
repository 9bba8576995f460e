import { describe, expect, it } from "vitest";
import {
  adviceSentences, cacheSentences, comparisonSentence, endingSentence, growthSentences, leaksSentences, limitCall,
  pinnedSentences, retraceReason, retraceSentences, summarySentences, verdictWords, viewAdvice,
} from "./sentences";

const MIB = 2 ** 20;

describe("sentences", () => {
  it("tell of growth with its reason and forecast", () => {
    const loop = {
      every: "step", verdict: "grows", reason: "it rose in 9 of 10 steps", steps: 10,
      bytes: { first: MIB, last: 10 * MIB, slope: MIB }, buffers: { first: 1, last: 10, slope: 1 },
      steps_to_limit_bytes: 1014, nanos_to_limit: 5e9,
    };
    expect(growthSentences({ main: 0, limit_bytes: 1024 * MIB, loops: [loop] })).toEqual([
      "Active memory over 10 steps (marked steps): grows.",
      "Because it rose in 9 of 10 steps.",
      "Active: 1.00 MiB to 10.0 MiB, +1.00 MiB a step. Buffers: 1 to 10, +1 a step.",
      "Forecast: 1.00 GiB are reached in 1,014 more steps; the first of it after 5 s at this pace.",
    ]);
    expect(growthSentences({ loops: [] })[0]).toContain("mlx_memviz.step()");
    expect(verdictWords("some_new_one")).toBe("some new one");
  });

  it("tell of leaks and of none", () => {
    expect(leaksSentences({ leaked: { bytes: 0, count: 0 } })[0]).toBe("Nothing is alive at the end that was not at the beginning.");
    expect(leaksSentences({ leaked: { bytes: MIB, count: 2 } })[0]).toContain("1.00 MiB in 2 buffers");
  });

  it("sum what is pinned over all rows", () => {
    const pinned = { views: [{ pinned_bytes: MIB }, { pinned_bytes: MIB }], without_arrays: [{ bytes: 3 }] };
    expect(pinnedSentences(pinned)[1]).toContain("2.00 MiB");
    expect(pinnedSentences(pinned)[3]).toContain("3 B");
    expect(viewAdvice({})).toBeNull();
  });

  it("give the reason of a retrace", () => {
    expect(retraceReason({ cause: "new_shapes", traces: 50, varying: [{ input: 0, axis: 1, lengths: 50, smallest: 256, largest: 12800 }] }))
      .toBe("50 traces for 50 shapes; axis 1 of input 0 has 50 lengths from 256 to 12,800");
    expect(retraceSentences({ functions: [] })).toEqual(["No trace of a compiled function was seen."]);
  });

  it("tell which way a comparison went", () => {
    expect(comparisonSentence({ what: "peak", change_bytes: -5 })).toMatch(/^The peak shrank/);
    expect(comparisonSentence({ what: "end", change_bytes: 0 })).toMatch(/^What is alive at the end stayed the same/);
  });

  it("advise with a call that can be pasted", () => {
    expect(limitCall({ cache_limit_bytes: 96 * MIB })).toBe("mx.set_cache_limit(96 << 20)");
    expect(limitCall({ cache_limit_bytes: 5 })).toBe("mx.set_cache_limit(0)");
    expect(adviceSentences({ advice: [] })).toHaveLength(1);
    const near = { kind: "too_large", count: 3, bytes: 9, first_asked_bytes: 1, first_cached_bytes: 4 };
    expect(adviceSentences({ advice: [near, { kind: "never_seen" }] })).toEqual([
      "3 new buffers (9 B) at no Python line, although one was cached that is just too large: asked for 1 bytes, cached 4.",
      "never seen: this page does not know that advice; run memviz advise",
    ]);
  });

  it("put an abnormal ending first", () => {
    expect(summarySentences({ ended: { kind: "signal", detail: "SIGSEGV" } })[0]).toBe("The run was ended by a signal: SIGSEGV.");
    expect(endingSentence({ kind: "stopped" })).toBeNull();
  });

  it("never throw when everything is missing", () => {
    const all = [growthSentences({}), leaksSentences({}), pinnedSentences({}), cacheSentences({}), retraceSentences({}), [comparisonSentence({})], adviceSentences({ advice: [{}] }), summarySentences({}), [retraceReason({})]];
    for (const sentences of all) for (const sentence of sentences) expect(sentence).not.toMatch(/undefined|null|NaN/);
  });
});
