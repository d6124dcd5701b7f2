import type { CheckRequest } from "sluice";
import { refuseDimensions, refuseDomain } from "./check-message.ts";

/** A policy by its id, or those of a domain, and whom they are asked about. */
export function readPolicyKey(request: {
  readonly policyId: string;
  readonly domain: string;
  readonly dimensions: Readonly<Record<string, string>>;
}): Pick<CheckRequest, "policies" | "domain" | "dimensions"> {
  const { policyId, domain, dimensions } = request;
  refuseDimensions(dimensions);
  refuseDomain(domain);
  return {
    policies: policyId === "" ? undefined : [policyId],
    domain: domain === "" ? undefined : domain,
    dimensions,
  };
}
