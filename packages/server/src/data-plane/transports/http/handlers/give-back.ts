import { givenBack } from "@sluice/protocol/http";
import { described, objectOf, parseShape, type Shape, text } from "sluice";
import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";

export const giveBackShape: Shape<{ readonly receipt: string }> = objectOf({
  receipt: described(text({ max: 4096 }), "As a check answered it that asked for one."),
});

/** POST /v1/give-back: undoes what a check took. A receipt is good once, and not for ever. */
export async function giveBack(request: HttpRequest, { limiter }: HttpContext): Promise<HttpResponse> {
  const { receipt } = parseShape(giveBackShape, request.body, "invalid_request", "the body");
  return { status: 200, body: givenBack.render({ givenBack: await limiter.give(receipt) }) };
}
