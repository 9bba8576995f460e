import { describe, expect, it } from "vitest";
import { KEYS, actionOf } from "./keys";

const pressed = (key: string, held: Partial<Record<"ctrlKey" | "metaKey" | "altKey", boolean>> = {}) => ({ key, ctrlKey: false, metaKey: false, altKey: false, ...held });

describe("keys", () => {
  it("have one meaning each and leave the timeline its own", () => {
    const keys = KEYS.map(({ key }) => key);
    expect(new Set(keys).size).toBe(keys.length);
    for (const taken of ["w", "a", "s", "d", "W", "A", "S", "D", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "f", "F", "0", "Home", "End", "Enter"]) {
      expect(keys).not.toContain(taken);
    }
  });

  it("tell p from P", () => {
    expect(actionOf(pressed("p"), false)).toEqual({ do: "jump", to: "peak-active" });
    expect(actionOf(pressed("P"), false)).toEqual({ do: "jump", to: "peak-reserved" });
  });

  it("are text in a field, but for Escape", () => {
    expect(actionOf(pressed("/"), true)).toBeNull();
    expect(actionOf(pressed("Escape"), true)).toEqual({ do: "close" });
  });

  it("leave the browser its shortcuts", () => {
    for (const held of [{ ctrlKey: true }, { metaKey: true }, { altKey: true }]) expect(actionOf(pressed("p", held), false)).toBeNull();
    expect(actionOf(pressed("toString"), false)).toBeNull();
  });
});
