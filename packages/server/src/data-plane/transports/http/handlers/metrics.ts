import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";

/** GET /metrics, for Prometheus. */
export async function metrics(_request: HttpRequest, context: HttpContext): Promise<HttpResponse> {
  return {
    status: 200,
    headers: { "content-type": context.metrics.contentType },
    body: await context.metrics.render(),
  };
}
