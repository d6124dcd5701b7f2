import type { AuditRecord } from "@sluice/sql";
import type { Limiter, ResetOptions } from "sluice";
import type { ResetReport } from "../control-plane.ts";
import { dimensionsOf } from "../documents/canonical-subject.ts";

/** Whose counters are to be reset. */
export interface ResetWish {
  readonly dimension: string;
  readonly value: string;
  /** Only this policy's. */
  readonly policy?: string | undefined;
  /** Values of further dimensions, for limits that count by several. */
  readonly alsoBy?: Readonly<Record<string, string>> | undefined;
  /** Only those that a request like this is counted in. */
  readonly dimensions?: Readonly<Record<string, string>> | undefined;
  readonly domain?: string | undefined;
}

/** Resets every counter of a subject, or with `dimensions` those that a request like it is counted in. */
export async function resetCounters(
  limiter: Pick<Limiter, "reset" | "resetSubject">,
  { dimension, value, policy, alsoBy, dimensions, domain }: ResetWish,
  { reach }: ResetOptions = {},
): Promise<ResetReport> {
  const own = dimensionsOf(dimension, value);
  if (dimensions !== undefined) {
    const policies = policy === undefined ? undefined : [policy];
    const counters = await limiter.reset({ policies, domain, dimensions: { ...dimensions, ...own } }, { reach });
    return { limits: namesOf(counters), skipped: [] };
  }
  const { counters, skipped } = await limiter.resetSubject({
    dimension,
    value: own[dimension] ?? value,
    others: alsoBy,
    policy,
    reach,
  });
  return {
    limits: namesOf(counters),
    skipped: skipped.map(({ policy: id, scope, by }) => ({ limit: `${id}/${scope}`, by })),
  };
}

/** `policy/limit` */
function namesOf(counters: readonly { readonly policy: string; readonly scope: string }[]): readonly string[] {
  return [...new Set(counters.map(({ policy, scope }) => `${policy}/${scope}`))];
}

/** The action by which nodes find in the audit what the others have reset. */
export const resetAction = "subject.reset";

/** What the audit says of a reset: which counters, and what a node needs to forget what it holds of them. */
export interface AuditedReset {
  readonly limits: readonly string[];
  readonly wish: ResetWish;
  /** The node that did it. */
  readonly node: string | undefined;
}

/** Undefined for what another version wrote, or a reset that was one server's alone. */
export function readAuditedReset({ before }: Pick<AuditRecord, "before">): AuditedReset | undefined {
  const state = JSON.parse(before ?? "{}") as Partial<AuditedReset>;
  return state.wish === undefined ? undefined : { limits: state.limits ?? [], wish: state.wish, node: state.node };
}
