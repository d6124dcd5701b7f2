import { areTaken, mostLimits } from "../counters/several-takes.ts";
import { type Problem, SluiceError } from "../errors.ts";
import type { CompiledLimit } from "../limits/compiled-limit.ts";
import { rawDimension, rawMethod, readDimension } from "../request/read-dimension.ts";
import type { Candidate, Candidates, CompiledPolicy } from "./compiled-policy.ts";
import { inRollout, isForThese } from "./in-rollout.ts";
import type { EndpointMatch, Snapshot } from "./snapshot.ts";
import { holds } from "./value-lists.ts";

type Dimensions = Readonly<Record<string, string>>;

/** Methods remembered per endpoint; there are nine in use, and any number in hostile requests. */
const maxMethods = 16;
const maxMethodLength = 32;

const noPolicies: readonly CompiledPolicy[] = [];

/** The policies that match a request. */
export function candidatesFor(
  snapshot: Snapshot,
  match: EndpointMatch,
  dimensions: Dimensions,
  epochMs: () => number,
): Candidates {
  if (!match.settled) return findCandidates(snapshot, match, dimensions, epochMs);
  // If nothing but endpoint and method decides which policies apply, decide it once.
  const method = rawMethod(dimensions);
  const known = match.byMethod.get(method);
  if (known !== undefined) return known;
  const candidates = findCandidates(snapshot, match, dimensions, epochMs);
  if (match.byMethod.size < maxMethods && method.length <= maxMethodLength) match.byMethod.set(method, candidates);
  return candidates;
}

function findCandidates(
  snapshot: Snapshot,
  match: EndpointMatch,
  dimensions: Dimensions,
  epochMs: () => number,
): Candidates {
  const list: Candidate[] = [];
  let aside = noPolicies;
  for (const { bucket, paths, certain } of match.found) {
    const addIfItApplies = (policy: CompiledPolicy): void => {
      const why = whyNot(policy, dimensions, epochMs);
      if (why === undefined) list.push({ policy, paths, certain });
      else if (why === "trial") aside = [...aside, policy];
    };
    bucket.policies.forEach(addIfItApplies);
    for (const [dimension, byValue] of bucket.byValue) {
      byValue.get(rawDimension(dimensions, dimension))?.forEach(addIfItApplies);
    }
    for (const [dimension, policies] of bucket.byPresence) {
      if (rawDimension(dimensions, dimension) !== "") policies.forEach(addIfItApplies);
    }
  }
  // A policy in shadow mode must change nothing, and so does not keep the fallback from applying.
  if (snapshot.fallback !== undefined && !list.some(({ policy, certain }) => policy.enforced && certain)) {
    list.push({ policy: snapshot.fallback, paths: match.readings, certain: true });
  }
  return withoutReplaced(list, aside);
}

/** The policies that a request names, whether they match it or not. */
export function namedCandidates(
  snapshot: Snapshot,
  ids: readonly string[],
  match: EndpointMatch,
  dimensions: Dimensions,
  epochMs: () => number,
): Candidates {
  const missing: Problem[] = [];
  const policies = new Set<CompiledPolicy>();
  for (const [index, id] of ids.entries()) {
    const versions = snapshot.findPolicy(id);
    if (versions.length === 0)
      missing.push({ path: ["policies", index], message: `no policy has the id ${JSON.stringify(id)}` });
    let fromMs = Number.POSITIVE_INFINITY;
    let isInForce = false;
    for (const policy of versions) {
      const why = whyNotInForce(policy, dimensions, epochMs);
      if (why === undefined) policies.add(policy);
      if (why === "valid_from") fromMs = Math.min(fromMs, policy.policy.validFromMs!);
      else isInForce = true;
    }
    // Otherwise a request that the caller wants limited would pass silently.
    if (!isInForce && versions.length > 0) {
      const from = new Date(fromMs).toISOString();
      const message = `policy ${JSON.stringify(id)} is not in force until ${from}, its valid_from`;
      missing.push({ path: ["policies", index], message });
    }
  }
  if (missing.length > 0) {
    throw new SluiceError("policy_not_found", missing.map((one) => one.message).join("; "), missing);
  }
  return withoutReplaced(
    [...policies].map((policy) => ({ policy, paths: match.readings, certain: true })),
    noPolicies,
  );
}

/** The first thing that keeps a policy, whose endpoint matches, from applying. */
export function whyNot(
  policy: CompiledPolicy,
  dimensions: Dimensions,
  epochMs: () => number,
): "method" | "dimension" | "valid_from" | "rollout" | "trial" | undefined {
  if (policy.methods !== undefined) {
    const method = rawMethod(dimensions);
    if (!policy.methods.has(method) && !policy.methods.has(method.toUpperCase())) return "method";
  }
  for (const condition of policy.conditions) if (!holds(condition, dimensions)) return "dimension";
  return whyNotInForce(policy, dimensions, epochMs);
}

function whyNotInForce(
  { policy }: CompiledPolicy,
  dimensions: Dimensions,
  epochMs: () => number,
): "valid_from" | "rollout" | "trial" | undefined {
  if (policy.validFromMs !== undefined && epochMs() < policy.validFromMs) return "valid_from";
  const { rollout, trial } = policy;
  if (trial !== undefined && !isForThese(policy, trial, dimensions)) return "trial";
  if (rollout === undefined) return undefined;
  return inRollout(policy.id, readDimension(dimensions, rollout.by), rollout.percent) ? undefined : "rollout";
}

/** A policy replaces others if it is enforced, certain, and not itself replaced. */
function withoutReplaced(list: readonly Candidate[], aside: readonly CompiledPolicy[]): Candidates {
  const replacing = list.filter(
    ({ policy, certain }) => policy.enforced && certain && policy.policy.replaces.length > 0,
  );
  if (replacing.length === 0) return createCandidates(list, aside);
  const known = new Map<string, boolean>();
  const isReplaced = (id: string): boolean => {
    const answer = known.get(id);
    if (answer !== undefined) return answer;
    // Cycles are refused when policies are parsed; if one got here another way, it replaces nothing.
    known.set(id, false);
    const replaced = replacing.some(({ policy: { policy } }) => policy.replaces.includes(id) && !isReplaced(policy.id));
    known.set(id, replaced);
    return replaced;
  };
  return createCandidates(
    list.filter(({ policy }) => !isReplaced(policy.policy.id)),
    aside.filter(({ policy }) => !isReplaced(policy.id)),
  );
}

function createCandidates(list: readonly Candidate[], aside: readonly CompiledPolicy[]): Candidates {
  const onlyLimit = findOnlyLimit(list);
  return { list, onlyLimit, fewLimits: onlyLimit === undefined ? findFewLimits(list) : undefined, aside };
}

/** The only limit there is, if it is of the commonest kind. */
export function findOnlyLimit(list: readonly Candidate[]): CompiledLimit | undefined {
  const policy = list[0]?.policy;
  const limit = policy?.limits[0];
  const isOnly =
    list.length === 1 &&
    policy?.enforced &&
    policy.limits.length === 1 &&
    policy.allow.length + policy.deny.length === 0 &&
    policy.costs === undefined &&
    limit?.source.by.length === 1 &&
    limit.segments[0] === -1 &&
    (limit.source.by[0] !== "endpoint" || list[0]!.paths.length === 1) &&
    limit.source.missing === "share" &&
    !limit.blockable &&
    !limit.policy.countDenials &&
    limit.policy.counters !== "strong" &&
    limit.windows.length === 1 &&
    limit.windows[0]!.kind === "arrival";
  return isOnly ? limit : undefined;
}

/** All limits there are, if they are of the kinds that `SeveralTakes` takes. */
function findFewLimits(list: readonly Candidate[]): readonly CompiledLimit[] | undefined {
  const limits = list.flatMap(({ policy }) => policy.limits);
  const areFew =
    limits.length > 0 &&
    limits.length <= mostLimits &&
    list.every(
      ({ policy, paths }) =>
        policy.enforced &&
        !policy.tiersOnly &&
        policy.allow.length + policy.deny.length === 0 &&
        policy.costs === undefined &&
        policy.limits.every((limit) => isPlain(limit) && (paths.length === 1 || !limit.source.by.includes("endpoint"))),
    );
  return areFew ? limits : undefined;
}

/** Whether a limit takes its subject from the request alone, and nothing happens beside a take. */
function isPlain(limit: CompiledLimit): boolean {
  return (
    limit.segments.every((segment) => segment < 0) &&
    limit.source.missing === "share" &&
    !limit.blockable &&
    !limit.policy.countDenials &&
    limit.policy.counters !== "strong" &&
    !limit.sharesIdentity &&
    areTaken(limit.windows)
  );
}
