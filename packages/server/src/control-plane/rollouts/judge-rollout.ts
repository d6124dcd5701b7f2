import type { RolloutRecord } from "@sluice/sql";
import { describeLook } from "./describe-look.ts";
import { judgeLook, type Look } from "./judge-look.ts";
import { parseRolloutFigures, type RolloutFigures } from "./rollout-figures.ts";
import type { TrialSums } from "./trial-sums.ts";

export interface Judgement {
  /** With new metrics: strikes, rates, and the last minute that was evaluated. */
  readonly rollout: RolloutRecord;
  readonly looks: number;
  /** Why it should be rolled back, for people; undefined: it should not. */
  readonly rollBack: string | undefined;
}

/** Three in a row: a bare 2σ at every look would undo many a good rollout. */
export const strikesToRollBack = 3;

const minuteMs = 60_000;
/** This long after a minute, every node has reported its counts of it. */
const reportedAfterMs = 15_000;
/** After an outage, this many minutes are caught up on. */
const maxMinutesBehind = 60;

/** The last minute that is over, and reported by every node. */
export function lastWholeMinute(nowMs: number): number {
  return Math.floor((nowMs - reportedAfterMs) / minuteMs) - 1;
}

/** Looks at every minute since the last look, one after another, up to the one that decides. */
export function judgeRollout(rollout: RolloutRecord, sums: TrialSums, nowMs: number): Judgement {
  const last = lastWholeMinute(nowMs);
  let judged = rollout;
  let looks = 0;
  if (rollout.step < 0) return { rollout, looks, rollBack: undefined };
  for (let minute = Math.max(rollout.lookedAtMinute + 1, last - maxMinutesBehind); minute <= last; minute++) {
    const look = judgeLook(judged, sums, minute);
    if (look === undefined) continue;
    looks++;
    judged = afterLook(judged, look);
    if (judged.strikes >= strikesToRollBack && isWatched(judged))
      return { rollout: judged, looks, rollBack: parseRolloutFigures(judged.figures)?.sentence ?? "" };
  }
  return { rollout: judged, looks, rollBack: undefined };
}

/** A strike counts; a fine look pardons, and so does having nothing left to compare. An unclear one does neither. */
function afterLook(rollout: RolloutRecord, look: Look): RolloutRecord {
  const { verdict, minute } = look;
  const strikes = verdict === "strike" ? rollout.strikes + 1 : verdict === "unclear" ? rollout.strikes : 0;
  const conclusive = verdict === "strike" || verdict === "fine" ? 1 : 0;
  const figures: RolloutFigures = {
    minute,
    minutes: look.minutes,
    verdict,
    because: look.because === "" ? undefined : look.because,
    sentence: describeLook(look, strikes, rollout),
    looks: looksOnStep(rollout) + conclusive,
    strikes,
    total: look.total,
    rings: look.rings,
  };
  return { ...rollout, strikes, lookedAtMinute: minute, figures: JSON.stringify(figures) };
}

/** Conclusive looks since the step began. */
export function looksOnStep(rollout: RolloutRecord): number {
  const figures = parseRolloutFigures(rollout.figures);
  return figures === undefined || figures.minute * minuteMs < rollout.stepSinceMs ? 0 : figures.looks;
}

/** Whether looks can roll it back at all: otherwise only time has to pass. */
export function isWatched({ fromVersion, expectMoreDenials }: RolloutRecord): boolean {
  return fromVersion !== 0 && !expectMoreDenials;
}
