import type { ResolvedLimit } from "../counters/counter-store.ts";
import { type Problem, SluiceError } from "../errors.ts";
import type { SubjectEntry, SubjectLimit } from "../policy/policy.ts";
import type { CheckRequest } from "../request/check-request.ts";
import { rawDimension, readDimension } from "../request/read-dimension.ts";
import { parseIp } from "../subject/ip-address.ts";
import { joinSubject } from "../subject/join-subject.ts";
import type { SubjectDirectory } from "../subject/subject-directory.ts";
import { compileWindows } from "./compile-limit.ts";
import type { Candidates, CompiledLimit, CompiledPolicy, CompiledWindow, Condition, ValueList } from "./compiled.ts";
import { segmentsOf } from "./endpoint-trie.ts";
import { inRollout } from "./in-rollout.ts";
import type { EndpointMatch, Snapshot } from "./snapshot.ts";

/** What the policies make of a request: the limits to ask, and denials that need no counter. */
export interface Resolution {
  readonly limits: readonly ResolvedLimit[];
  /** Policies that deny by name or for a missing dimension, enforced and shadow. */
  readonly refusals: readonly Refusal[];
  /** What the request is decided by even if it has no limits: the policies that apply. */
  readonly applied: readonly CompiledPolicy[];
  readonly match: EndpointMatch;
}

export interface Refusal {
  readonly policy: CompiledPolicy;
  readonly reason: "deny_list" | "missing_dimension";
  readonly scope: string | undefined;
}

const noDimensions: Readonly<Record<string, string>> = {};

export function resolve(
  snapshot: Snapshot,
  subjects: SubjectDirectory,
  request: CheckRequest,
  epochMs: () => number,
): Resolution {
  const dimensions = request.dimensions ?? noDimensions;
  const match = snapshot.matchEndpoint(request.domain, rawDimension(dimensions, "endpoint"));
  const candidates =
    request.policies === undefined
      ? candidatesFor(snapshot, match, dimensions, epochMs)
      : namedPolicies(snapshot, request.policies, match, dimensions, epochMs);
  const limits: ResolvedLimit[] = [];
  let refusals: Refusal[] | undefined;
  for (let i = 0; i < candidates.policies.length; i++) {
    const policy = candidates.policies[i]!;
    if (policy.deny.length > 0 && isListed(policy.deny, dimensions)) {
      refusals ??= [];
      refusals.push({ policy, reason: "deny_list", scope: undefined });
      continue;
    }
    if (policy.allow.length > 0 && candidates.certain[i] && isListed(policy.allow, dimensions)) continue;
    const cost = costOf(policy, request, match);
    const group = policy.enforced ? 0 : i + 1;
    const before = limits.length;
    const path = candidates.paths[i]!;
    for (const limit of policy.limits) {
      const subject = subjectOf(limit, dimensions, path);
      if (subject !== undefined) {
        limits.push({
          limit,
          windows: windowsFor(limit, dimensions, path, subjects, snapshot.subjects, epochMs),
          subject,
          cost,
          group,
        });
      } else if (limit.source.missing === "deny") {
        refusals ??= [];
        refusals.push({ policy, reason: "missing_dimension", scope: limit.scope });
        limits.length = before;
        break;
      }
    }
  }
  return { limits, refusals: refusals ?? noRefusals, applied: candidates.policies, match };
}

const noRefusals: readonly Refusal[] = [];

/** The policies that match a request. */
export function candidatesFor(
  snapshot: Snapshot,
  match: EndpointMatch,
  dimensions: Readonly<Record<string, string>>,
  epochMs: () => number,
): Candidates {
  if (!match.settled) return findCandidates(snapshot, match, dimensions, epochMs);
  // Where nothing but endpoint and method decides which policies apply, it is decided once.
  const method = rawDimension(dimensions, "method");
  const known = match.byMethod.get(method);
  if (known !== undefined) return known;
  const candidates = findCandidates(snapshot, match, dimensions, epochMs);
  if (match.byMethod.size < maxMethods) match.byMethod.set(method, candidates);
  return candidates;
}

/** Methods remembered per endpoint; there are nine in use, and any number in hostile requests. */
const maxMethods = 16;

function findCandidates(
  snapshot: Snapshot,
  match: EndpointMatch,
  dimensions: Readonly<Record<string, string>>,
  epochMs: () => number,
): Candidates {
  const policies: CompiledPolicy[] = [];
  const paths: string[] = [];
  const certain: boolean[] = [];
  const add = (policy: CompiledPolicy, found: { readonly path: string; readonly certain: boolean }): void => {
    policies.push(policy);
    paths.push(found.path);
    certain.push(found.certain);
  };
  for (const found of match.found) {
    const addIfItApplies = (policy: CompiledPolicy): void => {
      if (whyNot(policy, dimensions, epochMs) === undefined) add(policy, found);
    };
    found.bucket.policies.forEach(addIfItApplies);
    for (const [dimension, byValue] of found.bucket.byValue) {
      byValue.get(rawDimension(dimensions, dimension))?.forEach(addIfItApplies);
    }
  }
  // A policy in shadow mode must change nothing, and so does not keep the fallback from applying.
  if (snapshot.fallback !== undefined && !policies.some((policy, i) => policy.enforced && certain[i])) {
    add(snapshot.fallback, { path: match.path ?? "/", certain: true });
  }
  return withoutReplaced(policies, paths, certain);
}

function createCandidates(
  policies: readonly CompiledPolicy[],
  paths: readonly string[],
  certain: readonly boolean[],
): Candidates {
  const [policy] = policies;
  const [limit] = policy?.limits ?? [];
  const onlyLimit =
    policies.length === 1 &&
    policy?.enforced &&
    policy.limits.length === 1 &&
    policy.allow.length + policy.deny.length === 0 &&
    policy.costs === undefined &&
    limit?.source.by.length === 1 &&
    limit.segments[0] === -1 &&
    limit.source.missing === "share" &&
    limit.tiers.size === 0 &&
    limit.blockForMs === 0 &&
    limit.windows.length === 1 &&
    limit.windows[0]!.kind === "arrival"
      ? limit
      : undefined;
  return { policies, paths, certain, onlyLimit };
}

function namedPolicies(
  snapshot: Snapshot,
  ids: readonly string[],
  match: EndpointMatch,
  dimensions: Readonly<Record<string, string>>,
  epochMs: () => number,
): Candidates {
  const missing: Problem[] = [];
  const policies = new Set<CompiledPolicy>();
  for (const [index, id] of ids.entries()) {
    const policy = snapshot.findPolicy(id);
    if (policy === undefined) {
      missing.push({ path: ["policies", index], message: `no policy has the id ${JSON.stringify(id)}` });
    } else if (whyNotInForce(policy, dimensions, epochMs) === undefined) policies.add(policy);
  }
  if (missing.length > 0) {
    throw new SluiceError("policy_not_found", missing.map((one) => one.message).join("; "), missing);
  }
  return withoutReplaced([...policies], Array(policies.size).fill(match.path ?? "/"), Array(policies.size).fill(true));
}

/** The first thing that keeps a policy, whose endpoint matches, from applying. */
export function whyNot(
  policy: CompiledPolicy,
  dimensions: Readonly<Record<string, string>>,
  epochMs: () => number,
): "method" | "dimension" | "valid_from" | "rollout" | undefined {
  if (policy.methods !== undefined) {
    const method = rawDimension(dimensions, "method");
    if (!policy.methods.has(method) && !policy.methods.has(method.toUpperCase())) return "method";
  }
  for (const condition of policy.conditions) if (!holds(condition, dimensions)) return "dimension";
  return whyNotInForce(policy, dimensions, epochMs);
}

function whyNotInForce(
  { policy }: CompiledPolicy,
  dimensions: Readonly<Record<string, string>>,
  epochMs: () => number,
): "valid_from" | "rollout" | undefined {
  if (policy.validFromMs !== undefined && epochMs() < policy.validFromMs) return "valid_from";
  const { rollout } = policy;
  if (rollout === undefined) return undefined;
  return inRollout(policy.id, readDimension(dimensions, rollout.by), rollout.percent) ? undefined : "rollout";
}

/** A policy in shadow mode replaces only in shadow, that is, nothing. */
function withoutReplaced(
  policies: readonly CompiledPolicy[],
  paths: readonly string[],
  certain: readonly boolean[],
): Candidates {
  const replaced = new Set<string>();
  for (const [i, { enforced, policy }] of policies.entries()) {
    if (enforced && certain[i]) for (const id of policy.replaces) replaced.add(id);
  }
  if (replaced.size === 0) return createCandidates(policies, paths, certain);
  const stays = (_: unknown, i: number): boolean => !replaced.has(policies[i]!.policy.id);
  return createCandidates(policies.filter(stays), paths.filter(stays), certain.filter(stays));
}

/** Whether the request has what a condition asks for. */
export function holds({ dimension, list }: Condition, dimensions: Readonly<Record<string, string>>): boolean {
  return list === undefined ? rawDimension(dimensions, dimension) !== "" : isOn(list, dimensions);
}

function isOn(list: ValueList, dimensions: Readonly<Record<string, string>>): boolean {
  if (list.kind === "addresses") {
    const ip = parseIp(rawDimension(dimensions, list.dimension));
    return ip !== undefined && list.ranges.has(ip);
  }
  const value = rawDimension(dimensions, list.dimension);
  return value !== "" && (list.texts.has(value) || list.texts.has(readDimension(dimensions, list.dimension)));
}

function isListed(lists: readonly ValueList[], dimensions: Readonly<Record<string, string>>): boolean {
  for (const list of lists) if (isOn(list, dimensions)) return true;
  return false;
}

function costOf(policy: CompiledPolicy, request: CheckRequest, match: EndpointMatch): number {
  // A preview of cost 0 asks whether anything at all would pass.
  if (request.cost !== undefined) return request.cost || 1;
  if (policy.costs === undefined) return 1;
  const known = match.costs.get(policy);
  if (known !== undefined) return known;
  // Where a path can be read in two ways the dearer one counts.
  let dearest = 1;
  for (const path of new Set(match.found.map((one) => one.path))) {
    const matching = policy.costs.find(path);
    const best = matching.reduce((one, other) => (other.specificity > one.specificity ? other : one), matching[0]!);
    dearest = Math.max(dearest, best?.cost ?? 1);
  }
  match.costs.set(policy, dearest);
  return dearest;
}

/** Undefined where a dimension is missing and the limit does not count such requests together. */
function subjectOf(
  limit: CompiledLimit,
  dimensions: Readonly<Record<string, string>>,
  path: string,
): string | undefined {
  const { by, missing } = limit.source;
  if (by.length === 1) {
    const value = subjectPart(limit, 0, dimensions, path);
    return value === "" && missing !== "share" ? undefined : value;
  }
  const values: string[] = [];
  for (let i = 0; i < by.length; i++) {
    const value = subjectPart(limit, i, dimensions, path);
    if (value === "" && missing !== "share") return undefined;
    values.push(value);
  }
  return joinSubject(values);
}

function subjectPart(
  limit: CompiledLimit,
  index: number,
  dimensions: Readonly<Record<string, string>>,
  path: string,
): string {
  const segment = limit.segments[index]!;
  if (segment >= 0) return segmentsOf(path)[segment] ?? "";
  return readDimension(dimensions, limit.source.by[index]!);
}

/** The windows of the subject's override, else of its tier, else the limit's own. What is set while running goes first. */
function windowsFor(
  limit: CompiledLimit,
  dimensions: Readonly<Record<string, string>>,
  path: string,
  subjects: SubjectDirectory,
  fileSubjects: SubjectDirectory,
  epochMs: () => number,
): readonly CompiledWindow[] {
  const { by } = limit.source;
  const anybodyKnown = subjects.size !== 0 || fileSubjects.size !== 0;
  for (let i = by.length - 1; anybodyKnown && i >= 0; i--) {
    const value = subjectPart(limit, i, dimensions, path);
    const own =
      windowsOf(subjects.find(by[i]!, value), limit, epochMs) ??
      windowsOf(fileSubjects.find(by[i]!, value), limit, epochMs);
    if (own !== undefined) return own;
  }
  if (limit.tiers.size === 0) return limit.windows;
  return limit.tiers.get(rawDimension(dimensions, "tier")) ?? limit.windows;
}

/** What a limit is for a subject of which something is known, if that says anything about it. */
function windowsOf(
  entry: SubjectEntry | undefined,
  limit: CompiledLimit,
  epochMs: () => number,
): readonly CompiledWindow[] | undefined {
  if (entry === undefined) return undefined;
  for (const own of entry.limits) {
    if (own.policy !== limit.policy.id || (own.limit !== undefined && own.limit !== limit.scope)) continue;
    if (own.untilMs === undefined || epochMs() < own.untilMs) return ownWindows(own, limit);
  }
  return entry.tier === undefined ? undefined : limit.tiers.get(entry.tier);
}

const compiledOwn = new WeakMap<SubjectLimit, Map<CompiledLimit, readonly CompiledWindow[]>>();

function ownWindows(own: SubjectLimit, limit: CompiledLimit): readonly CompiledWindow[] {
  let byLimit = compiledOwn.get(own);
  if (byLimit === undefined) {
    byLimit = new Map();
    compiledOwn.set(own, byLimit);
  }
  let windows = byLimit.get(limit);
  if (windows === undefined) {
    // Limits of replaced snapshots do not pile up here.
    if (byLimit.size >= 64) byLimit.clear();
    windows = compileWindows(limit.policy, limit.source, own.windows);
    byLimit.set(limit, windows);
  }
  return windows;
}
