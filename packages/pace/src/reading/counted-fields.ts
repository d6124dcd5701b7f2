import type { HeaderFields } from "./header-fields.ts";
import { type LimitReading, maxLimits } from "./limit-reading.ts";
import { maxWaitMs, readResetAfterMs } from "./read-wait.ts";

/** `X-RateLimit-Remaining-Tokens`: the prefix, and the words after it. */
const fieldForm = /^((?:[a-z0-9]+-){0,2}rate-?limit)-([a-z0-9-]+)$/;

/** Parameters and a list of policies may follow a value: `100;w=60`, `10, 10;w=1, 50;w=60`. */
const amountForm = /^\s*(-?\d{1,15})(?:\.\d*)?\s*(?:$|[,;])/;
const windowForm = /;\s*w=(\d{1,10})\b/;

const windowWords: ReadonlyMap<string, number> = new Map([
  ["second", 1000],
  ["minute", 60_000],
  ["hour", 3_600_000],
  ["day", 86_400_000],
]);

/** What the words after the prefix may be, besides the limit's own name. */
const parts = ["limit", "remaining", "reset"] as const;

interface Written {
  limit?: string;
  remaining?: string;
  reset?: string;
}

/**
 * Limits with one field per number: `RateLimit-Limit` (up to draft 6), `X-RateLimit-Limit`, `X-Rate-Limit-Limit`, and
 * prefixes of vendors; for one limit, or for several with another word: `X-RateLimit-Limit-Tokens`. If an answer has
 * several prefixes, they describe the same limits, and the first in this order with a remainder counts.
 */
export function readCountedFields(fields: HeaderFields, nowMs: number): readonly LimitReading[] {
  const prefixes = [...collectByPrefix(fields)].sort(([one], [other]) => rank(one) - rank(other));
  let first: readonly LimitReading[] = [];
  for (const [prefix, byName] of prefixes) {
    const limits: LimitReading[] = [];
    for (const [name, written] of byName) {
      const limit = readLimit(name === "" ? fields.get(`${prefix}-resource`)?.[0] : name, written, nowMs);
      if (limit !== undefined) limits.push(limit);
    }
    if (limits.some(({ remaining }) => remaining !== undefined)) return limits;
    if (first.length === 0) first = limits;
  }
  return first;
}

function rank(prefix: string): number {
  const known = ["ratelimit", "x-ratelimit", "x-rate-limit"].indexOf(prefix);
  return known < 0 ? 3 : known;
}

/** The values, by prefix and by the limit's name, which is empty if there is only one. */
function collectByPrefix(fields: HeaderFields): ReadonlyMap<string, ReadonlyMap<string, Written>> {
  const prefixes = new Map<string, Map<string, Written>>();
  for (const [field, values] of fields) {
    const [, prefix, rest] = fieldForm.exec(field) ?? [];
    const value = values[0];
    if (prefix === undefined || rest === undefined || value === undefined) continue;
    const words = rest.split("-");
    // `X-RateLimit-Reset-After` is always seconds from now, so it is preferred.
    const after = words.length > 1 && words.at(-1) === "after" && words.at(-2) === "reset";
    if (after) words.pop();
    const part = parts.find((one) => words.includes(one));
    if (part === undefined) continue;
    words.splice(words.indexOf(part), 1);
    const byName = prefixes.get(prefix) ?? new Map<string, Written>();
    prefixes.set(prefix, byName);
    const name = words.join("-");
    if (!byName.has(name) && byName.size >= maxLimits) continue;
    const written = byName.get(name) ?? {};
    byName.set(name, written);
    if (part !== "reset" || after || written.reset === undefined) written[part] = value;
  }
  return prefixes;
}

function readLimit(name: string | undefined, written: Written, nowMs: number): LimitReading | undefined {
  const limit = readAmount(written.limit);
  const left = readAmount(written.remaining);
  // A negative remainder means exhausted if there is a limit, and unlimited if there is none.
  if (limit !== undefined && limit < 0) return undefined;
  if (limit === undefined && left !== undefined && left < 0) return undefined;
  const remaining = left === undefined ? undefined : Math.max(0, left);
  const resetAfterMs = written.reset === undefined ? undefined : readResetAfterMs(written.reset, nowMs);
  if (limit === undefined && remaining === undefined && resetAfterMs === undefined) return undefined;
  const windowMs = findWindowMs(name, written);
  const label = name === undefined || name === "" || !/^[\x20-\x7e]+$/.test(name) ? undefined : name;
  return {
    ...(label !== undefined && { name: label }),
    ...(limit !== undefined && { limit }),
    ...(remaining !== undefined && { remaining }),
    ...(resetAfterMs !== undefined && { resetAfterMs }),
    ...(windowMs !== undefined && { windowMs }),
    ...(label?.includes("tokens") && { unit: "tokens" }),
  };
}

function readAmount(text: string | undefined): number | undefined {
  const digits = amountForm.exec(text ?? "")?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** From its name (`X-RateLimit-Limit-Minute`), or from the listed policy with the same quota. */
function findWindowMs(name: string | undefined, { limit = "", remaining = "" }: Written): number | undefined {
  const word = windowWords.get(name ?? "");
  if (word !== undefined) return word;
  const quota = readAmount(limit);
  const policies = limit.split(",").filter((policy) => windowForm.test(policy) && readAmount(policy) === quota);
  const seconds = windowForm.exec(policies.length === 1 ? policies[0]! : remaining)?.[1];
  return seconds === undefined ? undefined : Math.min(maxWaitMs, Number(seconds) * 1000);
}
