import type { CheckRequest, Limiter } from "sluice";
import type { Caller } from "../access/access.ts";
import type { Service } from "./service.ts";

export interface ServiceOptions extends Omit<Service, "reset" | "limiter"> {
  readonly limiter: Limiter;
}

export function createService(options: ServiceOptions): Service {
  const { limiter, log } = options;
  return {
    ...options,
    async reset(request: CheckRequest, caller: Caller): Promise<void> {
      await limiter.reset(request);
      log.info({ caller: caller.name, domain: request.domain, dimensions: request.dimensions }, "counters were reset");
    },
  };
}
