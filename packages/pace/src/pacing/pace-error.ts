/** Why a call is not made. Each is explained in docs/callers.md. */
export type PaceErrorCode = "queue_full" | "wait_too_long" | "never_fits";

/** A call that was not made, because its turn would not come in time or not at all. */
export class PaceError extends Error {
  override readonly name = "PaceError";
  readonly code: PaceErrorCode;
  /** How long it would have had to wait at least, if known. */
  readonly retryAfterMs: number | undefined;
  /** How often it was sent before without a final answer: 0, unless it waited for another attempt. */
  readonly attempts: number;

  constructor(code: PaceErrorCode, message: string, retryAfterMs?: number, attempts = 0) {
    super(message);
    this.code = code;
    this.retryAfterMs = retryAfterMs;
    this.attempts = attempts;
  }
}

/** The same error for a call that was sent `attempts` times before. */
export function paceErrorAfter({ code, message, retryAfterMs }: PaceError, attempts: number): PaceError {
  const times = attempts === 1 ? "once" : `${attempts} times`;
  return new PaceError(
    code,
    message.replace("nothing was sent", `it was sent ${times} before`),
    retryAfterMs,
    attempts,
  );
}
