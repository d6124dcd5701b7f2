import type { AuditRecord } from "@sluice/sql";
import type { Limiter } from "sluice";
import type { ResetOptions } from "sluice/internal";
import { dimensionsFromSubject } from "../documents/canonical-subject.ts";
import type { ResetReport } from "../subject-control.ts";

/** The subject whose counters to reset. */
export interface ResetRequest {
  readonly dimension: string;
  readonly value: string;
  /** Only this policy's. */
  readonly policy?: string | undefined;
  /** Values of further dimensions, for limits that count by several. */
  readonly alsoBy?: Readonly<Record<string, string>> | undefined;
  /** Only the counters that a request like this uses. */
  readonly dimensions?: Readonly<Record<string, string>> | undefined;
  readonly domain?: string | undefined;
}

/** Resets every counter of a subject, or with `dimensions` those that such a request uses. */
export async function resetCounters(
  limiter: Pick<Limiter, "reset" | "resetSubject">,
  { dimension, value, policy, alsoBy, dimensions, domain }: ResetRequest,
  { reach }: ResetOptions = {},
): Promise<ResetReport> {
  const own = dimensionsFromSubject(dimension, value);
  if (dimensions !== undefined) {
    const policies = policy === undefined ? undefined : [policy];
    const counters = await limiter.reset({ policies, domain, dimensions: { ...dimensions, ...own } }, { reach });
    return { limits: renderNames(counters), skipped: [] };
  }
  const { counters, skipped } = await limiter.resetSubject({
    dimension,
    value: own[dimension] ?? value,
    others: alsoBy,
    policy,
    reach,
  });
  return {
    limits: renderNames(counters),
    skipped: skipped.map(({ policy: id, scope, by }) => ({ limit: `${id}/${scope}`, by })),
  };
}

/** `policy/limit` */
function renderNames(counters: readonly { readonly policy: string; readonly scope: string }[]): readonly string[] {
  return [...new Set(counters.map(({ policy, scope }) => `${policy}/${scope}`))];
}

/** The action by which nodes find the resets of other nodes in the audit. */
export const resetAction = "subject.reset";

/** The audit's record of a reset: which counters, and what a node needs to drop the ones that it holds. */
export interface AuditedReset {
  readonly limits: readonly string[];
  readonly wish: ResetRequest;
  /** The node that did it. */
  readonly node: string | undefined;
}

/** Undefined for a record of another version, or a reset of one server alone. */
export function readAuditedReset({ before }: Pick<AuditRecord, "before">): AuditedReset | undefined {
  const state = JSON.parse(before ?? "{}") as Partial<AuditedReset>;
  return state.wish === undefined ? undefined : { limits: state.limits ?? [], wish: state.wish, node: state.node };
}
