import type { ProblemBody } from "@sluice/protocol/http";
import { type ErrorCode, type Problem, SluiceError, StoreUnavailable } from "sluice";
import { renderPath } from "sluice/internal";
import type { StoreUnavailableReason } from "sluice/store";

/** What a caller sees of an error, over any transport: bounded, well-formed, and without internals. */
export interface DescribedError {
  readonly code: ErrorCode;
  readonly message: string;
  /** The first of the wrong fields. */
  readonly fields: ProblemBody[];
  /** How many more fields are wrong. */
  readonly more: number;
}

/** The most fields that one error lists. */
export const maxErrorFields = 20;
const maxMessageLength = 1_000;
const maxFieldLength = 256;

/** In our own words: a store's error may name hosts and more. */
const outages: Readonly<Record<StoreUnavailableReason, string>> = {
  storage_unavailable:
    "the counters cannot be reached; nothing is wrong with the request, so repeat it in a few seconds",
  storage_timeout:
    "the counters did not answer in time; the request may have been carried out all the same, so repeat it only if that does no harm",
  process_starved:
    "this server was too busy to read its counters' answer in time; the request may have been carried out all the same, so repeat it only if that does no harm",
  storage_overloaded:
    "too many checks are waiting for the counters; nothing is wrong with the request, so repeat it in a few seconds",
  storage_full:
    "the counters have no room for another subject; nothing is wrong with the request, so repeat it when others have ended",
};

const unforeseen = "something went wrong here, not in your request; the server's log has the details";

/**
 * Unforeseen errors are described without details. Answers are not much longer than requests: fields beyond `most` are
 * counted, not listed, and if none is listed the message is one line.
 */
export function describeError(error: unknown, most: number = maxErrorFields): DescribedError {
  if (error instanceof StoreUnavailable) return bare(error.code, outages[error.reason]);
  if (!(error instanceof SluiceError) || isOurMistake(error.code)) return bare("internal", unforeseen);
  const { code, message, problems } = error;
  const fields = describeProblems(problems, most);
  const shown = most > 0 ? message : message.split("\n", 1)[0]!;
  return { code, message: cutText(shown, maxMessageLength), fields, more: problems.length - fields.length };
}

/** The first of several problems. */
export function describeProblems(problems: readonly Problem[], most: number): ProblemBody[] {
  return problems.slice(0, Math.max(0, most)).map(({ path, message, place }) => ({
    field: cutText(renderPath(path), maxFieldLength),
    message: cutText(message, maxMessageLength),
    // Files have names only where the caller gave them one: policy files to import.
    ...(place?.file !== undefined && { file: cutText(place.file, maxFieldLength) }),
    ...(place !== undefined && { line: place.line, column: place.column }),
  }));
}

/**
 * Whether an error is ours, and belongs in the log. Unavailable counters are logged once, by the code that watches
 * them.
 */
export function isOurs(error: unknown): boolean {
  if (error instanceof StoreUnavailable) return false;
  return !(error instanceof SluiceError) || isOurMistake(error.code);
}

function isOurMistake(code: ErrorCode): boolean {
  return code === "internal" || code === "not_local";
}

function bare(code: ErrorCode, message: string): DescribedError {
  return { code, message, fields: [], more: 0 };
}

/** Cut to this length, and well-formed: half a character must not be written into a header. */
export function cutText(text: string, length: number): string {
  return Buffer.from(text.length <= length ? text : `${text.slice(0, length - 1)}…`).toString();
}
