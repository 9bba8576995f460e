// What is said when the page can't start, and when the server goes away. Pure.

import { AnswerError, sentenceOf } from "../data/errors";

export interface StartError {
  title: string;
  sentences: string[];
}

export function startError(error: unknown): StartError {
  const status = error instanceof AnswerError ? error.status : null;
  if (status === 401 || status === 403) {
    return {
      title: "This browser may not read the recording",
      sentences: ["Open the link that memviz view printed once more: it holds the key, which this browser doesn't have or has lost.", `The server said: ${sentenceOf(error)}`],
    };
  }
  if (status === 0) {
    return {
      title: "The server of memviz view has ended",
      sentences: ["Run memviz view FILE again and open the link that it prints.", "The server ends with the terminal it was started in."],
    };
  }
  return { title: "The recording can't be shown", sentences: [sentenceOf(error), "Reload the page, or run memviz view FILE again."] };
}
