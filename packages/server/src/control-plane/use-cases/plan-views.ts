import type { PolicyRecord, StoreView, TierCount } from "@sluice/sql";
import type { Limit, Policy } from "sluice";
import { isBuiltInDefault, planLimitNames, renderWindow } from "sluice/internal";
import { createYield } from "../create-yield.ts";
import { type DocumentLimit, planVersion, readDocumentLimits } from "../documents/plan-documents.ts";
import { documentFromText } from "../documents/policy-documents.ts";
import type { PlanSummary, PlanView } from "../plan-control.ts";
import type { PolicyDocument } from "../policy-control.ts";
import type { ControlContext } from "./control-context.ts";

/** A stored policy, as far as plans depend on it. */
export interface PlannedDocument {
  readonly record: PolicyRecord;
  readonly document: PolicyDocument;
  readonly limits: readonly DocumentLimit[];
}

/** Reads all policies, between decisions. */
export async function readPlannedDocuments(view: Pick<StoreView, "policies">): Promise<readonly PlannedDocument[]> {
  const yieldIfDue = createYield();
  const documents: PlannedDocument[] = [];
  for (const record of await view.policies()) {
    await yieldIfDue();
    const document = documentFromText(record.document);
    documents.push({ record, document, limits: readDocumentLimits(document) });
  }
  return documents;
}

/** A plan, as these documents, the policy files of this node and these subjects have it. */
export function planView(
  plan: string,
  documents: readonly PlannedDocument[],
  tiers: readonly TierCount[],
  context: Pick<ControlContext, "files">,
): PlanView {
  const limits: PlanView["limits"][number][] = [];
  const without: PlanView["without"][number][] = [];
  for (const { record, limits: known } of documents) {
    for (const { name: limit, by, windows, plans } of known) {
      const named = { policy: record.id, limit, by };
      const own = plans.get(plan);
      if (own !== undefined) limits.push({ ...named, windows: own });
      else if (plans.size > 0) without.push({ ...named, windows, plans: [...plans.keys()] });
    }
  }
  return {
    plan,
    version: planVersion(limits),
    limits,
    without,
    inFiles: limitsInFiles(context).flatMap(({ tiers: inFile, ...named }) => {
      const own = Object.hasOwn(inFile, plan) ? inFile[plan] : undefined;
      return own === undefined ? [] : [{ ...named, windows: own.windows.map(renderWindow) }];
    }),
    subjects: countByDimension([...tiers, ...tiersInFiles(context)].filter(({ tier }) => tier === plan)),
  };
}

/** All plans that a policy or a subject names, by name. */
export function summarizePlans(
  documents: readonly PlannedDocument[],
  tiers: readonly TierCount[],
  context: Pick<ControlContext, "files">,
): readonly PlanSummary[] {
  const limits = new Map<string, { policy: string; limit: string; windows: readonly unknown[] }[]>();
  for (const { record, limits: known } of documents) {
    for (const { name: limit, plans } of known) {
      for (const [plan, windows] of plans) {
        const one = { policy: record.id, limit, windows };
        const list = limits.get(plan);
        if (list === undefined) limits.set(plan, [one]);
        else list.push(one);
      }
    }
  }
  const subjects = [...tiers, ...tiersInFiles(context)];
  const inFiles = limitsInFiles(context).flatMap((one) => Object.keys(one.tiers));
  const names = new Set([...limits.keys(), ...inFiles, ...subjects.map(({ tier }) => tier)]);
  return [...names].sort(byText).map((plan) => {
    const own = limits.get(plan) ?? [];
    return {
      plan,
      version: planVersion(own),
      policies: new Set(own.map(({ policy }) => policy)).size,
      limits: own.length,
      subjects: subjects.reduce((sum, { tier, subjects: count }) => (tier === plan ? sum + count : sum), 0),
    };
  });
}

function limitsInFiles({ files }: Pick<ControlContext, "files">): readonly {
  readonly policy: string;
  readonly limit: string;
  readonly by: readonly string[];
  readonly tiers: Limit["tiers"];
}[] {
  const set = files();
  if (set === undefined) return [];
  const isWritten = set.fallback !== undefined && !isBuiltInDefault(set.fallback);
  const policies: readonly Policy[] = isWritten ? [...set.policies, set.fallback] : set.policies;
  return policies.flatMap(({ id: policy, limits }) => {
    const names = planLimitNames(limits);
    return limits.map(({ by, tiers }, index) => ({ policy, limit: names[index]!, by, tiers }));
  });
}

function tiersInFiles({ files }: Pick<ControlContext, "files">): readonly TierCount[] {
  return (files()?.subjects ?? []).flatMap(({ dimension, tier }) =>
    tier === undefined ? [] : [{ tier, dimension, subjects: 1 }],
  );
}

function countByDimension(counts: readonly TierCount[]): PlanView["subjects"] {
  const byDimension = new Map<string, number>();
  for (const { dimension, subjects } of counts)
    byDimension.set(dimension, (byDimension.get(dimension) ?? 0) + subjects);
  return [...byDimension]
    .sort(([one], [other]) => byText(one, other))
    .map(([dimension, count]) => ({ dimension, count }));
}

function byText(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
