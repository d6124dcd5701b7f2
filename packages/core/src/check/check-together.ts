import type { CounterStore, ResolvedLimit, TakeAnswer } from "../counters/counter-store.ts";
import type { Decision } from "../decision/decision.ts";
import { SluiceError } from "../errors.ts";
import type { TogetherOptions } from "../limiter.ts";
import { joinResolutions } from "../match/join-resolutions.ts";
import { isRefused, type Resolution } from "../match/resolve.ts";
import type { CheckRequest } from "../request/check-request.ts";
import { validateRequest } from "../request/validate-request.ts";
import { createTakeOptions } from "./take-options.ts";

/** The parts of a limiter that deciding several requests together needs. */
export interface OneByOne {
  readonly counters: CounterStore;
  resolve(request: CheckRequest): Resolution;
  decide(request: CheckRequest, resolution: Resolution, answer: TakeAnswer | undefined): Decision;
  decideOutage(request: CheckRequest, resolution: Resolution, error: unknown): Decision;
}

/** Decides several requests as one take: all of them are charged, or none is. */
export function checkTogether(
  requests: readonly CheckRequest[],
  options: TogetherOptions,
  limiter: OneByOne,
): readonly Decision[] | Promise<readonly Decision[]> {
  const { counters } = limiter;
  const resolutions = requests.map((request) => limiter.resolve(request));
  const { limits, places } = joinResolutions(resolutions, (i) => requests[i]!.cost === 0);
  const decideAll = (answer: TakeAnswer | undefined): readonly Decision[] =>
    requests.map((request, i) => limiter.decide(request, resolutions[i]!, answer && answerAt(answer, places[i]!)));
  const decideOutage = (error: unknown): readonly Decision[] =>
    requests.map((request, i) => limiter.decideOutage(request, resolutions[i]!, error));
  // If one is denied by name, nothing is taken, but the others still report how they stand.
  const refused = resolutions.some(({ refusals }) => isRefused(refusals));
  try {
    const answer = ask(counters, limits, options, refused);
    return answer instanceof Promise ? answer.then(decideAll, decideOutage) : decideAll(answer);
  } catch (error) {
    const decisions = decideOutage(error);
    return counters.local ? decisions : Promise.resolve(decisions);
  }
}

/** One of several requests, with the options that hold for all of them. */
export function parsePart(request: CheckRequest, { preview }: TogetherOptions, index: number): CheckRequest {
  for (const field of ["id", "idTtlMs", "preview", "deadlineMs", "receipt"] as const) {
    if (request[field] === undefined) continue;
    const message = "is an option of all requests together, not of one of them";
    throw new SluiceError("invalid_request", `requests[${index}].${field} ${message}`, [
      { path: ["requests", index, field], message },
    ]);
  }
  const part = preview === true ? { ...request, preview } : request;
  validateRequest(part);
  return part;
}

function ask(
  counters: CounterStore,
  limits: readonly ResolvedLimit[],
  options: TogetherOptions,
  refused: boolean,
): TakeAnswer | Promise<TakeAnswer> | undefined {
  if (limits.length === 0) return undefined;
  if (options.preview === true || refused) return counters.peek(limits, options);
  return counters.take(limits, createTakeOptions({ ...options, details: true }, limits, false));
}

/** The part of an answer that belongs to one of several requests. */
function answerAt(answer: TakeAnswer, places: readonly number[]): TakeAnswer {
  const { outcomes, records } = answer;
  return {
    ...answer,
    outcomes: places.map((place) => outcomes[place]!),
    records: records && places.map((place) => records[place]),
  };
}
