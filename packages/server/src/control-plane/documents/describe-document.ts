import { type Policy, parsePolicies, SluiceError } from "sluice";
import { describePolicy } from "sluice/internal";
import type { PolicyDocument } from "../policy-control.ts";

/** A document as a policy. Undefined if it cannot be read alone, such as one that another version wrote. */
export function policyFromDocument(document: PolicyDocument): Policy | undefined {
  try {
    return parsePolicies({ policies: [document], default: "none" }).policies[0];
  } catch (error) {
    if (error instanceof SluiceError) return undefined;
    throw error;
  }
}

/** What the policy of a document does, in sentences. Undefined if it cannot be read. */
export function describeDocument(document: PolicyDocument): readonly string[] | undefined {
  const policy = policyFromDocument(document);
  return policy && describePolicy(policy);
}
