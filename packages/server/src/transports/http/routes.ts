import { batchShape, checkShape } from "./check-body.ts";
import { check } from "./handlers/check.ts";
import { explain } from "./handlers/explain.ts";
import { listPolicies } from "./handlers/list-policies.ts";
import { livez } from "./handlers/livez.ts";
import { metrics } from "./handlers/metrics.ts";
import { openApi } from "./handlers/open-api.ts";
import { rateLimit } from "./handlers/rate-limit.ts";
import { readyz } from "./handlers/readyz.ts";
import { shouldAllow, shouldAllowShape } from "./handlers/should-allow.ts";
import { maxBatchBodyBytes } from "./json-body.ts";
import { rateLimitShape } from "./rate-limit-request.ts";
import type { Route } from "./route.ts";

const countersAway = "Denied because the counters are away and the policy fails closed";

/** Every route there is, in the order of the documentation. */
export const routes: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/check",
    summary: "Decide one check, or a batch of up to 1 000 in order",
    handle: check,
    bodies: [checkShape, batchShape],
    headers: {
      "X-Idempotency-Key": "The id of a check that has none, where the server is told to believe this header",
    },
    maxBodyBytes: maxBatchBodyBytes,
    answers: {
      200: {
        description: "Allowed; or a batch's answers",
        content: ["Decision", "BatchAnswer"],
        rateLimitHeaders: true,
      },
      429: { description: "Denied", content: ["Denial"], rateLimitHeaders: true },
      503: { description: countersAway, content: ["Denial"], rateLimitHeaders: true },
    },
  },
  {
    method: "POST",
    path: "/v1/explain",
    summary: "Tell how the answer to a check would come about, taking nothing",
    handle: explain,
    bodies: [checkShape],
    answers: {
      200: { description: "As JSON; as prose where text/plain is accepted", content: ["Explanation"], alsoText: true },
    },
  },
  {
    method: "GET",
    path: "/v1/policies",
    summary: "List the policies in force",
    handle: listPolicies,
    answers: { 200: { description: "In the words of a policy file", content: ["Policies"] } },
  },
  {
    method: "POST",
    path: "/v1/rate-limit",
    summary: "Decide in the words of a token bucket: identifier, resource, tokens, scope",
    handle: rateLimit,
    bodies: [rateLimitShape],
    answers: {
      200: { description: "Allowed", content: ["RateLimitAnswer"], rateLimitHeaders: true },
      429: { description: "Denied", content: ["RateLimitAnswer"], rateLimitHeaders: true },
      503: { description: countersAway, content: ["RateLimitAnswer"], rateLimitHeaders: true },
    },
  },
  {
    method: "POST",
    path: "/shouldAllow",
    summary: "Decide in the words of a sidecar: scope, scope_value, api",
    handle: shouldAllow,
    bodies: [shouldAllowShape],
    answers: {
      200: { description: "Allowed", content: ["ShouldAllowAnswer"], rateLimitHeaders: true },
      429: { description: "Denied", content: ["ShouldAllowAnswer"], rateLimitHeaders: true },
      503: { description: countersAway, content: ["ShouldAllowAnswer"], rateLimitHeaders: true },
    },
  },
  {
    method: "GET",
    path: "/livez",
    summary: "Whether the process answers",
    handle: livez,
    answers: { 200: { description: "It does", content: ["Live"] } },
  },
  {
    method: "GET",
    path: "/readyz",
    summary: "Whether requests should be sent here",
    handle: readyz,
    answers: {
      200: { description: "Yes", content: ["Ready"] },
      503: { description: "No: the server is stopping, or its counters cannot be reached", content: ["Ready"] },
    },
  },
  {
    method: "GET",
    path: "/metrics",
    summary: "Metrics for Prometheus",
    handle: metrics,
    answers: { 200: { description: "In Prometheus' text format", content: "text/plain" } },
  },
  {
    method: "GET",
    path: "/openapi.json",
    summary: "This description",
    handle: openApi(() => routes),
    answers: { 200: { description: "OpenAPI 3.1", content: "application/json" } },
  },
];
