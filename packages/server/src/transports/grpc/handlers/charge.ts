import type { ChargeRequest, ChargeResponse } from "@sluice/protocol";
import { refuseDimensions, refuseDomain } from "../check-message.ts";
import type { GrpcContext } from "../method.ts";

export async function charge(request: ChargeRequest, context: GrpcContext): Promise<ChargeResponse> {
  const { domain, dimensions, cost, policies } = request;
  refuseDimensions(dimensions);
  refuseDomain(domain);
  await context.limiter.charge({
    domain: domain === "" ? undefined : domain,
    dimensions,
    cost,
    policies: policies.length === 0 ? undefined : policies,
  });
  return {};
}
