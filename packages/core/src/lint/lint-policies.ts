import type { Problem } from "../errors.ts";
import { findParams } from "../match/endpoint-trie.ts";
import { divideWindow } from "../policy/divide-window.ts";
import { anything } from "../policy/names.ts";
import type { DimensionValues, Limit, Policy, PolicySet, SubjectEntry, Window } from "../policy/policy.ts";
import { renderWindow } from "../policy/render-window.ts";
import { wellKnownDimensions } from "../request/read-dimension.ts";
import { maxProblems, type Path } from "../shape/reading.ts";
import { suggest } from "../shape/suggest.ts";
import { parseCidr } from "../subject/cidr-set.ts";
import { findNeedlessWindows } from "./find-needless-windows.ts";
import { lintCounters } from "./lint-counters.ts";
import { lintDistinct } from "./lint-distinct.ts";

type Warn = (path: Path, message: string) => void;

/** Warnings about what is legal but surprising. Paths lead to the field as it is written in a policy file. */
export function lintPolicies(set: PolicySet): Problem[] {
  const warnings: Problem[] = [];
  const warn: Warn = (path, message) => {
    if (warnings.length < maxProblems) warnings.push({ path, message });
    else if (warnings.length === maxProblems)
      warnings.push({ path: [], message: `there are more warnings; these are the first ${maxProblems}` });
  };
  const ownLimits = subjectsByPolicy(set.subjects);
  for (const [index, policy] of set.policies.entries()) {
    // A policy asked for by name alone was written in another format, whose reader gives the warnings.
    if (policy.match.named !== true) lintPolicy(policy, ownLimits.get(policy.id) ?? [], ["policies", index], warn);
  }
  if (set.fallback !== undefined) lintPolicy(set.fallback, ownLimits.get(set.fallback.id) ?? [], ["default"], warn);
  lintDimensions(set, warn);
  lintSubjects(set, warn);
  return warnings;
}

/** The subjects with overrides of a policy, so that no policy is compared with all subjects. */
function subjectsByPolicy(subjects: PolicySet["subjects"]): ReadonlyMap<string, PolicySet["subjects"]> {
  const byPolicy = new Map<string, SubjectEntry[]>();
  for (const subject of subjects) {
    for (const policy of new Set(subject.limits.map((own) => own.policy))) {
      const known = byPolicy.get(policy);
      if (known === undefined) byPolicy.set(policy, [subject]);
      else known.push(subject);
    }
  }
  return byPolicy;
}

function lintPolicy(policy: Policy, subjects: PolicySet["subjects"], at: Path, warn: Warn): void {
  lintFailMode(policy, at, warn);
  lintRollout(policy, at, warn);
  lintEvents(policy, at, warn);
  lintAddresses(policy.allow, [...at, "allow"], warn);
  lintAddresses(policy.deny, [...at, "deny"], warn);
  lintMatchedAddresses(policy, at, warn);
  lintLimits(policy, policy.limits, [...at, "limits"], warn);
  lintLimits(policy, policy.localLimits ?? [], [...at, "local_limits"], warn);
  lintLocalShare(policy, at, warn);
  for (const { key, message } of lintCounters(policy, subjects)) warn([...at, key], message);
}

function lintLimits(policy: Policy, limits: readonly Limit[], at: Path, warn: Warn): void {
  lintSharedCounters(limits, at, warn);
  for (const [index, limit] of limits.entries()) {
    const limitAt = [...at, index];
    lintSharedCounter(policy, limit, limitAt, warn);
    lintDoubleBurst(limit, limitAt, warn);
    for (const { key, message } of lintDistinct(limit)) warn([...limitAt, key], message);
    for (const { windows, at: part } of listWindows(limit)) {
      if (limit.distinct === undefined) lintLargestCost(policy, windows, [...limitAt, ...part], warn);
      lintNeedlessWindows(limit, windows, [...limitAt, ...part], warn);
    }
  }
}

/** The windows of a limit and of its tiers, each with its path. */
function listWindows(limit: Limit): readonly { readonly windows: readonly Window[]; readonly at: Path }[] {
  const tiers = Object.entries(limit.tiers).map(([tier, { windows }]) => ({ windows, at: ["tiers", tier, "windows"] }));
  return [{ windows: limit.windows, at: ["windows"] }, ...tiers];
}

function lintFailMode(policy: Policy, at: Path, warn: Warn): void {
  if (policy.onFailureChosen || policy.limits.length === 0) return;
  warn(
    [...at, "on_failure"],
    `on_failure is not chosen, so policy ${policy.id} allows everything when its counters are unavailable; write ${policy.counters === "strong" ? "closed, because counters is strong" : "open, closed or local"}`,
  );
}

/** Warns if a share of the limits has no effect, or permanently refuses a cost that is too large for it. */
function lintLocalShare(policy: Policy, at: Path, warn: Warn): void {
  if (policy.onFailure !== "local") return;
  if (policy.localLimits !== undefined) {
    if (policy.localShare !== undefined)
      warn([...at, "local_share"], "changes nothing: local_limits stand in for the limits, at their full size");
    return;
  }
  const { endpoint, cost } = largestCost(policy);
  for (const [index, limit] of policy.limits.entries()) {
    if (limit.distinct !== undefined) continue;
    for (const { windows, at: part } of listWindows(limit)) {
      for (const [place, window] of windows.entries()) {
        const { burst } = divideWindow(window, limit.algorithm, policy.localShare);
        // A cost that never passes anyway has been reported.
        if (burst >= cost || window.burst < cost) continue;
        warn(
          [...at, "limits", index, ...part, place],
          `holds at most ${burst} when counters are unavailable (local_share), less than the cost ${cost} of ${endpoint}, which does not pass then`,
        );
      }
    }
  }
}

function lintRollout(policy: Policy, at: Path, warn: Warn): void {
  if (policy.rollout?.percent === 0)
    warn([...at, "rollout", "percent"], `is 0, so policy ${policy.id} applies to no subject`);
}

/** Events are of decisions, and a policy in shadow mode makes none. */
function lintEvents({ id, mode, events }: Policy, at: Path, warn: Warn): void {
  if (mode === "shadow" && events === "each")
    warn([...at, "events"], `is each, but policy ${id} is in shadow mode, decides nothing, and sends no usage events`);
}

function lintAddresses(lists: DimensionValues, at: Path, warn: Warn): void {
  for (const [index, value] of (lists.ip ?? []).entries()) {
    if (parseCidr(value) === undefined)
      warn(
        [...at, "ip", index],
        `is ${value}, neither an address nor a range such as 10.0.0.0/8, so it matches no request`,
      );
  }
}

function lintMatchedAddresses({ match }: Policy, at: Path, warn: Warn): void {
  for (const [index, value] of (match.dimensions.ip ?? []).entries()) {
    if (value === anything || parseCidr(value) !== undefined) continue;
    warn([...at, "match", "ip", index], `is ${value}, no address or range of addresses, and matches no request`);
  }
}

function lintSharedCounters(limits: readonly Limit[], at: Path, warn: Warn): void {
  const seen = new Map<string, number>();
  for (const [index, limit] of limits.entries()) {
    const keys = limit.windows.map((window) => counterKey(limit, window));
    for (const [place, key] of keys.entries()) {
      const other = seen.get(key);
      if (other !== undefined)
        warn(
          [...at, index, "windows", place],
          `shares its counter with ${at.at(-1)}[${other}], which has the same dimensions, algorithm and duration; name one of the limits`,
        );
    }
    for (const key of keys) seen.set(key, index);
  }
}

/**
 * What distinguishes the counters of one policy: the limit's name, else its dimensions and algorithm; and the window.
 */
function counterKey(limit: Limit, { name, per }: Window): string {
  const edition = limit.onChange === "reset" ? limit.windows : undefined;
  const { by, algorithm, distinct } = limit;
  return JSON.stringify([limit.name ?? [by, algorithm], distinct, edition, name ?? per]);
}

function lintSharedCounter({ match }: Policy, limit: Limit, at: Path, warn: Warn): void {
  const matchesAll =
    match.endpoint === undefined && match.methods.length === 0 && Object.keys(match.dimensions).length === 0;
  if (matchesAll && limit.by.length === 0)
    warn([...at, "by"], "is empty and the policy matches everything, so all requests together share one counter");
}

function lintDoubleBurst(limit: Limit, at: Path, warn: Warn): void {
  const window = limit.windows.find(({ per, limit: most }) => per.kind === "ms" && most > 0);
  if (limit.algorithm !== "fixed_window" || limit.distinct !== undefined || window === undefined) return;
  warn(
    [...at, "algorithm"],
    `is fixed_window, which lets twice the limit through around the end of a window (${2 * window.limit} for ${renderWindow(window)}); sliding_window does not`,
  );
}

function lintLargestCost(policy: Policy, windows: readonly Window[], at: Path, warn: Warn): void {
  const largest = largestCost(policy);
  for (const [index, window] of windows.entries()) {
    // A window of nothing denies everything, and is meant to.
    if (window.burst >= largest.cost || window.burst === 0) continue;
    warn(
      [...at, index],
      `holds at most ${window.burst}, less than the cost ${largest.cost} of ${largest.endpoint}, which therefore never passes`,
    );
  }
}

function largestCost({ cost }: Policy): { readonly endpoint: string; readonly cost: number } {
  return cost.reduce((most, one) => (one.cost > most.cost ? one : most), { endpoint: "", cost: 0 });
}

function lintNeedlessWindows(limit: Limit, windows: readonly Window[], at: Path, warn: Warn): void {
  for (const { index, stricter } of findNeedlessWindows(windows, limit.algorithm)) {
    const [window, other] = [windows[index]!, windows[stricter]!];
    warn([...at, index], `${renderWindow(window)} never limits anything: ${renderWindow(other)} is always there first`);
  }
}

/** Below this a name resembles too many others: `id` is not a misspelt `ip`. */
const minComparedLength = 3;

/** Where a dimension is named: policy, path, and what happens to requests that lack it. */
interface NamedDimension {
  readonly policy: Policy;
  readonly path: Path;
  readonly dimension: string;
  readonly otherwise: string;
}

/**
 * Dimensions that are probably misspelt: near one that Sluice knows by name, or near one that more policies use.
 * Nothing else shows that requests never carry them, and that one counter then counts all of them.
 */
function lintDimensions(set: PolicySet, warn: Warn): void {
  const named: NamedDimension[] = [];
  for (const [index, policy] of set.policies.entries())
    if (policy.match.named !== true) named.push(...dimensionsIn(policy, ["policies", index]));
  if (set.fallback !== undefined) named.push(...dimensionsIn(set.fallback, ["default"]));
  const users = new Map<string, Set<Policy>>();
  for (const { dimension, policy } of named) {
    const known = users.get(dimension);
    if (known === undefined) users.set(dimension, new Set([policy]));
    else known.add(policy);
  }
  const wellKnown = new Set(wellKnownDimensions);
  const suggested = new Map<string, string | undefined>();
  const suggestFor = (dimension: string): string | undefined => {
    if (!suggested.has(dimension) && suggested.size < maxSuggested) {
      const uses = users.get(dimension)!.size;
      const usual = [...users].filter(([, policies]) => policies.size > uses).map(([name]) => name);
      const compared = [...wellKnown, ...usual.slice(0, maxSuggested)];
      suggested.set(
        dimension,
        suggest(
          dimension,
          compared.filter((name) => name.length >= minComparedLength),
        ),
      );
    }
    return suggested.get(dimension);
  };
  for (const { dimension, policy, path, otherwise } of named) {
    if (wellKnown.has(dimension) || dimension.length < minComparedLength) continue;
    if (findParams(policy.match.endpoint ?? "/").has(dimension)) continue;
    const meant = suggestFor(dimension);
    if (meant !== undefined)
      warn(path, `is ${dimension}, which requests may never carry: ${otherwise}; did you mean ${meant}?`);
  }
}

const whenMissing: Readonly<Record<Limit["missing"], string>> = {
  share: "all requests without it share one counter",
  skip: "the limit does not apply to requests without it",
  deny: "requests without it are denied",
};

function dimensionsIn(policy: Policy, at: Path): readonly NamedDimension[] {
  const ofLimits = (limits: readonly Limit[], key: string): readonly NamedDimension[] =>
    limits.flatMap(({ by, distinct, missing }, index) => {
      const limitAt = [...at, key, index];
      const otherwise = whenMissing[missing];
      const named = by.map((dimension, place) => ({ policy, path: [...limitAt, "by", place], dimension, otherwise }));
      if (distinct === undefined) return named;
      const asOne = missing === "share" ? "all requests without it count as one value" : otherwise;
      return [...named, { policy, path: [...limitAt, "distinct"], dimension: distinct, otherwise: asOne }];
    });
  const matched = Object.keys(policy.match.dimensions).map((dimension) => ({
    policy,
    path: [...at, "match", dimension],
    dimension,
    otherwise: "the policy matches no request without it",
  }));
  return [...matched, ...ofLimits(policy.limits, "limits"), ...ofLimits(policy.localLimits ?? [], "local_limits")];
}

/** How many unknown tiers are compared with the known ones. */
const maxSuggested = 100;

function lintSubjects(set: PolicySet, warn: Warn): void {
  const policies = set.fallback === undefined ? set.policies : [...set.policies, set.fallback];
  const tiers = new Set(
    policies.flatMap(({ limits, match }) => [
      ...limits.flatMap((limit) => Object.keys(limit.tiers)),
      ...(match.dimensions.tier ?? []),
    ]),
  );
  // Most unknown tiers are the same few, and each is compared with all known ones.
  const suggested = new Map<string, string | undefined>();
  const suggestTier = (tier: string): string | undefined => {
    if (!suggested.has(tier) && suggested.size < maxSuggested) suggested.set(tier, suggest(tier, tiers));
    return suggested.get(tier);
  };
  const byId = new Map(policies.map((policy) => [policy.id, policy]));
  for (const [index, { dimension, tier, limits }] of set.subjects.entries()) {
    if (tier !== undefined && !tiers.has(tier)) {
      const meant = suggestTier(tier);
      warn(
        ["subjects", index, "tier"],
        `is ${tier}, which no policy knows${meant === undefined ? "" : `; did you mean ${meant}?`}`,
      );
    }
    for (const [place, own] of limits.entries()) {
      const policy = byId.get(own.policy);
      const meant = policy?.limits.filter(({ name }) => own.limit === undefined || name === own.limit) ?? [];
      if (policy !== undefined && !meant.some(({ by }) => by.includes(dimension)))
        warn(
          ["subjects", index, "limits", place],
          `changes nothing: policy ${own.policy} has no such limit by ${dimension}`,
        );
    }
  }
}
