import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";
import { statusBody } from "../status-body.ts";

/** GET /v1/status: how this server stands, for who runs it. */
export function status(_request: HttpRequest, context: HttpContext): HttpResponse {
  return { status: 200, body: statusBody(context.status()) };
}
