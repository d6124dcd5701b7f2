import { StoreUnavailable } from "sluice";

const known = new Map<string, StoreUnavailable>();
const mostKnown = 100;

/**
 * The error of a question that no server was asked, with its cause. Shared by all with the same cause: in an outage
 * every check needs one, and creating it takes several times as long as deciding.
 */
export function nothingAsked(cause: string): StoreUnavailable {
  let error = known.get(cause);
  if (error === undefined) {
    if (known.size >= mostKnown) known.clear();
    error = new StoreUnavailable("storage_unavailable", undefined, { cause: new Error(cause), mayBeDone: false });
    known.set(cause, error);
  }
  return error;
}

let overloaded: StoreUnavailable | undefined;

/** The same if too many questions are waiting already. */
export function tooManyWait(): StoreUnavailable {
  overloaded ??= new StoreUnavailable("storage_overloaded", undefined, { mayBeDone: false });
  return overloaded;
}

/** A copy, for callers that see the error: some write into the errors they catch. */
export function ofItsOwn({ reason, cause }: StoreUnavailable): StoreUnavailable {
  return new StoreUnavailable(reason, undefined, { ...(cause !== undefined && { cause }), mayBeDone: false });
}
