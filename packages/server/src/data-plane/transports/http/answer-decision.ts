import { type Decision, renderHeaders, renderProblemBody } from "sluice";
import { problemType } from "./errors.ts";
import type { HttpContext, HttpResponse } from "./exchange.ts";
import { renderDecisionText } from "./render-decision-text.ts";

/** 200 for an allowance; for a denial 429, or 503 if the counters are unavailable, with an RFC 9457 body. */
export function answerDecision(decision: Decision, context: Pick<HttpContext, "random">): HttpResponse {
  const headers = renderHeaders(decision, { random: context.random });
  if (decision.allowed) return { status: 200, headers, body: renderDecisionText(decision) };
  return {
    status: decisionStatus(decision),
    headers: { ...headers, "content-type": problemType },
    body: renderDenialText(decision),
  };
}

/** An RFC 9457 problem, with the decision's fields added. */
function renderDenialText(decision: Decision): string {
  const { type, title, status, detail, "violated-policies": violated } = renderProblemBody(decision);
  const problem = JSON.stringify({ type, title, status, detail, "violated-policies": violated });
  return `${problem.slice(0, -1)},${renderDecisionText(decision).slice(1)}`;
}

/** The status of a decision, for facades with other bodies. */
export function decisionStatus(decision: Decision): number {
  if (decision.allowed) return 200;
  return decision.reason === "degraded" ? 503 : 429;
}
