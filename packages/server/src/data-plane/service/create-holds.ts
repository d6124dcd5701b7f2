import type { Hold, Limiter, ReserveRequest } from "sluice";
import type { HoldAnswer, HoldId } from "sluice/store";
import type { Decide } from "../../decide.ts";
import type { HoldOutcome } from "../../observe/telemetry/hold-metrics.ts";
import type { Metrics } from "../../observe/telemetry/metrics.ts";

/** Holds of clients. The id of one is all that a caller needs to settle it, and cannot be guessed. */
export interface ServedHolds {
  reserve(request: ReserveRequest): Promise<Hold>;
  commit(id: HoldId, actual: number, last: boolean): Promise<HoldAnswer>;
  extend(id: HoldId, ttlMs: number): Promise<HoldAnswer>;
  cancel(id: HoldId): Promise<HoldAnswer>;
}

export interface HoldsOptions {
  readonly limiter: Pick<Limiter, "reserve" | "commit" | "extend" | "cancel">;
  readonly decide: Pick<Decide, "reserve">;
  readonly metrics: Pick<Metrics, "countHold">;
}

export function createHolds({ limiter, decide, metrics }: HoldsOptions): ServedHolds {
  async function counted<T>(ask: Promise<T>, outcomeOf: (answer: T) => HoldOutcome): Promise<T> {
    try {
      const answer = await ask;
      metrics.countHold(outcomeOf(answer));
      return answer;
    } catch (error) {
      metrics.countHold("error");
      throw error;
    }
  }

  return {
    reserve: (request) =>
      counted((decide.reserve ?? limiter.reserve.bind(limiter))(request), ({ id }) =>
        id === undefined ? "not_held" : "held",
      ),
    commit: (id, actual, last) => counted(limiter.commit(id, actual, { last }), (answer) => describeCommit(answer)),
    extend: (id, ttlMs) =>
      counted(limiter.extend(id, ttlMs), ({ state }) => (state === "held" ? "extended" : describeEnded(state))),
    cancel: (id) => counted(limiter.cancel(id), (answer) => describeCommit(answer)),
  };
}

function describeCommit({ state, expired, overdraft, replayed }: HoldAnswer): HoldOutcome {
  if (replayed) return "repeated";
  if (state === "unknown" || state === "held") return state === "held" ? "reported" : state;
  if (expired) return "late";
  return overdraft > 0 ? "overdraft" : "settled";
}

function describeEnded(state: HoldAnswer["state"]): HoldOutcome {
  return state === "unknown" ? "unknown" : "repeated";
}
