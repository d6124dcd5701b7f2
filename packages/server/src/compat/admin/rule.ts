import type { Algorithm } from "sluice";
import { parseIp, renderIp } from "sluice/internal";

/**
 * One limit of one dimension at one endpoint: the content of a rule, in any vocabulary. Rules that differ only by tier
 * share one policy, whose limit has separate windows for each tier.
 */
export interface Rule {
  /** Id of the policy. */
  readonly policy: string;
  /** Undefined: subjects without a tier that has a rule. */
  readonly tier: string | undefined;
  readonly name: string | undefined;
  readonly dimension: string;
  /** One value of the dimension, or `*` for each of them separately. */
  readonly value: string;
  /** A pattern, or `*` for every request, including one without an endpoint. */
  readonly endpoint: string;
  readonly algorithm: Algorithm;
  readonly limit: number;
  readonly windowSeconds: number;
  /** Equal to `limit` by default. */
  readonly burst: number;
}

/** Stands for all values, and for all endpoints. */
export const everything = "*";

/** Another spelling of the dimension `api_key`. */
export const otherApiKey = "apikey";

/** Dimensions that describe the request, and not its sender; and one that would be mistaken for another. */
const requestDimensions: ReadonlySet<string> = new Set([
  "endpoint",
  "method",
  "domain",
  "tier",
  "scope",
  "resource",
  "prefix",
  "subject",
  "__proto__",
  otherApiKey,
]);

/** Whether a rule can be about subjects of this dimension. */
export function isSubjectDimension(dimension: string): boolean {
  return !requestDimensions.has(dimension);
}

/** Names of policies and tiers do not contain it. */
const between = "~";

/** `orders`, and for a tier `orders~premium`. */
export function renderRuleId({ policy, tier }: Pick<Rule, "policy" | "tier">): string {
  return tier === undefined ? policy : `${policy}${between}${tier}`;
}

export function splitRuleId(id: string): Pick<Rule, "policy" | "tier"> {
  const at = id.indexOf(between);
  return at === -1 ? { policy: id, tier: undefined } : { policy: id.slice(0, at), tier: id.slice(at + 1) };
}

/** The unique key of a policy that is written as a rule: dimension, value and endpoint, in canonical spelling. */
export function renderRuleKey({ dimension, value, endpoint }: Pick<Rule, "dimension" | "value" | "endpoint">): string {
  return JSON.stringify([dimension, canonicalValue(dimension, value), canonicalPattern(endpoint)]);
}

function canonicalValue(dimension: string, value: string): string {
  if (dimension !== "ip") return value;
  const ip = parseIp(value);
  return ip === undefined ? value.toLowerCase() : renderIp(ip);
}

/** Case does not matter, and neither does the name of a wildcard segment. */
function canonicalPattern(endpoint: string): string {
  const pattern = endpoint.toLowerCase().replaceAll(/\{[^/{}]*\}/g, "*");
  return pattern.length > 1 && pattern.endsWith("/") ? pattern.slice(0, -1) : pattern;
}
