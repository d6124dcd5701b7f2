import { type PolicySet, type Problem, parseShape, renderHeaders, SluiceError } from "sluice";
import { whenDecided } from "../../../service/decide.ts";
import { statusOf } from "../answer-decision.ts";
import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";
import { rateLimitBody } from "../rate-limit-body.ts";
import { rateLimitShape } from "../rate-limit-request.ts";

/**
 * POST /v1/rate-limit: a token bucket's words. The limit of a scope and a resource is the policy `scope:resource`; where
 * there is none, policies are matched as usual. A hierarchy is decided all or nothing, and its policies must exist.
 */
export function rateLimit(request: HttpRequest, context: HttpContext): HttpResponse | Promise<HttpResponse> {
  const asked = parseShape(rateLimitShape, request.body, "invalid_request", "the body");
  const limit = `${asked.scope ?? "user"}:${asked.resource}`;
  const hierarchy = asked.limit_hierarchy?.map(([scope, resource]) => `${scope}:${resource}`);
  if (hierarchy !== undefined) refuseUnknown(hierarchy, context);
  const decided = context.decide.one({
    dimensions: asked.dimensions,
    cost: asked.tokens ?? 1,
    preview: asked.consume === false,
    policies: hierarchy ?? (isPolicy(limit, context) ? [limit] : undefined),
    details: hierarchy !== undefined,
  });
  return whenDecided(decided, (decision) => ({
    status: statusOf(decision),
    headers: renderHeaders(decision, { random: context.random }),
    body: rateLimitBody(decision, limit, Date.now(), hierarchy),
  }));
}

/** Says which levels are no policies, under the name that the caller has for them. */
function refuseUnknown(hierarchy: readonly string[], context: HttpContext): void {
  const problems = hierarchy.flatMap((id, level): Problem[] =>
    isPolicy(id, context) ? [] : [{ path: ["limit_hierarchy", level], message: `there is no policy ${id}` }],
  );
  if (problems.length === 0) return;
  const missing = problems.map(({ message }) => message).join("; ");
  throw new SluiceError("policy_not_found", `${missing}. Compare with GET /v1/policies`, problems);
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
