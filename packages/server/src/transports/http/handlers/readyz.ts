import type { CountersStatus } from "../../../counters/running-counters.ts";
import { renderPolicyProblem } from "../../../render-policy-problem.ts";
import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";

const maxProblems = 10;

/**
 * GET /readyz: whether requests should be sent here. A policy file that was refused does not make a server unready: it
 * goes on with the last good policies, and says so. Counters that cannot be reached do: others may reach them.
 */
export function readyz(_request: HttpRequest, context: HttpContext): HttpResponse {
  const { state, problems } = context.policyStatus();
  const { generation, policySet } = context.limiter.snapshot;
  const counters = context.countersStatus?.();
  const status = !context.accepting() ? "stopping" : counters?.ready === false ? "unready" : "ready";
  return {
    status: status === "ready" ? 200 : 503,
    body: {
      status,
      ...(status === "stopping" && { code: "not_ready", detail: "the server is stopping; ask another one" }),
      ...(status === "unready" && { code: "not_ready", detail: detailOf(counters!) }),
      config: state,
      generation,
      policies: policySet.policies.length,
      ...(problems.length > 0 && {
        problem_count: problems.length,
        problems: problems.slice(0, maxProblems).map(renderPolicyProblem),
      }),
      ...(counters !== undefined && { counters: { shards: counters.shards, away: counters.away } }),
    },
  };
}

function detailOf({ shards, away }: CountersStatus): string {
  const which =
    shards === 0
      ? "no server that holds them is known yet"
      : away
          .map(({ shard, cell, why }) => `${shard}${cell === undefined ? "" : ` of cell ${cell}`}: ${why}`)
          .join("; ");
  return `the counters cannot be reached (${which}); checks that are sent all the same are answered by on_failure`;
}
