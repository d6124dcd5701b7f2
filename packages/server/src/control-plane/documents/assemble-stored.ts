import { createHash } from "node:crypto";
import type { KillSwitchRecord, StoreView, TokenRecord } from "@sluice/sql";
import { lintPolicies, type PolicySet, type Problem } from "sluice";
import { type ComposeOptions, composePolicySet, placeOf } from "./compose-policy-set.ts";
import { readStoredRows, type StoredRows } from "./stored-rows.ts";

/** One generation of all that is stored, ready to be decided by. */
export interface AssembledPolicies {
  readonly generation: number;
  readonly policySet: PolicySet;
  /** Whether a default policy is stored; else the set has Sluice's own. */
  readonly hasDefault: boolean;
  /** Also when its end has passed. */
  readonly killSwitch: KillSwitchRecord | undefined;
  readonly tokens: readonly TokenRecord[];
  /** The same exactly where policies, rollouts and subjects are: SHA-256 in hexadecimal digits. */
  readonly digest: string;
  /** What is legal, but may surprise. Found when it is first asked for: among ten thousand policies that takes a while. */
  readonly warnings: readonly Problem[];
  /** What is left out, because it cannot be read or names what there is not. */
  readonly problems: readonly Problem[];
}

/** One generation as it is stored. */
export interface StoredGeneration {
  readonly generation: number;
  readonly killSwitch: KillSwitchRecord | undefined;
  readonly rows: StoredRows;
  readonly tokens: readonly TokenRecord[];
}

/** Reads the whole of one view. */
export async function readStored(view: StoreView): Promise<StoredGeneration> {
  const { generation, killSwitch } = await view.pulse();
  const rows = await readStoredRows(view);
  return { generation, killSwitch, rows, tokens: await view.tokens() };
}

/**
 * Reads the whole of one view, and makes of it what nodes decide by. Overrides that have ended by `nowMs` are left out, later
 * ones end by themselves. With `options.reader` kept from one generation to the next, only what changed is parsed.
 */
export async function assembleStored(
  view: StoreView,
  nowMs: number,
  options: ComposeOptions = {},
): Promise<AssembledPolicies> {
  return assembleGeneration(await readStored(view), nowMs, options);
}

/** The same of what was read before. */
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
    digest: digestOf(rows),
    get warnings(): readonly Problem[] {
      warnings ??= lintStored(policySet, hasDefault);
      return warnings;
    },
    problems,
  };
}

/** What may surprise, in paths by id. */
export function lintStored(policySet: PolicySet, hasDefault: boolean): readonly Problem[] {
  return lintPolicies(policySet).flatMap(({ path: [list, index, ...rest], message }): readonly Problem[] => {
    if (list === "policies") {
      const policy = policySet.policies[index as number];
      return policy === undefined ? [] : [{ path: [...placeOf(policy.id), ...rest], message }];
    }
    if (list === "subjects") {
      const subject = policySet.subjects[index as number];
      return subject === undefined ? [] : [{ path: [list, subject.dimension, subject.value, ...rest], message }];
    }
    // Nobody wrote Sluice's own default.
    if (list === "default")
      return hasDefault ? [{ path: [list, ...(index === undefined ? [] : [index]), ...rest], message }] : [];
    return [{ path: [], message }];
  });
}

/** Of what is decided by; who changed it, when and why does not count. */
export function digestOf({ policies, underway, subjects, subjectLimits }: StoredRows): string {
  const hash = createHash("sha256");
  for (const { id, version, document } of policies) hash.update(`policy\0${id}\0${version}\0${document}\0`);
  const trials = underway.map(({ rollout, version }) =>
    JSON.stringify([
      [
        rollout.id,
        rollout.policy,
        rollout.fromVersion,
        rollout.state,
        rollout.shadow,
        rollout.by,
        rollout.steps,
        rollout.step,
      ],
      version.version,
      version.document,
    ]),
  );
  for (const trial of trials.toSorted()) hash.update(`trial\0${trial}\0`);
  for (const { dimension, value, tier = "" } of subjects) hash.update(`subject\0${dimension}\0${value}\0${tier}\0`);
  for (const { dimension, value, policy, limit, windows, untilMs = "" } of subjectLimits)
    hash.update(`limit\0${dimension}\0${value}\0${policy}\0${limit}\0${windows}\0${untilMs}\0`);
  return hash.digest("hex");
}
