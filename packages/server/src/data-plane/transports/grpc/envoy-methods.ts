import { RateLimitRequest, RateLimitServiceDefinition } from "@sluice/protocol/envoy";
import { shouldRateLimit } from "../envoy/should-rate-limit.ts";
import { type Method, unary } from "./method.ts";
import { readRateLimitRequest } from "./read-rate-limit-request.ts";
import { writeRateLimitResponse } from "./write-rate-limit-response.ts";

const { shouldRateLimit: method } = RateLimitServiceDefinition.methods;
const requests = { ...RateLimitRequest, decode: readRateLimitRequest };
const service = { ...RateLimitServiceDefinition, methods: { shouldRateLimit: { ...method, requestType: requests } } };

/** Envoy's rate limit service. */
export const envoyMethods: readonly Method[] = [
  unary(
    service,
    "shouldRateLimit",
    "check",
    (request, context, { caller, deadlineMs }) =>
      shouldRateLimit(request, context, { caller, headers: context.envoyHeaders, deadlineMs }),
    undefined,
    writeRateLimitResponse,
  ),
];
