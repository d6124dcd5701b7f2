import type { StoreChange } from "@sluice/sql";
import { type Problem, SluiceError } from "sluice";
import { findPlanLimit, printable, tierName } from "sluice/internal";
import { parseShape } from "sluice/shape";
import type { Actor } from "../../data-plane/access/actor.ts";
import { VersionConflict } from "../../data-plane/service/version-conflict.ts";
import type { Changed } from "../change.ts";
import { invalidPolicies, notFound } from "../control-errors.ts";
import { createYield } from "../create-yield.ts";
import { diffDocuments } from "../documents/diff-documents.ts";
import { withPlan } from "../documents/plan-documents.ts";
import { underwayStates } from "../documents/stored-rows.ts";
import type { ChangedPlan, PlanControl, PlanLimitRequest, PlanOptions, PlanView } from "../plan-control.ts";
import { type AuditedChange, commit, readStore } from "./commit.ts";
import type { ControlContext } from "./control-context.ts";
import { warnOverridden } from "./overridden-by-file.ts";
import { parsePageLimit, renderPage } from "./page.ts";
import { type PlannedDocument, planView, readPlannedDocuments, summarizePlans } from "./plan-views.ts";
import { briefRolloutView } from "./rollout-view.ts";
import { auditWrittenPolicy, planPolicy, storePolicies, type WrittenPolicy } from "./write-policy.ts";

const kind = "plan";

/** So many differences are rendered for one answer: a tenth of a millisecond each. */
const mostDiffs = 20;

export function createPlanControl(context: ControlContext): PlanControl {
  return {
    list: (actor, query = {}) =>
      readStore(context, actor, { action: "plan.list", kind, target: "" }, async (view) => {
        const most = parsePageLimit(query);
        const plans = summarizePlans(await readPlannedDocuments(view), await view.countTiers(), context);
        const { after } = query;
        const rest = after === undefined ? plans : plans.filter(({ plan }) => plan > after);
        return renderPage(
          rest,
          most,
          ({ plan }) => plan,
          (one) => one,
        );
      }),

    get: (actor, plan) =>
      readStore(context, actor, { action: "plan.get", kind, target: plan }, async (view) => {
        const found = planView(plan, await readPlannedDocuments(view), await view.countTiers(), context);
        if (isUnknown(found)) throw notFound(`plan ${plan}`);
        return found;
      }),

    put: (actor, plan, limits, options = {}) => writePlan(context, actor, plan, limits, "plan.put", options),
    delete: (actor, plan, options = {}) => writePlan(context, actor, plan, undefined, "plan.delete", options),
  };
}

function isUnknown({ limits, inFiles, subjects }: PlanView): boolean {
  return limits.length === 0 && inFiles.length === 0 && subjects.length === 0;
}

/** `limits` undefined: deletes the plan. */
function writePlan(
  context: ControlContext,
  actor: Actor,
  plan: string,
  limits: readonly PlanLimitRequest[] | undefined,
  action: string,
  options: PlanOptions,
): Promise<Changed<ChangedPlan>> {
  const request = { permission: "edit" as const, action, kind, target: plan, policies: true };
  return commit(context, actor, request, options, async (change) => {
    parseShape(tierName, plan, "invalid_request", "the name of the plan");
    const documents = await readPlannedDocuments(change);
    const tiers = await change.countTiers();
    const before = planView(plan, documents, tiers, context);
    if (limits === undefined && before.version === 0) throw notFound(`plan ${plan}`);
    const { expected } = options;
    if (expected !== before.version && !(expected === undefined && before.version === 0))
      throw new VersionConflict(`plan ${plan}`, expected, before.version);

    const wanted = findWanted(documents, limits ?? []);
    const written = await planPolicies(context, actor, change, plan, documents, wanted, options);
    await storePolicies(change, written);
    const records = new Map(written.map(({ record }) => [record.id, record]));
    // While a version is rolled out, the old one is what the plan says.
    const stored = documents.map(({ record }) => records.get(record.id) ?? record);
    const after = planView(plan, await readPlannedDocuments({ policies: async () => stored }), tiers, context);
    const value = { plan: after, policies: written.map(changedPolicy) };
    const warnings = [
      ...warnOverridden(context, [...records.keys()]),
      ...(limits === undefined ? warnDeleted(before) : warnWithout(after)),
      ...written.flatMap((one) => one.warnings.filter(({ path }) => path.includes("tiers"))),
    ];
    if (written.length === 0) return { value, changed: false, warnings };
    const audit: AuditedChange[] = [
      {
        before: before.version === 0 ? undefined : before.limits,
        after: limits === undefined ? undefined : after.limits,
      },
      ...written.flatMap((one) => auditWrittenPolicy(one, { action: "policy.put", kind: "policy" })),
    ];
    return { value, changed: true, warnings, audit };
  });
}

/** The windows of the plan by policy and limit, with the place of each in the request. */
type Wanted = ReadonlyMap<
  string,
  ReadonlyMap<string, { readonly windows: readonly unknown[]; readonly index: number }>
>;

/** Throws `invalid_policies` if a limit does not exist, or is named twice. */
function findWanted(documents: readonly PlannedDocument[], limits: readonly PlanLimitRequest[]): Wanted {
  const known = new Map(documents.map((one) => [one.record.id, one.limits]));
  const wanted = new Map<string, Map<string, { windows: readonly unknown[]; index: number }>>();
  const problems: Problem[] = [];
  for (const [index, { policy, limit, windows }] of limits.entries()) {
    const note = (field: string, message: string): void =>
      void problems.push({ path: ["limits", index, field], message });
    const names = known.get(policy)?.map(({ name }) => name);
    if (names === undefined) {
      note("policy", `is ${policy}, but the policy store has no policy with that id`);
      continue;
    }
    const found = findPlanLimit(policy, names, limit);
    if (typeof found !== "number") {
      note("limit", found.problem);
      continue;
    }
    const name = names[found]!;
    const own = wanted.get(policy) ?? new Map();
    wanted.set(policy, own);
    if (own.has(name)) note("limit", `is ${name} of policy ${policy} a second time; name each limit once`);
    own.set(name, { windows, index });
  }
  if (problems.length > 0) throw invalidPolicies(problems);
  return wanted;
}

async function planPolicies(
  context: ControlContext,
  actor: Actor,
  change: StoreChange,
  plan: string,
  documents: readonly PlannedDocument[],
  wanted: Wanted,
  { why = "", rollout }: PlanOptions,
): Promise<readonly WrittenPolicy[]> {
  const { policySet: inForce } = context.limiter.snapshot;
  const nowMs = context.nowMs();
  const underway = new Map((await change.rollouts({ states: underwayStates })).map((one) => [one.policy, one]));
  const newest = await change.newestVersions();
  const yieldIfDue = createYield();
  const written: WrittenPolicy[] = [];
  for (const { record, document, limits } of documents) {
    await yieldIfDue();
    const { id } = record;
    const own = wanted.get(id) ?? new Map();
    const windows = new Map([...own].map(([name, one]) => [name, one.windows]));
    const next = withPlan(document, plan, windows);
    if (next === document) continue;
    const found = { current: record, underway: underway.get(id), newest: newest.get(id) ?? 0 };
    const request = { id, document: next, expected: "any" as const, why, rollout, inForce };
    try {
      written.push(planPolicy(actor, request, found, nowMs));
    } catch (error) {
      const places = limits.map(({ name }) => own.get(name)?.index);
      throw placedInPlan(error, id, places);
    }
  }
  return written;
}

/** Problems with windows of the plan, at their places in the request; others with the policy in front. */
function placedInPlan(error: unknown, policy: string, places: readonly (number | undefined)[]): unknown {
  if (!(error instanceof SluiceError) || error.code !== "invalid_policies") return error;
  return invalidPolicies(
    error.problems.map((problem) => {
      const [list, limit, tiers, _plan, ...rest] = problem.path;
      const index = list === "limits" && tiers === "tiers" ? places[limit as number] : undefined;
      if (index !== undefined) return { ...problem, path: ["limits", index, ...rest] };
      return { ...problem, path: ["policies", policy, ...problem.path] };
    }),
  );
}

function changedPolicy(
  { record, version, before, after, rollout }: WrittenPolicy,
  index: number,
): ChangedPlan["policies"][number] {
  return {
    policy: record.id,
    version,
    diff: index < mostDiffs ? diffDocuments(before, after).text : undefined,
    rollout: rollout && briefRolloutView(rollout),
  };
}

const mostNamed = 10;

function warnWithout({ plan, without, limits }: PlanView): readonly Problem[] {
  // A plan without limits is not missing anywhere in particular.
  if (without.length === 0 || limits.length === 0) return [];
  const policies = [...new Set(without.map(({ policy }) => policy))];
  const named = policies.slice(0, mostNamed).join(", ");
  const more = policies.length > mostNamed ? ` and ${policies.length - mostNamed} more` : "";
  const message = `has no windows in ${named}${more}, which have windows for other plans; there, subjects of ${printable(plan)} have what holds for everyone`;
  return [{ path: ["limits"], message }];
}

function warnDeleted({ plan, subjects }: PlanView): readonly Problem[] {
  if (subjects.length === 0) return [];
  const counted = subjects.map(({ dimension, count }) => `${count} by ${dimension}`).join(", ");
  const message = `subjects still have the tier ${printable(plan)} (${counted}); they have what holds for everyone`;
  return [{ path: [], message }];
}
