import { type CheckRequest, type Decision, parseShape } from "sluice";
import { whenDecided } from "../../../decide.ts";
import { answerDecision, statusOf } from "../answer-decision.ts";
import { batchShape, checkShape, isBatch } from "../check-body.ts";
import { type DecisionBody, decisionBody } from "../decision-body.ts";
import { type ErrorBody, maxListedProblems, renderError } from "../errors.ts";
import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";
import { refuseLargeSingle } from "../json-body.ts";

/** POST /v1/check: one check, or a batch. */
export function check(request: HttpRequest, context: HttpContext): HttpResponse | Promise<HttpResponse> {
  if (isBatch(request.body)) return checkBatch(request, context);
  refuseLargeSingle(request.bodyBytes);
  const asked = parseShape(checkShape, request.body, "invalid_request", "the body");
  return whenDecided(context.decide(withHeaderId(asked, request, context)), (decision) =>
    answerDecision(decision, context),
  );
}

/** How long an id from the header is remembered; one in the body, ten minutes. */
const headerIdTtlMs = 5 * 60 * 1000;

/** Ids come from callers. What a gateway passes through from its own callers counts only where that is configured. */
function withHeaderId(asked: CheckRequest, request: HttpRequest, context: HttpContext): CheckRequest {
  if (!context.idempotencyHeader || asked.id !== undefined) return asked;
  const id = request.headers["x-idempotency-key"];
  return typeof id === "string" && id !== "" ? { ...asked, id, idTtlMs: headerIdTtlMs } : asked;
}

/** One answer per check of a batch, in order. */
type BatchAnswer =
  | { readonly status: number; readonly decision: DecisionBody }
  | { readonly status: number; readonly error: ErrorBody };

/** Most problems that the errors of one batch list together. */
const maxBatchProblems = 200;

async function checkBatch(request: HttpRequest, context: HttpContext): Promise<HttpResponse> {
  const { checks } = parseShape(batchShape, request.body, "invalid_request", "the body");
  let problemsLeft = maxBatchProblems;

  function refuse(error: unknown): BatchAnswer {
    const refusal = renderError(error, Math.min(maxListedProblems, problemsLeft));
    problemsLeft = Math.max(0, problemsLeft - (refusal.problems?.length ?? 0));
    if (refusal.status >= 500) context.log.error({ err: error, route: "/v1/check" }, "a check of a batch failed");
    return { status: refusal.status, error: refusal };
  }

  function answerOne(body: unknown): BatchAnswer | Promise<BatchAnswer> {
    try {
      const decided = context.decide(parseShape(checkShape, body, "invalid_request", "the check"));
      return decided instanceof Promise ? decided.then(answer, refuse) : answer(decided);
    } catch (error) {
      return refuse(error);
    }
  }

  return { status: 200, body: { answers: await Promise.all(checks.map(answerOne)) } };
}

function answer(decision: Decision): BatchAnswer {
  return { status: statusOf(decision), decision: decisionBody(decision) };
}
