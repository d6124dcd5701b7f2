import { type CheckRequest, parseShape } from "sluice";
import { chargeShape } from "../check-body.ts";
import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";

/** POST /v1/charge: takes without asking, after the fact; a cost below 0 gives back. */
export async function charge(request: HttpRequest, { limiter }: HttpContext): Promise<HttpResponse> {
  const asked: CheckRequest = parseShape(chargeShape, request.body, "invalid_request", "the body");
  await limiter.charge(asked);
  return { status: 204, body: undefined };
}
