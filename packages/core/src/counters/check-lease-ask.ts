import { SluiceError } from "../errors.ts";
import { maxHoldMs, maxUnits } from "./allowance.ts";
import type { LeaseAsk } from "./counter-store.ts";

/** Throws `invalid_request`, naming the field, if an ask makes no sense. */
export function checkLeaseAsk({ want, holdMs, settled }: LeaseAsk): void {
  checkWhole("want", want, 0, maxUnits);
  checkWhole("holdMs", holdMs, 1, maxHoldMs);
  if (settled === undefined) return;
  checkWhole("settled.epoch", settled.epoch, 0, Number.MAX_SAFE_INTEGER);
  checkWhole("settled.spent", settled.spent, 0, Number.MAX_SAFE_INTEGER);
  checkWhole("settled.kept", settled.kept, 0, maxUnits);
  checkWhole("settled.returned", settled.returned, 0, maxUnits);
}

export function checkWhole(name: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw invalid(name, `must be a whole number from ${least} to ${most}, not ${String(value)}`);
}

export function invalid(name: string, message: string): SluiceError {
  return new SluiceError("invalid_request", `${name} ${message}`, [{ path: name.split("."), message }]);
}
