import type { PolicyRecord, RolloutRecord, StoreChange } from "@sluice/sql";
import { lintPolicies, type Policy, type Problem, SluiceError } from "sluice";
import { startRollout } from "../rollouts/start-rollout.ts";
import { endRollout } from "../rollouts/steer-rollout.ts";
import { invalidField, invalidPolicies } from "./control-errors.ts";
import type { Actor, PolicyDocument, RolloutWish } from "./control-plane.ts";
import { makeTimedId } from "./make-id.ts";
import { demandOwner, teamOf } from "./may-edit.ts";
import { documentFromText, holdsForTheSame, keptDocument, ownerOf, saysTheSame } from "./policy-documents.ts";
import { markDeleted, nextVersion, putRollout } from "./put-rollout.ts";
import { defaultPolicyId, readDocument } from "./read-documents.ts";
import { underwayStates } from "./stored-rows.ts";
import { VersionConflict } from "./version-conflict.ts";

export interface PolicyWish {
  readonly id: string;
  readonly document: PolicyDocument;
  /** The version that the caller saw; `any`: it does not matter. */
  readonly expected: number | undefined | "any";
  readonly why: string;
  readonly rollout?: RolloutWish | undefined;
  readonly ruleKey?: string | undefined;
  readonly revertOf?: number | undefined;
}

/** What became of a policy. */
export interface WrittenPolicy {
  readonly changed: boolean;
  /** As it is now: while a rollout is underway, the old version. */
  readonly record: PolicyRecord;
  readonly version: number;
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
}

/** Creates or changes a policy, if the actor may and has seen what is there. `found` spares looking for it. */
export async function writePolicy(
  change: StoreChange,
  actor: Actor,
  wish: PolicyWish,
  nowMs: number,
  found?: FoundPolicy,
): Promise<WrittenPolicy> {
  const { id, why } = wish;
  const { current, underway } = found ?? (await findPolicy(change, id));
  if (current !== undefined) demandOwner(actor.caller, id, current.owner);
  const document = keptDocument(id, wish.document, teamOf(actor.caller));
  const owner = ownerOf(document);
  demandOwner(actor.caller, id, owner);
  demandSeen(id, current, wish.expected);
  const policy = readPolicy(id, document);
  const warnings = lintDocument(id, policy);

  const before = current === undefined ? undefined : documentFromText(current.document);
  const ruleKey = wish.ruleKey ?? (before && holdsForTheSame(before, document) ? current?.ruleKey : undefined);
  if (current !== undefined && before !== undefined && saysTheSame(before, document) && ruleKey === current.ruleKey) {
    const { version } = current;
    return { changed: false, record: current, version, rollout: underway, before, after: document, warnings };
  }
  if (underway !== undefined) throw onItsWay(underway);

  const version = await nextVersion(change, id);
  const text = JSON.stringify(document);
  const { name: author } = actor.caller;
  await change.addVersion({
    policy: id,
    version,
    document: text,
    deleted: false,
    author,
    atMs: nowMs,
    why,
    revertOf: wish.revertOf,
  });
  const written: PolicyRecord = { id, version, document: text, owner, ruleKey, deleted: false, changedMs: nowMs };
  const rolloutWish = rolloutWishOf(wish, policy, before, nowMs);
  // While a version is on its way the old one stays, but its rule is taken already.
  const record = rolloutWish === undefined || current === undefined ? written : { ...current, ruleKey };
  await change.putPolicy(record);
  if (rolloutWish === undefined)
    return { changed: true, record, version, rollout: undefined, before, after: document, warnings };
  const { by = dimensionOf(policy), ...others } = rolloutWish;
  const rollout = startRollout(
    {
      ...others,
      id: makeTimedId(nowMs),
      policy: id,
      fromVersion: current?.version ?? 0,
      toVersion: version,
      by,
      author,
    },
    nowMs,
  );
  await putRollout(change, rollout, { author, why, atMs: nowMs });
  return { changed: true, record, version, rollout, before, after: document, warnings };
}

/** Deletes a policy, and ends a rollout of it. */
export async function deletePolicy(
  change: StoreChange,
  actor: Actor,
  wish: { readonly id: string; readonly expected: number | undefined | "any"; readonly why: string },
  nowMs: number,
): Promise<PolicyDocument> {
  const { id, expected, why } = wish;
  const current = await change.policy(id);
  if (current === undefined || current.deleted)
    throw new SluiceError("resource_not_found", `policy ${id} does not exist`);
  demandOwner(actor.caller, id, current.owner);
  demandSeen(id, current, expected);
  const underway = await findUnderway(change, id);
  if (underway !== undefined)
    await change.putRollout(endRollout(underway, "cancelled", nowMs, "the policy was deleted"));
  await markDeleted(change, current, { author: actor.caller.name, why, atMs: nowMs });
  return documentFromText(current.document);
}

function demandSeen(id: string, current: PolicyRecord | undefined, expected: number | undefined | "any"): void {
  const version = current?.version ?? 0;
  if (expected === "any" || (expected ?? 0) === version) return;
  throw new VersionConflict(`policy ${id}`, expected, version);
}

async function findPolicy(change: StoreChange, id: string): Promise<FoundPolicy> {
  const known = await change.policy(id);
  return { current: known?.deleted === false ? known : undefined, underway: await findUnderway(change, id) };
}

async function findUnderway(change: Pick<StoreChange, "rollouts">, id: string): Promise<RolloutRecord | undefined> {
  return (await change.rollouts({ policy: id, states: underwayStates, limit: 1 }))[0];
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

/** What may surprise in one document. */
export function lintDocument(id: string, policy: Policy | "none"): readonly Problem[] {
  if (policy === "none") return [];
  const isDefault = id === defaultPolicyId;
  const warnings = lintPolicies({
    kind: "policy_set",
    policies: isDefault ? [] : [policy],
    ...(isDefault ? { fallback: policy } : undefined),
    subjects: [],
  });
  return warnings.map(({ path, message }) => ({ path: path.slice(isDefault ? 1 : 2), message }));
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
    return { ...rollout, startsMs: rollout.startsMs ?? later };
  }
  // Until then the old version holds. Where there is none, or it does not hold yet either, the new one waits by itself.
  if (later === undefined || before === undefined || !holdsNow(id, before, nowMs)) return undefined;
  return { steps: [{ percent: 100, holdMs: 0 }], startsMs: later, observeForMs: 0 };
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
