import type { RateLimitDescriptor, RateLimitRequest } from "@sluice/protocol/envoy";
import {
  type CheckRequest,
  type FailMode,
  type FoundDescriptor,
  findDescriptor,
  hasDescriptors,
  maxCost,
  type PolicySet,
  type Problem,
  renderPath,
  SluiceError,
} from "sluice";
import { boundedSubject, dimensionsOf, joinEntries } from "./descriptor-dimensions.ts";
import { findOverrideLimit } from "./find-override-limit.ts";

export const maxDescriptors = 100;
export const maxEntries = 32;

/** What is to be done about one descriptor. */
export type DescriptorPlan =
  /** Nothing is said of it, or what is said is replaced. */
  { readonly kind: "unmatched" } | { readonly kind: "unlimited" } | DescriptorCheck;

export interface DescriptorCheck {
  readonly kind: "check";
  /** Without a cost where nothing is taken. */
  readonly request: CheckRequest;
  /** What it takes, or gives back; 0 only looks. */
  readonly hits: number;
  readonly givesBack: boolean;
  /** `shadow` never denies; `quota` denies where all such descriptors of the request are over. */
  readonly role: "enforced" | "shadow" | "quota";
  /** What is charged all the same where it is denied: the limits that say so. */
  readonly deniedCharge: CheckRequest | undefined;
  /** What the limit of a policy is called in the answer. */
  nameOf(policy: string | undefined): string;
}

/** What to do about each descriptor, in their order. Throws `invalid_request` with every field that is wrong. */
export function planRequest(request: RateLimitRequest, policySet: PolicySet): readonly DescriptorPlan[] {
  const { domain, descriptors } = request;
  const problems = findProblems(request);
  if (problems.length > 0) throw invalidRequest(problems);
  const found = descriptors.map(({ entries }) => findDescriptor(policySet, domain, entries));
  const replaced = new Set<string>();
  for (const [i, one] of found.entries()) {
    // What the proxy brings along stands in for what is written, and replaces nothing.
    if (one === undefined || descriptors[i]!.limit !== undefined) continue;
    for (const { replaces } of one.node.limits) for (const name of replaces) replaced.add(name);
  }
  const known = isKnown(policySet, domain);
  const plans = descriptors.map((descriptor, i): DescriptorPlan => {
    const hits = hitsOf(descriptor, request);
    if (descriptor.limit !== undefined) {
      const { requestsPerUnit, unit } = descriptor.limit;
      const limit = findOverrideLimit(requestsPerUnit, unit, failModeOf(found[i]));
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
    return known ? check({ domain, dimensions: dimensionsOf(descriptor.entries) }, hits, policyAsName) : unmatched;
  });
  if (problems.length > 0) throw invalidRequest(problems);
  return plans;
}

const unmatched: DescriptorPlan = { kind: "unmatched" };
const unlimited: DescriptorPlan = { kind: "unlimited" };
const nameless = (): string => "";
const policyAsName = (policy: string | undefined): string => policy ?? "";

type Hits = Pick<DescriptorCheck, "hits" | "givesBack">;

function check(
  request: CheckRequest,
  hits: Hits,
  nameOf: DescriptorCheck["nameOf"] = nameless,
  role: DescriptorCheck["role"] = "enforced",
  deniedCharge?: CheckRequest,
): DescriptorCheck {
  return { kind: "check", request, ...hits, role, deniedCharge, nameOf };
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
  const nameOf = (policy: string | undefined): string =>
    (limits.length === 1 ? first : limits.find((one) => one.policy === policy))?.name ?? "";
  const role = node.mode === "enforce" ? "enforced" : node.mode;
  // Only the answer to every limit tells how one stands that does not deny.
  const asked = role === "enforced" ? request : { ...request, details: true };
  const charged = limits.filter((one) => one.chargeDenied).map(({ policy }) => policy);
  const deniedCharge = charged.length === 0 ? undefined : { ...request, policies: charged };
  return check(asked, hits, nameOf, role, deniedCharge);
}

/** A limit that is brought along fails as the one does that it stands in for. */
function failModeOf(found: FoundDescriptor | undefined): FailMode {
  return found?.node.limits[0]?.onFailure ?? "open";
}

/**
 * Whether anything is said of a domain that has no descriptors. Where other domains have some, one that no policy names
 * is unknown, and nothing in it is limited; without any, requests that match nothing fall to the default as usual.
 */
function isKnown(policySet: PolicySet, domain: string): boolean {
  return !hasDescriptors(policySet) || domainsOf(policySet).has(domain);
}

const domains = new WeakMap<PolicySet, ReadonlySet<string>>();

function domainsOf(policySet: PolicySet): ReadonlySet<string> {
  let known = domains.get(policySet);
  if (known === undefined) {
    known = new Set(policySet.policies.map(({ match }) => match.domain));
    domains.set(policySet, known);
  }
  return known;
}

/** The descriptor's own addend, of which 0 is one too; else the request's, for which 0 means that it names none. */
function hitsOf({ hitsAddend, isNegativeHits }: RateLimitDescriptor, request: RateLimitRequest): Hits {
  return { hits: hitsAddend ?? (request.hitsAddend || 1), givesBack: isNegativeHits };
}

function findProblems({ domain, descriptors, hitsAddend }: RateLimitRequest): Problem[] {
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
