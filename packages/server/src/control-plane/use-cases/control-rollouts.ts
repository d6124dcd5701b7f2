import type { RolloutRecord, StoreView } from "@sluice/sql";
import { SluiceError } from "sluice";
import type { Actor } from "../../data-plane/access/actor.ts";
import type { Changed } from "../change.ts";
import { invalidField, notFound } from "../control-errors.ts";
import { readStoredPolicy } from "../documents/read-documents.ts";
import type { RolloutControl, RolloutMoveOptions, RolloutView } from "../rollout-control.ts";
import { readTallies } from "../rollouts/read-tallies.ts";
import { advanceRollout, endRollout, pauseRollout, resumeRollout } from "../rollouts/steer-rollout.ts";
import { commit, readStore } from "./commit.ts";
import type { ControlContext } from "./control-context.ts";
import { parsePageLimit, renderPage } from "./page.ts";
import { putRollout } from "./put-rollout.ts";
import { requireOwner } from "./require-owner.ts";
import { auditedRollout, rolloutView } from "./rollout-view.ts";
import { sumMinutes } from "./sum-minutes.ts";

const kind = "rollout";

type Move = (rollout: RolloutRecord, nowMs: number, reason: string) => RolloutRecord;

export function createRolloutControl(context: ControlContext): RolloutControl {
  function moved(
    word: string,
    move: Move,
    { forwards = false }: { readonly forwards?: boolean } = {},
  ): (actor: Actor, id: string, options?: RolloutMoveOptions) => Promise<Changed<RolloutView>> {
    return (actor, id, options = {}) => {
      const request = { permission: "edit" as const, action: `rollout.${word}`, kind, target: id, policies: true };
      return commit(context, actor, request, options, async (change) => {
        const before = await findRollout(change, id);
        const policy = await change.policy(before.policy);
        requireOwner(actor.caller, before.policy, policy?.owner);
        requireStep(before, options.expectedStep);
        const nowMs = context.nowMs();
        if (forwards) await requireValid(change, before, nowMs);
        const { name: author } = actor.caller;
        const { why = "" } = options;
        const after = move(before, nowMs, why === "" ? `by ${author}` : `by ${author}: ${why}`);
        await putRollout(change, after, { author, why, atMs: nowMs });
        return {
          value: await rolloutView(change, after, nowMs),
          changed: true,
          audit: [
            { before: auditedRollout(before), after: auditedRollout(after) },
            // A search for the policy's history finds it, too.
            { kind: "policy", target: before.policy, before: auditedRollout(before), after: auditedRollout(after) },
          ],
        };
      });
    };
  }

  return {
    list: (actor, query = {}) =>
      readStore(context, actor, { action: "rollout.list", kind, target: "" }, async (view) => {
        const limit = parsePageLimit(query);
        const { after, policy, states } = query;
        const records = await view.rollouts({ after, policy, states, limit: limit + 1 });
        const views: RolloutView[] = [];
        for (const record of records) views.push(await rolloutView(view, record, context.nowMs()));
        return renderPage(
          views,
          limit,
          ({ id }) => id,
          (one) => one,
        );
      }),
    get: (actor, id) =>
      readStore(context, actor, { action: "rollout.get", kind, target: id }, async (view) =>
        rolloutView(view, await findRollout(view, id), context.nowMs()),
      ),
    minutes: (actor, id) =>
      readStore(context, actor, { action: "rollout.minutes", kind, target: id }, async (view) =>
        sumMinutes(await readTallies(view, await findRollout(view, id), context.nowMs())),
      ),
    advance: moved("advance", advanceRollout, { forwards: true }),
    pause: moved("pause", pauseRollout),
    resume: moved("resume", resumeRollout),
    finish: moved(
      "finish",
      // An operator who completes it has seen enough of a version that was only being evaluated.
      (rollout, nowMs, reason) => ({ ...endRollout(rollout, "done", nowMs, reason), shadow: false }),
      { forwards: true },
    ),
    rollBack: moved("roll_back", (rollout, nowMs, reason) =>
      endRollout(rollout, rollout.step < 0 ? "cancelled" : "rolled_back", nowMs, reason),
    ),
  };
}

async function findRollout(view: Pick<StoreView, "rollout">, id: string): Promise<RolloutRecord> {
  const rollout = await view.rollout(id);
  if (rollout === undefined) throw notFound(`rollout ${id}`);
  return rollout;
}

function requireStep({ id, step }: RolloutRecord, expected: number | undefined): void {
  if (expected === undefined || expected === step) return;
  throw new SluiceError(
    "version_conflict",
    `rollout ${id} is at step ${step}, and step ${expected} was expected; read it again`,
  );
}

/** Before its `valid_from`, the new version would leave its subjects without any limit. */
async function requireValid(
  view: StoreView,
  { policy, toVersion, fromVersion }: RolloutRecord,
  nowMs: number,
): Promise<void> {
  if (fromVersion === 0) return;
  const version = await view.version(policy, toVersion);
  const read = version === undefined ? undefined : readStoredPolicy(policy, version.document).policy;
  if (read === undefined || read === "none" || read.validFromMs === undefined || read.validFromMs <= nowMs) return;
  const from = new Date(read.validFromMs).toISOString();
  throw invalidField(["valid_from"], `of version ${toVersion} is ${from}; it cannot be in force before`);
}
