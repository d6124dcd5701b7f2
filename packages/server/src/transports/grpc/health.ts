import { HealthCheckResponse_ServingStatus as ServingStatus } from "@sluice/protocol/health";
import type { Service } from "../../service/service.ts";

/** What health is told of: the server as a whole, its services, and the name that Envoy's users ask for. */
export const healthNames: readonly string[] = [
  "",
  "ratelimiter.v1.RateLimiterService",
  "sluice.v1.RateLimiter",
  "sluice.v1.PolicyAdmin",
  "envoy.service.ratelimit.v3.RateLimitService",
  "ratelimit",
];

type Looked = Pick<Service, "accepting" | "countersStatus"> & { readonly draining: AbortSignal };

/** Whether requests should be sent here. Undefined where there is no such service. */
export function findHealth(service: string, looked: Looked): ServingStatus | undefined {
  return healthNames.includes(service) ? statusOf(isServing(looked)) : undefined;
}

export function statusOf(serving: boolean): ServingStatus {
  return serving ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
}

function isServing({ accepting, countersStatus, draining }: Looked): boolean {
  return accepting() && !draining.aborted && countersStatus()?.ready !== false;
}

/** Tells whoever watches whether requests should be sent here, at once and whenever that changes. */
export interface HealthFeed {
  /** Returns what ends it. */
  watch(tell: (serving: boolean) => void): () => void;
}

const lookEveryMs = 500;

/** One look is for all who watch, and there is none while nobody does. */
export function createHealthFeed(looked: Looked): HealthFeed {
  const watchers = new Set<(serving: boolean) => void>();
  let timer: NodeJS.Timeout | undefined;
  let serving = isServing(looked);

  function look(): void {
    const now = isServing(looked);
    if (now === serving) return;
    serving = now;
    for (const tell of watchers) tell(serving);
  }

  return {
    watch(tell) {
      look();
      watchers.add(tell);
      tell(serving);
      timer ??= setInterval(look, lookEveryMs).unref();
      return () => {
        watchers.delete(tell);
        if (watchers.size > 0) return;
        clearInterval(timer);
        timer = undefined;
      };
    },
  };
}
