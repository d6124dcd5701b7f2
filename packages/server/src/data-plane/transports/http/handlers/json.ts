import { RateLimitResponse_Code } from "@sluice/protocol/envoy";
import { parseShape } from "sluice/shape";
import { whenDecided } from "../../../service/create-decide.ts";
import { rateLimitRequestShape, rateLimitResponseJson } from "../../envoy/rate-limit-json.ts";
import { shouldRateLimit } from "../../envoy/should-rate-limit.ts";
import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";

/** POST /json: Envoy's question and answer, as JSON. */
export function json(request: HttpRequest, context: HttpContext): HttpResponse | Promise<HttpResponse> {
  const asked = parseShape(rateLimitRequestShape, request.body, "invalid_request", "the body");
  return whenDecided(
    shouldRateLimit(asked, context, { caller: request.caller, headers: context.envoyHeaders }),
    (response) => ({
      status: response.overallCode === RateLimitResponse_Code.OVER_LIMIT ? 429 : 200,
      body: rateLimitResponseJson(response),
    }),
  );
}
