import type { CounterStore, ResolvedLimit } from "../counters/counter-store.ts";
import { orUnavailable } from "../counters/store-unavailable.ts";
import type { ResetCounter } from "../limiter.ts";
import type { ResetOptions } from "../match/find-subject-counters.ts";

/** How many limits are reset in one call of a store. */
const resetTogether = 100;

/** Forgets these counters, as far as `reach` says. */
export async function resetCounters(
  counters: CounterStore,
  limits: readonly ResolvedLimit[],
  reach: Exclude<ResetOptions["reach"], "nothing">,
): Promise<void> {
  for (let first = 0; first < limits.length; first += resetTogether) {
    const some = limits.slice(first, first + resetTogether);
    if (reach === "process") counters.forget?.(some);
    else await orUnavailable(() => counters.reset(some));
  }
}

export function resetCounterFrom({ limit, subject }: ResolvedLimit): ResetCounter {
  return { policy: limit.policy.id, scope: limit.scope, subject };
}

/** Each counter once: two versions of a policy share theirs. */
export function distinctCounters(counters: readonly ResetCounter[]): readonly ResetCounter[] {
  return [...new Map(counters.map((one) => [JSON.stringify(one), one])).values()];
}
