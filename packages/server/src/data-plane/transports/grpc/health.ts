import { HealthCheckResponse_ServingStatus as ServingStatus } from "@sluice/protocol/health";
import type { Service } from "../../service/service.ts";
import type { Draining } from "./draining.ts";

/** Serves only while its counters can be reached, which is what its callers expect of its name. */
const strictName = "ratelimiter.v1.RateLimiterService";

/** The names that have a health: the server as a whole, its services, and the name that Envoy's users ask for. */
export const healthNames: readonly string[] = [
  "",
  strictName,
  "sluice.v1.RateLimiter",
  "sluice.v1.PolicyAdmin",
  "envoy.service.ratelimit.v3.RateLimitService",
  "ratelimit",
];

type Looked = Pick<Service, "accepting" | "countersStatus"> & { readonly draining: Pick<Draining, "begun"> };

/** `answering`: as policies say, from counters or by `on_failure`. `counting`: and every server that holds counters is asked. */
export type Health = "counting" | "answering" | "stopping";

/** Whether requests should be sent here. Undefined where there is no such service. */
export function findHealth(service: string, looked: Looked): ServingStatus | undefined {
  return servingStatus(service, readHealth(looked));
}

export function servingStatus(service: string, health: Health): ServingStatus | undefined {
  if (!healthNames.includes(service)) return undefined;
  const serving = service === strictName ? health === "counting" : health !== "stopping";
  return serving ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
}

function readHealth({ accepting, countersStatus, draining }: Looked): Health {
  if (!accepting() || draining.begun) return "stopping";
  return countersStatus()?.ready === false ? "answering" : "counting";
}

/** Reports to each watcher whether requests should be sent here, at once and whenever that changes. */
export interface HealthFeed {
  /** Returns the function that ends it. */
  watch(report: (health: Health) => void): () => void;
}

const lookEveryMs = 500;

/** One timer serves all watchers, and it stops with the last of them. */
export function createHealthFeed(looked: Looked): HealthFeed {
  const watchers = new Set<(health: Health) => void>();
  let timer: NodeJS.Timeout | undefined;
  let health = readHealth(looked);

  function look(): void {
    const now = readHealth(looked);
    if (now === health) return;
    health = now;
    for (const report of watchers) report(health);
  }

  return {
    watch(report) {
      look();
      watchers.add(report);
      report(health);
      timer ??= setInterval(look, lookEveryMs).unref();
      return () => {
        watchers.delete(report);
        if (watchers.size > 0) return;
        clearInterval(timer);
        timer = undefined;
      };
    },
  };
}
