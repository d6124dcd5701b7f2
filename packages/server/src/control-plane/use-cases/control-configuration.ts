import type { StoreChange, SubjectRecord } from "@sluice/sql";
import type { Actor } from "../../data-plane/access/actor.ts";
import { VersionConflict } from "../../data-plane/service/version-conflict.ts";
import { subjectTarget } from "../audit/audit-entry.ts";
import { invalidField } from "../control-errors.ts";
import type { ConfigurationControl, ImportReport } from "../control-plane.ts";
import { createYield } from "../create-yield.ts";
import { planImport } from "../documents/plan-import.ts";
import {
  countSubjects,
  demandOnce,
  hasNothing,
  type PlannedSubject,
  planSubject,
  readStoredSubjects,
  type SubjectName,
} from "../documents/plan-subject.ts";
import { documentFromText, keptDocument, saysTheSame, withStoredOwner } from "../documents/policy-documents.ts";
import { type ImportedConfiguration, type ImportedSubject, readImport } from "../documents/read-import.ts";
import { renderConfiguration } from "../documents/render-configuration.ts";
import { currentPercent, readStoredRows, underwayStates } from "../documents/stored-rows.ts";
import { putTier } from "../documents/write-subject.ts";
import { actorKey } from "./actor-key.ts";
import { type AuditedChange, commit, readStore } from "./commit.ts";
import type { ControlContext } from "./control-context.ts";
import { isShortText } from "./is-short-text.ts";
import { warnOverridden } from "./overridden-by-file.ts";
import {
  auditWrittenPolicy,
  type PolicyWrite,
  planPolicy,
  storeDeletions,
  storePolicies,
  type WrittenPolicy,
} from "./write-policy.ts";

const kind = "configuration";
const maxImportLength = 64 * 1024 * 1024;
/** How many policies and subjects are rendered as YAML in this thread: a tenth of a millisecond each. */
const maxRenderedHere = 10;
/** So few stored policies and subjects are compared with a short file in this thread. */
const maxPlannedHere = 50;

export function createConfigurationControl(context: ControlContext): ConfigurationControl {
  return {
    async export(actor) {
      const audited = { action: "configuration.get", kind, target: "" };
      const nowMs = context.nowMs();
      const { rows, generation } = await readStore(context, actor, audited, async (view) => {
        const pulse = await view.pulse();
        return { rows: await readStoredRows(view), generation: pulse.generation };
      });
      if (rows.policies.length + rows.subjects.length <= maxRenderedHere)
        return renderConfiguration(rows, generation, nowMs);
      return context.thread.run("renderConfiguration", { rows, generation, nowMs }, actorKey(actor));
    },

    async plan(actor, text, { mode = "merge" } = {}) {
      const deed = { action: "configuration.plan.get", kind, target: "" };
      const nowMs = context.nowMs();
      demandImportable(text, mode);
      const { stored, generation } = await readStore(context, actor, deed, async (view) => ({
        generation: (await view.pulse()).generation,
        stored: {
          policies: (await view.policies()).map(({ id, version, document }) => ({ id, version, document })),
          rollouts: (await view.rollouts({ states: underwayStates })).map(({ id, policy, toVersion, ...rollout }) => ({
            ...{ id, policy, toVersion },
            percent: currentPercent({ id, policy, toVersion, ...rollout }),
          })),
          subjects: await readStoredSubjects(view, nowMs),
        },
      }));
      const request = { body: text, mode, stored, nowMs, ipv6PrefixBits: context.ipv6PrefixBits };
      const isSmall = isShortText(text) && stored.policies.length + stored.subjects.size <= maxPlannedHere;
      const plan = isSmall ? planImport(request) : await context.thread.run("planImport", request, actorKey(actor));
      return { ...plan, generation };
    },

    import(actor, text, options = {}) {
      const { mode = "merge", expected, why = "" } = options;
      let imported: ImportedConfiguration = { policies: new Map(), subjects: [] };
      const request = {
        permission: "administer" as const,
        action: "configuration.import",
        kind,
        target: "",
        policies: true,
        async prepare(): Promise<void> {
          demandImportable(text, mode);
          imported = isShortText(text)
            ? readImport(text)
            : await context.thread.run("readImport", text, actorKey(actor));
        },
      };
      return commit(context, actor, request, options, async (change) => {
        const { generation } = await change.pulse();
        if (expected !== undefined && expected !== "any" && expected !== generation)
          throw new VersionConflict("the configuration", expected, generation);
        const nowMs = context.nowMs();
        const audit: AuditedChange[] = [];
        const { policySet: inForce } = context.limiter.snapshot;
        const settings = { mode, why, nowMs, inForce };
        const policies = await importPolicies(change, actor, imported.policies, settings, audit);
        const { created, changed, deleted } = policies;
        const { subjects, loses } = await importSubjects(
          change,
          actor,
          imported.subjects,
          { mode, why, nowMs, context },
          audit,
        );
        const overwrites = changed.length > 0 || deleted.length > 0 || loses;
        if (overwrites && expected === undefined && options.dryRun !== true) throw unseen(generation);
        return {
          value: { ...policies, subjects, generationBefore: generation },
          changed: audit.length > 0,
          warnings: warnOverridden(context, [...created, ...changed, ...deleted]),
          audit: [...audit, { after: { mode, ...policies, subjects } }],
        };
      });
    },
  };
}

function demandImportable(text: string, mode: string): void {
  if (mode !== "merge" && mode !== "replace") throw invalidField(["mode"], "must be merge or replace");
  if (text.length > maxImportLength) throw invalidField([], `must be at most ${maxImportLength} characters long`);
}

function unseen(generation: number): VersionConflict {
  const what = "the configuration";
  const message = `${what} is at generation ${generation}, and this import would change or delete existing policies or subjects; do a dry run, then send the generation that it returned as If-Match, or If-Match: * for any`;
  return new VersionConflict(what, undefined, generation, { message });
}

interface ImportSettings {
  readonly mode: "merge" | "replace";
  readonly why: string;
  readonly nowMs: number;
}

async function importPolicies(
  change: StoreChange,
  actor: Actor,
  policies: ImportedConfiguration["policies"],
  { mode, why, nowMs, inForce }: ImportSettings & Pick<PolicyWrite, "inForce">,
  audit: AuditedChange[],
): Promise<Omit<ImportReport, "subjects" | "generationBefore">> {
  const created: string[] = [];
  const changed: string[] = [];
  const deleted: string[] = [];
  let unchanged = 0;
  // All at once: one by one, ten thousand of them would take long, and hold up every other change.
  const stored = new Map((await change.policies()).map((record) => [record.id, record]));
  const underway = new Map((await change.rollouts({ states: underwayStates })).map((one) => [one.policy, one]));
  const newest = await change.newestVersions();
  const found = (id: string) => ({ underway: underway.get(id), newest: newest.get(id) ?? 0 });
  const planned: WrittenPolicy[] = [];
  const yieldIfDue = createYield();
  for (const [id, imported] of policies) {
    await yieldIfDue();
    const current = stored.get(id);
    const before = current === undefined ? undefined : documentFromText(current.document);
    const document = withStoredOwner(keptDocument(id, imported), before);
    if (before !== undefined && saysTheSame(before, document)) {
      unchanged += 1;
      continue;
    }
    const written = planPolicy(
      actor,
      { id, document, expected: "any", why, inForce },
      { current, ...found(id) },
      nowMs,
    );
    planned.push(written);
    (written.before === undefined ? created : changed).push(id);
    audit.push(...auditWrittenPolicy(written, { action: "policy.put", kind: "policy" }));
  }
  await storePolicies(change, planned);
  if (mode === "replace") {
    const gone = [...stored.values()].filter(({ id }) => !policies.has(id));
    const deletions = gone.map((current) => ({ current, ...found(current.id) }));
    audit.push(...(await storeDeletions(change, deletions, { author: actor.caller.name, why, atMs: nowMs })));
    for (const { id, document } of gone) {
      deleted.push(id);
      audit.push({ action: "policy.delete", kind: "policy", target: id, before: documentFromText(document) });
    }
  }
  return { created, changed, deleted, unchanged };
}

/** Returns which were created, changed and deleted, and whether anything stored about a subject is lost. */
async function importSubjects(
  change: StoreChange,
  actor: Actor,
  subjects: readonly ImportedSubject[],
  { mode, why, nowMs, context }: ImportSettings & { readonly context: ControlContext },
  audit: AuditedChange[],
): Promise<Pick<ImportReport, "subjects"> & { readonly loses: boolean }> {
  const named = new Set<string>();
  const written: PlannedSubject[] = [];
  const records: SubjectRecord[] = [];
  const stored = await readStoredSubjects(change, nowMs);
  const settings = { why, author: actor.caller.name, nowMs, ipv6PrefixBits: context.ipv6PrefixBits };
  const yieldIfDue = createYield();
  for (const [index, subject] of subjects.entries()) {
    await yieldIfDue();
    const planned = planSubject(subject, index, stored, settings);
    const { dimension, value, tier, target, before, after } = planned;
    demandOnce(target, index, named);
    if (planned.action === "unchanged") continue;
    // Includes overrides that have ended and are not deleted yet.
    if (planned.isStored) await change.deleteSubject(dimension, value);
    const version = await change.nextGeneration();
    records.push({ dimension, value, tier, version, changedMs: nowMs });
    written.push(planned);
    audit.push({ action: "subject.import", kind: "subject", target, before, after });
  }
  await change.putSubject(records);
  await change.putSubjectLimit(written.flatMap(({ limits }) => limits));
  const deleted: SubjectName[] = [];
  if (mode === "replace") {
    const blocked = new Set((await change.blocks()).map((one) => subjectTarget(one.dimension, one.value)));
    for (const [target, { dimension, value, own: before }] of stored) {
      if (named.has(target) || hasNothing(before)) continue;
      await change.deleteSubject(dimension, value);
      // A block is in no file, so it stays; and so does its subject, where it is found and ended.
      if (blocked.has(target)) await putTier(change, dimension, value, undefined, nowMs, true);
      deleted.push({ dimension, value });
      audit.push({ action: "subject.delete", kind: "subject", target, before });
    }
  }
  return {
    subjects: {
      created: countSubjects(written.filter(({ action }) => action === "create")),
      changed: countSubjects(written.filter(({ action }) => action === "change")),
      deleted: countSubjects(deleted),
    },
    loses: deleted.length > 0 || written.some(({ loses }) => loses),
  };
}
