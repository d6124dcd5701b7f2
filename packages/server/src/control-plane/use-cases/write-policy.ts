import type { PolicyRecord, RolloutRecord, StoreChange, VersionRecord } from "@sluice/sql";
import { type Policy, type PolicySet, type Problem, SluiceError } from "sluice";
import type { Actor } from "../../data-plane/access/actor.ts";
import { VersionConflict } from "../../data-plane/service/version-conflict.ts";
import type { AuditedAction } from "../audit/audit-entry.ts";
import { makeTimedId } from "../audit/make-id.ts";
import { invalidField, invalidPolicies, notFound } from "../control-errors.ts";
import { documentFromText, findOwner, hasSameScope, keptDocument, saysTheSame } from "../documents/policy-documents.ts";
import { defaultPolicyId, lintDocument, readDocument } from "../documents/read-documents.ts";
import { underwayStates } from "../documents/stored-rows.ts";
import type { PolicyDocument } from "../policy-control.ts";
import type { RolloutRequest } from "../rollout-control.ts";
import { maxWaitMs, startRollout } from "../rollouts/start-rollout.ts";
import { endRollout } from "../rollouts/steer-rollout.ts";
import type { AuditedChange } from "./commit.ts";
import { deletedPolicy, type MovedBy, newestVersion } from "./put-rollout.ts";
import { findTeam, requireOwner } from "./require-owner.ts";
import { requireScope } from "./require-scope.ts";
import { auditedRollout } from "./rollout-view.ts";

export interface PolicyWrite {
  readonly id: string;
  readonly document: PolicyDocument;
  /** The version that the caller saw; `any`: accepts any version. */
  readonly expected: number | undefined | "any";
  readonly why: string;
  readonly rollout?: RolloutRequest | undefined;
  readonly ruleKey?: string | undefined;
  readonly revertOf?: number | undefined;
  /** The policies in force on this node, including files. */
  readonly inForce: PolicySet;
  /** Warnings about the document, if they are known already. */
  readonly warnings?: readonly Problem[] | undefined;
}

/** The outcome for a policy. */
export interface WrittenPolicy {
  readonly changed: boolean;
  /** The current version: during a rollout, the old one. */
  readonly record: PolicyRecord;
  /** The version that was written, or the existing one if nothing changed. */
  readonly version: number;
  /** Undefined if nothing changed. */
  readonly added: VersionRecord | undefined;
  readonly rollout: RolloutRecord | undefined;
  readonly before: PolicyDocument | undefined;
  readonly after: PolicyDocument;
  readonly warnings: readonly Problem[];
}

/** What is stored under an id. */
export interface FoundPolicy {
  /** Not a deleted one. */
  readonly current: PolicyRecord | undefined;
  readonly underway: RolloutRecord | undefined;
  /** The highest version there ever was; 0: none. */
  readonly newest: number;
}

/** Creates or changes a policy, if the actor is permitted and has seen the current version. */
export async function writePolicy(
  change: StoreChange,
  actor: Actor,
  request: PolicyWrite,
  nowMs: number,
): Promise<WrittenPolicy> {
  const written = planPolicy(actor, request, await findPolicy(change, request.id), nowMs);
  await storePolicies(change, [written]);
  return written;
}

/** Plans a change to a policy from the stored state. Many can be planned before all are stored. */
export function planPolicy(
  actor: Actor,
  request: PolicyWrite,
  { current, underway, newest }: FoundPolicy,
  nowMs: number,
): WrittenPolicy {
  const { id, why } = request;
  if (current !== undefined) requireOwner(actor.caller, id, current.owner);
  const document = keptDocument(id, request.document, findTeam(actor.caller));
  const owner = findOwner(document);
  requireOwner(actor.caller, id, owner);
  requireExpected(id, current, request.expected);
  const policy = readPolicy(id, document);
  requireScope(actor.caller, { id, policy, current, inForce: request.inForce });
  const warnings = request.warnings ?? lintDocument(id, policy);

  const before = current === undefined ? undefined : documentFromText(current.document);
  const ruleKey = request.ruleKey ?? (before && hasSameScope(before, document) ? current?.ruleKey : undefined);
  const shared = { before, after: document, warnings };
  if (current !== undefined && before !== undefined && saysTheSame(before, document) && ruleKey === current.ruleKey)
    return {
      ...shared,
      changed: false,
      record: current,
      version: current.version,
      added: undefined,
      rollout: underway,
    };
  if (underway !== undefined) throw alreadyRollingOut(underway);

  const version = newest + 1;
  const text = JSON.stringify(document);
  const { name: author } = actor.caller;
  const added = {
    policy: id,
    version,
    document: text,
    deleted: false,
    author,
    atMs: nowMs,
    why,
    revertOf: request.revertOf,
  };
  const written: PolicyRecord = { id, version, document: text, owner, ruleKey, deleted: false, changedMs: nowMs };
  const rolloutRequest = findRolloutRequest(request, policy, before, nowMs);
  if (rolloutRequest === undefined)
    return { ...shared, changed: true, record: written, version, added, rollout: undefined };
  // During a rollout the old version stays, with its rule, which it needs if it is restored.
  const record = current === undefined ? written : { ...current, ruleKey: request.ruleKey ?? current.ruleKey };
  const { by = defaultDimension(policy), ...others } = rolloutRequest;
  const fromVersion = current?.version ?? 0;
  const rollout = startRollout(
    { ...others, id: makeTimedId(nowMs), policy: id, fromVersion, toVersion: version, by, author },
    nowMs,
  );
  const uncounted = warnUncounted(policy, rolloutRequest.by);
  return { ...shared, warnings: [...warnings, ...uncounted], changed: true, record, version, added, rollout };
}

/** Requests that lack the dimension are all on one side: a step reaches none of them, or all. */
function warnUncounted(policy: Policy | "none", by: string | undefined): readonly Problem[] {
  if (by === undefined || policy === "none") return [];
  const known = [...policy.limits.flatMap((limit) => limit.by), ...Object.keys(policy.match.dimensions)];
  if (known.includes(by)) return [];
  const message = `is ${by}, which no limit of the policy counts by; requests without it all get the same version, the old or the new one`;
  return [{ path: ["rollout", "by"], message }];
}

/** Stores planned changes, in few statements. */
export async function storePolicies(change: StoreChange, planned: readonly WrittenPolicy[]): Promise<void> {
  const changed = planned.filter((one) => one.changed);
  await change.addVersion(changed.flatMap(({ added }) => (added === undefined ? [] : [added])));
  await change.putPolicy(changed.map(({ record }) => record));
  for (const { rollout } of changed) if (rollout !== undefined) await change.putRollout(rollout);
}

/** Deletes a policy, and ends its rollout. */
export async function deletePolicy(
  change: StoreChange,
  actor: Actor,
  request: Pick<PolicyWrite, "id" | "why" | "inForce"> & { readonly expected: number | undefined },
  nowMs: number,
): Promise<{ readonly before: PolicyDocument; readonly ended: readonly AuditedChange[] }> {
  const { id, expected, why, inForce } = request;
  const found = await findPolicy(change, id);
  const { current } = found;
  if (current === undefined) throw notFound(`policy ${id}`);
  requireOwner(actor.caller, id, current.owner);
  requireScope(actor.caller, { id, policy: undefined, current, inForce });
  requireExpected(id, current, expected);
  const by = { author: actor.caller.name, why, atMs: nowMs };
  const ended = await storeDeletions(change, [{ ...found, current }], by);
  return { before: documentFromText(current.document), ended };
}

/** Deletes policies, and ends their rollouts, in few statements. Returns the audit entries. */
export async function storeDeletions(
  change: StoreChange,
  found: readonly (FoundPolicy & { readonly current: PolicyRecord })[],
  by: MovedBy,
): Promise<readonly AuditedChange[]> {
  const ended: AuditedChange[] = [];
  for (const { underway } of found) {
    if (underway === undefined) continue;
    const cancelled = endRollout(underway, "cancelled", by.atMs, "the policy was deleted");
    await change.putRollout(cancelled);
    const [before, after] = [auditedRollout(underway), auditedRollout(cancelled)];
    ended.push({ action: "rollout.cancel", kind: "rollout", target: underway.id, before, after });
  }
  const deleted = found.map(({ current, newest }) => deletedPolicy(current, newest, by));
  await change.addVersion(deleted.map(({ added }) => added));
  await change.putPolicy(deleted.map(({ record }) => record));
  return ended;
}

/** The audit entries for a policy that was written, and for a rollout that starts with it. */
export function auditWrittenPolicy(
  { record, before, after, rollout }: WrittenPolicy,
  audited: Partial<AuditedAction> = {},
): AuditedChange[] {
  const startEntry = { action: "rollout.start", kind: "rollout", target: rollout?.id ?? "" };
  return [
    { target: record.id, ...audited, before, after },
    ...(rollout === undefined ? [] : [{ ...startEntry, after: auditedRollout(rollout) }]),
  ];
}

function requireExpected(id: string, current: PolicyRecord | undefined, expected: number | undefined | "any"): void {
  const version = current?.version ?? 0;
  if (expected === "any" || (expected ?? 0) === version) return;
  throw new VersionConflict(`policy ${id}`, expected, version);
}

async function findPolicy(change: StoreChange, id: string): Promise<FoundPolicy> {
  const known = await change.policy(id);
  const [underway] = await change.rollouts({ policy: id, states: underwayStates, limit: 1 });
  return { current: known?.deleted === false ? known : undefined, underway, newest: await newestVersion(change, id) };
}

function alreadyRollingOut({ id, policy, toVersion }: RolloutRecord): SluiceError {
  return new SluiceError(
    "already_exists",
    `version ${toVersion} of policy ${policy} is being rolled out (rollout ${id}); finish it or roll it back first`,
  );
}

function readPolicy(id: string, document: PolicyDocument): Policy | "none" {
  const { policy, problems } = readDocument(id, document);
  if (problems.length > 0 || policy === undefined) throw invalidPolicies(problems);
  return policy;
}

/** How to roll out the new version; undefined: to all subjects at once. */
function findRolloutRequest(
  { id, rollout }: PolicyWrite,
  policy: Policy | "none",
  before: PolicyDocument | undefined,
  nowMs: number,
): RolloutRequest | undefined {
  if (id === defaultPolicyId) {
    if (rollout === undefined) return undefined;
    throw invalidField(["rollout"], "is not for the default policy, which has one version in force at a time");
  }
  const validFromMs = policy === "none" ? undefined : policy.validFromMs;
  const later = validFromMs !== undefined && validFromMs > nowMs ? validFromMs : undefined;
  if (rollout !== undefined) {
    if (later !== undefined && rollout.startsMs !== undefined && rollout.startsMs < later)
      throw invalidField(["rollout", "starts_ms"], "is before valid_from, when the new version starts to apply");
    if (rollout.startsMs === undefined) requireWithinYear(later, nowMs);
    return { ...rollout, startsMs: rollout.startsMs ?? later };
  }
  // Until then the old version applies. If there is none, or it does not apply yet either, the new one waits
  // automatically.
  if (later === undefined || before === undefined || !holdsNow(id, before, nowMs)) return undefined;
  requireWithinYear(later, nowMs);
  return { steps: [{ percent: 100, holdMs: 0 }], startsMs: later, observeForMs: 0 };
}

/** A rollout that starts at `valid_from` has the same bound on its wait; problems use the name that the caller sent. */
function requireWithinYear(validFromMs: number | undefined, nowMs: number): void {
  if (validFromMs === undefined || validFromMs <= nowMs + maxWaitMs) return;
  const latest = new Date(nowMs + maxWaitMs).toISOString();
  throw invalidField(
    ["valid_from"],
    `must be at most a year ahead (${latest}) if an older version is in force until then, but is ${new Date(validFromMs).toISOString()}`,
  );
}

function holdsNow(id: string, document: PolicyDocument, nowMs: number): boolean {
  const { policy } = readDocument(id, document);
  return policy !== undefined && (policy === "none" || (policy.validFromMs ?? 0) <= nowMs);
}

/** The default dimension by which a rollout splits subjects. */
function defaultDimension(policy: Policy | "none"): string {
  if (policy === "none") return "subject";
  return policy.rollout?.by ?? policy.limits[0]?.by[0] ?? "subject";
}
