import { describe, expect, it } from "vitest";
import type { Frame } from "../data/types";
import { baseName, editorLink, foldFrames, foldTitle } from "./frames";

const frame = (name: string, own: boolean, file = "train.py"): Frame => ({ name, file, line: 1, own, path: "" });

describe("folds", () => {
  it("joins neighbours of libraries and keeps own frames and order", () => {
    const frames = [frame("a", false), frame("b", false), frame("c", true), frame("d", false), frame("e", true), frame("f", true)];
    const shape = foldFrames(frames).map((fold) => (fold.own ? fold.frame.name : fold.frames.map((one) => one.name)));
    expect(shape).toEqual([["a", "b"], "c", ["d"], "e", "f"]);
    expect(foldFrames([])).toEqual([]);
  });

  it("are named by their library, each once", () => {
    const nn = frame("x", false, "/usr/lib/python3.12/site-packages/mlx/nn/layers/linear.py");
    const io = frame("y", false, "/usr/lib/python3.12/asyncio/events.py");
    expect(foldTitle([nn, nn, io])).toBe("3 frames of mlx, asyncio");
    expect(foldTitle([frame("z", false, "odd.py")])).toBe("1 frame of odd");
  });
});

describe("editor links", () => {
  it("open absolute paths of any system", () => {
    expect(editorLink("/home/u/my run/train.py", 12)).toBe("vscode://file/home/u/my%20run/train.py:12");
    expect(editorLink("C:\\work\\a.py", 3)).toBe("vscode://file/C:/work/a.py:3");
  });

  it("are made for absolute paths only", () => {
    for (const path of ["train.py", "", "javascript:alert(1)", "//evil.example/x", "\\\\evil\\share", "data:text/html,x", "/bad\ud800"]) {
      expect(editorLink(path, 1)).toBeNull();
    }
  });

  it("can't be given a query, a fragment or another line", () => {
    expect(editorLink("/a?b#c:99%", 2)).toBe("vscode://file/a%3Fb%23c%3A99%25:2");
    expect(editorLink("/a", -1)).toBe("vscode://file/a");
    expect(editorLink("/a", 1.5)).toBe("vscode://file/a");
  });
});

it("the base name is what follows the last separator", () => {
  expect(["a/b.py", "c:\\d\\e.py", "f", ""].map(baseName)).toEqual(["b.py", "e.py", "f", ""]);
});
