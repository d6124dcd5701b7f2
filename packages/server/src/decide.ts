import { type CheckRequest, type Decision, type Limiter, SluiceError } from "sluice";
import type { Metrics } from "./telemetry/metrics.ts";

/** Decides and counts. Answers at once where counters are in this process: no turn of the event loop is spent. */
export type Decide = (request: CheckRequest) => Decision | Promise<Decision>;

export function createDecide(
  limiter: Limiter,
  metrics: Pick<Metrics, "countDecision" | "countError">,
  nowMs: () => number = () => performance.now(),
): Decide {
  function counted(decision: Decision, startedMs: number): Decision {
    metrics.countDecision(decision, (nowMs() - startedMs) / 1000);
    return decision;
  }

  function refused(error: unknown): never {
    metrics.countError(error instanceof SluiceError ? error.code : "internal");
    throw error;
  }

  return (request) => {
    const startedMs = nowMs();
    if (!limiter.counters.local)
      return limiter.check(request).then((decision) => counted(decision, startedMs), refused);
    try {
      return counted(limiter.checkSync(request), startedMs);
    } catch (error) {
      return refused(error);
    }
  };
}

/** Goes on with a decision when it is there, which may be now. */
export function whenDecided<T>(decision: Decision | Promise<Decision>, go: (decision: Decision) => T): T | Promise<T> {
  return decision instanceof Promise ? decision.then(go) : go(decision);
}
