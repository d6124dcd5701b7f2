import type { CheckRequest, Limiter, ResetCounter } from "sluice";
import { type Caller, demand } from "../access/access.ts";
import type { Actor } from "../access/actor.ts";
import { createLease, type LeaseTimes, usualLeaseTimes } from "./lease.ts";
import type { Service } from "./service.ts";

export interface ServiceOptions extends Omit<Service, "reset" | "charge" | "lease" | "limiter"> {
  readonly limiter: Limiter;
  /** How long clients hold leases, or that they get none. Absent: 20 s, and 60 s more while no server answers. */
  readonly leaseTimes?: LeaseTimes | "off" | undefined;
}

export function createService(options: ServiceOptions): Service {
  const { limiter, log, audit, metrics, accepting, leaseTimes = usualLeaseTimes } = options;
  return {
    ...options,
    lease: createLease({ limiter, metrics, accepting, times: leaseTimes }),
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
        target: targetOf(dimensions ?? {}),
        before: { policies, domain, dimensions, limits: counters.map(({ policy, scope }) => `${policy}/${scope}`) },
      });
      return counters;
    },
  };
}

/** Who a request is about, best known first; what it asks for last. */
const identifying = ["user", "api_key", "tenant", "org", "ip"];
const describing = ["endpoint", "method", "tier"];

/** `user:u1`: the subject by which the audit of a reset is found; empty where it was everybody's. */
function targetOf(dimensions: Readonly<Record<string, string>>): string {
  const others = Object.keys(dimensions).filter((name) => !describing.includes(name));
  const name = [...identifying, ...others, ...describing].find((one) => dimensions[one]);
  return name === undefined ? "" : `${name}:${dimensions[name]}`;
}
