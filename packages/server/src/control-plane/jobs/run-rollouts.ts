import type { PolicyStore, RolloutRecord, StoreView, TallyRecord } from "@sluice/sql";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { auditEntry, sluiceItself } from "../audit/audit-entry.ts";
import { currentPercent } from "../documents/stored-rows.ts";
import { decideRollout, needsTallies, type RolloutMove } from "../rollouts/decide-rollout.ts";
import { readTallies } from "../rollouts/read-tallies.ts";
import { parseRolloutFigures } from "../rollouts/rollout-figures.ts";
import { endRollout, isUnderway } from "../rollouts/steer-rollout.ts";
import { putRollout } from "../use-cases/put-rollout.ts";

export interface RunRolloutsOptions {
  readonly store: PolicyStore;
  readonly nowMs: () => number;
  readonly log: Pick<Logger, "info" | "warn">;
  /** Called with every generation that this creates. */
  readonly announce: (generation: number) => void;
}

/**
 * One pass over all rollouts that have not ended, which does whatever is due. Every decision is made again within the
 * change that stores it, so two nodes that do this at once do it once.
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
      // A problem with one rollout does not hold up the others.
      failure ??= { error };
    }
  }
  if (failure !== undefined) throw failure.error;
}

/** The move that is due; inside of a change, its inputs can no longer change. */
async function findMove(view: StoreView, rollout: RolloutRecord, nowMs: number): Promise<RolloutMove | undefined> {
  const left = await findCancelReason(view, rollout);
  if (left !== undefined) return { rollout: endRollout(rollout, "cancelled", nowMs, left), kind: "cancelled" };
  const tallies: readonly TallyRecord[] = needsTallies(rollout, nowMs) ? await readTallies(view, rollout, nowMs) : [];
  const move = decideRollout(rollout, tallies, nowMs);
  return move !== undefined && goesForward(move) && (await isForced(view, nowMs)) ? undefined : move;
}

function goesForward({ kind }: RolloutMove): boolean {
  return kind === "began" || kind === "step" || kind === "done";
}

/** While a kill switch decides, nothing is counted, so there is no basis for advancing. */
async function isForced(view: StoreView, nowMs: number): Promise<boolean> {
  const { killSwitch } = await view.pulse();
  return killSwitch !== undefined && killSwitch.untilMs > nowMs;
}

/** A rollout goes from one version to another. If the first is gone, it cannot continue. */
async function findCancelReason(view: StoreView, rollout: RolloutRecord): Promise<string | undefined> {
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
      // Metrics do not affect decisions, so this is not a new generation.
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
    // A search for the policy's history finds it, too.
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
  const fields = { rollout: id, policy, version: toVersion, percent: currentPercent(rollout), reason };
  if (kind === "rolled_back") log.warn("rollout.rolled_back", fields);
  else log.info("rollout.moved", { ...fields, state: rollout.state });
}

/** The audit's record of a rollout. */
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
    percent: currentPercent(rollout),
    strikes,
    figures: parseRolloutFigures(figures),
  };
}
