import type { KillSwitchRecord } from "@sluice/sql";
import type { Limiter } from "sluice";
import type { Logger } from "../telemetry/logger.ts";

/** Has a limiter obey the kill switch, as it was heard of last. */
export interface ObeyedKillSwitch {
  /** Undefined: it is off. What was heard before changes nothing. */
  hear(record: KillSwitchRecord | undefined): void;
  /** Also when it has ended. */
  readonly heard: KillSwitchRecord | undefined;
}

/**
 * A switch is told to the limiter once. The limiter ends it by itself, whatever becomes of the store and of the clock; told
 * again after a step of the clock, it would last longer. A clock that is behind does not make it last longer either: never
 * longer than it was meant to, from when it is heard.
 */
export function obeyKillSwitch(limiter: Pick<Limiter, "force">, log: Logger, nowMs: () => number): ObeyedKillSwitch {
  let heard: KillSwitchRecord | undefined;
  return {
    hear(record): void {
      if (isSame(record, heard)) return;
      const had = heard;
      heard = record;
      if (record === undefined) {
        limiter.force(undefined);
        if (had !== undefined) log.warn({}, "the kill switch is off; policies decide again");
        return;
      }
      const { mode, sinceMs, untilMs, reason, author } = record;
      const now = nowMs();
      const endMs = Math.min(untilMs, now + (untilMs - sinceMs));
      if (endMs <= now) {
        limiter.force(undefined);
        return;
      }
      limiter.force({ mode, untilMs: endMs });
      log.warn(
        { mode, until: new Date(endMs).toISOString(), reason, author },
        mode === "open"
          ? "the kill switch is on: every check is allowed until it ends"
          : "the kill switch is on: every check is denied until it ends",
      );
    },
    get heard(): KillSwitchRecord | undefined {
      return heard;
    },
  };
}

function isSame(one: KillSwitchRecord | undefined, other: KillSwitchRecord | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return one.mode === other.mode && one.sinceMs === other.sinceMs && one.untilMs === other.untilMs;
}
