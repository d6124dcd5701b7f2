import { type Algorithm, parseIp, renderIp } from "sluice";

/**
 * One limit of one dimension at one endpoint: what a rule says, in whichever words. Rules that differ by their tier alone are
 * of one policy, whose limit has other windows for each tier.
 */
export interface Rule {
  /** Id of the policy. */
  readonly policy: string;
  /** Undefined: whoever has no tier with a rule of its own. */
  readonly tier: string | undefined;
  readonly name: string | undefined;
  readonly dimension: string;
  /** Whose: one value of the dimension, or `*` for each of them, by itself. */
  readonly value: string;
  /** A pattern, or `*` for every request, also one without an endpoint. */
  readonly endpoint: string;
  readonly algorithm: Algorithm;
  readonly limit: number;
  readonly windowSeconds: number;
  /** Equal to `limit` where nothing was said. */
  readonly burst: number;
}

/** Stands for everybody, and for every endpoint. */
export const everything = "*";

/** Another spelling of the dimension `api_key`. */
export const otherApiKey = "apikey";

/** Dimensions that tell what is asked for, not who asks; and one that would be taken for another. */
const notWho: ReadonlySet<string> = new Set([
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

/** Whether a rule can be about such subjects. */
export function isWho(dimension: string): boolean {
  return !notWho.has(dimension);
}

/** Neither policies nor tiers have it in their names. */
const between = "~";

/** `orders`, and for a tier `orders~premium`. */
export function ruleIdOf({ policy, tier }: Pick<Rule, "policy" | "tier">): string {
  return tier === undefined ? policy : `${policy}${between}${tier}`;
}

export function splitRuleId(id: string): Pick<Rule, "policy" | "tier"> {
  const at = id.indexOf(between);
  return at === -1 ? { policy: id, tier: undefined } : { policy: id.slice(0, at), tier: id.slice(at + 1) };
}

/** What no two policies that are written as rules share: dimension, value and endpoint, each in one spelling. */
export function ruleKeyOf({ dimension, value, endpoint }: Pick<Rule, "dimension" | "value" | "endpoint">): string {
  return JSON.stringify([dimension, canonicalValue(dimension, value), canonicalPattern(endpoint)]);
}

function canonicalValue(dimension: string, value: string): string {
  if (dimension !== "ip") return value;
  const ip = parseIp(value);
  return ip === undefined ? value.toLowerCase() : renderIp(ip);
}

/** Letters are matched in either case, and it does not matter what a segment of any value is called. */
function canonicalPattern(endpoint: string): string {
  const pattern = endpoint.toLowerCase().replaceAll(/\{[^/{}]*\}/g, "*");
  return pattern.length > 1 && pattern.endsWith("/") ? pattern.slice(0, -1) : pattern;
}
