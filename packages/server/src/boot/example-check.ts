import type { CheckRequest, Policy, PolicySet } from "sluice";

/** A check that the first policy with a limit applies to, for a newcomer to try. */
export function exampleCheck(policySet: PolicySet): CheckRequest {
  const policy = policySet.policies.find(isExemplary);
  if (policy === undefined) return { dimensions: { user: "u1" } };
  const { match } = policy;
  const dimensions: Record<string, string> = {};
  if (match.endpoint !== undefined) dimensions.endpoint = exampleEndpoint(match.endpoint);
  if (match.methods.length > 0) dimensions.method = match.methods[0]!;
  for (const name of listDimensions(policy)) {
    const wanted = match.dimensions[name]?.[0];
    dimensions[name] ??= wanted === undefined || wanted === "*" ? (examples[name] ?? "example") : wanted;
  }
  const domain = match.domain === "default" || match.domain === "*" ? {} : { domain: match.domain };
  return { ...domain, dimensions };
}

/** Whether a policy limits the requests that it matches, so that it is worth trying. */
function isExemplary({ limits, mode, match }: Policy): boolean {
  return limits.length > 0 && mode === "enforce" && match.named !== true;
}

const examples: Readonly<Record<string, string>> = {
  user: "u1",
  tenant: "acme",
  org: "acme",
  ip: "203.0.113.7",
  api_key: "k1",
  region: "eu",
  endpoint: "/",
  method: "GET",
};

/** Every dimension that the policy matches or counts by, except for parameters of its endpoint. */
function listDimensions({ match, limits }: Policy): ReadonlySet<string> {
  const names = new Set(Object.keys(match.dimensions));
  for (const limit of limits) for (const name of limit.by) names.add(name);
  for (const [, parameter] of (match.endpoint ?? "").matchAll(/\{([^{}]+)\}/g)) names.delete(parameter!);
  if (names.delete("subject")) names.add("user");
  return names;
}

function exampleEndpoint(pattern: string): string {
  return pattern.replace(/\/\*\*$/, "/1").replaceAll(/\{[^{}]+\}|\*/g, "1");
}
