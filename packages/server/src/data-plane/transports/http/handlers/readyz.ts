import { ready as readyShape } from "@sluice/protocol/http";
import { renderPolicyProblem } from "sluice/internal";
import { findBearerToken } from "../../../access/bearer-token.ts";
import { countPolicies } from "../../../policy-files/count-policies.ts";
import type { Service } from "../../../service/service.ts";
import { decideReadiness, isReady } from "../../../status/readiness.ts";
import type { HttpRequest, HttpResponse } from "../exchange.ts";

const maxProblems = 10;

export const strictQuery = {
  strict: {
    type: "boolean",
    description:
      "Whether to answer 503 while a server that holds counters cannot be reached, too. `?strict` is enough.",
  },
} as const;

/**
 * GET /readyz: whether requests should be sent here. Neither a refused policy file nor unreachable counters make a
 * server unready: the last good policies and `on_failure` answer, and the body says so. With `?strict` unreachable
 * counters do. Details name files, policies and hosts, so only callers with the permission `read` see them.
 */
export function readyz(request: HttpRequest, context: Service): HttpResponse {
  const { state, problems } = context.policyStatus();
  const { generation, policySet } = context.limiter.snapshot;
  const counters = context.countersStatus();
  const readiness = decideReadiness({ accepting: context.accepting(), counters, store: context.storeStatus?.() });
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

/** `?strict` and `?strict=true`. Other parameters are ignored: a probe that adds one to avoid caches is harmless. */
function isStrict(url: string): boolean {
  const query = url.indexOf("?");
  const value = query < 0 ? null : new URLSearchParams(url.slice(query + 1)).get("strict");
  return value !== null && value !== "false" && value !== "0";
}

/** Load balancers have no token, and are answered all the same. */
function mayLook({ headers }: HttpRequest, { access }: Service): boolean {
  try {
    const { authorization } = headers;
    const token = findBearerToken({ authorization: typeof authorization === "string" ? authorization : undefined });
    return access.identify(token).may.has("read");
  } catch {
    return false;
  }
}
