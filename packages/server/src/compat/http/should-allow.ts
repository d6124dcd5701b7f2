import { type Decision, renderHeaders } from "sluice";
import { canonicalValue, maxDimensionLength } from "sluice/internal";
import { described, objectOf, parseShape, refine, type Shape, text } from "sluice/shape";
import { whenDecided } from "../../data-plane/service/create-decide.ts";
import { findIpProblem } from "../../data-plane/service/find-ip-problem.ts";
import { decisionStatus } from "../../data-plane/transports/http/answer-decision.ts";
import type { HttpContext, HttpRequest, HttpResponse } from "../../data-plane/transports/http/exchange.ts";
import { headerId } from "../../data-plane/transports/idempotency-key.ts";

interface ShouldAllowRequest {
  readonly scope: string;
  readonly scope_value: string;
  readonly api: string;
  readonly method?: string;
}

/** Dimensions that describe the request, and not its sender: the first two have separate fields here. */
const notScopes: ReadonlySet<string> = new Set([
  "endpoint",
  "api",
  "method",
  "tier",
  "scope",
  "resource",
  "prefix",
  "subject",
  "__proto__",
]);

const scopeShape = refine(text({ max: 128 }), (scope, reading) =>
  notScopes.has(scope)
    ? reading.problem(`must be who is limited, such as user, ip, org or api_key, but is ${JSON.stringify(scope)}`)
    : scope,
);

export const shouldAllowShape: Shape<ShouldAllowRequest> = refine(
  objectOf(
    {
      scope: described(scopeShape, "Who is limited: user, ip, org, api_key, or a custom dimension."),
      scope_value: text({ max: maxDimensionLength }),
      api: described(text({ max: maxDimensionLength }), "The endpoint."),
    },
    { method: described(text({ max: 32 }), "The HTTP method, for policies that match by method.") },
  ),
  (asked, reading) => {
    const problem = asked.scope === "ip" ? findIpProblem(asked.scope_value) : undefined;
    return problem === undefined ? asked : reading.problem(problem, "scope_value");
  },
);

/** POST /shouldAllow: may this user, address, organisation or key call this API? */
export function shouldAllow(request: HttpRequest, context: HttpContext): HttpResponse | Promise<HttpResponse> {
  const { scope, scope_value, api, method } = parseShape(shouldAllowShape, request.body, "invalid_request", "the body");
  // The default policy counts each API separately, in any spelling of its path.
  const named = { endpoint: api, api: canonicalValue("endpoint", api) };
  const dimensions = { [scope]: scope_value, ...named, ...(method !== undefined && { method }) };
  return whenDecided(context.decide.one({ dimensions, ...headerId(request, context) }), (decision) => ({
    status: decisionStatus(decision),
    headers: renderHeaders(decision, { random: context.random }),
    body: shouldAllowBody(decision),
  }));
}

/** Without a limit, there is neither a remainder nor a reset. */
function shouldAllowBody({ allowed, remaining, resetAtMs }: Decision): unknown {
  return {
    allowed,
    remaining: remaining ?? null,
    reset_time: resetAtMs === undefined || !Number.isFinite(resetAtMs) ? null : Math.ceil(resetAtMs / 1000),
  };
}
