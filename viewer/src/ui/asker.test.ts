import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { AnswerError } from "../data/errors";
import { Asker, type Question } from "./asker";

describe("an asker", () => {
  let asked: { key: string; signal: AbortSignal; resolve(value: string): void; reject(error: unknown): void }[];
  let heard: string[];
  let asker: Asker<string>;
  const question = (key: string, kind = "a"): Question<string> => ({
    key,
    kind,
    ask: (signal) => new Promise((resolve, reject) => asked.push({ key, signal, resolve, reject })),
  });

  beforeEach(() => {
    vi.useFakeTimers();
    asked = [];
    heard = [];
    asker = new Asker<string>({
      answer: (value) => heard.push(value),
      failed: (sentence) => heard.push(`failed: ${sentence}`),
      reading: () => heard.push("reading"),
    });
  });
  afterEach(() => void vi.useRealTimers());
  const settle = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);

  test("asks the same once", async () => {
    asker.want(question("1"));
    asker.want(question("1"));
    asked[0]!.resolve("one");
    await settle();
    asker.want(question("1"));
    expect([asked.length, heard, asker.settled]).toEqual([1, ["one"], true]);
  });

  test("lets a young question finish, then asks the newest only", async () => {
    for (const key of ["1", "2", "3"]) asker.want(question(key));
    expect(asked.map((one) => one.key)).toEqual(["1"]);
    asked[0]!.resolve("one");
    await settle();
    expect(asked.map((one) => one.key)).toEqual(["1", "3"]);
    expect(heard).toEqual(["one"]);
  });

  test("gives up an old question, and one of another kind, and hears nothing of them", async () => {
    asker.want(question("1"));
    await vi.advanceTimersByTimeAsync(300);
    asker.want(question("2"));
    asker.want(question("3", "b"));
    expect(asked.map((one) => one.signal.aborted)).toEqual([true, true, false]);
    asked[0]!.resolve("one");
    asked[1]!.reject(new DOMException("stop", "AbortError"));
    asked[2]!.resolve("three");
    await settle();
    expect(heard).toEqual(["three"]);
  });

  test("asks again while the recording is read, for the newest that is wanted", async () => {
    asker.want(question("1"));
    asked[0]!.reject(new AnswerError(503, "reading"));
    await vi.advanceTimersByTimeAsync(399);
    expect([asked.length, heard]).toEqual([1, ["reading"]]);
    await vi.advanceTimersByTimeAsync(1);
    expect(asked.length).toBe(2);
    asker.stop();
    await vi.advanceTimersByTimeAsync(5000);
    expect(asked.length).toBe(2);
  });

  test("tells of a failure once and doesn't repeat the question by itself", async () => {
    asker.want(question("1"));
    asked[0]!.reject(new AnswerError(404, "no such thing"));
    await settle();
    asker.want(question("1"));
    expect([asked.length, heard]).toEqual([1, ["failed: no such thing"]]);
    asker.forget();
    asker.want(question("1"));
    expect(asked.length).toBe(2);
  });
});
