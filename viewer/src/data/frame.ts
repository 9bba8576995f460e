// Reads one `MVV1` frame of formats/view.md: a JSON header and typed arrays that point into the same bytes.
//
// Needs little-endian hardware, which every browser in use has. A frame comes from the network or from a page that
// somebody sent, so every offset is checked before it is used.
//
// Not here: what the arrays mean (answers.ts).

const MAGIC = "MVV1";

interface ArrayEntry {
  type: string;
  at: number;
  length: number;
}

type Typed = Uint8Array | Uint16Array | Uint32Array | Float32Array | Float64Array;

const MAKERS: Record<string, { bytes: number; make(buffer: ArrayBuffer, at: number, length: number): Typed }> = {
  u8: { bytes: 1, make: (buffer, at, length) => new Uint8Array(buffer, at, length) },
  u16: { bytes: 2, make: (buffer, at, length) => new Uint16Array(buffer, at, length) },
  u32: { bytes: 4, make: (buffer, at, length) => new Uint32Array(buffer, at, length) },
  f32: { bytes: 4, make: (buffer, at, length) => new Float32Array(buffer, at, length) },
  f64: { bytes: 8, make: (buffer, at, length) => new Float64Array(buffer, at, length) },
};

/** The bytes are not what formats/view.md says. */
export class FrameError extends Error {
  override readonly name = "FrameError";
}

/** A frame's header fields and its arrays, by name. */
export class Decoded {
  constructor(
    readonly header: Readonly<Record<string, unknown>>,
    private readonly arrays: ReadonlyMap<string, Typed>,
  ) {}

  u8(name: string): Uint8Array {
    return this.typed(name, Uint8Array);
  }

  u32(name: string): Uint32Array {
    return this.typed(name, Uint32Array);
  }

  f32(name: string): Float32Array {
    return this.typed(name, Float32Array);
  }

  f64(name: string): Float64Array {
    return this.typed(name, Float64Array);
  }

  has(name: string): boolean {
    return this.arrays.has(name);
  }

  private typed<T extends Typed>(name: string, type: abstract new (...of: never[]) => T): T {
    const array = this.arrays.get(name);
    if (array instanceof type) return array;
    const seen = array === undefined ? "no such array" : array.constructor.name;
    throw new FrameError(`array ${name} of the answer: ${seen}, expected ${type.name}; reload the page`);
  }
}

/** Decodes a frame that begins at the start of `bytes`. The arrays share memory with `bytes` where alignment allows. */
export function decodeFrame(bytes: ArrayBuffer): Decoded {
  const { header, bodyAt } = readHeader(bytes);
  const entries = header["arrays"];
  if (!isObject(entries)) throw new FrameError("header of the answer has no object `arrays`; reload the page");
  const arrays = new Map<string, Typed>();
  for (const [name, entry] of Object.entries(entries)) arrays.set(name, readArray(bytes, bodyAt, name, entry));
  return new Decoded(header, arrays);
}

function readHeader(bytes: ArrayBuffer): { header: Record<string, unknown>; bodyAt: number } {
  if (bytes.byteLength < 8) throw new FrameError(`answer of ${bytes.byteLength} bytes, expected at least 8; reload the page`);
  const magic = String.fromCharCode(...new Uint8Array(bytes, 0, 4));
  if (magic !== MAGIC) throw new FrameError(`answer begins with ${JSON.stringify(magic)}, expected "${MAGIC}"; reload the page`);
  const length = new DataView(bytes).getUint32(4, true);
  if (length > bytes.byteLength - 8) {
    throw new FrameError(`header of ${length} bytes in an answer of ${bytes.byteLength}; it was cut, reload the page`);
  }
  const header = parseHeader(new TextDecoder("utf-8").decode(new Uint8Array(bytes, 8, length)));
  return { header, bodyAt: 8 + length };
}

function parseHeader(text: string): Record<string, unknown> {
  let header: unknown;
  try {
    header = JSON.parse(text);
  } catch {
    throw new FrameError("header of the answer is not JSON; reload the page");
  }
  if (!isObject(header)) throw new FrameError("header of the answer is not an object; reload the page");
  return header;
}

function readArray(bytes: ArrayBuffer, bodyAt: number, name: string, entry: unknown): Typed {
  const { type, at, length } = checkEntry(name, entry);
  const maker = Object.hasOwn(MAKERS, type) ? MAKERS[type] : undefined;
  if (maker === undefined) {
    throw new FrameError(`array ${name} of type ${JSON.stringify(type)}, expected u8, u16, u32, f32 or f64; reload the page`);
  }
  // Checked as a difference and a quotient, which can't overflow.
  const room = bytes.byteLength - bodyAt - at;
  if (room < 0 || length > Math.floor(room / maker.bytes)) {
    throw new FrameError(`array ${name}: ${length} ${type} at ${at} in ${bytes.byteLength} bytes; it was cut, reload the page`);
  }
  const start = bodyAt + at;
  if (start % maker.bytes === 0) return maker.make(bytes, start, length);
  return maker.make(bytes.slice(start, start + length * maker.bytes), 0, length);
}

function checkEntry(name: string, entry: unknown): ArrayEntry {
  if (isObject(entry)) {
    const { type, at, length } = entry;
    if (typeof type === "string" && isIndex(at) && isIndex(length)) return { type, at, length };
  }
  throw new FrameError(`array ${name} has no type, at and length; reload the page`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isIndex(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
