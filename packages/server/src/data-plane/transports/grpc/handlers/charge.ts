import type { ChargeRequest, ChargeResponse } from "@sluice/protocol";
import { refuseDimensions, refuseDomain } from "../check-message.ts";
import type { CallInfo, GrpcContext } from "../method.ts";

export async function charge(
  request: ChargeRequest,
  context: GrpcContext,
  { caller }: CallInfo,
): Promise<ChargeResponse> {
  const { domain, dimensions, cost, policies } = request;
  refuseDimensions(dimensions);
  refuseDomain(domain);
  const asked = {
    domain: domain === "" ? undefined : domain,
    dimensions,
    cost,
    policies: policies.length === 0 ? undefined : policies,
  };
  await context.charge(asked, caller);
  return {};
}
