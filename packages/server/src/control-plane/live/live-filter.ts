import type { Limiter } from "sluice";
import type { IsShown } from "../../observe/live/decision-tail.ts";
import { denialSubject } from "../denials/denial-subject.ts";

/** Which decisions to show. Absent fields leave all. */
export interface LiveFilter {
  readonly policy?: string | undefined;
  readonly dimension?: string | undefined;
  /** A value of that dimension, or of any. */
  readonly subject?: string | undefined;
  readonly allowed?: boolean | undefined;
  readonly reason?: string | undefined;
  /** Only policies of this team, for an editor. */
  readonly team?: string | undefined;
}

export interface FilterContext {
  readonly limiter: Pick<Limiter, "snapshot">;
  readonly ipv6PrefixBits: number | undefined;
}

/** A filter as a function that is quick for decisions that it leaves out. */
export function createIsShown(filter: LiveFilter, { limiter, ipv6PrefixBits }: FilterContext): IsShown {
  const { policy, dimension, subject, allowed, reason, team } = filter;
  const mayShow = team === undefined ? undefined : ownedBy(team, limiter);
  const isSubject = (name: string, value: string | undefined): boolean =>
    subject !== undefined &&
    value !== undefined &&
    (value === subject || denialSubject(name, value, ipv6PrefixBits) === denialSubject(name, subject, ipv6PrefixBits));
  return ({ dimensions = {} }, decision) => {
    if (policy !== undefined && decision.policy !== policy) return false;
    if (allowed !== undefined && decision.allowed !== allowed) return false;
    if (reason !== undefined && decision.reason !== reason) return false;
    if (mayShow !== undefined && !mayShow(decision.policy)) return false;
    if (subject === undefined) return dimension === undefined || dimensions[dimension] !== undefined;
    if (dimension !== undefined) return isSubject(dimension, dimensions[dimension]);
    return Object.entries(dimensions).some(([name, value]) => isSubject(name, value));
  };
}

/** Whether a team owns a policy in force, all its parts. */
function ownedBy(team: string, limiter: FilterContext["limiter"]): (policy: string | undefined) => boolean {
  let known: Limiter["snapshot"] | undefined;
  let owned: ReadonlySet<string> = new Set();
  return (policy) => {
    const { snapshot } = limiter;
    if (snapshot !== known) {
      const { policies } = snapshot.policySet;
      const others = new Set(policies.filter(({ owner }) => owner !== team).map(({ id }) => id));
      owned = new Set(policies.map(({ id }) => id).filter((id) => team !== "" && !others.has(id)));
      known = snapshot;
    }
    return policy !== undefined && owned.has(policy);
  };
}
