import { reset as resetBody } from "@sluice/protocol/http";
import { parseShape } from "sluice/shape";
import { resetShape } from "../check-body.ts";
import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";
import { requestActor } from "../request-actor.ts";

/** POST /v1/reset: forgets the counters that a check like this would be counted in, and lifts their blocks. */
export async function reset(request: HttpRequest, context: HttpContext): Promise<HttpResponse> {
  const check = parseShape(resetShape, request.body, "invalid_request", "the body");
  return { status: 200, body: resetBody.render({ counters: await context.reset(check, requestActor(request)) }) };
}
