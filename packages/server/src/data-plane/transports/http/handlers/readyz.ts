import { renderPolicyProblem } from "../../../../observe/telemetry/render-policy-problem.ts";
import { bearerTokenOf } from "../../../access/bearer-token.ts";
import { countPolicies } from "../../../policy-files/count-policies.ts";
import type { Service } from "../../../service/service.ts";
import { isReady, readinessOf } from "../../../status/readiness.ts";
import type { HttpRequest, HttpResponse } from "../exchange.ts";
import { leasesBody } from "../status-body.ts";

const maxProblems = 10;

export const strictQuery = {
  strict: {
    type: "boolean",
    description:
      "Whether to answer 503 also while a server that holds counters cannot be reached. `?strict` is enough.",
  },
} as const;

/**
 * GET /readyz: whether requests should be sent here. Neither a policy file that was refused nor counters that cannot be reached make a
 * server unready: the last good policies and `on_failure` answer, and the body says so. With `?strict` counters that cannot be
 * reached do. Details name files, policies and hosts, so only callers with the permission `read` see them.
 */
export function readyz(request: HttpRequest, context: Service): HttpResponse {
  const { state, problems } = context.policyStatus();
  const { generation, policySet } = context.limiter.snapshot;
  const counters = context.countersStatus();
  const readiness = readinessOf({ accepting: context.accepting(), counters, store: context.storeStatus?.() });
  const strict = isStrict(request.url);
  const ready = isReady(readiness, { strict });
  const inFull = mayLook(request, context);
  return {
    status: ready ? 200 : 503,
    body: {
      status: ready || readiness.state === "stopping" ? readiness.state : "unready",
      ...(!ready && { code: "not_ready" }),
      ...(readiness.degraded.length > 0 && { degraded: readiness.degraded }),
      ...(inFull && readiness.detail !== undefined && { detail: readiness.detail }),
      config: state,
      generation,
      policies: countPolicies(policySet),
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

/** `?strict` and `?strict=true`. Other parameters are ignored: a probe that adds one to avoid caches means no harm. */
function isStrict(url: string): boolean {
  const query = url.indexOf("?");
  const value = query < 0 ? null : new URLSearchParams(url.slice(query + 1)).get("strict");
  return value !== null && value !== "false" && value !== "0";
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
