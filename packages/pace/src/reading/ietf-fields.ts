import type { HeaderFields } from "./header-fields.ts";
import { type LimitReading, maxLimits } from "./limit-reading.ts";
import { maxWaitMs } from "./read-wait.ts";
import { type BareItem, type Member, parseDictionary, parseList } from "./structured-fields.ts";

/** Limits from `RateLimit` and `RateLimit-Policy`, in the form of drafts 8 to 11 or of draft 7. */
export function readIetfFields(fields: HeaderFields): readonly LimitReading[] {
  // Fields with the same name form one list.
  const standing = fields.get("ratelimit")?.join(", ");
  const policies = parseList(fields.get("ratelimit-policy")?.join(", ") ?? "") ?? [];
  const members = parseList(standing ?? "");
  const pairs = members === undefined ? parseDictionary(standing ?? "") : undefined;
  if (pairs !== undefined) return readDraft7(pairs, policies);
  const named = readDraft11(members ?? [], policies);
  return named.length > 0 ? named : readDraft7(new Map(), policies);
}

/** `RateLimit-Policy: "burst";q=100;w=60` and `RateLimit: "burst";r=50;t=30`, joined by name. */
function readDraft11(standing: readonly Member[], policies: readonly Member[]): readonly LimitReading[] {
  const byName = new Map<string, LimitReading>();
  for (const { item, parameters } of policies) {
    const name = findName(item);
    const limit = wholeNumber(parameters.get("q"));
    if (name === undefined || limit === undefined || byName.size >= maxLimits) continue;
    const windowMs = milliseconds(parameters.get("w"));
    const unit = findName(parameters.get("qu"));
    byName.set(name, {
      name,
      limit,
      ...(windowMs !== undefined && { windowMs }),
      ...(unit !== undefined && unit !== "requests" && { unit }),
    });
  }
  for (const { item, parameters } of standing) {
    const name = findName(item);
    const remaining = wholeNumber(parameters.get("r"));
    if (name === undefined || remaining === undefined) continue;
    if (!byName.has(name) && byName.size >= maxLimits) continue;
    const resetAfterMs = milliseconds(parameters.get("t"));
    byName.set(name, { name, ...byName.get(name), remaining, ...(resetAfterMs !== undefined && { resetAfterMs }) });
  }
  return [...byName.values()];
}

/** `RateLimit: limit=100, remaining=50, reset=5` and `RateLimit-Policy: 100;w=60, 1000;w=3600`. */
function readDraft7(standing: ReadonlyMap<string, Member>, policies: readonly Member[]): readonly LimitReading[] {
  const limit = wholeNumber(standing.get("limit")?.item);
  const remaining = wholeNumber(standing.get("remaining")?.item);
  const resetAfterMs = milliseconds(standing.get("reset")?.item);
  const others: LimitReading[] = [];
  for (const { item, parameters } of policies.slice(0, maxLimits - 1)) {
    const quota = wholeNumber(item);
    const windowMs = milliseconds(parameters.get("w"));
    if (quota !== undefined) others.push({ limit: quota, ...(windowMs !== undefined && { windowMs }) });
  }
  if (remaining === undefined) return others;
  // The policy is identified by its quota, if only one has it.
  const same = others.filter((policy) => policy.limit === limit);
  const own = same.length === 1 ? same[0] : undefined;
  const speaking: LimitReading = {
    ...(limit !== undefined && { limit }),
    ...own,
    remaining,
    ...(resetAfterMs !== undefined && { resetAfterMs }),
  };
  return [speaking, ...others.filter((policy) => policy !== own)];
}

/** Names are strings; in drafts 8 to 10 there were tokens as well. */
function findName(item: BareItem | undefined): string | undefined {
  return item?.kind === "string" || item?.kind === "token" ? item.value : undefined;
}

function wholeNumber(item: BareItem | undefined): number | undefined {
  return item?.kind === "integer" && item.value >= 0 ? item.value : undefined;
}

function milliseconds(item: BareItem | undefined): number | undefined {
  const seconds = wholeNumber(item);
  return seconds === undefined ? undefined : Math.min(maxWaitMs, seconds * 1000);
}
