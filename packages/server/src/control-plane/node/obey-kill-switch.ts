import type { KillSwitchRecord } from "@sluice/sql";
import type { Limiter } from "sluice";
import type { Logger } from "../../observe/telemetry/logger.ts";

/** Has a limiter obey the kill switch, as it was heard of last. */
export interface ObeyedKillSwitch {
  /**
   * Undefined: it is off. What was heard before changes nothing. `unseenMs` is how long ago the store was last seen without this
   * one, which is therefore no older; absent where that is not known.
   */
  hear(record: KillSwitchRecord | undefined, unseenMs?: number | undefined): void;
  /** Also when it has ended. */
  readonly heard: KillSwitchRecord | undefined;
}

/**
 * A switch is told to the limiter once. The limiter ends it by itself, whatever becomes of the store and of the clock; told
 * again after a step of the clock, it would last longer.
 */
export function obeyKillSwitch(limiter: Pick<Limiter, "force">, log: Logger, nowMs: () => number): ObeyedKillSwitch {
  let heard: KillSwitchRecord | undefined;
  return {
    hear(record, unseenMs): void {
      if (isSame(record, heard)) return;
      const had = heard;
      heard = record;
      if (record === undefined) {
        limiter.force(undefined);
        if (had !== undefined) log.warn("kill_switch.off");
        return;
      }
      const { mode, reason, author } = record;
      const now = nowMs();
      const endMs = endOf(record, now, unseenMs);
      if (endMs <= now) {
        limiter.force(undefined);
        return;
      }
      limiter.force({ mode, untilMs: endMs });
      log.warn(mode === "open" ? "kill_switch.on_open" : "kill_switch.on_closed", {
        mode,
        until: new Date(endMs).toISOString(),
        reason,
        author,
      });
    },
    get heard(): KillSwitchRecord | undefined {
      return heard;
    },
  };
}

/** Within so much, this clock and the one of who turned the switch agree; what they differ in is the way here. */
const agreeWithinMs = 2_000;
/** Clocks are wrong by minutes. What ended longer ago is an old switch, as from a restored backup. */
const maxClockErrorMs = 3_600_000;

/**
 * When a switch ends, by this clock. It was turned by another clock, and is worth its whole time on each node all the same: it ends
 * when it says, but no later than if it had begun now, and no earlier than if it had begun when it was last not there.
 */
function endOf({ sinceMs, untilMs }: KillSwitchRecord, now: number, unseenMs: number | undefined): number {
  const lastsMs = untilMs - sinceMs;
  if (unseenMs !== undefined && untilMs > now - maxClockErrorMs) {
    const earliestMs = now + lastsMs - unseenMs;
    if (untilMs < earliestMs - agreeWithinMs) return earliestMs;
  }
  return Math.min(untilMs, now + lastsMs);
}

function isSame(one: KillSwitchRecord | undefined, other: KillSwitchRecord | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return one.mode === other.mode && one.sinceMs === other.sinceMs && one.untilMs === other.untilMs;
}
