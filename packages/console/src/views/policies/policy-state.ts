import type { PolicyBody } from "@sluice/protocol/admin";
import type { Tone } from "../../ui/badge.tsx";
import type { PolicyState } from "./policies-search.ts";

/** What holds for a policy now. Several may; the first one says most. */
export function findStates(policy: PolicyBody): readonly Exclude<PolicyState, "any">[] {
  const states: Exclude<PolicyState, "any">[] = [];
  if (policy.disabled !== undefined) states.push("disabled");
  if (policy.overridden_by !== undefined) states.push("file");
  if (policy.rollout !== undefined) states.push("rollout");
  if (policy.document.mode === "shadow") states.push("shadow");
  return states.length === 0 ? ["live"] : states;
}

export const stateLabels: Readonly<
  Record<Exclude<PolicyState, "any">, { readonly label: string; readonly tone: Tone; readonly about: string }>
> = {
  live: { label: "Live", tone: "good", about: "It is enforced for every request that matches." },
  shadow: { label: "Shadow", tone: "accent", about: "It decides and reports, and denies nothing." },
  rollout: { label: "Rolling out", tone: "accent", about: "A new version applies to a share of subjects." },
  file: { label: "Replaced by a file", tone: "warning", about: "A policy file has the same id, and files win." },
  disabled: { label: "Disabled", tone: "warning", about: "An operator switched it off for a while." },
};
