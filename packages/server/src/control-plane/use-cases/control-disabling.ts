import { disablingBounds } from "@sluice/protocol/admin";
import type { DisabledRecord, StoreView } from "@sluice/sql";
import type { Problem } from "sluice";
import { renderDuration } from "sluice/internal";
import { invalidField, notFound } from "../control-errors.ts";
import type { DisabledView, DisablingControl } from "../disabling-control.ts";
import { underwayStates } from "../documents/stored-rows.ts";
import { commit, readStore } from "./commit.ts";
import type { ControlContext } from "./control-context.ts";

const kind = "policy";
const hourMs = 3_600_000;
const { leastMs, mostMs } = disablingBounds;

export function createDisablingControl(context: ControlContext): DisablingControl {
  return {
    list: (actor) =>
      readStore(context, actor, { action: "policy.disabled.list", kind, target: "" }, async (view) =>
        (await view.disabled()).filter((one) => isDisabledNow(one, context.nowMs())),
      ),

    disable(actor, policy, options) {
      const { mode = "allow", why = "" } = options;
      const request = {
        action: "policy.disable",
        kind,
        target: policy,
        permission: "operate",
        policies: false,
      } as const;
      return commit(context, actor, request, options, async (change) => {
        const reason = why.trim();
        if (reason === "") throw invalidField(["why"], "is missing: say why the policy should not limit");
        const nowMs = context.nowMs();
        const { forMs = hourMs, untilMs = nowMs + forMs } = options;
        const lastsMs = untilMs - nowMs;
        if (!Number.isSafeInteger(untilMs) || lastsMs < leastMs || lastsMs > mostMs)
          throw invalidField(
            [options.untilMs === undefined ? "for_ms" : "until_ms"],
            `must be from ${renderDuration(leastMs)} to ${renderDuration(mostMs)} from now, in whole milliseconds`,
          );
        await requireKnown(context, change, policy);
        const before = await findDisabled(change, policy, nowMs);
        const record: DisabledRecord = { policy, mode, sinceMs: nowMs, untilMs, reason, author: actor.caller.name };
        await change.putDisabled(record);
        const warnings = await warnRollout(change, policy);
        return { value: record, changed: true, warnings, audit: [{ before, after: record }] };
      });
    },

    enable(actor, policy, options = {}) {
      const request = {
        action: "policy.enable",
        kind,
        target: policy,
        permission: "operate",
        policies: false,
      } as const;
      return commit(context, actor, request, options, async (change) => {
        const before = await findDisabled(change, policy, Number.NEGATIVE_INFINITY);
        if (before === undefined) return { value: undefined, changed: false };
        // Even if it has ended by this clock: nodes may still obey it by theirs.
        await change.deleteDisabled(policy);
        return { value: undefined, changed: true, audit: [{ before }] };
      });
    },
  };
}

export function isDisabledNow({ untilMs }: DisabledRecord, nowMs: number): boolean {
  return nowMs < untilMs;
}

/** How a policy is disabled now. */
export async function findDisabled(
  view: Pick<StoreView, "disabled">,
  policy: string,
  nowMs: number,
): Promise<DisabledView | undefined> {
  return (await view.disabled()).find((one) => one.policy === policy && isDisabledNow(one, nowMs));
}

/** A misspelt id would disable nothing, without any notice. */
async function requireKnown({ files, limiter }: ControlContext, view: StoreView, policy: string): Promise<void> {
  const stored = await view.policy(policy);
  if (stored !== undefined && !stored.deleted) return;
  if (files()?.policies.some(({ id }) => id === policy)) return;
  if (limiter.snapshot.policySet.fallback?.id === policy) return;
  throw notFound(`policy ${policy}`);
}

/** Nothing is denied meanwhile, so the new version cannot show what it does. */
async function warnRollout(view: StoreView, policy: string): Promise<readonly Problem[]> {
  const [underway] = await view.rollouts({ policy, states: underwayStates, limit: 1 });
  if (underway === undefined || underway.state === "paused") return [];
  const message = `the rollout ${underway.id} of policy ${policy} goes on, and sees no denials meanwhile; pause it if it should wait`;
  return [{ path: [], message }];
}
