import type { KillSwitchRecord, StoreView, TokenRecord } from "@sluice/sql";
import { lintPolicies, type PolicySet, type Problem } from "sluice";
import { type ComposeOptions, composePolicySet, policyPath } from "../documents/compose-policy-set.ts";
import { digestRows, readStored, type StoredGeneration } from "../documents/stored-generation.ts";

/** One generation of everything stored, ready to decide by. */
export interface AssembledPolicies {
  readonly generation: number;
  readonly policySet: PolicySet;
  /** Whether a default policy is stored; otherwise the set has the built-in one. */
  readonly hasDefault: boolean;
  /** Present even after its end. */
  readonly killSwitch: KillSwitchRecord | undefined;
  readonly tokens: readonly TokenRecord[];
  /** A digest of policies, rollouts and subjects: SHA-256 in hexadecimal digits. */
  readonly digest: string;
  /**
   * Things that are legal, but may surprise. Found on first use, because that takes a while with ten thousand policies.
   */
  readonly warnings: readonly Problem[];
  /** Problems that cause something to be left out: it cannot be read, or refers to something that does not exist. */
  readonly problems: readonly Problem[];
}

/**
 * Reads everything from one view, and turns it into what nodes decide by. Overrides that have ended by `nowMs` are left
 * out, later ones end automatically. An `options.reader` that is kept from one generation to the next parses only
 * changes.
 */
export async function assembleStored(
  view: StoreView,
  nowMs: number,
  options: ComposeOptions = {},
): Promise<AssembledPolicies> {
  return assembleGeneration(await readStored(view), nowMs, options);
}

/** The same, from rows that were read before. */
export function assembleGeneration(
  { generation, killSwitch, rows, tokens }: StoredGeneration,
  nowMs: number,
  options: ComposeOptions = {},
): AssembledPolicies {
  const { policySet, hasDefault, problems } = composePolicySet(rows, nowMs, options);
  let warnings: readonly Problem[] | undefined;
  return {
    generation,
    policySet,
    hasDefault,
    killSwitch,
    tokens,
    digest: digestRows(rows),
    get warnings(): readonly Problem[] {
      warnings ??= lintStored(policySet, hasDefault);
      return warnings;
    },
    problems,
  };
}

/** Warnings, with paths by id. */
export function lintStored(policySet: PolicySet, hasDefault: boolean): readonly Problem[] {
  return lintPolicies(policySet).flatMap(({ path: [list, index, ...rest], message }): readonly Problem[] => {
    if (list === "policies") {
      const policy = policySet.policies[index as number];
      return policy === undefined ? [] : [{ path: [...policyPath(policy.id), ...rest], message }];
    }
    if (list === "subjects") {
      const subject = policySet.subjects[index as number];
      return subject === undefined ? [] : [{ path: [list, subject.dimension, subject.value, ...rest], message }];
    }
    // The built-in default is not the operator's to fix.
    if (list === "default")
      return hasDefault ? [{ path: [list, ...(index === undefined ? [] : [index]), ...rest], message }] : [];
    return [{ path: [], message }];
  });
}
