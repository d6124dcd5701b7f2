import { policySet as policySetShape } from "@sluice/protocol/http";
import type { PolicySet } from "sluice";
import type { Handler } from "../exchange.ts";
import { policySetBody } from "../policy-body.ts";

/**
 * GET /v1/policies: the policies in force, and their generation. There may be thousands: they are rendered once per
 * generation.
 */
export function createListPolicies(): Handler {
  let rendered: { readonly policySet: PolicySet; readonly generation: number; readonly text: string } | undefined;
  return (_request, { limiter }) => {
    const { generation, policySet } = limiter.snapshot;
    if (rendered?.policySet !== policySet || rendered.generation !== generation)
      rendered = {
        policySet,
        generation,
        text: JSON.stringify(policySetShape.render({ generation, ...policySetBody(policySet) })),
      };
    return { status: 200, body: rendered.text };
  };
}
