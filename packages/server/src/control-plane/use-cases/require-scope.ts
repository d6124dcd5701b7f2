import type { PolicyRecord } from "@sluice/sql";
import { type Policy, type PolicySet, type Problem, renderProblem, SluiceError } from "sluice";
import type { Caller } from "../../data-plane/access/access.ts";
import { byIdDomain } from "../documents/by-id-domain.ts";
import { defaultPolicyId, readStoredPolicy } from "../documents/read-documents.ts";
import { findTeam } from "./require-owner.ts";

/** A policy change to be checked before it is written. */
export interface ScopeQuestion {
  readonly id: string;
  /** Undefined: the policy is to be deleted. */
  readonly policy: Policy | "none" | undefined;
  /** The policy stored under the id now. */
  readonly current: PolicyRecord | undefined;
  /** All policies in force, which show whether a domain belongs to one team or is shared. */
  readonly inForce: PolicySet;
}

/**
 * Throws `permission_denied` if an editor's change would reach beyond the team's requests: only admins write, change
 * and delete policies for every request, and the default policy. A policy in force replaces the default policy for
 * everything that it matches, so one without a match would decide about every other team's requests.
 */
export function requireScope(caller: Caller, { id, policy, current, inForce }: ScopeQuestion): void {
  const team = findTeam(caller);
  if (team === undefined) return;
  if (id === defaultPolicyId)
    throw refused({
      path: [],
      message: "is the default policy, which is for every request; ask an admin to change it",
    });
  const before = current === undefined ? undefined : readStoredPolicy(id, current.document).policy;
  if (isPolicy(before) && findUnscoped(before, team, inForce) !== undefined)
    throw refused({
      path: ["match"],
      message: `of policy ${id} reaches beyond team ${team}, so only an admin can change or delete it; ask one to narrow it first`,
    });
  const problem = isPolicy(policy) ? findUnscoped(policy, team, inForce) : undefined;
  if (problem !== undefined) throw refused(problem);
}

function isPolicy(policy: Policy | "none" | undefined): policy is Policy {
  return policy !== undefined && policy !== "none";
}

function refused(problem: Problem): SluiceError {
  return new SluiceError("permission_denied", renderProblem(problem), [problem]);
}

/**
 * Dimensions whose values belong to no team: addresses come in ranges, up to all of them, and every subject has a tier.
 */
const sharedDimensions: ReadonlySet<string> = new Set(["ip", "tier"]);

const whatToDo =
  "name a path with a fixed segment (endpoint: /v1/orders/**), values of a dimension other than ip and tier (tenant: acme), or a domain that no other team uses; only an admin can write a policy for every request";

/**
 * The problem with the match of a team's policy; undefined if it is scoped: it names a path with a literal segment, or
 * values of a dimension, none of them `*`, or a domain other than `default` in which no other team has a policy.
 */
function findUnscoped({ id, match }: Policy, team: string, { policies }: PolicySet): Problem | undefined {
  if (match.endpoint !== undefined && hasLiteralSegment(match.endpoint)) return undefined;
  const named = Object.entries(match.dimensions).some(
    ([dimension, values]) => !sharedDimensions.has(dimension) && !values.includes("*"),
  );
  if (named || match.domain === byIdDomain) return undefined;
  const path = ["match"];
  if (match.domain === "default")
    return { path, message: `is for every request, those of other teams included; ${whatToDo}` };
  const other = policies.find((one) => one.match.domain === match.domain && one.owner !== team && one.id !== id);
  if (other === undefined) return undefined;
  const message = `is for every request of the domain ${match.domain}, in which ${other.owner ?? "an admin"} has the policy ${other.id}; ${whatToDo}`;
  return { path, message };
}

/** Not `/`, `/*`, `/{name}/**` and the like, which match every path. */
function hasLiteralSegment(endpoint: string): boolean {
  return endpoint.split("/").some((segment) => segment !== "" && !/^(?:\*\*?|\{.*\})$/.test(segment));
}
