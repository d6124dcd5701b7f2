import type { PolicyRecord, RolloutRecord, StoreChange, VersionRecord } from "@sluice/sql";
import { type Policy, type PolicySet, type Problem, SluiceError } from "sluice";
import type { Actor } from "../../data-plane/access/actor.ts";
import { VersionConflict } from "../../data-plane/service/version-conflict.ts";
import type { Deed } from "../audit/audit-entry.ts";
import { makeTimedId } from "../audit/make-id.ts";
import { invalidField, invalidPolicies, notFound } from "../control-errors.ts";
import type { PolicyDocument, RolloutWish } from "../control-plane.ts";
import {
  documentFromText,
  holdsForTheSame,
  keptDocument,
  ownerOf,
  saysTheSame,
} from "../documents/policy-documents.ts";
import { defaultPolicyId, lintDocument, readDocument } from "../documents/read-documents.ts";
import { underwayStates } from "../documents/stored-rows.ts";
import { maxWaitMs, startRollout } from "../rollouts/start-rollout.ts";
import { endRollout } from "../rollouts/steer-rollout.ts";
import type { AuditedChange } from "./commit.ts";
import { demandScope } from "./demand-scope.ts";
import { demandOwner, teamOf } from "./may-edit.ts";
import { deletedPolicy, type MovedBy, newestVersion } from "./put-rollout.ts";
import { auditedRollout } from "./rollout-view.ts";

export interface PolicyWish {
  readonly id: string;
  readonly document: PolicyDocument;
  /** The version that the caller saw; `any`: it does not matter. */
  readonly expected: number | undefined | "any";
  readonly why: string;
  readonly rollout?: RolloutWish | undefined;
  readonly ruleKey?: string | undefined;
  readonly revertOf?: number | undefined;
  /** What is in force on this node, files included. */
  readonly inForce: PolicySet;
  /** What may surprise in the document, where that has been looked for. */
  readonly warnings?: readonly Problem[] | undefined;
}

/** What becomes of a policy. */
export interface WrittenPolicy {
  readonly changed: boolean;
  /** As it is now: while a rollout is underway, the old version. */
  readonly record: PolicyRecord;
  /** The one that was written, or where nothing changed is there. */
  readonly version: number;
  /** Undefined where nothing changed. */
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
  /** The highest version that there ever was; 0: none. */
  readonly newest: number;
}

/** Creates or changes a policy, if the actor may and has seen what is there. */
export async function writePolicy(
  change: StoreChange,
  actor: Actor,
  wish: PolicyWish,
  nowMs: number,
): Promise<WrittenPolicy> {
  const written = planPolicy(actor, wish, await findPolicy(change, wish.id), nowMs);
  await keepPolicies(change, [written]);
  return written;
}

/** What a policy becomes, of what is stored. Many can be planned before all are kept. */
export function planPolicy(
  actor: Actor,
  wish: PolicyWish,
  { current, underway, newest }: FoundPolicy,
  nowMs: number,
): WrittenPolicy {
  const { id, why } = wish;
  if (current !== undefined) demandOwner(actor.caller, id, current.owner);
  const document = keptDocument(id, wish.document, teamOf(actor.caller));
  const owner = ownerOf(document);
  demandOwner(actor.caller, id, owner);
  demandSeen(id, current, wish.expected);
  const policy = readPolicy(id, document);
  demandScope(actor.caller, { id, policy, current, inForce: wish.inForce });
  const warnings = wish.warnings ?? lintDocument(id, policy);

  const before = current === undefined ? undefined : documentFromText(current.document);
  const ruleKey = wish.ruleKey ?? (before && holdsForTheSame(before, document) ? current?.ruleKey : undefined);
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
  if (underway !== undefined) throw onItsWay(underway);

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
    revertOf: wish.revertOf,
  };
  const written: PolicyRecord = { id, version, document: text, owner, ruleKey, deleted: false, changedMs: nowMs };
  const rolloutWish = rolloutWishOf(wish, policy, before, nowMs);
  if (rolloutWish === undefined)
    return { ...shared, changed: true, record: written, version, added, rollout: undefined };
  // While a version is on its way the old one stays, with its rule, which it needs where it comes back.
  const record = current === undefined ? written : { ...current, ruleKey: wish.ruleKey ?? current.ruleKey };
  const { by = dimensionOf(policy), ...others } = rolloutWish;
  const fromVersion = current?.version ?? 0;
  const rollout = startRollout(
    { ...others, id: makeTimedId(nowMs), policy: id, fromVersion, toVersion: version, by, author },
    nowMs,
  );
  const uncounted = warnUncounted(policy, rolloutWish.by);
  return { ...shared, warnings: [...warnings, ...uncounted], changed: true, record, version, added, rollout };
}

/** A dimension that requests do not carry puts them all on one side: a step reaches none of them, or all. */
function warnUncounted(policy: Policy | "none", by: string | undefined): readonly Problem[] {
  if (by === undefined || policy === "none") return [];
  const known = [...policy.limits.flatMap((limit) => limit.by), ...Object.keys(policy.match.dimensions)];
  if (known.includes(by)) return [];
  const message = `is ${by}, which no limit of the policy counts by; requests without it all have the same version, the old or the new one`;
  return [{ path: ["rollout", "by"], message }];
}

/** Keeps what was planned, in few statements. */
export async function keepPolicies(change: StoreChange, planned: readonly WrittenPolicy[]): Promise<void> {
  const changed = planned.filter((one) => one.changed);
  await change.addVersion(changed.flatMap(({ added }) => (added === undefined ? [] : [added])));
  await change.putPolicy(changed.map(({ record }) => record));
  for (const { rollout } of changed) if (rollout !== undefined) await change.putRollout(rollout);
}

/** Deletes a policy, and ends a rollout of it. */
export async function deletePolicy(
  change: StoreChange,
  actor: Actor,
  wish: Pick<PolicyWish, "id" | "why" | "inForce"> & { readonly expected: number | undefined },
  nowMs: number,
): Promise<{ readonly before: PolicyDocument; readonly ended: readonly AuditedChange[] }> {
  const { id, expected, why, inForce } = wish;
  const found = await findPolicy(change, id);
  const { current } = found;
  if (current === undefined) throw notFound(`policy ${id}`);
  demandOwner(actor.caller, id, current.owner);
  demandScope(actor.caller, { id, policy: undefined, current, inForce });
  demandSeen(id, current, expected);
  const by = { author: actor.caller.name, why, atMs: nowMs };
  const ended = await keepDeletions(change, [{ ...found, current }], by);
  return { before: documentFromText(current.document), ended };
}

/** Deletes policies, and ends rollouts of them, in few statements. Answers what the audit is to keep of those. */
export async function keepDeletions(
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

/** What the audit is to keep of a policy that was written, and of a rollout that begins with it. */
export function auditOf({ record, before, after, rollout }: WrittenPolicy, deed: Partial<Deed> = {}): AuditedChange[] {
  const begun = { action: "rollout.start", kind: "rollout", target: rollout?.id ?? "" };
  return [
    { target: record.id, ...deed, before, after },
    ...(rollout === undefined ? [] : [{ ...begun, after: auditedRollout(rollout) }]),
  ];
}

function demandSeen(id: string, current: PolicyRecord | undefined, expected: number | undefined | "any"): void {
  const version = current?.version ?? 0;
  if (expected === "any" || (expected ?? 0) === version) return;
  throw new VersionConflict(`policy ${id}`, expected, version);
}

async function findPolicy(change: StoreChange, id: string): Promise<FoundPolicy> {
  const known = await change.policy(id);
  const [underway] = await change.rollouts({ policy: id, states: underwayStates, limit: 1 });
  return { current: known?.deleted === false ? known : undefined, underway, newest: await newestVersion(change, id) };
}

function onItsWay({ id, policy, toVersion }: RolloutRecord): SluiceError {
  return new SluiceError(
    "already_exists",
    `version ${toVersion} of policy ${policy} is on its way (rollout ${id}); finish it or roll it back first`,
  );
}

function readPolicy(id: string, document: PolicyDocument): Policy | "none" {
  const { policy, problems } = readDocument(id, document);
  if (problems.length > 0 || policy === undefined) throw invalidPolicies(problems);
  return policy;
}

/** How the new version is to go out; undefined: to everybody, at once. */
function rolloutWishOf(
  { id, rollout }: PolicyWish,
  policy: Policy | "none",
  before: PolicyDocument | undefined,
  nowMs: number,
): RolloutWish | undefined {
  if (id === defaultPolicyId) {
    if (rollout === undefined) return undefined;
    throw invalidField(["rollout"], "is not for the default policy, which has one version in force at a time");
  }
  const validFromMs = policy === "none" ? undefined : policy.validFromMs;
  const later = validFromMs !== undefined && validFromMs > nowMs ? validFromMs : undefined;
  if (rollout !== undefined) {
    if (later !== undefined && rollout.startsMs !== undefined && rollout.startsMs < later)
      throw invalidField(["rollout", "starts_ms"], "is before valid_from, from when on the new version holds");
    if (rollout.startsMs === undefined) demandSoon(later, nowMs);
    return { ...rollout, startsMs: rollout.startsMs ?? later };
  }
  // Until then the old version holds. Where there is none, or it does not hold yet either, the new one waits by itself.
  if (later === undefined || before === undefined || !holdsNow(id, before, nowMs)) return undefined;
  demandSoon(later, nowMs);
  return { steps: [{ percent: 100, holdMs: 0 }], startsMs: later, observeForMs: 0 };
}

/** A rollout that begins with `valid_from` waits no longer than any other; problems use the name that the caller sent. */
function demandSoon(validFromMs: number | undefined, nowMs: number): void {
  if (validFromMs === undefined || validFromMs <= nowMs + maxWaitMs) return;
  const latest = new Date(nowMs + maxWaitMs).toISOString();
  throw invalidField(
    ["valid_from"],
    `must be at most a year ahead (${latest}) where an older version is in force until then, but is ${new Date(validFromMs).toISOString()}`,
  );
}

function holdsNow(id: string, document: PolicyDocument, nowMs: number): boolean {
  const { policy } = readDocument(id, document);
  return policy !== undefined && (policy === "none" || (policy.validFromMs ?? 0) <= nowMs);
}

/** By what a rollout tells subjects apart where nobody says. */
function dimensionOf(policy: Policy | "none"): string {
  if (policy === "none") return "subject";
  return policy.rollout?.by ?? policy.limits[0]?.by[0] ?? "subject";
}
