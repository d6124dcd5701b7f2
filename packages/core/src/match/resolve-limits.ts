import type { ResolvedLimit } from "../counters/counter-store.ts";
import { rawDimension, readDimension } from "../request/read-dimension.ts";
import { joinSubject } from "../subject/join-subject.ts";
import type { CompiledLimit, CompiledWindow } from "./compiled.ts";
import { segmentsOf } from "./endpoint-trie.ts";
import { findWindows, type KnownSubjects } from "./find-windows.ts";

/** What a request says to the limits of one policy after another. It and what follows from it wait along: see `Resolution`. */
export class Asked {
  readonly dimensions: Readonly<Record<string, string>>;
  readonly ipv6PrefixBits: number;
  /** Undefined where nothing is known of anybody. */
  readonly known: KnownSubjects | undefined;
  readonly epochMs: () => number;

  constructor(
    dimensions: Readonly<Record<string, string>>,
    ipv6PrefixBits: number,
    known: KnownSubjects | undefined,
    epochMs: () => number,
  ) {
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

  constructor(limit: CompiledLimit, windows: readonly CompiledWindow[], subject: string, cost: number, group: number) {
    this.limit = limit;
    this.windows = windows;
    this.subject = subject;
    this.cost = cost;
    this.group = group;
  }
}

/**
 * Adds what the limits of a policy come to. Gives back the limit that denies the request for a dimension that it lacks,
 * if there is one; then nothing is added.
 */
export function resolveLimits(
  to: ResolvedLimit[],
  limits: readonly CompiledLimit[],
  { dimensions, ipv6PrefixBits, known, epochMs }: Asked,
  path: string,
  cost: number,
  group: number,
): CompiledLimit | undefined {
  const before = to.length;
  for (const limit of limits) {
    const values = valuesOf(limit, dimensions, path, ipv6PrefixBits);
    if (limit.source.missing === "share" || !values.includes("")) {
      const windows =
        known !== undefined || limit.tiers.size > 0
          ? findWindows(limit, values, rawDimension(dimensions, "tier"), known, epochMs)
          : limit.windows;
      to.push(new AskedLimit(limit, windows, joinSubject(values), cost, group));
    } else if (limit.source.missing === "deny") {
      to.length = before;
      return limit;
    }
  }
  return undefined;
}

/** The values of the limit's dimensions; "" for one that is missing. */
function valuesOf(
  limit: CompiledLimit,
  dimensions: Asked["dimensions"],
  path: string,
  ipv6PrefixBits: number,
): string[] {
  const { by } = limit.source;
  const values: string[] = [];
  for (let i = 0; i < by.length; i++) {
    const segment = limit.segments[i]!;
    // A policy that was asked for by name need not match the path, and then takes what it is given.
    const fromPath = segment < 0 ? undefined : segmentsOf(path)[segment];
    values.push(fromPath ?? readDimension(dimensions, by[i]!, ipv6PrefixBits));
  }
  return values;
}
