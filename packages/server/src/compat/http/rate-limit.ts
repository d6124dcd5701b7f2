import { type CheckRequest, type Decision, type PolicySet, type Problem, renderHeaders, SluiceError } from "sluice";
import { parseShape } from "sluice/shape";
import { whenDecided } from "../../data-plane/service/create-decide.ts";
import { decisionStatus } from "../../data-plane/transports/http/answer-decision.ts";
import type { HttpContext, HttpRequest, HttpResponse } from "../../data-plane/transports/http/exchange.ts";
import { headerId } from "../../data-plane/transports/idempotency-key.ts";
import { type LevelDecisions, rateLimitBody, speakingLevel } from "./rate-limit-body.ts";
import { levelDimensions, type RateLimitRequest, rateLimitShape } from "./rate-limit-request.ts";

/**
 * POST /v1/rate-limit: the vocabulary of a token bucket. The limit of a scope and a resource is the policy
 * `scope:resource`; if there is none, policies are matched as usual. A hierarchy is decided all or nothing; the default
 * policy decides its levels that have no policy.
 */
export function rateLimit(request: HttpRequest, context: HttpContext): HttpResponse | Promise<HttpResponse> {
  const asked = parseShape(rateLimitShape, request.body, "invalid_request", "the body");
  const limit = `${asked.scope ?? "user"}:${asked.resource}`;
  const id = headerId(request, context);
  if (asked.limit_hierarchy !== undefined)
    return whenDecided(decideLevels(asked, id, context), (levels) => {
      const decision = speakingLevel(levels).decision;
      return answer(decision, rateLimitBody(decision, limit, Date.now(), levels), context);
    });
  const decided = context.decide.one({
    dimensions: asked.dimensions,
    cost: asked.tokens ?? 1,
    preview: asked.consume === false,
    policies: isPolicy(limit, context) ? [limit] : undefined,
    ...id,
  });
  return whenDecided(decided, (decision) => answer(decision, rateLimitBody(decision, limit, Date.now()), context));
}

function answer(decision: Decision, body: unknown, { random }: HttpContext): HttpResponse {
  return { status: decisionStatus(decision), headers: renderHeaders(decision, { random }), body };
}

/** The policies of all levels as one request, and one request for each level that only the default policy decides. */
function decideLevels(
  asked: RateLimitRequest,
  id: Pick<CheckRequest, "id" | "idTtlMs">,
  context: HttpContext,
): readonly LevelDecisions[] | Promise<readonly LevelDecisions[]> {
  const levels = new Map(asked.limit_hierarchy!.map((level) => [level.join(":"), level]));
  const configured = [...levels.keys()].filter((name) => isPolicy(name, context));
  const others = [...levels].filter(([name]) => !isPolicy(name, context));
  const fallback = context.limiter.snapshot.policySet.fallback?.id;
  if (others.length > 0 && fallback === undefined) throw unknownLevels(asked, context);
  const all = { preview: asked.consume === false, ...id };
  const each = { cost: asked.tokens ?? 1, details: true };
  const named: CheckRequest = { ...each, dimensions: asked.dimensions, policies: configured };
  if (others.length === 0)
    return whenDecided(context.decide.one({ ...named, ...all }), (decision) => [{ names: configured, decision }]);
  const defaults = others.map(
    ([, level]): CheckRequest => ({ ...each, dimensions: levelDimensions(asked, level), policies: [fallback!] }),
  );
  const names = others.map(([name]) => [name]);
  return whenDecided(
    context.decide.together(configured.length === 0 ? defaults : [named, ...defaults], all),
    (decisions) =>
      decisions.map((decision, i) => ({
        names: (configured.length === 0 ? names : [configured, ...names])[i]!,
        decision,
      })),
  );
}

/** Reports the levels without a policy, by the names that the caller used. */
function unknownLevels({ limit_hierarchy = [] }: RateLimitRequest, context: HttpContext): SluiceError {
  const problems = limit_hierarchy.flatMap((pair, level): Problem[] => {
    const id = pair.join(":");
    return isPolicy(id, context)
      ? []
      : [{ path: ["limit_hierarchy", level], message: `there is no policy ${id} in force` }];
  });
  const missing = problems.map(({ message }) => message).join("; ");
  const message = `${missing}, and no default policy. See GET /v1/policies`;
  return new SluiceError("policy_not_found", message, problems);
}

/** When the policy with an id starts to apply, in epoch milliseconds. */
const startCache = new WeakMap<PolicySet, ReadonlyMap<string, number>>();

function isPolicy(id: string, { limiter }: HttpContext): boolean {
  const { policySet } = limiter.snapshot;
  let starts = startCache.get(policySet);
  if (starts === undefined) {
    const known = new Map<string, number>();
    for (const policy of policySet.policies)
      known.set(policy.id, Math.min(policy.validFromMs ?? 0, known.get(policy.id) ?? Number.POSITIVE_INFINITY));
    starts = known;
    startCache.set(policySet, starts);
  }
  const fromMs = starts.get(id);
  return fromMs !== undefined && fromMs <= Date.now();
}
