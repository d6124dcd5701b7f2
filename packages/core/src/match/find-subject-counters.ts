import type { ResolvedLimit } from "../counters/counter-store.ts";
import type { CompiledLimit, CompiledWindow } from "../limits/compiled-limit.ts";
import { anything } from "../policy/names.ts";
import { identifyingDimensions, rawEndpoint } from "../request/read-dimension.ts";
import type { CompiledPolicy } from "./compiled-policy.ts";
import { Asked, resolveLimits } from "./resolve-limits.ts";
import type { Snapshot } from "./snapshot.ts";
import type { SubjectDirectory } from "./subject-directory.ts";

export interface ResetOptions {
  /**
   * `nothing` only lists the counters. `process` resets what this process holds and leaves servers alone: for a node
   * that learns of a reset made on another node. Absent: resets everything.
   */
  readonly reach?: "nothing" | "process" | undefined;
}

/** Whose counters are reset. */
export interface SubjectResetRequest extends ResetOptions {
  readonly dimension: string;
  readonly value: string;
  /** Values of further dimensions, for limits that count by several. */
  readonly others?: Readonly<Record<string, string>> | undefined;
  /** Only this policy's. */
  readonly policy?: string | undefined;
}

/** A limit that counts by a dimension, and by others whose values were not given. */
export interface SkippedLimit {
  readonly policy: string;
  readonly scope: string;
  readonly by: readonly string[];
}

/** The counters that a policy keeps of one subject, and what `on_failure: local` is resolved from. */
export interface PolicyCounters {
  readonly policy: CompiledPolicy;
  readonly paths: readonly string[];
  readonly asked: Asked;
  readonly limits: readonly ResolvedLimit[];
}

export interface SubjectCounters {
  readonly policies: readonly PolicyCounters[];
  readonly skipped: readonly SkippedLimit[];
}

/**
 * Every counter of a subject, whichever requests lead to it: for each limit that counts by its dimension, under all
 * windows that tiers give it. Policies are not matched, because a reset is about a subject, not about one of its
 * requests.
 */
export function findSubjectCounters(
  snapshot: Snapshot,
  running: SubjectDirectory,
  { dimension, value, others = {}, policy: only }: SubjectResetRequest,
  epochMs: () => number,
): SubjectCounters {
  const dimensions = { ...others, [dimension]: value };
  const known = { running, written: snapshot.subjects };
  const askedIn = (domain: string | undefined, values: typeof dimensions = dimensions): Asked =>
    new Asked(domain, values, snapshot.ipv6PrefixBits, known, epochMs);
  const { readings } = snapshot.matchEndpoint(undefined, rawEndpoint(dimensions));
  const policies: PolicyCounters[] = [];
  const skipped: SkippedLimit[] = [];
  for (const policy of snapshot.allPolicies()) {
    if (only !== undefined && policy.policy.id !== only) continue;
    const within = policy === snapshot.fallback ? listDomains(snapshot) : [undefined];
    for (const domain of within) {
      const asked = askedIn(domain);
      const limits: ResolvedLimit[] = [];
      for (const limit of policy.limits) {
        const { by } = limit.source;
        if (!countsBy(limit, dimension)) continue;
        // One at a time, so that a limit that denies for a missing dimension does not hide its neighbours.
        if (by.every((name) => name === "subject" || dimensions[name])) {
          // A limit for tiers alone does not apply to a subject that has none, but a request may name one.
          const [tier] = limit.windows.length === 0 && !by.includes("tier") ? limit.tiers.keys() : [];
          const withTier = tier === undefined ? asked : askedIn(domain, { ...dimensions, tier });
          resolveLimits(limits, [limit], withTier, readings, 1, policy.enforced ? 0 : 1);
        } else if (!skipped.some((one) => one.policy === policy.policy.id && one.scope === limit.scope))
          skipped.push({ policy: policy.policy.id, scope: limit.scope, by });
      }
      if (limits.length > 0) policies.push({ policy, paths: readings, asked, limits: limits.map(underAllWindows) });
    }
  }
  return { policies, skipped };
}

/** The default policy counts within each domain: in the one that has no name, and in those that policies name. */
function listDomains(snapshot: Snapshot): readonly (string | undefined)[] {
  const named = new Set<string | undefined>([undefined]);
  for (const { policy } of snapshot.allPolicies())
    if (policy.match.domain !== "default" && policy.match.domain !== anything) named.add(policy.match.domain);
  return [...named];
}

function countsBy({ source: { by } }: CompiledLimit, dimension: string): boolean {
  return by.includes(dimension) || (by.includes("subject") && identifyingDimensions.includes(dimension));
}

/** A request may name its tier, and a tier may count over other lengths of time: each of them has a counter. */
function underAllWindows(resolved: ResolvedLimit): ResolvedLimit {
  const { limit, windows, subject, cost, group } = resolved;
  const all = new Map<string, CompiledWindow>();
  for (const window of [...windows, ...limit.windows, ...[...limit.tiers.values()].flat()])
    if (!all.has(window.identity)) all.set(window.identity, window);
  return { limit, windows: [...all.values()], subject, cost, group };
}
