// The one error that a Source rejects with: a status and a sentence that says what to do.

/** Statuses of `AnswerError` that no server sends: nobody answered, and the pack does not hold it. */
export const STATUS = { unreachable: 0, reading: 503, notStored: 404, broken: 500 } as const;

export class AnswerError extends Error {
  override readonly name = "AnswerError";

  constructor(
    /** HTTP status; 0 when nobody answered. */
    readonly status: number,
    /** Lower case; value seen, value expected, what to do. */
    readonly sentence: string,
  ) {
    super(sentence);
  }

  /** The recording is still being read: ask again later. */
  get reading(): boolean {
    return this.status === STATUS.reading;
  }
}

/** Whether a request was given up on purpose, which is nothing to tell anybody. */
export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** A sentence for any error. */
export function sentenceOf(error: unknown): string {
  if (error instanceof AnswerError) return error.sentence;
  return error instanceof Error ? error.message : String(error);
}
