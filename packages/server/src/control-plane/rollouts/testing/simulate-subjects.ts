import type { RolloutRecord, TallyRecord } from "@sluice/sql";
import { decideRollout, needsTallies } from "../decide-rollout.ts";
import { startRollout } from "../start-rollout.ts";
import { isUnderway } from "../steer-rollout.ts";
import { createSeededRandom } from "./seeded-random.ts";

/** Subjects with individual limits: whatever one of them requests beyond its limit of a minute is denied. */
export interface Crowd {
  readonly subjects: number;
  /**
   * Requests a minute, of an average subject. The n-th busiest sends as many as the busiest, over n to the power of
   * `uneven`.
   */
  readonly perMinute: number;
  readonly uneven: number;
  readonly limit: number;
  /** The factor on a subject's requests in a minute since the rollout started. */
  readonly swell: (minute: number, subject: number) => number;
}

const minuteMs = 60_000;
const firstMinute = 28_000_000;
const maxMinutes = 120;

/**
 * A rollout of a limit on such subjects. Unlike fluctuating rates, a subject is denied nothing up to its limit, and
 * much beyond it.
 */
export function simulateSubjects(crowd: Crowd, seed: number, newLimit: number): RolloutRecord {
  const random = createSeededRandom(seed);
  const beganMs = firstMinute * minuteMs + 30_000;
  const request = { id: "r", policy: "p", fromVersion: 1, toVersion: 2, author: "ada", by: "user" };
  let rollout = startRollout(request, beganMs);
  const weights = Array.from({ length: crowd.subjects }, (_, rank) => 1 / (rank + 1) ** crowd.uneven);
  const scale = (crowd.perMinute * crowd.subjects) / weights.reduce((all, one) => all + one, 0);
  const rings = weights.map(() => {
    const place = random.between(0, 100);
    return rollout.steps.findIndex(({ percent }) => place < percent);
  });
  const tallies: TallyRecord[] = [];
  for (let minute = firstMinute; minute < firstMinute + maxMinutes; minute++) {
    for (const nowMs of [16_000, 31_000].map((offsetMs) => minute * minuteMs + offsetMs)) {
      if (nowMs < beganMs) continue;
      rollout = decideRollout(rollout, needsTallies(rollout, nowMs) ? tallies : [], nowMs)?.rollout ?? rollout;
      if (!isUnderway(rollout)) return rollout;
    }
    const counts = rollout.steps.map(() => ({ decided: 0, denied: 0 }));
    for (const [subject, weight] of weights.entries()) {
      const ring = rings[subject]!;
      const asked = random.poisson(scale * weight * crowd.swell(minute - firstMinute, subject));
      counts[ring]!.decided += asked;
      counts[ring]!.denied += Math.max(0, asked - (ring <= rollout.step ? newLimit : crowd.limit));
    }
    for (const [step, count] of counts.entries())
      tallies.push({ rollout: "r", node: "n", minute, step, side: step <= rollout.step ? "new" : "old", ...count });
  }
  return rollout;
}
