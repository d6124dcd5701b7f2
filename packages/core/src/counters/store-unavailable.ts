import { type ErrorCode, SluiceError } from "../errors.ts";

/** Why the counters could not answer. */
export type StoreUnavailableReason =
  /** They could not be reached, or were not tried because their breaker is open. */
  | "storage_unavailable"
  /** They did not answer within the deadline. They may have carried out the request all the same. */
  | "storage_timeout"
  /**
   * Their answer was not read within the deadline because this process did not run: it had no turn on a processor, or
   * was busy with something else. They may have carried out the request all the same.
   */
  | "process_starved"
  /** Too many checks are waiting for them already. */
  | "storage_overloaded"
  /** They have no room for another subject: all they hold is exhausted, and is not forgotten early. */
  | "storage_full";

const messages: Readonly<Record<StoreUnavailableReason, string>> = {
  storage_unavailable: "the counters cannot be reached; this passes when they are back, so try again in a few seconds",
  storage_timeout:
    "the counters did not answer within the deadline; the request may have been carried out all the same",
  process_starved:
    "this process was short of processor time and could not read the counters' answer within the deadline; the request may have been carried out all the same",
  storage_overloaded: "too many checks are waiting for the counters; try again when there are fewer",
  storage_full: "the counters have no room for another subject; raise their bound, or wait until some have ended",
};

/**
 * The error that a counter store rejects with when it cannot answer. A check is then decided as its policies say
 * (`on_failure`), with this reason in the decision's `degraded`; everything else rejects with this error.
 */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
  readonly code: ErrorCode = "store_unavailable";
  readonly reason: StoreUnavailableReason;
  /** False if it is certain that the store was not asked, or did nothing. */
  readonly mayBeDone: boolean;

  constructor(
    reason: StoreUnavailableReason,
    message: string = messages[reason],
    options: { readonly cause?: unknown; readonly mayBeDone?: boolean } = {},
  ) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.reason = reason;
    this.mayBeDone = options.mayBeDone ?? true;
  }
}

/** Why a store did not answer, from its error. A caller's mistake is rethrown. */
export function outageReason(error: unknown): StoreUnavailableReason {
  if (error instanceof StoreUnavailable) return error.reason;
  if (error instanceof SluiceError) throw error;
  return "storage_unavailable";
}

/** Waits for a store and turns every failure into a `StoreUnavailable`, except a caller's mistake. */
export async function orUnavailable<T>(ask: () => T | Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw unavailable(error);
  }
}

/** The error that callers see. The store's own error is its cause and not in the message: it may hold secrets. */
export function unavailable(error: unknown): Error {
  if (error instanceof StoreUnavailable || error instanceof SluiceError) return error;
  return new StoreUnavailable("storage_unavailable", messages.storage_unavailable, { cause: error });
}
