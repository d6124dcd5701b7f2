import type { HttpContext } from "../../data-plane/transports/http/exchange.ts";
import type { Route } from "../../data-plane/transports/http/route.ts";
import { countersAway, idempotencyHeader } from "../../data-plane/transports/http/routes.ts";
import { rateLimit } from "./rate-limit.ts";
import { rateLimitShape } from "./rate-limit-request.ts";
import type { CompatSchemaName } from "./schemas.ts";
import { shouldAllow, shouldAllowShape } from "./should-allow.ts";

/** Routes known to clients of other limiters. */
export const compatRoutes: readonly Route<HttpContext, CompatSchemaName>[] = [
  {
    method: "POST",
    path: "/v1/rate-limit",
    summary: "Check a request, in the vocabulary of a token bucket: identifier, resource, tokens, scope",
    handle: rateLimit,
    needs: "check",
    bodies: [rateLimitShape],
    headers: idempotencyHeader,
    answers: {
      200: { description: "Allowed", content: ["RateLimitAnswer"], rateLimitHeaders: true },
      429: { description: "Denied", content: ["RateLimitAnswer"], rateLimitHeaders: true },
      503: { description: countersAway, content: ["RateLimitAnswer"], rateLimitHeaders: true },
    },
  },
  {
    method: "POST",
    path: "/shouldAllow",
    summary: "Check a request, in the vocabulary of a sidecar: scope, scope_value, api",
    handle: shouldAllow,
    needs: "check",
    bodies: [shouldAllowShape],
    headers: idempotencyHeader,
    answers: {
      200: { description: "Allowed", content: ["ShouldAllowAnswer"], rateLimitHeaders: true },
      429: { description: "Denied", content: ["ShouldAllowAnswer"], rateLimitHeaders: true },
      503: { description: countersAway, content: ["ShouldAllowAnswer"], rateLimitHeaders: true },
    },
  },
];
