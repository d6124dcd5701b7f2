import type { PolicyStore, RolloutRecord, StoreView, TallyRecord } from "@sluice/sql";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { auditEntry, sluiceItself } from "../audit/audit-entry.ts";
import { percentOf } from "../documents/stored-rows.ts";
import { decideRollout, needsTallies, type RolloutMove } from "../rollouts/decide-rollout.ts";
import { readTallies } from "../rollouts/read-tallies.ts";
import { parseRolloutFigures } from "../rollouts/rollout-figures.ts";
import { endRollout, isUnderway } from "../rollouts/steer-rollout.ts";
import { putRollout } from "../use-cases/put-rollout.ts";

export interface RunRolloutsOptions {
  readonly store: PolicyStore;
  readonly nowMs: () => number;
  readonly log: Pick<Logger, "info" | "warn">;
  /** Called with every generation that this makes. */
  readonly announce: (generation: number) => void;
}

/**
 * One pass over all rollouts that have not ended: what is due is done. Whatever is decided is decided anew within the change
 * that keeps it, so that two who do this at once do it once.
 */
export async function runRollouts(options: RunRolloutsOptions): Promise<void> {
  const { store, nowMs } = options;
  const due = await store.read(async (view) => {
    const underway = await view.rollouts({ states: ["waiting", "observing", "running", "paused"] });
    const moving: string[] = [];
    for (const rollout of underway) if (await findMove(view, rollout, nowMs())) moving.push(rollout.id);
    return moving;
  });
  let failure: { readonly error: unknown } | undefined;
  for (const id of due) {
    try {
      await moveRollout(options, id);
    } catch (error) {
      // What is wrong with one rollout keeps no other from moving on.
      failure ??= { error };
    }
  }
  if (failure !== undefined) throw failure.error;
}

/** What is due; inside of a change what it is made of cannot change any more. */
async function findMove(view: StoreView, rollout: RolloutRecord, nowMs: number): Promise<RolloutMove | undefined> {
  const left = await findReasonToCancel(view, rollout);
  if (left !== undefined) return { rollout: endRollout(rollout, "cancelled", nowMs, left), kind: "cancelled" };
  const tallies: readonly TallyRecord[] = needsTallies(rollout, nowMs) ? await readTallies(view, rollout, nowMs) : [];
  const move = decideRollout(rollout, tallies, nowMs);
  return move !== undefined && goesForward(move) && (await isForced(view, nowMs)) ? undefined : move;
}

function goesForward({ kind }: RolloutMove): boolean {
  return kind === "began" || kind === "step" || kind === "done";
}

/** While a kill switch decides nobody is counted, so there is nothing to go forward by. */
async function isForced(view: StoreView, nowMs: number): Promise<boolean> {
  const { killSwitch } = await view.pulse();
  return killSwitch !== undefined && killSwitch.untilMs > nowMs;
}

/** A rollout goes from one version to another. Where the first is not there any more, it leads nowhere. */
async function findReasonToCancel(view: StoreView, rollout: RolloutRecord): Promise<string | undefined> {
  const { policy: id, fromVersion, toVersion } = rollout;
  const policy = await view.policy(id);
  if (policy === undefined || policy.deleted) return "the policy was deleted";
  const expected = fromVersion === 0 ? toVersion : fromVersion;
  return policy.version === expected ? undefined : `the policy was changed to version ${policy.version} meanwhile`;
}

async function moveRollout({ store, nowMs, log, announce }: RunRolloutsOptions, id: string): Promise<void> {
  const moved = await store.change(async (change) => {
    const before = await change.rollout(id);
    if (before === undefined || !isUnderway(before)) return undefined;
    const atMs = nowMs();
    const move = await findMove(change, before, atMs);
    if (move === undefined) return undefined;
    const { rollout, kind } = move;
    if (kind === "looked") {
      // Nobody decides by figures, so this is no new generation.
      await change.putRollout(rollout);
      return { rollout, kind, generation: undefined };
    }
    await putRollout(change, rollout, { author: sluiceItself.caller.name, why: rollout.reason, atMs });
    const generation = await change.nextGeneration();
    const details = {
      outcome: "done" as const,
      why: rollout.reason,
      before: renderRollout(before),
      after: renderRollout(rollout),
      generation,
    };
    // Found by who asks for the history of the policy, too.
    for (const of of [
      { kind: "rollout", target: id },
      { kind: "policy", target: rollout.policy },
    ])
      await change.addAudit(auditEntry(sluiceItself, { action: `rollout.${kind}`, ...of }, details, atMs));
    return { rollout, kind, generation };
  });
  if (moved === undefined) return;
  const { rollout, kind, generation } = moved;
  if (generation === undefined) return;
  announce(generation);
  const { policy, toVersion, reason } = rollout;
  const fields = { rollout: id, policy, version: toVersion, percent: percentOf(rollout), reason };
  if (kind === "rolled_back") log.warn("rollout.rolled_back", fields);
  else log.info("rollout.moved", { ...fields, state: rollout.state });
}

/** What the audit keeps of a rollout. */
function renderRollout(rollout: RolloutRecord): Readonly<Record<string, unknown>> {
  const { id, policy, fromVersion, toVersion, state, shadow, step, strikes, figures } = rollout;
  return {
    rollout: id,
    policy,
    from_version: fromVersion,
    to_version: toVersion,
    state,
    shadow,
    step,
    percent: percentOf(rollout),
    strikes,
    figures: parseRolloutFigures(figures),
  };
}
