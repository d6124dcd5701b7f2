import { maxHoldMs } from "../counters/allowance.ts";
import { checkWhole, invalid } from "../counters/check-lease-ask.ts";
import type { LeaseTimes } from "./lease.ts";

/** Throws `invalid_request`, naming the field, if times make no sense. */
export function checkLeaseTimes({ refreshMs, leaseMs, staleMs }: LeaseTimes): void {
  checkWhole("refreshMs", refreshMs, 1, maxHoldMs);
  checkWhole("leaseMs", leaseMs, 1, maxHoldMs);
  checkWhole("staleMs", staleMs, 0, maxHoldMs - leaseMs);
}

/** Infinity is allowed. */
export function checkAtLeastZero(name: string, value: number): void {
  if (value >= 0) return;
  throw invalid(name, `must be a number of at least 0, not ${String(value)}`);
}
