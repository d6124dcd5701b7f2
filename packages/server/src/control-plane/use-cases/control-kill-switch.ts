import { killSwitchBounds } from "@sluice/protocol/admin";
import type { KillSwitchRecord } from "@sluice/sql";
import { renderDuration } from "sluice/internal";
import { invalidField } from "../control-errors.ts";
import type { KillSwitchControl, KillSwitchView } from "../control-plane.ts";
import { commit, readStore } from "./commit.ts";
import type { ControlContext } from "./control-context.ts";

const kind = "kill_switch";
const hourMs = 3_600_000;
const { leastMs: minMs, mostMs: maxMs } = killSwitchBounds;

export function createKillSwitchControl(context: ControlContext): KillSwitchControl {
  const audited = (word: string) => ({ action: `kill_switch.${word}`, kind, target: "" });
  return {
    get: (actor) =>
      readStore(context, actor, audited("get"), async (view) =>
        killSwitchView((await view.pulse()).killSwitch, context.nowMs()),
      ),

    on(actor, mode, options) {
      const request = { ...audited("on"), permission: "operate" as const, policies: false };
      const { forMs = hourMs, why = "" } = options;
      return commit(context, actor, request, options, async (change) => {
        const reason = why.trim();
        if (reason === "") throw invalidField(["reason"], "is missing: say why every check should get the same answer");
        if (mode !== "open" && mode !== "closed") throw invalidField(["mode"], "must be open or closed");
        if (!Number.isSafeInteger(forMs) || forMs < minMs || forMs > maxMs)
          throw invalidField(
            ["for_ms"],
            `must be from ${renderDuration(minMs)} to ${renderDuration(maxMs)}, in whole milliseconds`,
          );
        const nowMs = context.nowMs();
        const before = killSwitchView((await change.pulse()).killSwitch, nowMs);
        const { name: author } = actor.caller;
        const record: KillSwitchRecord = { mode, sinceMs: nowMs, untilMs: nowMs + forMs, reason, author };
        await change.putKillSwitch(record);
        return {
          value: killSwitchView(record, nowMs),
          changed: true,
          audit: [{ before: before.mode === "off" ? undefined : before, after: record }],
        };
      });
    },

    off(actor, options = {}) {
      const request = { ...audited("off"), permission: "operate" as const, policies: false };
      return commit(context, actor, request, options, async (change) => {
        const { killSwitch: before } = await change.pulse();
        const value = killSwitchView(undefined, context.nowMs());
        if (before === undefined) return { value, changed: false };
        // Even if it has ended by this clock: this clock may be wrong, and nodes may still obey the switch.
        await change.putKillSwitch(undefined);
        return { value, changed: true, audit: [{ before }] };
      });
    },
  };
}

/** The current state: off as soon as it ends. */
export function killSwitchView(record: KillSwitchRecord | undefined, nowMs: number): KillSwitchView {
  if (record === undefined || record.untilMs <= nowMs)
    return { mode: "off", sinceMs: undefined, untilMs: undefined, reason: undefined, author: undefined };
  return record;
}
