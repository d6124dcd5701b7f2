import type { StoreChange, StoreView, SubjectLimitRecord, SubjectRecord } from "@sluice/sql";
import type { Problem } from "sluice";
import type { Actor } from "../../data-plane/access/actor.ts";
import { VersionConflict } from "../../data-plane/service/version-conflict.ts";
import { createTurns } from "../../turns.ts";
import { subjectTarget } from "../audit/audit-entry.ts";
import { invalidField } from "../control-errors.ts";
import type { ConfigurationControl, CountedSubjects, ImportReport } from "../control-plane.ts";
import { byPrecedence } from "../documents/by-precedence.ts";
import { canonicalSubject } from "../documents/canonical-subject.ts";
import { documentFromText, keptDocument, saysTheSame } from "../documents/policy-documents.ts";
import { type ImportedConfiguration, type ImportedSubject, readImport } from "../documents/read-import.ts";
import { limitsBySubject, renderConfiguration } from "../documents/render-configuration.ts";
import { readStoredRows, underwayStates } from "../documents/stored-rows.ts";
import { findOwnLimit, kindOf, limitsTheSame, maxOverrideMs } from "../documents/write-subject.ts";
import { type AuditedChange, commit, look } from "./commit.ts";
import type { ControlContext } from "./control-context.ts";
import { isShortText } from "./is-short-text.ts";
import { warnOverridden } from "./overridden-by-files.ts";
import { whoOf } from "./who-of.ts";
import {
  auditOf,
  keepDeletions,
  keepPolicies,
  type PolicyWish,
  planPolicy,
  type WrittenPolicy,
} from "./write-policy.ts";

const kind = "configuration";
const maxImportLength = 64 * 1024 * 1024;
/** How many policies and subjects are written as YAML in this thread: a tenth of a millisecond each. */
const maxRenderedHere = 10;
/** How many subjects a report names that were created, and changed, and deleted. */
const maxNamed = 100;

export function createConfigurationControl(context: ControlContext): ConfigurationControl {
  return {
    async export(actor) {
      const deed = { action: "configuration.get", kind, target: "" };
      const nowMs = context.nowMs();
      const { rows, generation } = await look(context, actor, deed, async (view) => {
        const pulse = await view.pulse();
        return { rows: await readStoredRows(view), generation: pulse.generation };
      });
      if (rows.policies.length + rows.subjects.length <= maxRenderedHere)
        return renderConfiguration(rows, generation, nowMs);
      return context.aside.run("renderConfiguration", { rows, generation, nowMs }, whoOf(actor));
    },

    import(actor, text, options = {}) {
      const { mode = "merge", expected, why = "" } = options;
      let imported: ImportedConfiguration = { policies: new Map(), subjects: [] };
      const wish = {
        permission: "administer" as const,
        action: "configuration.import",
        kind,
        target: "",
        policies: true,
        async prepare(): Promise<void> {
          if (mode !== "merge" && mode !== "replace") throw invalidField(["mode"], "must be merge or replace");
          if (text.length > maxImportLength)
            throw invalidField([], `must be at most ${maxImportLength} characters long`);
          imported = isShortText(text) ? readImport(text) : await context.aside.run("readImport", text, whoOf(actor));
        },
      };
      return commit(context, actor, wish, options, async (change) => {
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

function unseen(generation: number): VersionConflict {
  const what = "the configuration";
  const message = `${what} is at generation ${generation}, and this import would change or delete policies or subjects that are there; look at a dry run of it, then send the generation that it told as If-Match, or If-Match: * for whatever there is`;
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
  { mode, why, nowMs, inForce }: ImportSettings & Pick<PolicyWish, "inForce">,
  audit: AuditedChange[],
): Promise<Omit<ImportReport, "subjects" | "generationBefore">> {
  const created: string[] = [];
  const changed: string[] = [];
  const deleted: string[] = [];
  let unchanged = 0;
  // All at once: one by one, ten thousand of them would take long, and keep every other change waiting.
  const stored = new Map((await change.policies()).map((record) => [record.id, record]));
  const underway = new Map((await change.rollouts({ states: underwayStates })).map((one) => [one.policy, one]));
  const newest = await change.newestVersions();
  const found = (id: string) => ({ underway: underway.get(id), newest: newest.get(id) ?? 0 });
  const planned: WrittenPolicy[] = [];
  const turns = createTurns();
  for (const [id, document] of policies) {
    await turns.pass();
    const current = stored.get(id);
    if (current !== undefined && saysTheSame(documentFromText(current.document), keptDocument(id, document))) {
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
    audit.push(...auditOf(written, { action: "policy.put", kind: "policy" }));
  }
  await keepPolicies(change, planned);
  if (mode === "replace") {
    const gone = [...stored.values()].filter(({ id }) => !policies.has(id));
    const deletions = gone.map((current) => ({ current, ...found(current.id) }));
    audit.push(...(await keepDeletions(change, deletions, { author: actor.caller.name, why, atMs: nowMs })));
    for (const { id, document } of gone) {
      deleted.push(id);
      audit.push({ action: "policy.delete", kind: "policy", target: id, before: documentFromText(document) });
    }
  }
  return { created, changed, deleted, unchanged };
}

/** Answers which were created, changed and deleted, and whether anything that a subject has is lost by it. */
async function importSubjects(
  change: StoreChange,
  actor: Actor,
  subjects: readonly ImportedSubject[],
  { mode, why, nowMs, context }: ImportSettings & { readonly context: ControlContext },
  audit: AuditedChange[],
): Promise<Pick<ImportReport, "subjects"> & { readonly loses: boolean }> {
  const named = new Set<string>();
  const created: SubjectName[] = [];
  const changed: SubjectName[] = [];
  const deleted: SubjectName[] = [];
  let loses = false;
  const records: SubjectRecord[] = [];
  const ownLimits: SubjectLimitRecord[] = [];
  const known = await readAllOwn(change, nowMs);
  const turns = createTurns();
  for (const [index, subject] of subjects.entries()) {
    await turns.pass();
    const value = canonicalSubject(subject.dimension, subject.value, context.ipv6PrefixBits);
    const target = subjectTarget(subject.dimension, value);
    const place = ["subjects", index];
    if (named.has(target)) throw invalidField(place, `is ${target}, as is another; write one entry for both`);
    named.add(target);
    const { own: before = nothingOwn, limits: there = [] } = known.get(target) ?? {};
    const written = subject.limits.flatMap(({ policy, limit, windows, untilMs }): readonly SubjectLimitRecord[] => {
      if (untilMs !== undefined && untilMs > nowMs + maxOverrideMs)
        throw invalidField([...place, "limits"], "has an override that does not end within a year from now");
      if (untilMs !== undefined && untilMs <= nowMs) return [];
      const { dimension } = subject;
      return [
        { dimension, value, policy, limit, windows, untilMs, reason: why, author: actor.caller.name, atMs: nowMs },
      ];
    });
    demandNoDoubles(written, place);
    // What stays has the words, the author and the reason that it had.
    const limits = written.map((one) => {
      const same = findOwnLimit(there, one.policy, one.limit, kindOf(one));
      return same !== undefined && limitsTheSame(same, one) ? same : one;
    });
    const after: Own = { tier: subject.tier, limits: limits.toSorted(byPrecedence).map(ownOf) };
    if (JSON.stringify(before) === JSON.stringify(after)) continue;
    // With overrides that have ended and are not swept yet.
    if (known.has(target)) await change.deleteSubject(subject.dimension, value);
    const version = await change.nextGeneration();
    records.push({ dimension: subject.dimension, value, tier: subject.tier, version, changedMs: nowMs });
    ownLimits.push(...limits);
    (saysNothing(before) ? created : changed).push({ dimension: subject.dimension, value });
    loses ||= losesAny(before, after);
    audit.push({ action: "subject.import", kind: "subject", target, before, after });
  }
  await change.putSubject(records);
  await change.putSubjectLimit(ownLimits);
  if (mode === "replace") {
    for (const [target, { dimension, value, own: before }] of known) {
      if (named.has(target) || saysNothing(before)) continue;
      await change.deleteSubject(dimension, value);
      deleted.push({ dimension, value });
      audit.push({ action: "subject.delete", kind: "subject", target, before });
    }
  }
  loses ||= deleted.length > 0;
  return { subjects: { created: counted(created), changed: counted(changed), deleted: counted(deleted) }, loses };
}

type SubjectName = CountedSubjects["first"][number];

function counted(names: readonly SubjectName[]): CountedSubjects {
  return { count: names.length, first: names.slice(0, maxNamed) };
}

/** Of two for the same, one would be lost without a word. */
function demandNoDoubles(limits: readonly SubjectLimitRecord[], place: Problem["path"]): void {
  for (const [index, one] of limits.entries()) {
    const { policy, limit } = one;
    if (findOwnLimit(limits.slice(0, index), policy, limit, kindOf(one)) === undefined) continue;
    const what = kindOf(one) === "override" ? "two overrides" : "two limits for good";
    throw invalidField(
      [...place, "limits"],
      `has ${what} for ${policy}${limit === "" ? "" : ` / ${limit}`}; write one`,
    );
  }
}

interface Own {
  readonly tier: string | undefined;
  readonly limits: readonly OwnLimit[];
}

interface OwnLimit {
  readonly policy: string;
  readonly limit: string;
  readonly windows: unknown;
  readonly until_ms: number | undefined;
}

const nothingOwn: Own = { tier: undefined, limits: [] };

/** So is what is left of a subject whose overrides have ended: it is not in any file, and nobody decides by it. */
function saysNothing({ tier, limits }: Own): boolean {
  return tier === undefined && limits.length === 0;
}

/** Whether something that is there is not there afterwards, or is another. */
function losesAny(before: Own, after: Own): boolean {
  const left = new Set(after.limits.map((limit) => JSON.stringify(limit)));
  const losesTier = before.tier !== undefined && before.tier !== after.tier;
  return losesTier || before.limits.some((limit) => !left.has(JSON.stringify(limit)));
}

interface KeptOwn extends SubjectName {
  readonly own: Own;
  readonly limits: readonly SubjectLimitRecord[];
}

/** What is said of each subject, by its target. */
async function readAllOwn(view: StoreView, nowMs: number): Promise<ReadonlyMap<string, KeptOwn>> {
  const limitsOf = limitsBySubject(await view.subjectLimits(), nowMs);
  const subjects = await view.subjects();
  return new Map(
    subjects.map(({ dimension, value, tier }) => {
      const target = subjectTarget(dimension, value);
      const limits = (limitsOf.get(target) ?? []).toSorted(byPrecedence);
      return [target, { dimension, value, limits, own: { tier, limits: limits.map(ownOf) } }];
    }),
  );
}

function ownOf({ policy, limit, windows, untilMs }: SubjectLimitRecord): OwnLimit {
  return { policy, limit, windows: JSON.parse(windows), until_ms: untilMs };
}
