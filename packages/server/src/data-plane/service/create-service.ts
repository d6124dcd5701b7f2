import type { CheckRequest, Limiter } from "sluice";
import { identifyingDimensions, type ResetCounter } from "sluice/internal";
import { type Caller, demand } from "../access/access.ts";
import type { Actor } from "../access/actor.ts";
import { createHolds } from "./create-holds.ts";
import { createLease, type LeaseTimes, usualLeaseTimes } from "./lease.ts";
import type { Service } from "./service.ts";

export interface ServiceOptions extends Omit<Service, "reset" | "charge" | "lease" | "holds" | "limiter"> {
  readonly limiter: Limiter;
  /** How long clients hold leases, or that they get none. Absent: 20 s, and 60 s more while no server answers. */
  readonly leaseTimes?: LeaseTimes | "off" | undefined;
}

export function createService(options: ServiceOptions): Service {
  const { limiter, log, audit, metrics, accepting, leaseTimes = usualLeaseTimes } = options;
  return {
    ...options,
    lease: createLease({ limiter, metrics, accepting, times: leaseTimes }),
    holds: createHolds({ limiter, decide: options.decide, metrics }),
    async charge(request: CheckRequest, caller: Caller): Promise<void> {
      if ((request.cost ?? 1) < 0) demand(caller, "credit");
      await limiter.charge(request);
    },
    async reset(request: CheckRequest, actor: Actor): Promise<readonly ResetCounter[]> {
      const counters = await limiter.reset(request);
      const { policies, domain, dimensions } = request;
      log.info("counters.reset", { caller: actor.caller.name, domain, dimensions, counters: counters.length });
      await audit?.done(actor, {
        action: "subject.reset",
        kind: "subject",
        target: findTarget(dimensions ?? {}),
        before: { policies, domain, dimensions, limits: counters.map(({ policy, scope }) => `${policy}/${scope}`) },
      });
      return counters;
    },
  };
}

/** The dimensions that describe what a request asks for: they name its subject only if there are no others. */
const describing = ["endpoint", "method", "tier"];

/** `user:u1`: the subject under which the audit finds a reset; empty for a counter that all callers share. */
function findTarget(dimensions: Readonly<Record<string, string>>): string {
  const others = Object.keys(dimensions).filter((name) => !describing.includes(name));
  const name = [...identifyingDimensions, ...others, ...describing].find((one) => dimensions[one]);
  return name === undefined ? "" : `${name}:${dimensions[name]}`;
}
