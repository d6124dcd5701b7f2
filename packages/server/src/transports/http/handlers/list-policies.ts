import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";
import { policySetBody } from "../policy-body.ts";

/** GET /v1/policies: what is in force, at which generation. */
export function listPolicies(_request: HttpRequest, { limiter }: HttpContext): HttpResponse {
  const { generation, policySet } = limiter.snapshot;
  return { status: 200, body: { generation, ...policySetBody(policySet) } };
}
