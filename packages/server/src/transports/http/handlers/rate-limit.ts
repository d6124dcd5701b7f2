import { type PolicySet, parseShape, renderHeaders } from "sluice";
import { whenDecided } from "../../../decide.ts";
import { statusOf } from "../answer-decision.ts";
import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";
import { type RateLimitRequest, rateLimitBody, rateLimitShape } from "../rate-limit-body.ts";

/**
 * POST /v1/rate-limit: a token bucket's words. The limit of a scope and a resource is the policy `scope:resource`; where
 * there is none, policies are matched as usual. A hierarchy is decided all or nothing, and its policies must exist.
 */
export function rateLimit(request: HttpRequest, context: HttpContext): HttpResponse | Promise<HttpResponse> {
  const asked = parseShape(rateLimitShape, request.body, "invalid_request", "the body");
  const limit = `${asked.scope ?? "user"}:${asked.resource}`;
  const hierarchy = asked.limit_hierarchy?.map(([scope, resource]) => `${scope}:${resource}`);
  const decided = context.decide({
    dimensions: dimensionsOf(asked),
    cost: asked.tokens ?? 1,
    preview: asked.consume === false,
    policies: hierarchy ?? (isPolicy(limit, context) ? [limit] : undefined),
    details: hierarchy !== undefined,
  });
  return whenDecided(decided, (decision) => ({
    status: statusOf(decision),
    headers: renderHeaders(decision, { random: context.random }),
    body: rateLimitBody(decision, limit, hierarchy),
  }));
}

const idsOf = new WeakMap<PolicySet, ReadonlySet<string>>();

function isPolicy(id: string, { limiter }: HttpContext): boolean {
  const { policySet } = limiter.snapshot;
  let ids = idsOf.get(policySet);
  if (ids === undefined) {
    ids = new Set(policySet.policies.map((policy) => policy.id));
    idsOf.set(policySet, ids);
  }
  return ids.has(id);
}

/** `ip` of a hierarchy is found in the metadata as `ip`, `ip_address` or `ip_id`; `tier` is passed on. */
function dimensionsOf(asked: RateLimitRequest): Readonly<Record<string, string>> {
  const { identifier, resource, scope = "user", metadata = {}, limit_hierarchy: levels = [] } = asked;
  const dimensions: Record<string, string> = {};
  const pass = (name: string, value: unknown): void => {
    if (typeof value === "string" || typeof value === "number") dimensions[name] = String(value);
  };
  pass("tier", metadata.tier);
  for (const [level] of levels) pass(level, metadata[level] ?? metadata[`${level}_address`] ?? metadata[`${level}_id`]);
  dimensions[scope] = identifier;
  return { ...dimensions, scope, resource, identifier };
}
