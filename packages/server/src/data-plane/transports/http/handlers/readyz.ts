import { ready as readyShape } from "@sluice/protocol/http";
import { renderPolicyProblem } from "../../../../observe/telemetry/render-policy-problem.ts";
import { bearerTokenOf } from "../../../access/bearer-token.ts";
import { countPolicies } from "../../../policy-files/count-policies.ts";
import type { Service } from "../../../service/service.ts";
import { isReady, readinessOf } from "../../../status/readiness.ts";
import type { HttpRequest, HttpResponse } from "../exchange.ts";

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
    body: readyShape.render({
      status: ready || readiness.state === "stopping" ? readiness.state : "unready",
      code: ready ? undefined : "not_ready",
      degraded: readiness.degraded.length > 0 ? readiness.degraded : undefined,
      detail: inFull ? readiness.detail : undefined,
      config: state,
      generation,
      policies: countPolicies(policySet),
      problemCount: problems.length > 0 ? problems.length : undefined,
      problems: inFull && problems.length > 0 ? problems.slice(0, maxProblems).map(renderPolicyProblem) : undefined,
      counters: counters && {
        shards: counters.shards,
        leases: counters.leases,
        away: inFull ? counters.away : undefined,
      },
    }),
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
