// Stacks for people: frames of libraries folded between the user's own, and links that open an editor.
//
// Not here: elements (block.ts).

import type { Frame } from "../data/types";

/** A frame of the user's, or neighbours of a library in one fold. */
export type Fold = { own: true; frame: Frame } | { own: false; frames: Frame[] };

/** In the order given; a fold is as long as it can be. */
export function foldFrames(frames: readonly Frame[]): Fold[] {
  const folds: Fold[] = [];
  for (const frame of frames) {
    const last = folds.at(-1);
    if (frame.own) folds.push({ own: true, frame });
    else if (last && !last.own) last.frames.push(frame);
    else folds.push({ own: false, frames: [frame] });
  }
  return folds;
}

/** "3 frames of mlx_lm, transformers": by the folder below site-packages, otherwise by the file. */
export function foldTitle(frames: readonly Frame[]): string {
  const names = [...new Set(frames.map(libraryOf))].slice(0, 3).join(", ");
  return `${frames.length} ${frames.length === 1 ? "frame" : "frames"} of ${names}`;
}

function libraryOf(frame: Frame): string {
  const path = (frame.path || frame.file).replaceAll("\\", "/");
  const below = /(?:site|dist)-packages\/([^/]+)/.exec(path)?.[1] ?? /lib\/python[\d.]+\/([^/]+)/.exec(path)?.[1];
  return (below ?? baseName(path)).replace(/\.py$/, "") || "a library";
}

/** "file.py" of a path of any system. */
export function baseName(path: string): string {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
}

/**
 * A link that opens `path` at `line` in VS Code and editors that understand its links. Null when the path isn't absolute.
 * Each part is encoded, so a hostile name stays a name: it can't become another scheme, a query or another host.
 */
export function editorLink(path: string, line: number): string | null {
  const plain = path.replaceAll("\\", "/");
  const isDrive = /^[A-Za-z]:\//.test(plain);
  if ((!plain.startsWith("/") && !isDrive) || plain.startsWith("//") || /\p{Surrogate}/u.test(plain)) return null;
  const parts = plain.split("/").map((part, at) => (isDrive && at === 0 ? part : encodeURIComponent(part)));
  const at = Number.isSafeInteger(line) && line > 0 ? `:${line}` : "";
  return `vscode://file${isDrive ? "/" : ""}${parts.join("/")}${at}`;
}
