import { explanation as explanationShape } from "@sluice/protocol/http";
import { renderExplanation } from "sluice";
import { parseShape } from "sluice/shape";
import { checkShape } from "../check-body.ts";
import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";

/** POST /v1/explain: how the answer to a check would come about. Takes nothing. `Accept: text/plain` returns prose. */
export async function explain(request: HttpRequest, { limiter }: HttpContext): Promise<HttpResponse> {
  const asked = parseShape(checkShape, request.body, "invalid_request", "the body");
  const explanation = await limiter.explain(asked);
  if (!wantsText(request.headers.accept)) return { status: 200, body: explanationShape.render(explanation) };
  return {
    status: 200,
    headers: { "content-type": "text/plain; charset=utf-8" },
    body: renderExplanation(explanation),
  };
}

function wantsText(accept: string | readonly string[] | undefined): boolean {
  return typeof accept === "string" && /\btext\/plain\b/i.test(accept) && !/\bapplication\/json\b/i.test(accept);
}
