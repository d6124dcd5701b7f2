import type { CheckRequest, Policy, PolicySet } from "sluice";
import { SluiceError } from "sluice";
import { maxDimensionLength } from "sluice/internal";

/** The prefixes of a domain's policies, in the order of their file; `*` is any. */
type Prefixes = ReadonlySet<string>;

const prefixCache = new WeakMap<PolicySet, ReadonlyMap<string, Prefixes>>();

export const defaultDomain = "default";
const maxDomainLength = 128;

/**
 * The request for a key of `ratelimiter.v1`. A key `prefix:rest` belongs to the policy of its prefix if the domain has
 * one, any other to the domain's first. Throws `invalid_request` if domain or key are invalid.
 */
export function readLimitKey(
  policySet: PolicySet,
  { domain, limitKey }: { readonly domain?: string | undefined; readonly limitKey: string },
): Pick<CheckRequest, "domain" | "dimensions"> {
  refuse("domain", domain ?? defaultDomain, maxDomainLength);
  refuse("limit_key", limitKey, maxDimensionLength);
  const prefixes = findDomains(policySet).get(domain ?? defaultDomain);
  if (prefixes === undefined) return { domain, dimensions: { limit_key: limitKey } };
  const colon = limitKey.indexOf(":");
  const named = colon === -1 ? limitKey : limitKey.slice(0, colon);
  const [first] = prefixes;
  const isFor = prefixes.has(named) || (prefixes.has("*") && named !== "");
  return { domain, dimensions: { prefix: isFor ? named : first!, limit_key: limitKey } };
}

/** The prefix of a policy. Undefined if it has none. */
export function findPrefix(policy: Policy): string | undefined {
  return policy.match.dimensions.prefix?.[0];
}

function findDomains(policySet: PolicySet): ReadonlyMap<string, Prefixes> {
  let domains = prefixCache.get(policySet);
  if (domains === undefined) {
    const found = new Map<string, Set<string>>();
    for (const policy of policySet.policies) {
      const { domain, dimensions } = policy.match;
      for (const prefix of dimensions.prefix ?? []) {
        const prefixes = found.get(domain) ?? new Set();
        found.set(domain, prefixes.add(prefix));
      }
    }
    domains = found;
    prefixCache.set(policySet, domains);
  }
  return domains;
}

function refuse(field: string, value: string, maxLength: number): void {
  if (value.length >= 1 && value.length <= maxLength) return;
  const message = `must have 1 to ${maxLength} characters, but has ${value.length}`;
  throw new SluiceError("invalid_request", `${field} ${message}`, [{ path: [field], message }]);
}
