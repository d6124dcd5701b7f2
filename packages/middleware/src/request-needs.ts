import type { Policy } from "sluice";
import type { AskedLimiter } from "./limits.ts";

/** Which parts of a request a decision may depend on. All of them if the policies are not known here. */
export interface RequestNeeds {
  readonly forEndpoint: boolean;
  readonly forMethod: boolean;
  readonly forAddress: boolean;
}

export const everything: RequestNeeds = { forEndpoint: true, forMethod: true, forAddress: true };

export function requestNeeds(limiter: AskedLimiter, domain: string | undefined): RequestNeeds {
  const { snapshot } = limiter;
  if (snapshot === undefined) return everything;
  const { policies, fallback, subjects } = snapshot.policySet;
  if (subjects.length > 0) return everything;
  const all = fallback === undefined ? policies : [...policies, fallback];
  return {
    forEndpoint: all.some(
      (policy) => policy.match.endpoint !== undefined || policy.cost.length > 0 || namesDimension(policy, "endpoint"),
    ),
    forMethod: all.some((policy) => policy.match.methods.length > 0 || namesDimension(policy, "method")),
    forAddress: asksForAddress(limiter, domain) !== false,
  };
}

/**
 * Whether any policy that may apply in the domain counts or lists by the client's address; undefined if the policies are
 * not known here. The fallback never applies if another policy always does.
 */
export function asksForAddress({ snapshot }: AskedLimiter, domain = "default"): boolean | undefined {
  if (snapshot === undefined) return undefined;
  const { policies, fallback } = snapshot.policySet;
  const ofDomain = policies.filter(({ match }) => match.domain === domain || match.domain === "*");
  if (ofDomain.some(namesAddress)) return true;
  return fallback !== undefined && !ofDomain.some(appliesAlways) && namesAddress(fallback);
}

/** A client without a better name is identified by its address: see `subject`. */
function namesAddress(policy: Policy): boolean {
  return namesDimension(policy, "ip") || namesDimension(policy, "subject");
}

function namesDimension({ match, limits, localLimits = [], allow, deny, rollout }: Policy, name: string): boolean {
  if (rollout?.by === name) return true;
  if ([match.dimensions, allow, deny].some((values) => name in values)) return true;
  return [...limits, ...localLimits].some(({ by }) => by.includes(name));
}

function appliesAlways({ match, mode, validFromMs, rollout }: Policy): boolean {
  const { endpoint, methods, dimensions } = match;
  return (
    mode === "enforce" &&
    validFromMs === undefined &&
    rollout === undefined &&
    endpoint === undefined &&
    methods.length === 0 &&
    Object.keys(dimensions).length === 0
  );
}
