import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { planLimitNames } from "sluice/internal";
import type { PolicyDocument } from "../policy-control.ts";

/** What plans say, read from documents of policies and written into them. Documents stay as they were written otherwise. */

/** A limit of a document, as far as plans depend on it. */
export interface DocumentLimit {
  readonly name: string;
  readonly by: readonly string[];
  /** Undefined: the limit is for its plans alone. */
  readonly windows: readonly unknown[] | undefined;
  readonly plans: ReadonlyMap<string, readonly unknown[]>;
}

/** The limits of a document, in order. Empty for one that cannot be read. */
export function readDocumentLimits({ limits }: PolicyDocument): readonly DocumentLimit[] {
  const written = Array.isArray(limits) ? limits.map(asRecord) : [];
  const named = written.map((limit) => ({
    ...(typeof limit.name === "string" && { name: limit.name }),
    by: listOf(limit.by).filter((one) => typeof one === "string"),
  }));
  const names = planLimitNames(named);
  return written.map((limit, index) => ({
    name: names[index]!,
    by: named[index]!.by,
    windows: limit.windows === undefined ? undefined : listOf(limit.windows),
    plans: new Map(Object.entries(asRecord(limit.tiers)).map(([plan, tier]) => [plan, listOf(asRecord(tier).windows)])),
  }));
}

/**
 * The document with exactly these windows for a plan, by the name of the limit. The same object if it has them already.
 */
export function withPlan(
  document: PolicyDocument,
  plan: string,
  windowsByLimit: ReadonlyMap<string, readonly unknown[]>,
): PolicyDocument {
  const known = readDocumentLimits(document);
  const limits = known.length === 0 ? [] : (document.limits as readonly Readonly<Record<string, unknown>>[]);
  const changed = limits.map((limit, index) => {
    const { name, plans } = known[index]!;
    const windows = windowsByLimit.get(name);
    return isDeepStrictEqual(plans.get(plan), windows) ? limit : withTier(limit, plan, windows);
  });
  return changed.every((limit, index) => limit === limits[index]) ? document : { ...document, limits: changed };
}

/** A tier that is there keeps its place. */
function withTier(
  limit: Readonly<Record<string, unknown>>,
  plan: string,
  windows: readonly unknown[] | undefined,
): Readonly<Record<string, unknown>> {
  const tiers: Record<string, unknown> = { ...asRecord(limit.tiers), [plan]: { windows } };
  if (windows === undefined) delete tiers[plan];
  if (Object.keys(tiers).length > 0) return { ...limit, tiers };
  const { tiers: _, ...rest } = limit;
  return rest;
}

/** A limit of a plan, by which its version is made. */
export interface PlanContent {
  readonly policy: string;
  readonly limit: string;
  readonly windows: readonly unknown[];
}

/**
 * The version of a plan: a digest of its limits, in 48 bits, so that it fits an ETag like other versions. A caller
 * that saw the same limits has seen the plan, whatever else changed in its policies.
 */
export function planVersion(limits: readonly PlanContent[]): number {
  if (limits.length === 0) return 0;
  const content = limits.map(({ policy, limit, windows }) => JSON.stringify([policy, limit, windows])).toSorted();
  return createHash("sha256").update(content.join("\n")).digest().readUIntBE(0, 6) + 1;
}

function listOf(written: unknown): readonly unknown[] {
  if (written === undefined) return [];
  return Array.isArray(written) ? written : [written];
}

function asRecord(written: unknown): Readonly<Record<string, unknown>> {
  const isRecord = typeof written === "object" && written !== null && !Array.isArray(written);
  return isRecord ? (written as Readonly<Record<string, unknown>>) : {};
}
