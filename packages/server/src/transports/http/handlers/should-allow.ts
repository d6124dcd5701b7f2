import { type Decision, maxDimensionLength, objectOf, parseShape, renderHeaders, type Shape, text } from "sluice";
import { whenDecided } from "../../../decide.ts";
import { statusOf } from "../answer-decision.ts";
import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";

interface ShouldAllowRequest {
  readonly scope: string;
  readonly scope_value: string;
  readonly api: string;
}

export const shouldAllowShape: Shape<ShouldAllowRequest> = objectOf({
  scope: text({ max: 128 }),
  scope_value: text({ max: maxDimensionLength }),
  api: text({ max: maxDimensionLength }),
});

/** POST /shouldAllow: may this user, address, organisation or key call this API? */
export function shouldAllow(request: HttpRequest, context: HttpContext): HttpResponse | Promise<HttpResponse> {
  const { scope, scope_value, api } = parseShape(shouldAllowShape, request.body, "invalid_request", "the body");
  return whenDecided(context.decide({ dimensions: { [scope]: scope_value, endpoint: api } }), (decision) => ({
    status: statusOf(decision),
    headers: renderHeaders(decision, { random: context.random }),
    body: shouldAllowBody(decision),
  }));
}

/** Where nothing limits the request there is neither a remainder nor a reset. */
function shouldAllowBody({ allowed, remaining, resetAtMs }: Decision): unknown {
  return {
    allowed,
    remaining: remaining ?? null,
    reset_time: resetAtMs === undefined || !Number.isFinite(resetAtMs) ? null : Math.ceil(resetAtMs / 1000),
  };
}
