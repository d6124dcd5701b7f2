import { type Decision, SluiceError, StoreUnavailable } from "sluice";

/** Throws if the counters were not read: an empty answer would be wrong. */
export function refuseUncounted({ degraded, limits = [] }: Pick<Decision, "degraded" | "limits">): void {
  if (degraded === "kill_switch")
    throw new SluiceError("not_ready", "the kill switch is on, and nothing is counted; ask again when it is off");
  if (degraded !== undefined && limits.length === 0) throw new StoreUnavailable(degraded);
}
