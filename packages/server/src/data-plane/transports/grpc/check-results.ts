import type { CheckBatchRequest, CheckRequest as CheckMessage } from "@sluice/protocol";
import { type Decision, SluiceError } from "sluice";
import { maxDeadlineMs } from "sluice/internal";
import { type DescribedError, describeError, isOurs, maxErrorFields } from "../../service/describe-error.ts";
import { readCheck } from "./check-message.ts";
import type { CallInfo, GrpcContext } from "./method.ts";

/** Most checks of a batch. */
export const maxChecks = 1_000;

/** Most fields that the errors of one batch list together: answers are not much longer than what is answered. */
const maxBatchFields = 200;

/** A decision, or why there is none. */
export type CheckResult = Decision | DescribedError;

/** Decides the checks of a batch, each for itself, in their order. At once where counters are in this process. */
export function checkResults(
  batch: CheckBatchRequest,
  context: GrpcContext,
  call: CallInfo,
): CheckResult[] | Promise<CheckResult[]> {
  const { checks } = batch;
  refuseSize(checks.length);
  const deadlineMs = shorterDeadline(batch.deadlineMs, call.deadlineMs);
  let fieldsLeft = maxBatchFields;

  function refused(error: unknown): DescribedError {
    const described = describeError(error, Math.min(maxErrorFields, fieldsLeft));
    fieldsLeft -= described.fields.length;
    if (isOurs(error)) context.log.error("check.failed_in_batch", { err: error, method: "CheckBatch" });
    return described;
  }

  function decideCheck(check: CheckMessage): CheckResult | Promise<CheckResult> {
    try {
      const decided = context.decide.one(readCheck(check, deadlineMs));
      return decided instanceof Promise ? decided.catch(refused) : decided;
    } catch (error) {
      return refused(error);
    }
  }

  const results = checks.map(decideCheck);
  return results.every(isThere) ? results : Promise.all(results);
}

function isThere(result: CheckResult | Promise<CheckResult>): result is CheckResult {
  return !(result instanceof Promise);
}

function refuseSize(count: number): void {
  if (count >= 1 && count <= maxChecks) return;
  const message = `must hold 1 to ${maxChecks} entries, but holds ${count}`;
  throw new SluiceError("invalid_request", `checks ${message}`, [{ path: ["checks"], message }]);
}

/** The shorter of a batch's own deadline and the call's. */
function shorterDeadline(batchMs: number, callMs: number | undefined): number | undefined {
  if (batchMs === 0) return callMs;
  return Math.min(batchMs, callMs ?? maxDeadlineMs, maxDeadlineMs);
}
