import { describe, expect, test } from "vitest";
import { sceneOf, flameOf, bandsOf } from "./answers";
import { decodeFrame, FrameError } from "./frame";
import { encodeFrame, encodeScene, makeScene, VIEW } from "./fixtures";

const whole = (): ArrayBuffer =>
  encodeFrame({ title: "ü" }, { a: ["u8", [1, 2, 3]], b: ["f64", [0.5, -1]], c: ["u32", [7]], d: ["f32", [1.5]], e: ["u16", [65535]] });

/** A frame whose header is this text, and as much after it. */
function framed(text: string, body = 64): ArrayBuffer {
  const head = new TextEncoder().encode(text);
  const bytes = new Uint8Array(8 + head.length + body);
  bytes.set(new TextEncoder().encode("MVV1"));
  new DataView(bytes.buffer).setUint32(4, head.length, true);
  bytes.set(head, 8);
  return bytes.buffer;
}

describe("a frame", () => {
  test("gives back its header and arrays", () => {
    const frame = decodeFrame(whole());
    expect(frame.header["title"]).toBe("ü");
    expect([...frame.u8("a")]).toEqual([1, 2, 3]);
    expect([...frame.f64("b")]).toEqual([0.5, -1]);
    expect([...frame.u32("c")]).toEqual([7]);
    expect([...frame.f32("d")]).toEqual([1.5]);
    expect(frame.has("e")).toBe(true);
  });

  test("is read although its arrays are not aligned", () => {
    const frame = decodeFrame(framed('{"arrays":{"x":{"type":"f64","at":3,"length":2}}} ', 19));
    expect([...frame.f64("x")]).toEqual([0, 0]);
  });

  test("asked for another type or a missing array says what it has", () => {
    const frame = decodeFrame(whole());
    expect(() => frame.u32("a")).toThrow(/Uint8Array, expected Uint32Array/);
    expect(() => frame.f64("toString")).toThrow(/no such array/);
  });

  test("cut anywhere is refused", () => {
    const bytes = whole();
    for (let length = 0; length < bytes.byteLength; length++) {
      expect(() => decodeFrame(bytes.slice(0, length)), `${length} bytes`).toThrow(FrameError);
    }
  });

  test.each([
    ["another magic", new TextEncoder().encode("MVV2\0\0\0\0{}").buffer as ArrayBuffer],
    ["a header that is no JSON", framed("{arrays")],
    ["a header that is a list", framed("[]")],
    ["no arrays", framed("{}")],
    ["arrays that are a list", framed('{"arrays":[]}')],
    ["an unknown type", framed('{"arrays":{"x":{"type":"i64","at":0,"length":1}}}')],
    ["a type of the prototype", framed('{"arrays":{"x":{"type":"toString","at":0,"length":1}}}')],
    ["a negative offset", framed('{"arrays":{"x":{"type":"u8","at":-8,"length":1}}}')],
    ["a fraction", framed('{"arrays":{"x":{"type":"u8","at":0.5,"length":1}}}')],
    ["a length whose bytes overflow", framed('{"arrays":{"x":{"type":"f64","at":0,"length":9007199254740991}}}')],
    ["an offset beyond the end", framed('{"arrays":{"x":{"type":"u8","at":65,"length":0}}}')],
    ["an entry that is null", framed('{"arrays":{"x":null}}')],
  ])("with %s is refused", (_, bytes) => {
    expect(() => decodeFrame(bytes)).toThrow(FrameError);
  });
});

describe("answers", () => {
  test("a scene comes back as it was sent", () => {
    const scene = makeScene();
    expect(sceneOf(decodeFrame(encodeScene(scene)), VIEW)).toEqual(scene);
  });

  test("a scene whose indices point nowhere is refused", () => {
    const group = makeScene();
    group.bricks!.group[0] = 2;
    expect(() => sceneOf(decodeFrame(encodeScene(group)), VIEW)).toThrow(/brick_group holds 2, expected less than 2/);
    const run = makeScene();
    run.bricks!.run[2] = 4;
    expect(() => sceneOf(decodeFrame(encodeScene(run)), VIEW)).toThrow(/brick_run/);
    const short = { ...makeScene(), rest: new Float64Array(7) };
    expect(() => sceneOf(decodeFrame(encodeScene(short)), VIEW)).toThrow(/array rest has 7 elements, expected 8/);
  });

  test("a flame graph with a cycle is refused", () => {
    const frame = (parent: number[]): ArrayBuffer =>
      encodeFrame({ names: ["x"], total: 3 }, {
        parent: ["u32", parent], name: ["u32", [0, 0, 0]], own: ["u8", [0, 0, 0]], bytes: ["f64", [3, 2, 1]], count: ["u32", [3, 2, 1]],
      });
    expect(flameOf(decodeFrame(frame([4294967295, 0, 1]))).parent.length).toBe(3);
    expect(() => flameOf(decodeFrame(frame([4294967295, 2, 1])))).toThrow(/node 1 .* parent 2/);
    expect(() => flameOf(decodeFrame(frame([0, 0, 1])))).toThrow(FrameError);
  });

  test("bands whose span names no lane are refused", () => {
    const one = ["f64", [1]] as ["f64", number[]];
    const bytes = encodeFrame({ labels: ["a"], lanes: [], marks: [] }, {
      active: one, cached: one, reserved: one, cache_limit: one, memory_limit: one, device_used: one,
      span_lane: ["u32", [0]], span_label: ["u32", [0]], span_from: one, span_to: one, span_count: ["u32", [1]],
    });
    expect(() => bandsOf(decodeFrame(bytes), VIEW)).toThrow(/span_lane holds 0, expected less than 0/);
  });
});
