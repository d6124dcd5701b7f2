import type { LeaseAsk } from "../counters/counter-store.ts";
import { SluiceError } from "../errors.ts";
import { maxHoldMs, maxUnits } from "./allowance.ts";
import type { LeaseTimes } from "./lease.ts";

/** Throws `invalid_request`, naming the field, where an ask makes no sense. */
export function checkLeaseAsk({ want, holdMs, settled }: LeaseAsk): void {
  checkWhole("want", want, 0, maxUnits);
  checkWhole("holdMs", holdMs, 1, maxHoldMs);
  if (settled === undefined) return;
  checkWhole("settled.epoch", settled.epoch, 0, Number.MAX_SAFE_INTEGER);
  checkWhole("settled.spent", settled.spent, 0, Number.MAX_SAFE_INTEGER);
  checkWhole("settled.kept", settled.kept, 0, maxUnits);
  checkWhole("settled.returned", settled.returned, 0, maxUnits);
}

/** The same where what is asked for would never make sense. */
export function checkLeaseTimes({ refreshMs, leaseMs, staleMs }: LeaseTimes): void {
  checkWhole("refreshMs", refreshMs, 1, maxHoldMs);
  checkWhole("leaseMs", leaseMs, 1, maxHoldMs);
  checkWhole("staleMs", staleMs, 0, maxHoldMs - leaseMs);
}

/** Also where it is endless. */
export function checkAtLeastZero(name: string, value: number): void {
  if (value >= 0) return;
  throw invalid(name, `must be a number from 0 on, not ${String(value)}`);
}

function checkWhole(name: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw invalid(name, `must be a whole number from ${least} to ${most}, not ${String(value)}`);
}

function invalid(name: string, message: string): SluiceError {
  return new SluiceError("invalid_request", `${name} ${message}`, [{ path: name.split("."), message }]);
}
