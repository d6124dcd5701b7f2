import type { RateLimitDescriptor, RateLimitRequest } from "@sluice/protocol/envoy";
import { type CheckRequest, type GivenLimit, type Limiter, type PolicySet, type Problem, SluiceError } from "sluice";
import {
  type FailMode,
  type FoundDescriptor,
  findDescriptor,
  hasDescriptors,
  maxCost,
  renderPath,
} from "sluice/internal";
import { boundedSubject, dimensionsFromEntries, joinEntries } from "./descriptor-dimensions.ts";
import { findOverrideLimit } from "./find-override-limit.ts";

export const maxDescriptors = 100;
export const maxEntries = 32;

/** What to do about one descriptor. */
export type DescriptorPlan =
  /** No policy has it, or the limit it has is replaced. */
  { readonly kind: "unmatched" } | { readonly kind: "unlimited" } | DescriptorCheck;

export type PlanningLimiter = Pick<Limiter, "snapshot" | "findBlocks">;

export interface DescriptorCheck {
  readonly kind: "check";
  /** Without a cost if nothing is taken. */
  readonly request: CheckRequest;
  /** The cost it takes, or gives back; 0 only peeks. */
  readonly hits: number;
  readonly givesBack: boolean;
  /** `shadow` never denies; `quota` denies if all such descriptors of the request are over. */
  readonly role: "enforced" | "shadow" | "quota";
  /** What is charged even if it is denied: the limits that say so. */
  readonly deniedCharge: CheckRequest | undefined;
  /** The name of a policy's limit in the answer. */
  findName(policy: string | undefined): string;
}

/** What to do about each descriptor, in order. Throws `invalid_request` with every wrong field. */
export function planRequest(request: RateLimitRequest, limiter: PlanningLimiter): readonly DescriptorPlan[] {
  const { domain, descriptors } = request;
  const { policySet } = limiter.snapshot;
  const problems = findRequestProblems(request);
  if (problems.length > 0) throw invalidRequest(problems);
  const found = descriptors.map(({ entries }) => findDescriptor(policySet, domain, entries));
  const replaced = new Set<string>();
  for (const [i, one] of found.entries()) {
    // A limit that the proxy brings along stands in for the written one, and replaces nothing.
    if (one === undefined || descriptors[i]!.limit !== undefined) continue;
    for (const { replaces } of one.node.limits) for (const name of replaces) replaced.add(name);
  }
  const known = isKnown(policySet, domain);
  const plans = descriptors.map((descriptor, i): DescriptorPlan => {
    const hits = readHits(descriptor, request);
    if (descriptor.limit !== undefined) {
      const { requestsPerUnit, unit } = descriptor.limit;
      const limit = findOverrideLimit(requestsPerUnit, unit, findFailMode(found[i]));
      if (limit !== undefined) {
        const subject = boundedSubject(joinEntries(domain, descriptor.entries));
        const brought: CheckRequest = { limits: [limit], dimensions: { descriptor: subject } };
        const chargesDenied = found[i]?.node.limits.some((one) => one.chargeDenied) === true;
        return check(brought, hits, nameless, "enforced", chargesDenied ? brought : undefined);
      }
      const message = `must be SECOND, MINUTE, HOUR, DAY, MONTH or YEAR, but is ${unit}`;
      problems.push({ path: ["descriptors", i, "limit", "unit"], message });
      return unmatched;
    }
    if (hasDescriptors(policySet, domain)) return planFound(found[i], hits, replaced);
    return known
      ? check({ domain, dimensions: dimensionsFromEntries(descriptor.entries) }, hits, policyAsName)
      : unmatched;
  });
  if (problems.length > 0) throw invalidRequest(problems);
  if (policySet.blocks === undefined) return plans;
  return plans.map((plan, i) => addBlocks(plan, descriptors[i]!, readHits(descriptors[i]!, request), limiter));
}

const unmatched: DescriptorPlan = { kind: "unmatched" };
const unlimited: DescriptorPlan = { kind: "unlimited" };
const nameless = (): string => "";
const policyAsName = (policy: string | undefined): string => policy ?? "";

type Hits = Pick<DescriptorCheck, "hits" | "givesBack">;

function check(
  request: CheckRequest,
  hits: Hits,
  findName: DescriptorCheck["findName"] = nameless,
  role: DescriptorCheck["role"] = "enforced",
  deniedCharge?: CheckRequest,
): DescriptorCheck {
  return { kind: "check", request, ...hits, role, deniedCharge, findName };
}

function planFound(found: FoundDescriptor | undefined, hits: Hits, replaced: ReadonlySet<string>): DescriptorPlan {
  if (found === undefined) return unmatched;
  const { node, subject } = found;
  const limits =
    replaced.size === 0 ? node.limits : node.limits.filter(({ name }) => name === undefined || !replaced.has(name));
  const [first] = limits;
  if (first === undefined) return unmatched;
  if (first.unlimited) return unlimited;
  const request: CheckRequest = {
    policies: limits.map(({ policy }) => policy),
    dimensions: { descriptor: boundedSubject(subject) },
  };
  const findName = (policy: string | undefined): string =>
    (limits.length === 1 ? first : limits.find((one) => one.policy === policy))?.name ?? "";
  const role = node.mode === "enforce" ? "enforced" : node.mode;
  // Only an answer for every limit shows how one stands that does not deny.
  const asked = role === "enforced" ? request : { ...request, details: true };
  const charged = limits.filter((one) => one.chargeDenied).map(({ policy }) => policy);
  const deniedCharge = charged.length === 0 ? undefined : { ...request, policies: charged };
  return check(asked, hits, findName, role, deniedCharge);
}

/** For a descriptor without limits: only a request with limits can be denied. A blocked one takes nothing from it. */
const blockedLimit: GivenLimit = {
  name: "envoy.blocked",
  by: [],
  window: { limit: maxCost, per: { kind: "ms", ms: 1_000 }, burst: maxCost },
};

/**
 * Operators block subjects such as `user: u1`, but a tree's limits count whole descriptors. So the entries that are
 * blocked become dimensions of the check too. A block by all policies denies any descriptor that has the entry, also
 * one without a limit or in shadow mode; a block by some policies denies where the descriptor has one of their limits.
 */
function addBlocks(
  plan: DescriptorPlan,
  { entries }: RateLimitDescriptor,
  hits: Hits,
  limiter: PlanningLimiter,
): DescriptorPlan {
  if (hits.givesBack) return plan;
  const asked = plan.kind === "check" ? plan : check({ limits: [blockedLimit] }, hits);
  const { request } = asked;
  const values = dimensionsFromEntries(entries);
  const blocks = limiter
    .findBlocks(values)
    .filter(({ policies }) => policies === undefined || policies.some((id) => request.policies?.includes(id)));
  if (blocks.length === 0) return plan;
  const blocked = Object.fromEntries(blocks.map(({ dimension }) => [dimension, values[dimension]!]));
  const role = blocks.some(({ policies }) => policies === undefined) ? "enforced" : asked.role;
  const dimensions = { ...request.dimensions, ...blocked };
  return { ...asked, role, request: { ...request, dimensions }, deniedCharge: undefined };
}

/** A limit that is brought along fails like the one that it stands in for. */
function findFailMode(found: FoundDescriptor | undefined): FailMode {
  return found?.node.limits[0]?.onFailure ?? "open";
}

/**
 * Whether a domain without descriptors is known. If other domains have some, one that no policy names is unknown, and
 * nothing in it is limited; if none has, requests that match nothing fall to the default as usual.
 */
function isKnown(policySet: PolicySet, domain: string): boolean {
  return !hasDescriptors(policySet) || listDomains(policySet).has(domain);
}

const domains = new WeakMap<PolicySet, ReadonlySet<string>>();

function listDomains(policySet: PolicySet): ReadonlySet<string> {
  let known = domains.get(policySet);
  if (known === undefined) {
    known = new Set(policySet.policies.map(({ match }) => match.domain));
    domains.set(policySet, known);
  }
  return known;
}

/** The descriptor's own addend, even if it is 0; else the request's, where 0 means none. */
function readHits({ hitsAddend, isNegativeHits }: RateLimitDescriptor, request: RateLimitRequest): Hits {
  return { hits: hitsAddend ?? (request.hitsAddend || 1), givesBack: isNegativeHits };
}

function findRequestProblems({ domain, descriptors, hitsAddend }: RateLimitRequest): Problem[] {
  const problems: Problem[] = [];
  const problem = (message: string, ...path: Problem["path"]): void => void problems.push({ path, message });
  const tooMany = (hits: number): string => `must be at most ${maxCost}, but is ${hits}`;
  if (domain === "") problem("is empty; Envoy's filter names it as domain", "domain");
  if (descriptors.length === 0) problem("are missing; there must be at least one", "descriptors");
  if (descriptors.length > maxDescriptors)
    problem(`must be at most ${maxDescriptors}, but are ${descriptors.length}`, "descriptors");
  if (hitsAddend > maxCost) problem(tooMany(hitsAddend), "hits_addend");
  for (const [i, { entries, hitsAddend: own = 0 }] of descriptors.entries()) {
    if (i >= maxDescriptors) break;
    if (entries.length > maxEntries)
      problem(`must be at most ${maxEntries}, but are ${entries.length}`, "descriptors", i, "entries");
    if (own > maxCost) problem(tooMany(own), "descriptors", i, "hits_addend");
  }
  return problems;
}

function invalidRequest(problems: readonly Problem[]): SluiceError {
  const message = problems.map((one) => `${renderPath(one.path)} ${one.message}`).join("; ");
  return new SluiceError("invalid_request", message, problems);
}
