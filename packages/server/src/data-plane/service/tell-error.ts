import type { ProblemBody } from "@sluice/protocol/http";
import {
  type ErrorCode,
  type Problem,
  renderPath,
  SluiceError,
  StoreUnavailable,
  type StoreUnavailableReason,
} from "sluice";

/** What a caller is told of an error, over any transport: bounded, well-formed, and nothing of what is inside. */
export interface ToldError {
  readonly code: ErrorCode;
  readonly message: string;
  /** The fields that are wrong, the first of them. */
  readonly fields: ProblemBody[];
  /** How many more fields are wrong. */
  readonly more: number;
}

/** Most fields that one error lists. */
export const maxToldFields = 20;
const maxMessageLength = 1_000;
const maxFieldLength = 256;

/** Told in words of our own: what a store says of itself may name hosts and more. */
const outages: Readonly<Record<StoreUnavailableReason, string>> = {
  storage_unavailable:
    "the counters cannot be reached; nothing is wrong with the request, so repeat it in a few seconds",
  storage_timeout:
    "the counters did not answer in time; what was asked may have been done all the same, so repeat it only if that does no harm",
  process_starved:
    "this server was too busy to hear its counters in time; what was asked may have been done all the same, so repeat it only if that does no harm",
  storage_overloaded:
    "too many checks are waiting for the counters; nothing is wrong with the request, so repeat it in a few seconds",
  storage_full:
    "the counters have no room for another subject; nothing is wrong with the request, so repeat it when others have ended",
};

const unforeseen = "something went wrong here, not in your request; the server's log has the particulars";

/**
 * What we did not foresee is told without particulars. Answers are not much longer than what is answered: fields beyond
 * `most` are counted, not listed, and where none is listed the message is one line.
 */
export function tellError(error: unknown, most: number = maxToldFields): ToldError {
  if (error instanceof StoreUnavailable) return bare(error.code, outages[error.reason]);
  if (!(error instanceof SluiceError) || isOurMistake(error.code)) return bare("internal", unforeseen);
  const { code, message, problems } = error;
  const fields = tellProblems(problems, most);
  const told = most > 0 ? message : message.split("\n", 1)[0]!;
  return { code, message: cutText(told, maxMessageLength), fields, more: problems.length - fields.length };
}

/** The first of several problems. */
export function tellProblems(problems: readonly Problem[], most: number): ProblemBody[] {
  return problems.slice(0, Math.max(0, most)).map(({ path, message, place }) => ({
    field: cutText(renderPath(path), maxFieldLength),
    message: cutText(message, maxMessageLength),
    ...(place !== undefined && { line: place.line, column: place.column }),
  }));
}

/** Whether an error is ours, and belongs into the log. That counters are away is said once, by who looks after them. */
export function isOurs(error: unknown): boolean {
  if (error instanceof StoreUnavailable) return false;
  return !(error instanceof SluiceError) || isOurMistake(error.code);
}

function isOurMistake(code: ErrorCode): boolean {
  return code === "internal" || code === "not_local";
}

function bare(code: ErrorCode, message: string): ToldError {
  return { code, message, fields: [], more: 0 };
}

/** At most so long, and well-formed: half a character is not to be written into a header. */
export function cutText(text: string, length: number): string {
  return Buffer.from(text.length <= length ? text : `${text.slice(0, length - 1)}…`).toString();
}
