// Chooses where answers come from: the pack, if this page carries one, otherwise the server it came from.

import { httpSource } from "./http";
import { PACK_ID, packSource } from "./pack";
import type { Source } from "./types";

export { AnswerError, isAborted, sentenceOf } from "./errors";

export function openSource(page: Pick<Document, "getElementById"> = document): Source {
  const script = page.getElementById(PACK_ID);
  return script === null ? httpSource() : packSource(script.textContent ?? "");
}
