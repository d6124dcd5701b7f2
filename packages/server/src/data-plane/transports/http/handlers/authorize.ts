import { type Decision, type Problem, renderHeaders, SluiceError } from "sluice";
import { whenDecided } from "../../../service/create-decide.ts";
import { isUnreadablePath } from "../../../service/is-unreadable-path.ts";
import { answerDecision } from "../answer-decision.ts";
import { readAuthorizeRequest } from "../authorize-request.ts";
import { errorResponse, renderError } from "../errors.ts";
import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";

/**
 * GET /v1/authorize: whether a gateway may let a request pass: 204, or why not. For gateways that pass on only a 403
 * (`deny=403`), every refusal is one. That includes a client's header or path that cannot be read: otherwise a client
 * could make the question fail, and a gateway that lets requests pass when it has no answer would let it pass.
 */
export function authorize(request: HttpRequest, context: HttpContext): HttpResponse | Promise<HttpResponse> {
  const asked = readAuthorizeRequest(request, context.authorizeDimensions);
  const { check, denyAs403, headerProblems, queryProblems } = asked;
  // What the client may have caused comes first: it is a refusal, whereas an error may let the request pass.
  if (headerProblems.length > 0) {
    const response = errorResponse(renderError(invalid("headers of the sub-request", headerProblems)));
    return denyAs403 ? deniedAs403(response) : response;
  }
  if (queryProblems.length > 0) throw invalid("parameters of the sub-request", queryProblems);
  const refuse = (response: HttpResponse): HttpResponse => (denyAs403 ? deniedAs403(response) : response);
  const refuseUnreadable = (error: unknown): HttpResponse => {
    if (!isUnreadablePath(error)) throw error;
    return refuse(errorResponse(renderError(error)));
  };
  try {
    const answer = whenDecided(context.decide.one(check), (decision) =>
      decision.allowed ? allowed(decision) : refuse(answerDecision(decision, context)),
    );
    return answer instanceof Promise ? answer.catch(refuseUnreadable) : answer;
  } catch (error) {
    return refuseUnreadable(error);
  }
}

function allowed(decision: Decision): HttpResponse {
  return { status: 204, headers: renderHeaders(decision), body: undefined };
}

function deniedAs403(response: HttpResponse): HttpResponse {
  return { ...response, status: 403, headers: { ...response.headers, "X-Sluice-Status": String(response.status) } };
}

function invalid(what: string, problems: readonly Problem[]): SluiceError {
  const listed = problems.map(({ path, message }) => `${path.join(".")} ${message}`).join("; ");
  return new SluiceError("invalid_request", `wrong ${what}: ${listed}`, problems);
}
