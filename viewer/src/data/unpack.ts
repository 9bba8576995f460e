// The bytes of a pack: base64 of gzip of one frame, whose header lists the answers inside it.
//
// Not here: which answer serves a question (pack.ts).

import { AnswerError, STATUS } from "./errors";
import { decodeFrame, type Decoded } from "./frame";

/** One answer of a pack, by the request that it answers. */
export class Stored {
  readonly path: string;
  readonly parameters: URLSearchParams;

  constructor(
    readonly request: string,
    readonly kind: "json" | "frame",
    readonly at: number,
    readonly length: number,
  ) {
    const [path, query] = splitRequest(request);
    this.path = path;
    this.parameters = new URLSearchParams(query);
  }

  /** A numeric parameter; NaN when it is none. */
  number(name: string): number {
    const text = this.parameters.get(name);
    return text === null || text === "" ? NaN : Number(text);
  }
}

export class Pack {
  private readonly byRequest: ReadonlyMap<string, Stored>;

  constructor(
    private readonly answers: readonly Stored[],
    private readonly bytes: Uint8Array,
  ) {
    this.byRequest = new Map(answers.map((stored) => [canonical(stored.request), stored]));
  }

  find(request: string): Stored | null {
    return this.byRequest.get(canonical(request)) ?? null;
  }

  /** Answers of a path whose parameters `keys` are as wanted; "" wants an absent one. */
  of(path: string, wanted: Readonly<Record<string, string>>, keys: readonly string[]): Stored[] {
    return this.answers.filter(
      (stored) => stored.path === path && keys.every((key) => (stored.parameters.get(key) ?? "") === wanted[key]),
    );
  }

  json<T>(request: string, what: string): T {
    return this.jsonOf<T>(this.need(request, what));
  }

  frame(request: string, what: string): Decoded {
    return this.frameOf(this.need(request, what));
  }

  jsonOf<T>(stored: Stored): T {
    try {
      return JSON.parse(new TextDecoder().decode(this.slice(stored))) as T;
    } catch {
      throw new AnswerError(STATUS.broken, `answer ${stored.request} in this page is not JSON; ask for the page again`);
    }
  }

  frameOf(stored: Stored): Decoded {
    const part = this.slice(stored);
    return decodeFrame(part.slice().buffer as ArrayBuffer);
  }

  private need(request: string, what: string): Stored {
    const stored = this.find(request);
    if (stored !== null) return stored;
    throw new AnswerError(STATUS.notStored, `this page does not hold the ${what}; open the recording with \`memviz view\` to see it`);
  }

  private slice({ at, length }: Stored): Uint8Array {
    return this.bytes.subarray(at, at + length);
  }
}

export async function unpack(base64: string): Promise<Pack> {
  try {
    return packOf(decodeFrame(await gunzip(bytesFromBase64(base64))));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new AnswerError(STATUS.broken, `the data inside this page can't be read (${why}); it was cut, ask for the page again`);
  }
}

export function packOf(frame: Decoded): Pack {
  const listed = frame.header["answers"];
  if (!Array.isArray(listed)) throw new Error("its header has no list of answers");
  const bytes = frame.u8("bytes");
  return new Pack(listed.map((entry) => storedFrom(entry, bytes.length)), bytes);
}

function storedFrom(entry: unknown, available: number): Stored {
  const { request, kind, at, length } = (entry ?? {}) as Record<string, unknown>;
  const known = typeof request === "string" && (kind === "json" || kind === "frame");
  if (!known || !isIndex(at) || !isIndex(length)) throw new Error("an answer lacks request, kind, at or length");
  if (at > available || length > available - at) throw new Error(`answer ${request} ends beyond the pack`);
  return new Stored(request, kind, at, length);
}

const isIndex = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function bytesFromBase64(base64: string): Uint8Array<ArrayBuffer> {
  const binary = atob(base64.trim());
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

async function gunzip(bytes: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return await new Response(stream).arrayBuffer();
}

function splitRequest(request: string): [path: string, query: string] {
  const mark = request.indexOf("?");
  return mark < 0 ? [request, ""] : [request.slice(0, mark), request.slice(mark + 1)];
}

/** The same text for the same question: escapes and forms of numbers differ between writers. */
function canonical(request: string): string {
  const [path, query] = splitRequest(request);
  const words = [...new URLSearchParams(query)].map(([name, value]) => `${name}=${isDecimal(value) ? Number(value) : value}`);
  return [path, ...words].join("\n");
}

const isDecimal = (text: string): boolean => /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text);
