// A Source over the server of `memviz view`: `GET /api/…` with the page's cookie.
//
// A recording that is still being read answers 503, an AnswerError whose `reading` is true. Asking again is the
// caller's, who knows whether the answer is still wanted.

import { bandsOf, flameOf, sceneOf, whatIfOf } from "./answers";
import { AnswerError, STATUS, isAborted } from "./errors";
import { decodeFrame, type Decoded } from "./frame";
import * as ask from "./request";
import type { Block, Found, MomentTable, Place, RangeTable, Recordings, Source, WhatIfChoices } from "./types";

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** `base` ends in a slash. */
export function httpSource(base = "/api/", fetcher: Fetch = (url, init) => fetch(url, init)): Source {
  const json = async <T>(request: string, signal?: AbortSignal): Promise<T> =>
    (await answer(fetcher, base + request, signal, (response) => response.json())) as T;
  const frame = async <T>(request: string, signal: AbortSignal | undefined, read: (frame: Decoded) => T): Promise<T> => {
    const bytes = await answer(fetcher, base + request, signal, (response) => response.arrayBuffer());
    return decoded(() => read(decodeFrame(bytes)));
  };
  return {
    recordings: () => json<Recordings>(ask.recordingsRequest()),
    timeline: (view, signal) => frame(ask.timelineRequest(view), signal, (answer) => sceneOf(answer, view)),
    bands: (window, signal) => frame(ask.bandsRequest(window), signal, (answer) => bandsOf(answer, window)),
    place: (r, of) => json<Place>(ask.placeRequest(r, of)),
    at: async (r, event, height) => (await json<{ block: number | null }>(ask.atRequest(r, event, height))).block,
    block: (r, id) => json<Block>(ask.blockRequest(r, id)),
    moment: (r, event, by, other, signal) => json<MomentTable>(ask.momentRequest(r, event, by, other), signal),
    flame: (r, event, other, signal) => frame(ask.flameRequest(r, event, other), signal, flameOf),
    range: (r, from, to, signal) => json<RangeTable>(ask.rangeRequest(r, from, to), signal),
    find: (r, text, by, signal) => json<Found>(ask.findRequest(r, text, by), signal),
    report: (command, r, options, signal) => json<unknown>(ask.reportRequest(command, r, options), signal),
    whatif: (window, options, signal) => frame(ask.whatifRequest(window, options), signal, whatIfOf),
    whatifChoices: (r) => json<WhatIfChoices>(ask.whatifChoicesRequest(r)),
  };
}

/** Runs a decoder and tells of its failure as every other failure is told of. */
export function decoded<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new AnswerError(STATUS.broken, error instanceof Error ? error.message : String(error));
  }
}

async function answer<T>(
  fetcher: Fetch,
  url: string,
  signal: AbortSignal | undefined,
  read: (response: Response) => Promise<T>,
): Promise<T> {
  try {
    const response = await fetcher(url, { credentials: "same-origin", ...(signal ? { signal } : {}) });
    if (!response.ok) throw new AnswerError(response.status, await sentence(response));
    return await read(response);
  } catch (error) {
    if (error instanceof AnswerError || isAborted(error)) throw error;
    if (error instanceof SyntaxError) throw new AnswerError(STATUS.broken, "the answer is not JSON; reload the page");
    throw new AnswerError(STATUS.unreachable, "the server does not answer; start `memviz view` again and open the link it prints");
  }
}

async function sentence(response: Response): Promise<string> {
  try {
    const body: unknown = await response.json();
    if (typeof body === "object" && body !== null && "error" in body && typeof body.error === "string") return body.error;
  } catch {
    // Not JSON, or cut: the status is all there is to say.
  }
  return `the server answered status ${response.status}; reload the page, or start \`memviz view\` again`;
}
