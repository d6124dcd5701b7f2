import { givenBack } from "@sluice/protocol/http";
import { described, objectOf, parseShape, type Shape, text } from "sluice/shape";
import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";

export const giveBackShape: Shape<{ readonly receipt: string }> = objectOf({
  receipt: described(text({ max: 4096 }), "The receipt from the answer to a check that asked for one."),
});

/** POST /v1/give-back: undoes what a check took. A receipt is valid once, and for a limited time. */
export async function giveBack(request: HttpRequest, { limiter }: HttpContext): Promise<HttpResponse> {
  const { receipt } = parseShape(giveBackShape, request.body, "invalid_request", "the body");
  return { status: 200, body: givenBack.render({ givenBack: await limiter.give(receipt) }) };
}
