import type { ResolvedLimit, TakeOptions } from "../counters/counter-store.ts";
import type { CheckRequest } from "../request/check-request.ts";

/** The options for the store, from a request and its limits. Undefined if it is a plain charge. */
export function createTakeOptions(
  request: CheckRequest,
  limits: readonly ResolvedLimit[],
  onTrial: boolean,
): TakeOptions | undefined {
  const { id, idTtlMs, receipt, deadlineMs, record } = request;
  const details = onTrial || request.details === true;
  if (id === undefined && receipt !== true) {
    return deadlineMs === undefined && !details ? undefined : { deadlineMs, details, record };
  }
  return {
    id,
    idTtlMs,
    fingerprint: id === undefined ? undefined : renderFingerprint(limits),
    receipt,
    deadlineMs,
    details,
    record,
  };
}

/** What a request id is bound to: the policies, their counters, the cost and distinct values, in any order. */
export function renderFingerprint(limits: readonly ResolvedLimit[]): string {
  const parts = limits.map(
    ({ limit, subject, cost, value = "" }) => `${limit.identity}\n${cost}\n${subject.length}\n${subject}${value}`,
  );
  return parts.sort().join("\n");
}
