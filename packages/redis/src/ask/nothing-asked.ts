import { StoreUnavailable } from "sluice";

const known = new Map<string, StoreUnavailable>();
const mostKnown = 100;

/**
 * The error of a question that was not asked of any server, because of what the cause says. One for all of the same cause: in an
 * outage every check needs one, and to make one takes several times as long as to decide.
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

/** The same where too many wait already. */
export function tooManyWait(): StoreUnavailable {
  overloaded ??= new StoreUnavailable("storage_overloaded", undefined, { mayBeDone: false });
  return overloaded;
}

/** One that is not shared, where callers get to see it: some write into the errors that they catch. */
export function ofItsOwn({ reason, cause }: StoreUnavailable): StoreUnavailable {
  return new StoreUnavailable(reason, undefined, { ...(cause !== undefined && { cause }), mayBeDone: false });
}
