import type { DenialNote } from "@sluice/sql";
import { identifyingDimensions, redactText, renderWindow } from "sluice/internal";
import type { SampledDenial } from "../../observe/denials/denial-samples.ts";
import { makeTimedId } from "../audit/make-id.ts";
import { denialSubject } from "./denial-subject.ts";

/** What a denial may make the store hold. */
const maxDimensions = 16;
const maxValueLength = 256;
const maxNameLength = 128;
const maxFoundBy = 8;

/** Dimensions that describe what was asked for, and not who asked. */
const describing: ReadonlySet<string> = new Set(["endpoint", "method", "tier", "region"]);

export interface NoteOptions {
  readonly node: string;
  readonly ipv6PrefixBits: number | undefined;
}

/** A sampled denial as it is stored: bounded, without secrets, and with the subjects by which it is found. */
export function noteFromSample(sample: SampledDenial, { node, ipv6PrefixBits }: NoteOptions): DenialNote {
  const { request, decision, shadow, atMs } = sample;
  const names = orderNames(Object.keys(request.dimensions ?? {}), sample.by).slice(0, maxDimensions);
  const values = names.flatMap((name) => {
    const value = request.dimensions?.[name];
    if (typeof value !== "string" || name.length > maxNameLength) return [];
    return [{ dimension: name, subject: denialSubject(name, value, ipv6PrefixBits) }];
  });
  const { policy = "", version, scope = "", reason, retryAfterMs } = shadow ?? decision;
  const { window } = shadow === undefined ? decision : { window: undefined };
  return {
    record: {
      ...{ id: makeTimedId(atMs), atMs, sinceMs: sample.sinceMs, node },
      ...{ policy, version, limit: shorten(scope), by: sample.by.slice(0, maxDimensions), reason },
      dimensions: Object.fromEntries(values.map(({ dimension, subject }) => [dimension, shown(dimension, subject)])),
      requestId: request.id === undefined ? undefined : shorten(request.id),
      window: window === undefined ? "" : shorten(window.name ?? renderWindow(window)),
      cost: Math.ceil(decision.cost),
      capacity: shadow === undefined ? floor(decision.limit) : undefined,
      remaining: shadow === undefined ? floor(decision.limitRemaining) : undefined,
      retryAfterMs: floor(retryAfterMs),
      degraded: decision.degraded,
      shadow: shadow !== undefined,
      denials: sample.denials,
      mixed: sample.mixed,
    },
    foundBy: values.filter(({ dimension }) => !describing.has(dimension)).slice(0, maxFoundBy),
  };
}

/** First what the limit counts by, and who is asking. */
function orderNames(names: readonly string[], by: readonly string[]): readonly string[] {
  const known = new Set([...by, ...identifyingDimensions, ...describing].filter((name) => names.includes(name)));
  return [...known, ...names.filter((name) => !known.has(name))];
}

function shown(dimension: string, value: string): string {
  return shorten(dimension === "endpoint" ? redactText(value) : value);
}

function shorten(text: string): string {
  return text.length <= maxValueLength ? text : `${text.slice(0, maxValueLength - 1)}…`;
}

function floor(value: number | undefined): number | undefined {
  return value === undefined || !Number.isFinite(value) ? undefined : Math.floor(value);
}
