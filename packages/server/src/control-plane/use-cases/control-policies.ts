import type { PolicyRecord, RolloutRecord, StoreView, VersionRecord } from "@sluice/sql";
import { type Problem, SluiceError } from "sluice";
import type { Actor } from "../../data-plane/access/actor.ts";
import { invalidField, invalidPolicies, notFound } from "../control-errors.ts";
import type {
  Changed,
  PolicyControl,
  PolicyDocument,
  PolicyPutOptions,
  RolloutView,
  StoredPolicy,
  StoredVersion,
} from "../control-plane.ts";
import { composeInTurns, placeOf } from "../documents/compose-policy-set.ts";
import { diffDocuments } from "../documents/diff-documents.ts";
import { documentFromText, keptDocument, ownerOf } from "../documents/policy-documents.ts";
import { inspectDocument } from "../documents/read-documents.ts";
import { readStoredRows, underwayStates } from "../documents/stored-rows.ts";
import { commit, look, type Outcome, seenFrom } from "./commit.ts";
import type { ControlContext } from "./control-context.ts";
import { demandReach } from "./demand-reach.ts";
import { isOverriddenByFiles, warnOverridden } from "./overridden-by-files.ts";
import { limitBySize, limitOf, pageOf } from "./page.ts";
import { briefRolloutView, rolloutView } from "./rollout-view.ts";
import { whoOf } from "./who-of.ts";
import { auditOf, deletePolicy, type PolicyWish, type WrittenPolicy, writePolicy } from "./write-policy.ts";

const kind = "policy";

/** Two longer documents are compared in another thread: writing them as YAML takes a millisecond for each few kilobytes. */
const maxComparedHere = 4 * 1024;

export function createPolicyControl(context: ControlContext): PolicyControl {
  function put(
    actor: Actor,
    action: string,
    id: string,
    options: PolicyPutOptions,
    wishOf: (view: StoreView) => Promise<Pick<PolicyWish, "document" | "revertOf">>,
    sent?: PolicyDocument,
  ): Promise<Changed<StoredPolicy>> {
    const { expected, rollout, ruleKey, why = "" } = options;
    let inspected: Inspected | undefined;
    const wish = {
      permission: "edit" as const,
      action,
      kind,
      target: id,
      policies: true,
      at: placeOf(id),
      async prepare(): Promise<void> {
        // What is short is read within the change.
        if (sent === undefined || JSON.stringify(sent).length <= maxReadHere) return;
        inspected = await inspect(context, actor, id, keptDocument(id, sent));
        if (inspected.problems.length > 0) throw invalidPolicies(inspected.problems);
      },
    };
    return commit(context, actor, wish, options, async (change): Promise<Outcome<StoredPolicy>> => {
      const nowMs = context.nowMs();
      const wanted = await wishOf(change);
      await demandReach(actor.caller, change, context.files(), { id, document: wanted.document });
      const { policySet: inForce } = context.limiter.snapshot;
      const { warnings: known } = inspected ?? {};
      const wanting = { id, expected, rollout, ruleKey, why, inForce, warnings: known, ...wanted };
      const written = await writePolicy(change, actor, wanting, nowMs);
      const version = await change.version(id, written.version);
      const warnings = [...warnOverridden(context, [id]), ...written.warnings];
      const rolling = written.rollout && (await rolloutView(change, written.rollout, nowMs));
      const value = writtenView(context, written, version, rolling);
      if (!written.changed) return { value, changed: false, warnings };
      return { value, changed: true, warnings, audit: auditOf(written) };
    });
  }

  return {
    list: (actor, query = {}) =>
      look(context, actor, { action: "policy.list", kind, target: "" }, async (view) => {
        const most = limitOf(query);
        const { after, owner } = query;
        const records = await view.policies({ after, owner, limit: most + 1 });
        const limit = limitBySize(records, most);
        const underway = new Map((await view.rollouts({ states: underwayStates })).map((one) => [one.policy, one]));
        const versions = new Map<string, VersionRecord | undefined>();
        for (const { id, version } of records.slice(0, limit)) versions.set(id, await view.version(id, version));
        return pageOf(
          records,
          limit,
          ({ id }) => id,
          (record) => {
            const rollout = underway.get(record.id);
            return policyView(context, record, versions.get(record.id), rollout && briefRolloutView(rollout));
          },
        );
      }),

    get: (actor, id) =>
      look(context, actor, { action: "policy.get", kind, target: id }, async (view) => {
        const record = await view.policy(id);
        if (record === undefined || record.deleted) throw notFound(`policy ${id}`);
        const [underway] = await view.rollouts({ policy: id, states: underwayStates, limit: 1 });
        const rollout = underway && (await rolloutView(view, underway, context.nowMs()));
        return policyView(context, record, await view.version(id, record.version), rollout);
      }),

    put: (actor, id, document, options = {}) =>
      put(actor, "policy.put", id, options, async () => ({ document }), document),

    delete(actor, id, options = {}) {
      const { expected, why = "" } = options;
      const wish = { permission: "edit" as const, action: "policy.delete", kind, target: id, policies: true };
      return commit(context, actor, wish, options, async (change) => {
        const { before, ended } = await deletePolicy(
          change,
          actor,
          { id, expected, why, inForce: context.limiter.snapshot.policySet },
          context.nowMs(),
        );
        const warnings = warnOverridden(context, [id]);
        return { value: undefined, changed: true, warnings, audit: [{ before }, ...ended] };
      });
    },

    versions: (actor, id, query = {}) =>
      look(context, actor, { action: "policy.versions.list", kind, target: id }, async (view) => {
        const most = limitOf(query);
        const record = await view.policy(id);
        if (record === undefined) throw notFound(`policy ${id}`);
        const records = await view.versions(id, { after: query.after, limit: most + 1 });
        const rollouts = await findRolloutsTo(view, id, records);
        return pageOf(
          records,
          limitBySize(records, most),
          ({ version }) => String(version),
          (version) => versionView(version, record, rollouts.get(version.version)),
        );
      }),

    version: (actor, id, version) =>
      look(context, actor, { action: "policy.versions.get", kind, target: id }, async (view) => {
        const record = await view.policy(id);
        if (record === undefined) throw notFound(`policy ${id}`);
        const found = await findVersion(view, id, version);
        const rollouts = await findRolloutsTo(view, id, [found]);
        return versionView(found, record, rollouts.get(version));
      }),

    diff: (actor, id, from, to) =>
      look(context, actor, { action: "policy.diff.get", kind, target: id }, async (view) => {
        const record = await view.policy(id);
        if (record === undefined) throw notFound(`policy ${id}`);
        const last = to ?? record.version;
        const first = from ?? last - 1;
        // Before the first version there was nothing.
        const before = first === 0 ? undefined : await findVersion(view, id, first);
        const after = last === 0 ? undefined : await findVersion(view, id, last);
        return { from: first, to: last, before, after };
      }).then(async ({ from: first, to: last, before, after }) => {
        const input = { before: documentOf(before), after: documentOf(after) };
        const isShort = (before?.document.length ?? 0) + (after?.document.length ?? 0) <= maxComparedHere;
        const compared = isShort
          ? diffDocuments(input.before, input.after)
          : await context.aside.run("diffDocuments", input, whoOf(actor));
        return { policy: id, from: first, to: last, ...compared };
      }),

    revert: (actor, id, version, options = {}) =>
      put(actor, "policy.revert", id, options, async (view) => {
        const record = await findVersion(view, id, version);
        if (record.deleted)
          throw invalidField(["version"], `${version} deleted the policy, and says nothing to go back to; delete it`);
        return { document: documentFromText(record.document), revertOf: version };
      }),

    validate: (actor, document) =>
      look(context, actor, { action: "policy.validate.get", kind, target: "" }, async (view) =>
        validate(context, actor, view, document),
      ),
  };
}

/** Longer documents are read in another thread: with a megabyte of what is wrong, that takes a tenth of a second. */
const maxReadHere = 16 * 1024;

interface Inspected {
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

/** What is wrong with a document for itself, and what may surprise in it. */
async function inspect(
  { aside }: ControlContext,
  actor: Actor,
  id: string,
  document: PolicyDocument,
): Promise<Inspected> {
  const text = JSON.stringify(document);
  const input = { id, text };
  return text.length <= maxReadHere ? inspectDocument(input) : aside.run("inspectDocument", input, whoOf(actor));
}

async function validate(
  context: ControlContext,
  actor: Actor,
  view: StoreView,
  written: PolicyDocument,
): Promise<{ problems: readonly Problem[]; warnings: readonly Problem[] }> {
  const id = typeof written.id === "string" ? written.id : "";
  let document: PolicyDocument;
  try {
    document = id === "" ? written : keptDocument(id, written);
  } catch (error) {
    if (error instanceof SluiceError) return { problems: error.problems, warnings: [] };
    throw error;
  }
  const { problems, warnings } = await inspect(context, actor, id, document);
  if (problems.length > 0) return { problems, warnings: [] };
  const rows = await readStoredRows(view);
  const options = { files: context.files(), reader: context.reader };
  const nowMs = context.nowMs();
  const record: PolicyRecord = {
    id,
    version: 1,
    document: JSON.stringify(document),
    owner: ownerOf(document),
    ruleKey: undefined,
    deleted: false,
    changedMs: nowMs,
  };
  const others = rows.policies.filter((one) => one.id !== id);
  const underway = rows.underway.filter(({ rollout }) => rollout.policy !== id);
  const after = (await composeInTurns({ ...rows, policies: [...others, record], underway }, nowMs, options)).problems;
  // What was wrong before is looked for only where something is wrong.
  const before = after.length === 0 ? [] : (await composeInTurns(rows, nowMs, options)).problems;
  const known = new Set(before.map((problem) => JSON.stringify(problem)));
  const fresh = after.filter((problem) => !known.has(JSON.stringify(problem)));
  return { problems: fresh.map((problem) => seenFrom(problem, placeOf(id))), warnings };
}

async function findVersion(view: StoreView, id: string, version: number): Promise<VersionRecord> {
  const record = Number.isSafeInteger(version) ? await view.version(id, version) : undefined;
  if (record === undefined) throw notFound(`version ${version} of policy ${id}`);
  return record;
}

function documentOf(version: VersionRecord | undefined): PolicyDocument | undefined {
  return version === undefined || version.deleted ? undefined : documentFromText(version.document);
}

/** The rollout of each of these versions that had one. */
async function findRolloutsTo(
  view: StoreView,
  policy: string,
  versions: readonly VersionRecord[],
): Promise<ReadonlyMap<number, RolloutRecord>> {
  const found = versions.map(({ version }) => version);
  const between = { from: Math.min(...found), to: Math.max(...found) };
  const rollouts = found.length === 0 ? [] : await view.rollouts({ policy, toVersions: between });
  return new Map(rollouts.map((rollout) => [rollout.toVersion, rollout]));
}

function versionView(version: VersionRecord, record: PolicyRecord, rollout: RolloutRecord | undefined): StoredVersion {
  return {
    policy: version.policy,
    version: version.version,
    document: documentOf(version),
    author: version.author,
    why: version.why,
    atMs: version.atMs,
    revertOf: version.revertOf,
    current: version.version === record.version,
    rollout: rollout && { id: rollout.id, state: rollout.state, shadow: rollout.shadow },
  };
}

/** What was written: also where it is not in force yet. */
function writtenView(
  context: ControlContext,
  { record, version, after }: WrittenPolicy,
  written: VersionRecord | undefined,
  rollout: RolloutView | undefined,
): StoredPolicy {
  const text = JSON.stringify(after);
  return policyView(context, { ...record, version, document: text, owner: ownerOf(after) }, written, rollout);
}

function policyView(
  context: ControlContext,
  record: PolicyRecord,
  version: VersionRecord | undefined,
  rollout: RolloutView | undefined,
): StoredPolicy {
  return {
    id: record.id,
    version: record.version,
    document: documentFromText(record.document),
    owner: record.owner,
    author: version?.author ?? "",
    why: version?.why ?? "",
    changedMs: record.changedMs,
    rollout,
    overriddenBy: isOverriddenByFiles(context, record.id) ? "file" : undefined,
  };
}
