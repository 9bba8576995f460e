// Keeps one question under way: the newest that was wanted. Pure of DOM but for timers.
//
// While somebody pans, every frame wants another answer. Giving up each question for the next would never show
// anything, so a question may finish if it is young and about the same; what it brings is shown stretched.

import { AnswerError, isAborted, sentenceOf } from "../data/errors";

/** A question older than this is given up for a newer one. */
const PATIENCE_MILLIS = 250;
const AGAIN_MILLIS = 400;

export interface Question<T> {
  key: string;
  /** Questions of another kind (recording, axis, grouping) are given up at once. */
  kind: string;
  ask(signal: AbortSignal): Promise<T>;
}

export interface Hearing<T> {
  answer(value: T, question: Question<T>): void;
  failed(sentence: string): void;
  /** It is still being read; asked again by itself. */
  reading(): void;
}

export class Asker<T> {
  private current: { question: Question<T>; abort: AbortController; since: number } | null = null;
  private wanted: Question<T> | null = null;
  private answered = "";
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly hearing: Hearing<T>) {}

  /** Wants this; nothing happens when it is answered or under way. */
  want(question: Question<T>): void {
    this.wanted = question.key === this.answered ? null : question;
    const { current } = this;
    if (current === null) return this.begin();
    if (question.key === current.question.key) return;
    const late = performance.now() - current.since > PATIENCE_MILLIS;
    if (!late && question.kind === current.question.kind) return;
    current.abort.abort();
    this.current = null;
    this.begin();
  }

  /** Whether what was wanted last has been answered. */
  get settled(): boolean {
    return this.wanted === null && this.current === null;
  }

  /** Forgets the last answer, so that the same is asked again. */
  forget(): void {
    this.answered = "";
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.wanted = null;
    this.current?.abort.abort();
    this.current = null;
  }

  private begin(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const question = this.wanted;
    if (question === null) return;
    const abort = new AbortController();
    const mine = { question, abort, since: performance.now() };
    this.current = mine;
    question.ask(abort.signal).then(
      (value) => this.finish(mine, () => this.take(question, value)),
      (error: unknown) => this.finish(mine, () => this.refuse(error, question)),
    );
  }

  private finish(mine: { question: Question<T> }, tell: () => void): void {
    if (this.current !== mine) return;
    this.current = null;
    tell();
    if (this.timer === undefined && this.current === null) this.begin();
  }

  private take(question: Question<T>, value: T): void {
    this.answered = question.key;
    if (this.wanted?.key === question.key) this.wanted = null;
    this.hearing.answer(value, question);
  }

  private refuse(error: unknown, question: Question<T>): void {
    if (isAborted(error)) return;
    if (error instanceof AnswerError && error.reading) {
      this.hearing.reading();
      this.timer = setTimeout(() => {
        this.timer = undefined;
        this.begin();
      }, AGAIN_MILLIS);
      return;
    }
    // Not asked again until something else is wanted: the answer would be the same.
    if (this.wanted?.key === question.key) this.wanted = null;
    this.answered = question.key;
    this.hearing.failed(sentenceOf(error));
  }
}
