import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";
import { statusBody } from "../status-body.ts";

/** GET /v1/status: the state of this server, for operators. */
export function status(_request: HttpRequest, context: HttpContext): HttpResponse {
  return { status: 200, body: statusBody(context.status()) };
}
