import { type Decision, SluiceError, StoreUnavailable } from "sluice";

/** Throws where the counters were not asked how limits stand: saying nothing of them would be a wrong answer. */
export function refuseUncounted({ degraded, limits = [] }: Pick<Decision, "degraded" | "limits">): void {
  if (degraded === "kill_switch")
    throw new SluiceError("not_ready", "the kill switch is on, and nothing is counted; ask again when it is off");
  if (degraded !== undefined && limits.length === 0) throw new StoreUnavailable(degraded);
}
