import type { CheckRequest, Policy, PolicySet } from "sluice";
import { maxDimensionLength, SluiceError } from "sluice";

/** The prefixes that policies of a domain are for, in the order of their file; `*` is any. */
type Prefixes = ReadonlySet<string>;

const prefixesOf = new WeakMap<PolicySet, ReadonlyMap<string, Prefixes>>();

export const defaultDomain = "default";
const maxDomainLength = 128;

/**
 * What a key of `ratelimiter.v1` asks. A key `prefix:rest` belongs to the policy of its prefix where the domain has one, any
 * other to the domain's first. Throws `invalid_request` where domain or key are none.
 */
export function readLimitKey(
  policySet: PolicySet,
  { domain, limitKey }: { readonly domain?: string | undefined; readonly limitKey: string },
): Pick<CheckRequest, "domain" | "dimensions"> {
  refuse("domain", domain ?? defaultDomain, maxDomainLength);
  refuse("limit_key", limitKey, maxDimensionLength);
  const prefixes = domainsOf(policySet).get(domain ?? defaultDomain);
  if (prefixes === undefined) return { domain, dimensions: { limit_key: limitKey } };
  const colon = limitKey.indexOf(":");
  const named = colon === -1 ? limitKey : limitKey.slice(0, colon);
  const [first] = prefixes;
  const isFor = prefixes.has(named) || (prefixes.has("*") && named !== "");
  return { domain, dimensions: { prefix: isFor ? named : first!, limit_key: limitKey } };
}

/** The prefix that a policy is for. Undefined where it is for none in particular. */
export function prefixOf(policy: Policy): string | undefined {
  return policy.match.dimensions.prefix?.[0];
}

function domainsOf(policySet: PolicySet): ReadonlyMap<string, Prefixes> {
  let domains = prefixesOf.get(policySet);
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
    prefixesOf.set(policySet, domains);
  }
  return domains;
}

function refuse(field: string, value: string, maxLength: number): void {
  if (value.length >= 1 && value.length <= maxLength) return;
  const message = `must have 1 to ${maxLength} characters, but has ${value.length}`;
  throw new SluiceError("invalid_request", `${field} ${message}`, [{ path: [field], message }]);
}
