import { bearerTokenOf } from "../../../access/bearer-token.ts";
import { renderPolicyProblem } from "../../../policies/render-policy-problem.ts";
import type { Service } from "../../../service/service.ts";
import { isReady, readinessOf } from "../../../status/readiness.ts";
import type { HttpRequest, HttpResponse } from "../exchange.ts";
import { leasesBody } from "../status-body.ts";

const maxProblems = 10;

/**
 * GET /readyz: whether requests should be sent here. A policy file that was refused does not make a server unready: it
 * goes on with the last good policies, and says so. Counters that cannot be reached do: others may reach them. What exactly is
 * wrong names files, policies and hosts, so it is for those who may look.
 */
export function readyz(request: HttpRequest, context: Service): HttpResponse {
  const { state, problems } = context.policyStatus();
  const { generation, policySet } = context.limiter.snapshot;
  const counters = context.countersStatus();
  const readiness = readinessOf({ accepting: context.accepting(), counters, store: context.storeStatus?.() });
  const ready = isReady(readiness);
  const inFull = mayLook(request, context);
  return {
    status: ready ? 200 : 503,
    body: {
      status: readiness.state,
      ...(!ready && { code: "not_ready" }),
      ...(inFull && readiness.detail !== undefined && { detail: readiness.detail }),
      config: state,
      generation,
      policies: policySet.policies.length,
      ...(problems.length > 0 && {
        problem_count: problems.length,
        ...(inFull && { problems: problems.slice(0, maxProblems).map(renderPolicyProblem) }),
      }),
      ...(counters !== undefined && {
        counters: {
          shards: counters.shards,
          ...(counters.leases !== undefined && { leases: leasesBody(counters.leases) }),
          ...(inFull && { away: counters.away }),
        },
      }),
    },
  };
}

/** Load balancers have no token, and are answered all the same. */
function mayLook({ headers }: HttpRequest, { access }: Service): boolean {
  try {
    const { authorization } = headers;
    const token = bearerTokenOf({ authorization: typeof authorization === "string" ? authorization : undefined });
    return access.identify(token).may.has("read");
  } catch {
    return false;
  }
}
