import { renderPolicyProblem } from "../../../render-policy-problem.ts";
import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";

const maxProblems = 10;

/**
 * GET /readyz: whether requests should be sent here. A policy file that was refused does not make a server unready: it
 * goes on with the last good policies, and says so.
 */
export function readyz(_request: HttpRequest, context: HttpContext): HttpResponse {
  const { state, problems } = context.policyStatus();
  const { generation, policySet } = context.limiter.snapshot;
  const ready = context.accepting();
  return {
    status: ready ? 200 : 503,
    body: {
      status: ready ? "ready" : "stopping",
      ...(ready ? {} : { code: "not_ready", detail: "the server is stopping; ask another one" }),
      config: state,
      generation,
      policies: policySet.policies.length,
      ...(problems.length > 0 && {
        problem_count: problems.length,
        problems: problems.slice(0, maxProblems).map(renderPolicyProblem),
      }),
    },
  };
}
