import type { CheckRequest, Decision } from "sluice";
import { parseShape } from "sluice/shape";
import { whenDecided } from "../../../service/create-decide.ts";
import { maxErrorFields } from "../../../service/describe-error.ts";
import { headerId } from "../../idempotency-key.ts";
import { answerDecision, decisionStatus } from "../answer-decision.ts";
import { batchShape, checkShape, isBatch } from "../check-body.ts";
import { renderError } from "../errors.ts";
import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";
import { refuseLargeSingle } from "../json-body.ts";
import { renderDecisionText } from "../render-decision-text.ts";

/** POST /v1/check: one check, or a batch. */
export function check(request: HttpRequest, context: HttpContext): HttpResponse | Promise<HttpResponse> {
  if (isBatch(request.body)) return checkBatch(request, context);
  refuseLargeSingle(request.bodyBytes);
  const asked = parseShape(checkShape, request.body, "invalid_request", "the body");
  return whenDecided(context.decide.one(withHeaderId(asked, request, context)), (decision) =>
    answerDecision(decision, context),
  );
}

/** An id in the body takes precedence. */
function withHeaderId(asked: CheckRequest, request: HttpRequest, context: HttpContext): CheckRequest {
  return !context.idempotencyHeader || asked.id !== undefined ? asked : { ...asked, ...headerId(request, context) };
}

/** The most problems that the errors of one batch list together. */
const maxBatchProblems = 200;

/** Answers are written as they come, not kept as objects until the last one is there. */
function checkBatch(request: HttpRequest, context: HttpContext): HttpResponse | Promise<HttpResponse> {
  const { checks } = parseShape(batchShape, request.body, "invalid_request", "the body");
  let problemsLeft = maxBatchProblems;

  function refuse(error: unknown): string {
    const refusal = renderError(error, Math.min(maxErrorFields, problemsLeft));
    problemsLeft = Math.max(0, problemsLeft - (refusal.problems?.length ?? 0));
    // The others were foreseen, and are counted.
    if (refusal.code === "internal") context.log.error("check.failed_in_batch", { err: error, route: "/v1/check" });
    return JSON.stringify({ status: refusal.status, error: refusal });
  }

  function answerOne(body: unknown): string | Promise<string> {
    try {
      const decided = context.decide.one(parseShape(checkShape, body, "invalid_request", "the check"));
      return decided instanceof Promise ? decided.then(answer, refuse) : answer(decided);
    } catch (error) {
      return refuse(error);
    }
  }

  const answers = checks.map(answerOne);
  return answers.every((one) => typeof one === "string")
    ? renderBatch(answers)
    : Promise.all(answers).then(renderBatch);
}

function renderBatch(answers: readonly string[]): HttpResponse {
  return { status: 200, body: `{"answers":[${answers.join(",")}]}` };
}

function answer(decision: Decision): string {
  return `{"status":${decisionStatus(decision)},"decision":${renderDecisionText(decision)}}`;
}
