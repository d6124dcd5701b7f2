import type { DisabledRecord, PolicyRecord, RolloutRecord, StoreView, VersionRecord } from "@sluice/sql";
import { type CheckRequest, type Explanation, type Problem, SluiceError } from "sluice";
import { demand } from "../../data-plane/access/access.ts";
import type { Actor } from "../../data-plane/access/actor.ts";
import type { Changed, ExpectingOptions, Listed, PageQuery } from "../change.ts";
import { invalidField, invalidPolicies, notFound } from "../control-errors.ts";
import { composeInTurns, policyPath } from "../documents/compose-policy-set.ts";
import { diffDocuments } from "../documents/diff-documents.ts";
import { documentFromText, findOwner, keptDocument } from "../documents/policy-documents.ts";
import { inspectDocument } from "../documents/read-documents.ts";
import { readStoredRows, underwayStates } from "../documents/stored-rows.ts";
import type {
  PolicyControl,
  PolicyDiff,
  PolicyDocument,
  PolicyPutOptions,
  StoredPolicy,
  StoredVersion,
} from "../policy-control.ts";
import type { RolloutView } from "../rollout-control.ts";
import { actorKey } from "./actor-key.ts";
import { auditRefusals, commit, type Outcome, readStore, seenFrom } from "./commit.ts";
import type { ControlContext } from "./control-context.ts";
import { isDisabledNow } from "./control-disabling.ts";
import { isOverriddenByFile, warnOverridden } from "./overridden-by-file.ts";
import { limitBySize, parsePageLimit, renderPage } from "./page.ts";
import { requireReach } from "./require-reach.ts";
import { briefRolloutView, rolloutView } from "./rollout-view.ts";
import { auditWrittenPolicy, deletePolicy, type PolicyWrite, type WrittenPolicy, writePolicy } from "./write-policy.ts";

const kind = "policy";

/**
 * Longer documents are compared in another thread: rendering them as YAML takes a millisecond for each few kilobytes.
 */
const maxComparedHere = 4 * 1024;

export function createPolicyControl(context: ControlContext): PolicyControl {
  return new StoredPolicies(context);
}

/** Reads go through `readStore`, and changes through `commit`. */
class StoredPolicies implements PolicyControl {
  readonly #context: ControlContext;

  constructor(context: ControlContext) {
    this.#context = context;
  }

  list(actor: Actor, query: PageQuery & { readonly owner?: string | undefined } = {}): Promise<Listed<StoredPolicy>> {
    return this.#read(actor, "policy.list", "", async (view) => {
      const most = parsePageLimit(query);
      const { after, owner } = query;
      const records = await view.policies({ after, owner, limit: most + 1 });
      const limit = limitBySize(records, most);
      const underway = new Map((await view.rollouts({ states: underwayStates })).map((one) => [one.policy, one]));
      const versions = new Map<string, VersionRecord | undefined>();
      const disabled = await view.disabled();
      for (const { id, version } of records.slice(0, limit)) versions.set(id, await view.version(id, version));
      return renderPage(
        records,
        limit,
        ({ id }) => id,
        (record) => {
          const rollout = underway.get(record.id);
          const version = versions.get(record.id);
          return policyView(this.#context, record, version, rollout && briefRolloutView(rollout), disabled);
        },
      );
    });
  }

  get(actor: Actor, id: string): Promise<StoredPolicy> {
    return this.#read(actor, "policy.get", id, async (view) => {
      const record = await view.policy(id);
      if (record === undefined || record.deleted) throw notFound(`policy ${id}`);
      const [underway] = await view.rollouts({ policy: id, states: underwayStates, limit: 1 });
      const rollout = underway && (await rolloutView(view, underway, this.#context.nowMs()));
      const version = await view.version(id, record.version);
      return policyView(this.#context, record, version, rollout, await view.disabled());
    });
  }

  put(
    actor: Actor,
    id: string,
    document: PolicyDocument,
    options: PolicyPutOptions = {},
  ): Promise<Changed<StoredPolicy>> {
    return this.#put(actor, "policy.put", id, options, async () => ({ document }), document);
  }

  delete(actor: Actor, id: string, options: ExpectingOptions = {}): Promise<Changed<undefined>> {
    const { expected, why = "" } = options;
    const request = { permission: "edit" as const, action: "policy.delete", kind, target: id, policies: true };
    const { limiter, nowMs } = this.#context;
    return commit(this.#context, actor, request, options, async (change) => {
      const inForce = limiter.snapshot.policySet;
      const { before, ended } = await deletePolicy(change, actor, { id, expected, why, inForce }, nowMs());
      const warnings = warnOverridden(this.#context, [id]);
      return { value: undefined, changed: true, warnings, audit: [{ before }, ...ended] };
    });
  }

  versions(actor: Actor, id: string, query: PageQuery = {}): Promise<Listed<StoredVersion>> {
    return this.#read(actor, "policy.versions.list", id, async (view) => {
      const most = parsePageLimit(query);
      const record = await findPolicy(view, id);
      const records = await view.versions(id, { after: query.after, limit: most + 1 });
      const rollouts = await findRolloutsTo(view, id, records);
      return renderPage(
        records,
        limitBySize(records, most),
        ({ version }) => String(version),
        (version) => versionView(version, record, rollouts.get(version.version)),
      );
    });
  }

  version(actor: Actor, id: string, version: number): Promise<StoredVersion> {
    return this.#read(actor, "policy.versions.get", id, async (view) => {
      const record = await findPolicy(view, id);
      const found = await findVersion(view, id, version);
      const rollouts = await findRolloutsTo(view, id, [found]);
      return versionView(found, record, rollouts.get(version));
    });
  }

  async diff(actor: Actor, id: string, from?: number, to?: number): Promise<PolicyDiff> {
    const found = await this.#read(actor, "policy.diff.get", id, async (view) => {
      const record = await findPolicy(view, id);
      const last = to ?? record.version;
      const first = from ?? last - 1;
      // Before the first version there was nothing.
      const before = first === 0 ? undefined : await findVersion(view, id, first);
      const after = last === 0 ? undefined : await findVersion(view, id, last);
      return { first, last, before, after };
    });
    const { first, last, before, after } = found;
    const input = { before: documentFromVersion(before), after: documentFromVersion(after) };
    const isShort = (before?.document.length ?? 0) + (after?.document.length ?? 0) <= maxComparedHere;
    const compared = isShort
      ? diffDocuments(input.before, input.after)
      : await this.#context.thread.run("diffDocuments", input, actorKey(actor));
    return { policy: id, from: first, to: last, ...compared };
  }

  revert(actor: Actor, id: string, version: number, options: PolicyPutOptions = {}): Promise<Changed<StoredPolicy>> {
    return this.#put(actor, "policy.revert", id, options, async (view) => {
      const record = await findVersion(view, id, version);
      if (record.deleted)
        throw invalidField(["version"], `${version} deleted the policy, so there is nothing to go back to; delete it`);
      return { document: documentFromText(record.document), revertOf: version };
    });
  }

  validate(actor: Actor, document: PolicyDocument): Promise<Inspected> {
    return this.#read(actor, "policy.validate.get", "", (view) => validate(this.#context, actor, view, document));
  }

  explain(actor: Actor, request: CheckRequest): Promise<Explanation> {
    const audited = { action: "policy.explain.get", kind, target: "" };
    return auditRefusals(this.#context, actor, audited, async () => {
      demand(actor.caller, "read");
      return this.#context.limiter.explain(request);
    });
  }

  #read<T>(actor: Actor, action: string, target: string, work: (view: StoreView) => Promise<T>): Promise<T> {
    return readStore(this.#context, actor, { action, kind, target }, work);
  }

  /** `sent` is the document of a caller, and not one from the store: if it is long, it is parsed before the change begins. */
  #put(
    actor: Actor,
    action: string,
    id: string,
    options: PolicyPutOptions,
    findDocument: (view: StoreView) => Promise<Pick<PolicyWrite, "document" | "revertOf">>,
    sent?: PolicyDocument,
  ): Promise<Changed<StoredPolicy>> {
    const context = this.#context;
    const { expected, rollout, ruleKey, why = "" } = options;
    let inspected: Inspected | undefined;
    const request = {
      permission: "edit" as const,
      action,
      kind,
      target: id,
      policies: true,
      at: policyPath(id),
      async prepare(): Promise<void> {
        // A short document is parsed within the change.
        if (sent === undefined || JSON.stringify(sent).length <= maxReadHere) return;
        inspected = await inspect(context, actor, id, keptDocument(id, sent));
        if (inspected.problems.length > 0) throw invalidPolicies(inspected.problems);
      },
    };
    return commit(context, actor, request, options, async (change): Promise<Outcome<StoredPolicy>> => {
      const nowMs = context.nowMs();
      const wanted = await findDocument(change);
      await requireReach(actor.caller, change, context.files(), { id, document: wanted.document });
      const { policySet: inForce } = context.limiter.snapshot;
      const { warnings: known } = inspected ?? {};
      const write = { id, expected, rollout, ruleKey, why, inForce, warnings: known, ...wanted };
      const written = await writePolicy(change, actor, write, nowMs);
      const version = await change.version(id, written.version);
      const warnings = [...warnOverridden(context, [id]), ...written.warnings];
      const rolling = written.rollout && (await rolloutView(change, written.rollout, nowMs));
      const value = writtenView(context, written, version, rolling, await change.disabled());
      if (!written.changed) return { value, changed: false, warnings };
      return { value, changed: true, warnings, audit: auditWrittenPolicy(written) };
    });
  }
}

/** Longer documents are parsed in another thread: with a megabyte of problems, that takes a tenth of a second. */
const maxReadHere = 16 * 1024;

interface Inspected {
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

/** The problems of a document on its own, and its warnings. */
async function inspect(
  { thread }: ControlContext,
  actor: Actor,
  id: string,
  document: PolicyDocument,
): Promise<Inspected> {
  const text = JSON.stringify(document);
  const input = { id, text };
  return text.length <= maxReadHere ? inspectDocument(input) : thread.run("inspectDocument", input, actorKey(actor));
}

async function validate(
  context: ControlContext,
  actor: Actor,
  view: StoreView,
  written: PolicyDocument,
): Promise<Inspected> {
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
    owner: findOwner(document),
    ruleKey: undefined,
    deleted: false,
    changedMs: nowMs,
  };
  const others = rows.policies.filter((one) => one.id !== id);
  const underway = rows.underway.filter(({ rollout }) => rollout.policy !== id);
  const after = (await composeInTurns({ ...rows, policies: [...others, record], underway }, nowMs, options)).problems;
  // Earlier problems are searched for only if there are problems now.
  const before = after.length === 0 ? [] : (await composeInTurns(rows, nowMs, options)).problems;
  const known = new Set(before.map((problem) => JSON.stringify(problem)));
  const fresh = after.filter((problem) => !known.has(JSON.stringify(problem)));
  return { problems: fresh.map((problem) => seenFrom(problem, policyPath(id))), warnings };
}

/** Finds deleted policies too. */
async function findPolicy(view: StoreView, id: string): Promise<PolicyRecord> {
  const record = await view.policy(id);
  if (record === undefined) throw notFound(`policy ${id}`);
  return record;
}

async function findVersion(view: StoreView, id: string, version: number): Promise<VersionRecord> {
  const record = Number.isSafeInteger(version) ? await view.version(id, version) : undefined;
  if (record === undefined) throw notFound(`version ${version} of policy ${id}`);
  return record;
}

function documentFromVersion(version: VersionRecord | undefined): PolicyDocument | undefined {
  return version === undefined || version.deleted ? undefined : documentFromText(version.document);
}

/** The rollouts of these versions, for those that had one. */
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
    document: documentFromVersion(version),
    author: version.author,
    why: version.why,
    atMs: version.atMs,
    revertOf: version.revertOf,
    current: version.version === record.version,
    rollout: rollout && { id: rollout.id, state: rollout.state, shadow: rollout.shadow },
  };
}

/** The version that was written, even if it is not in force yet. */
function writtenView(
  context: ControlContext,
  { record, version, after }: WrittenPolicy,
  written: VersionRecord | undefined,
  rollout: RolloutView | undefined,
  disabled: readonly DisabledRecord[],
): StoredPolicy {
  const text = JSON.stringify(after);
  const kept = { ...record, version, document: text, owner: findOwner(after) };
  return policyView(context, kept, written, rollout, disabled);
}

function policyView(
  context: ControlContext,
  record: PolicyRecord,
  version: VersionRecord | undefined,
  rollout: RolloutView | undefined,
  disabled: readonly DisabledRecord[],
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
    disabled: disabled.find((one) => one.policy === record.id && isDisabledNow(one, context.nowMs())),
    overriddenBy: isOverriddenByFile(context, record.id) ? "file" : undefined,
  };
}
