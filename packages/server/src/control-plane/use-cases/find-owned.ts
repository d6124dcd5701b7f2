import type { OwnedPolicies } from "@sluice/sql";
import type { Caller } from "../../data-plane/access/access.ts";
import type { ControlContext } from "./control-context.ts";

/**
 * The policies whose usage and denials a caller may see; undefined for all. An editor sees those of its team: who uses another
 * team's policies, and how much, is that team's business.
 */
export function findOwned({ role, team = "" }: Caller, context: ControlContext): OwnedPolicies | undefined {
  if (role !== "editor") return undefined;
  const inFiles = context.files()?.policies ?? [];
  const also = inFiles.filter(({ owner }) => owner === team && team !== "").map(({ id }) => id);
  const others = context.precedence === "files" ? inFiles.filter(({ owner }) => owner !== team) : [];
  return { owner: team, also, except: others.map(({ id }) => id) };
}

/** Whether a stored policy is one of those. */
export function isOwned(
  { id, owner }: { readonly id: string; readonly owner?: string | undefined },
  owned: OwnedPolicies | undefined,
): boolean {
  if (owned === undefined || owned.also.includes(id)) return true;
  return owner === owned.owner && !owned.except.includes(id);
}
