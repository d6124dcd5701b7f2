import { parseShape } from "sluice";
import { actorOf } from "../actor-of.ts";
import { resetShape } from "../check-body.ts";
import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";

/** POST /v1/reset: forgets the counters that a check like this would be counted in, and lifts their blocks. */
export async function reset(request: HttpRequest, context: HttpContext): Promise<HttpResponse> {
  await context.reset(parseShape(resetShape, request.body, "invalid_request", "the body"), actorOf(request));
  return { status: 204, body: undefined };
}
