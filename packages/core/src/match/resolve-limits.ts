import type { ResolvedLimit } from "../counters/counter-store.ts";
import type { CompiledLimit, CompiledWindow, DistinctDimension } from "../limits/compiled-limit.ts";
import type { Policy } from "../policy/policy.ts";
import { rawDimension, readDimension } from "../request/read-dimension.ts";
import { withoutEmptySegments } from "../subject/endpoint-path.ts";
import { joinSubject } from "../subject/join-subject.ts";
import { splitPath } from "./endpoint-trie.ts";
import { findWindows, type KnownSubjects } from "./find-windows.ts";
import { subjectWithin } from "./subject-within.ts";

/** What a request says to the limits of one policy after another. It waits together with its `Resolution`. */
export class Asked {
  readonly domain: string | undefined;
  readonly dimensions: Readonly<Record<string, string>>;
  readonly ipv6PrefixBits: number;
  /** Undefined if no subject is known. */
  readonly known: KnownSubjects | undefined;
  readonly epochMs: () => number;

  constructor(
    domain: string | undefined,
    dimensions: Readonly<Record<string, string>>,
    ipv6PrefixBits: number,
    known: KnownSubjects | undefined,
    epochMs: () => number,
  ) {
    this.domain = domain;
    this.dimensions = dimensions;
    this.ipv6PrefixBits = ipv6PrefixBits;
    this.known = known;
    this.epochMs = epochMs;
  }
}

class AskedLimit implements ResolvedLimit {
  readonly limit: CompiledLimit;
  readonly windows: readonly CompiledWindow[];
  readonly subject: string;
  readonly cost: number;
  readonly group: number;
  readonly value: string | undefined;

  constructor(
    limit: CompiledLimit,
    windows: readonly CompiledWindow[],
    subject: string,
    cost: number,
    group: number,
    value: string | undefined,
  ) {
    this.limit = limit;
    this.windows = windows;
    this.subject = subject;
    this.cost = cost;
    this.group = group;
    this.value = value;
  }
}

/**
 * Adds the resolved limits of a policy. A limit that counts by the path counts every reading that leads to the policy:
 * otherwise each `//x/login` would have a separate counter although it reaches the same `/login`. Returns the limit
 * that denies the request for a missing dimension, if there is one; then nothing is added.
 */
export function resolveLimits(
  to: ResolvedLimit[],
  limits: readonly CompiledLimit[],
  { domain, dimensions, ipv6PrefixBits, known, epochMs }: Asked,
  paths: readonly string[],
  cost: number,
  group: number,
  onMissing?: OnMissing,
): CompiledLimit | undefined {
  const before = to.length;
  for (const limit of limits) {
    const readings = paths.length > 1 && countsByPath(limit) ? paths.length : 1;
    const subjects = readings > 1 ? new Set<string>() : undefined;
    for (let i = 0; i < readings; i++) {
      const path = paths[i]!;
      if (i > 0 && !hasSegments(limit, path)) continue;
      const values = readValues(limit, dimensions, path, readings > 1, ipv6PrefixBits);
      const value = limit.distinct && readValue(limit.distinct, dimensions, path, readings > 1, ipv6PrefixBits);
      const lacks = values.includes("") || value === "";
      if (onMissing !== undefined && i === 0 && lacks) tellMissing(limit, values, value, onMissing);
      if (limit.source.missing === "share" || !lacks) {
        const joined = joinSubject(values);
        const subject = limit.fallback ? subjectWithin(joined, values.length, domain, dimensions) : joined;
        if (subjects?.has(subject)) continue;
        subjects?.add(subject);
        const windows =
          known !== undefined || limit.tiers.size > 0
            ? findWindows(limit, values, rawDimension(dimensions, "tier"), known, epochMs)
            : limit.windows;
        // The limit is for tiers alone, and the subject has none of them.
        if (windows.length === 0) continue;
        to.push(new AskedLimit(limit, windows, subject, cost, group, value));
      } else if (limit.source.missing === "deny") {
        to.length = before;
        return limit;
      }
    }
  }
  return undefined;
}

/** Called for a dimension that a limit counts by and the request lacks. Must not throw. */
export type OnMissing = (policy: Policy, dimension: string) => void;

function tellMissing(
  { policy, source }: CompiledLimit,
  values: readonly string[],
  value: string | undefined,
  onMissing: OnMissing,
): void {
  for (let i = 0; i < values.length; i++) if (values[i] === "") onMissing(policy, source.by[i]!);
  if (value === "") onMissing(policy, source.distinct!);
}

/** The dimensions of a limit that a request lacks. */
export function missingIn(limit: CompiledLimit, asked: Asked, path: string): readonly string[] {
  const { dimensions, ipv6PrefixBits } = asked;
  const { distinct } = limit;
  const values = readValues(limit, dimensions, path, false, ipv6PrefixBits);
  const missing = limit.source.by.filter((_, i) => values[i] === "");
  const lacksValue = distinct && readValue(distinct, dimensions, path, false, ipv6PrefixBits) === "";
  return lacksValue ? [...missing, distinct.dimension] : missing;
}

function countsByPath({ source: { by }, segments }: CompiledLimit): boolean {
  return by.includes("endpoint") || segments.some((segment) => segment >= 0);
}

/** Always true unless the policy was asked for by name. */
function hasSegments({ segments }: CompiledLimit, path: string): boolean {
  return Math.max(...segments) < splitPath(path).length;
}

/** The values of the limit's dimensions; "" for one that is missing. */
export function readValues(
  limit: CompiledLimit,
  dimensions: Asked["dimensions"],
  path: string,
  isAmbiguous: boolean,
  ipv6PrefixBits: number,
): string[] {
  const { by } = limit.source;
  const values: string[] = [];
  for (let i = 0; i < by.length; i++)
    values.push(readOne(by[i]!, limit.segments[i]!, dimensions, path, isAmbiguous, ipv6PrefixBits));
  return values;
}

/** The value of the dimension whose different values are counted; "" if it is missing. */
function readValue(
  { dimension, segment }: DistinctDimension,
  dimensions: Asked["dimensions"],
  path: string,
  isAmbiguous: boolean,
  ipv6PrefixBits: number,
): string {
  return readOne(dimension, segment, dimensions, path, isAmbiguous, ipv6PrefixBits);
}

function readOne(
  dimension: string,
  segment: number,
  dimensions: Asked["dimensions"],
  path: string,
  isAmbiguous: boolean,
  ipv6PrefixBits: number,
): string {
  if (segment < 0 && isAmbiguous && dimension === "endpoint") return withoutEmptySegments(path);
  // A policy asked for by name need not match the path, and then takes the value it is given.
  const fromPath = segment < 0 ? undefined : splitPath(path)[segment];
  return fromPath ?? readDimension(dimensions, dimension, ipv6PrefixBits);
}
