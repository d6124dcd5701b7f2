import { rateLimitRequestShape } from "../envoy/rate-limit-json.ts";
import { authorizeParameters } from "./authorize-request.ts";
import { batchShape, chargeShape, checkShape, resetShape } from "./check-body.ts";
import type { HttpContext } from "./exchange.ts";
import { authorize } from "./handlers/authorize.ts";
import { charge } from "./handlers/charge.ts";
import { check } from "./handlers/check.ts";
import { explain } from "./handlers/explain.ts";
import { giveBack, giveBackShape } from "./handlers/give-back.ts";
import {
  cancel,
  cancelShape,
  commit,
  commitShape,
  extend,
  extendShape,
  reserve,
  reserveShape,
} from "./handlers/holds.ts";
import { createHotKeys } from "./handlers/hot-keys.ts";
import { json } from "./handlers/json.ts";
import { lease, leaseShape } from "./handlers/lease.ts";
import { createListPolicies } from "./handlers/list-policies.ts";
import { livez } from "./handlers/livez.ts";
import { metrics } from "./handlers/metrics.ts";
import { openApi } from "./handlers/open-api.ts";
import { readyz, strictQuery } from "./handlers/readyz.ts";
import { reset } from "./handlers/reset.ts";
import { status } from "./handlers/status.ts";
import { hotKeysQuery } from "./hot-keys-query.ts";
import { maxBatchBodyBytes } from "./json-body.ts";
import type { OpenApiOptions } from "./render-open-api.ts";
import type { Route } from "./route.ts";

export const countersAway: string = "Denied because the counters are unavailable and the policy fails closed";

export const idempotencyHeader: Readonly<Record<string, string>> = {
  "X-Idempotency-Key": "The id of a check that has none, if the server is configured to trust this header",
};

/** The native API, in the order of its documentation, without its description. */
export const nativeRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/check",
    summary: "Decide one check, or a batch of up to 1 000 in order",
    handle: check,
    isHot: true,
    needs: "check",
    bodies: [checkShape, batchShape],
    headers: idempotencyHeader,
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
    path: "/v1/charge",
    summary: "Charge what a request turned out to cost, unconditionally; a cost below 0 gives back",
    handle: charge,
    needs: "check",
    bodies: [chargeShape],
    answers: { 204: { description: "Charged", content: "nothing" } },
  },
  {
    method: "POST",
    path: "/v1/give-back",
    summary: "Undo what a check took, by its receipt",
    handle: giveBack,
    needs: "check",
    bodies: [giveBackShape],
    answers: { 200: { description: "Whether anything was given back", content: ["GivenBack"] } },
  },
  {
    method: "POST",
    path: "/v1/reserve",
    summary: "Hold an amount for work whose cost is known later",
    handle: reserve,
    needs: "check",
    bodies: [reserveShape],
    answers: {
      200: { description: "Allowed, and what is held", content: ["Hold"], rateLimitHeaders: true },
      429: { description: "Denied: nothing is held", content: ["Denial"], rateLimitHeaders: true },
      503: { description: countersAway, content: ["Denial"], rateLimitHeaders: true },
    },
  },
  {
    method: "POST",
    path: "/v1/commit",
    summary: "Report what the work under a hold has cost so far, and settle the hold",
    handle: commit,
    needs: "check",
    bodies: [commitShape],
    answers: { 200: { description: "How the hold stands", content: ["HoldAnswer"] } },
  },
  {
    method: "POST",
    path: "/v1/extend",
    summary: "Make a hold last longer",
    handle: extend,
    needs: "check",
    bodies: [extendShape],
    answers: { 200: { description: "How the hold stands", content: ["HoldAnswer"] } },
  },
  {
    method: "POST",
    path: "/v1/cancel",
    summary: "Settle a hold by what was reported so far",
    handle: cancel,
    needs: "check",
    bodies: [cancelShape],
    answers: { 200: { description: "How the hold stands", content: ["HoldAnswer"] } },
  },
  {
    method: "POST",
    path: "/v1/lease",
    summary: "Lease units of cost for a client to spend on its own; renew the lease, and give back what is left",
    handle: lease,
    needs: "check",
    bodies: [leaseShape],
    answers: { 200: { description: "The grant, and how long it is valid", content: ["GivenLease"] } },
  },
  {
    method: "POST",
    path: "/v1/reset",
    summary: "Reset the counters that a check like this would be counted in",
    handle: reset,
    needs: "operate",
    bodies: [resetShape],
    answers: {
      200: {
        description: "Which counters were reset; none if no limit counts such a check",
        content: ["Reset"],
      },
    },
  },
  {
    method: "GET",
    // A gateway may use the method of the request that it asks about.
    alsoMethods: ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"],
    path: "/v1/authorize",
    summary: "Decide for a gateway whether a request may pass, by the headers of a sub-request",
    handle: authorize,
    needs: "check",
    query: authorizeParameters,
    headers: {
      "X-Original-URI": "The requested path, with or without its query: dimension endpoint",
      "X-Forwarded-Uri": "The same, if X-Original-URI is absent",
      "X-Original-Method": "The request's method: dimension method",
      "X-Forwarded-Method": "The same, if X-Original-Method is absent",
      "X-Real-IP": "The client's address: dimension ip",
      "X-Forwarded-For": "The same by its last address, if X-Real-IP is absent",
    },
    answers: {
      204: { description: "Request may proceed", content: "nothing", rateLimitHeaders: true },
      403: {
        description: "Request is denied, and the sub-request asked for deny=403",
        content: ["Denial", "Error"],
        rateLimitHeaders: true,
        headers: { "X-Sluice-Status": "The status without deny=403: 429, 503 or 400" },
      },
      429: { description: "Denied", content: ["Denial"], rateLimitHeaders: true },
      503: { description: countersAway, content: ["Denial"], rateLimitHeaders: true },
    },
  },
  {
    method: "POST",
    path: "/v1/explain",
    summary: "Explain how the answer to a check would come about, taking nothing",
    handle: explain,
    needs: "read",
    bodies: [checkShape],
    answers: {
      200: {
        description: "As JSON, or as prose if the client accepts text/plain",
        content: ["Explanation"],
        alsoText: true,
      },
    },
  },
  {
    method: "GET",
    path: "/v1/policies",
    summary: "List the policies in force",
    handle: createListPolicies(),
    needs: "read",
    answers: { 200: { description: "In the format of a policy file", content: ["Policies"] } },
  },
  {
    method: "POST",
    path: "/json",
    summary: "Decide in the terms of Envoy's rate limit service: domain, descriptors",
    handle: json,
    isHot: true,
    needs: "check",
    bodies: [rateLimitRequestShape],
    // Envoy's own server ignores the content type, so its clients need not send one.
    bodyTypes: "untyped",
    maxBodyBytes: maxBatchBodyBytes,
    answers: {
      200: { description: "Overall OK", content: ["EnvoyAnswer"] },
      429: { description: "Overall OVER_LIMIT", content: ["EnvoyAnswer"] },
    },
  },
  {
    method: "GET",
    path: "/livez",
    summary: "Whether the process answers",
    handle: livez,
    needs: "nothing",
    answers: { 200: { description: "The process is alive", content: ["Live"] } },
  },
  {
    method: "GET",
    path: "/readyz",
    summary: "Whether requests should be sent here",
    handle: readyz,
    needs: "nothing",
    query: strictQuery,
    answers: {
      200: { description: "Ready", content: ["Ready"] },
      503: {
        description: "Not ready: the server is stopping, or with `strict` its counters cannot be reached",
        content: ["Ready"],
      },
    },
  },
  {
    method: "GET",
    path: "/v1/status",
    summary: "The state of this server: policies, counters, queue, connections",
    handle: status,
    needs: "read",
    answers: { 200: { description: "The current state", content: ["Status"] } },
  },
  {
    method: "GET",
    path: "/v1/hot-keys",
    summary: "Which counters are asked for most on this server, or denied most",
    handle: createHotKeys(),
    needs: "read",
    query: { by: hotKeysQuery.by.schema, count: hotKeysQuery.count.schema },
    answers: { 200: { description: "Hottest first", content: ["HotKeysHere"] } },
  },
  {
    method: "GET",
    path: "/metrics",
    summary: "Metrics for Prometheus",
    handle: metrics,
    needs: "read",
    answers: { 200: { description: "In Prometheus' text format", content: "text/plain" } },
  },
];

/** Routes, and one that describes them all and itself. */
export function withDescription(
  described: readonly Route<HttpContext, string>[],
  api: OpenApiOptions,
): readonly Route<HttpContext, string>[] {
  const routes: readonly Route<HttpContext, string>[] = [
    ...described,
    {
      method: "GET",
      path: "/openapi.json",
      summary: "This description",
      handle: openApi(() => routes, api),
      needs: "nothing",
      answers: { 200: { description: "OpenAPI 3.1", content: "application/json" } },
    },
  ];
  return routes;
}
