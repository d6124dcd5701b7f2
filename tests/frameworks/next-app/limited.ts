import { type RouteGuard, rateLimit, rateLimitProxy } from "@sluice/middleware/next";
import type { NextProxy, NextRequest } from "next/server.js";
import { keptByProcess, wishes, wishHeader } from "./wishes.ts";

interface Granted {
  readonly guard: RouteGuard;
  readonly proxy: NextProxy | undefined;
}

const unlimited: RouteGuard = (handler) => handler;

/** Throws what is wrong with a wish. */
export function grantWish({ headers }: Pick<NextRequest, "headers">): Granted {
  const name = headers.get(wishHeader)!;
  const granted = keptByProcess<Granted>("granted");
  if (!granted.has(name)) {
    const { at, limits, options, proxy } = wishes().get(name)!;
    granted.set(
      name,
      at === "proxy"
        ? { guard: unlimited, proxy: rateLimitProxy(limits, options, proxy) }
        : { guard: rateLimit(limits, options), proxy: undefined },
    );
  }
  return granted.get(name)!;
}

/** In an app of yours: `const limited = rateLimit("100/m", { trustedProxies: 1 })`. */
export const limited: RouteGuard =
  (handler) =>
  (request, ...rest) =>
    grantWish(request).guard(handler)(request, ...rest);
