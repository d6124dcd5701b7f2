import type { CheckRequest } from "sluice";
import { parseShape } from "sluice/shape";
import { chargeShape } from "../check-body.ts";
import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";

/** POST /v1/charge: takes unconditionally, after the fact; a cost below 0 is a credit, which needs a token. */
export async function charge(request: HttpRequest, context: HttpContext): Promise<HttpResponse> {
  const asked: CheckRequest = parseShape(chargeShape, request.body, "invalid_request", "the body");
  await context.charge(asked, request.caller);
  return { status: 204, body: undefined };
}
