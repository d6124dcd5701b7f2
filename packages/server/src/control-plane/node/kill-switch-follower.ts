import type { KillSwitchRecord } from "@sluice/sql";
import type { Limiter } from "sluice";
import type { Logger } from "../../observe/telemetry/logger.ts";

/** Applies the kill switch, as last received, to a limiter. */
export interface KillSwitchFollower {
  /**
   * Undefined: it is off. Receiving the same switch again changes nothing. `unseenMs` is how long ago the store was
   * last seen without this switch, which therefore is no older; absent if unknown.
   */
  receive(record: KillSwitchRecord | undefined, unseenMs?: number | undefined): void;
  /** Set even when it has ended. */
  readonly received: KillSwitchRecord | undefined;
}

/**
 * Hands each switch to the limiter once. The limiter ends it automatically, whatever happens to the store and the
 * clock; handed over again after a clock step, it would last longer.
 */
export function createKillSwitchFollower(
  limiter: Pick<Limiter, "force">,
  log: Logger,
  nowMs: () => number,
): KillSwitchFollower {
  let received: KillSwitchRecord | undefined;
  return {
    receive(record, unseenMs): void {
      if (isSame(record, received)) return;
      const had = received;
      received = record;
      if (record === undefined) {
        limiter.force(undefined);
        if (had !== undefined) log.warn("kill_switch.off");
        return;
      }
      const { mode, reason, author } = record;
      const now = nowMs();
      const endMs = findEnd(record, now, unseenMs);
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
    get received(): KillSwitchRecord | undefined {
      return received;
    },
  };
}

/** Within this difference, this clock and the one that set the switch agree, and the difference is transit time. */
const agreeWithinMs = 2_000;
/** Clocks can be off by minutes. A switch that ended longer ago is an old one, for example from a restored backup. */
const maxClockErrorMs = 3_600_000;

/**
 * When a switch ends, by this clock. It was set by another clock, but lasts its full time on each node: it ends at its
 * stated end, but no later than if it had begun now, and no earlier than if it had begun when it was last absent.
 */
function findEnd({ sinceMs, untilMs }: KillSwitchRecord, now: number, unseenMs: number | undefined): number {
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
