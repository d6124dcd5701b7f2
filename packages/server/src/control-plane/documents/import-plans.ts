import type { Problem } from "sluice";
import { findPlanLimit } from "sluice/internal";
import type { ReadPolicies } from "sluice/policy-text";
import { invalidPolicies } from "../control-errors.ts";
import type { PolicyDocument } from "../policy-control.ts";
import { readDocumentLimits, withPlan } from "./plan-documents.ts";

/** A file, as far as plans go: as it was read, and as it is written. */
export interface PlanPart {
  readonly read: Pick<ReadPolicies, "plans">;
  readonly written: { readonly plans?: unknown };
  readonly file: string | undefined;
}

type Documents = ReadonlyMap<string, PolicyDocument>;

/**
 * The documents of imported policies with the windows of imported plans, which the store keeps as tiers of limits.
 * Throws `invalid_policies` if a plan names a limit that the files do not have: what is only in the store is changed by
 * a change of the plan, which says which version was seen.
 */
export function withImportedPlans(parts: readonly PlanPart[], policies: Documents): Documents {
  const result = new Map(policies);
  const problems: Problem[] = [];
  for (const { read, written, file } of parts) {
    for (const { plan, policy, limit, path } of read.plans ?? []) {
      const note = (message: string): void =>
        void problems.push({ path, message, ...(file !== undefined && { place: { file, line: 1, column: 1 } }) });
      const document = result.get(policy);
      if (document === undefined) {
        note(`names policy ${policy}, which is not in these files; add it, or change the plan in the policy store`);
        continue;
      }
      const limits = readDocumentLimits(document);
      const found = findPlanLimit(
        policy,
        limits.map(({ name }) => name),
        limit,
      );
      if (typeof found !== "number") {
        note(`limit ${found.problem}`);
        continue;
      }
      if (limits[found]!.plans.has(plan)) {
        note(`policy ${policy} has windows for ${plan} already; write them in one place`);
        continue;
      }
      const kept = limits.flatMap(({ name, plans }) => (plans.has(plan) ? [[name, plans.get(plan)!] as const] : []));
      const windows = windowsAt(written.plans, path);
      result.set(policy, withPlan(document, plan, new Map([...kept, [limits[found]!.name, windows]])));
    }
  }
  if (problems.length > 0) throw invalidPolicies(problems);
  return result;
}

/** As they are written: `path` begins with `plans`. */
function windowsAt(plans: unknown, [, ...path]: Problem["path"]): readonly unknown[] {
  let at = plans;
  for (const step of [...path, "windows"]) at = (at as Readonly<Record<string | number, unknown>>)[step];
  return Array.isArray(at) ? at : [at];
}
