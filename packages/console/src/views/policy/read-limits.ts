import type { JsonObject } from "@sluice/protocol/admin";
import { type Limit, parsePolicies } from "sluice";

export interface PolicyLimits {
  readonly limits: readonly Limit[];
  readonly warnAt: number;
}

/** The limits of a stored policy with every default filled in. None if it has keys that this console does not know. */
export function readLimits(document: JsonObject): PolicyLimits {
  try {
    const [policy] = parsePolicies({ policies: [document] }).policies;
    return { limits: policy?.limits ?? [], warnAt: policy?.warnAt ?? 0.8 };
  } catch {
    return { limits: [], warnAt: 0.8 };
  }
}
