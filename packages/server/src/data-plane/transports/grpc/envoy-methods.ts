import { RateLimitServiceDefinition } from "@sluice/protocol/envoy";
import { shouldRateLimit } from "../envoy/should-rate-limit.ts";
import { type Method, unary } from "./method.ts";

/** Envoy's rate limit service. */
export const envoyMethods: readonly Method[] = [
  unary(RateLimitServiceDefinition, "shouldRateLimit", "check", (request, context, { caller, deadlineMs }) =>
    shouldRateLimit(request, context, { caller, headers: context.envoyHeaders, deadlineMs }),
  ),
];
