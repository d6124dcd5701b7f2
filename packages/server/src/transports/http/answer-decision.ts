import { type Decision, renderHeaders, renderProblemBody } from "sluice";
import { decisionBody } from "./decision-body.ts";
import { problemType } from "./errors.ts";
import type { HttpContext, HttpResponse } from "./exchange.ts";

/** 200 for an allowance; for a denial 429, or 503 where the counters are away, with a body of RFC 9457. */
export function answerDecision(decision: Decision, context: Pick<HttpContext, "random">): HttpResponse {
  const headers = renderHeaders(decision, { random: context.random });
  if (decision.allowed) return { status: 200, headers, body: decisionBody(decision) };
  const problem = renderProblemBody(decision);
  return {
    status: problem.status,
    headers: { ...headers, "content-type": problemType },
    body: { ...problem, ...decisionBody(decision) },
  };
}

/** The status of a decision for facades, which have bodies of their own. */
export function statusOf(decision: Decision): number {
  if (decision.allowed) return 200;
  return decision.reason === "degraded" ? 503 : 429;
}
