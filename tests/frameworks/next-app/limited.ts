import { type RouteGuard, rateLimit, rateLimitProxy } from "@sluice/middleware/next";
import type { NextProxy, NextRequest } from "next/server.js";
import { processMap, requestedSetups, setupHeader } from "./requested-setups.ts";

interface ActiveSetup {
  readonly guard: RouteGuard;
  readonly proxy: NextProxy | undefined;
}

const unlimited: RouteGuard = (handler) => handler;

/** The setup that a request names, created at its first use. Throws if the setup has mistakes. */
export function findSetup({ headers }: Pick<NextRequest, "headers">): ActiveSetup {
  const name = headers.get(setupHeader)!;
  const active = processMap<ActiveSetup>("active");
  if (!active.has(name)) {
    const { at, limits, options, proxy } = requestedSetups().get(name)!;
    active.set(
      name,
      at === "proxy"
        ? { guard: unlimited, proxy: rateLimitProxy(limits, options, proxy) }
        : { guard: rateLimit(limits, options), proxy: undefined },
    );
  }
  return active.get(name)!;
}

/** In an app of yours: `const limited = rateLimit("100/m", { trustedProxies: 1 })`. */
export const limited: RouteGuard =
  (handler) =>
  (request, ...rest) =>
    findSetup(request).guard(handler)(request, ...rest);
