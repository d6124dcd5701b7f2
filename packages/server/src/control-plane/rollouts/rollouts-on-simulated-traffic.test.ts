import type { TallyRecord } from "@sluice/sql";
import { describe, expect, it } from "vitest";
import { decideRollout } from "./decide-rollout.ts";
import { lastWholeMinute } from "./judge-rollout.ts";
import { endRollout } from "./steer-rollout.ts";
import { type Decide, drawWorld, type NewVersion, simulateRollout, type World } from "./testing/simulate-rollout.ts";
import { type Crowd, simulateSubjects } from "./testing/simulate-subjects.ts";
import { addCounts, sumTallies } from "./trial-sums.ts";

/** How many of some rollouts, each on its own traffic, are rolled back. */
function countRollbacks(seeds: number, fixed: Partial<World> = {}, decide: Decide = decideRollout): number {
  let rolledBack = 0;
  for (let seed = 0; seed < seeds; seed++)
    if (simulateRollout(drawWorld(seed, fixed), seed, undefined, {}, decide).rollout.state === "rolled_back")
      rolledBack++;
  return rolledBack;
}

/** The share that is exceeded with 5 % probability at most, by Wilson's interval. */
function upperBound(hits: number, of: number): number {
  const z = 1.645;
  const share = hits / of;
  const middle = share + (z * z) / (2 * of);
  const half = z * Math.sqrt((share * (1 - share)) / of + (z * z) / (4 * of * of));
  return (middle + half) / (1 + (z * z) / of);
}

/** The obvious rule: a cohort is above its own mean by twice the deviation of its minutes, at any one look. */
const decideByBareSigma: Decide = (rollout, tallies, nowMs) => {
  const minute = lastWholeMinute(nowMs);
  if (rollout.step >= 0 && minute > rollout.lookedAtMinute && isBeyondBareSigma(tallies, rollout.step, minute))
    return { rollout: endRollout(rollout, "rolled_back", nowMs, ""), kind: "rolled_back" };
  const move = decideRollout({ ...rollout, expectMoreDenials: true }, tallies, nowMs);
  return move === undefined ? undefined : { ...move, rollout: { ...move.rollout, expectMoreDenials: false } };
};

function isBeyondBareSigma(tallies: readonly TallyRecord[], ring: number, minute: number): boolean {
  const sums = sumTallies(tallies);
  const now = addCounts(sums, [ring], "new", minute, minute);
  const joined = sums.minutes(ring, "new")[0] ?? minute;
  if (now.decided === 0 || minute <= joined) return false;
  const rates = sums
    .minutes(ring, "old")
    .filter((at) => at < joined)
    .map((at) => sums.at(ring, "old", at))
    .map(({ decided, denied }) => denied / decided);
  const mean = rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
  const variance = rates.reduce((sum, rate) => sum + (rate - mean) ** 2, 0) / (rates.length - 1);
  return now.denied / now.decided > mean + 2 * Math.sqrt(variance);
}

/** Traffic without anything unusual: only everyday variation. */
const ordinary: Partial<World> = {
  swing: 0.1,
  dayWave: 0.3,
  dayVolume: 0.4,
  bursts: 0.003,
  whales: 0.2,
  whaleSwing: 0.15,
  floods: 0.001,
};

describe("good rollouts", () => {
  it("are rolled back in fewer than one case in a hundred, on traffic of all kinds", { timeout: 120_000 }, () => {
    const seeds = 1_200;
    const rolledBack = countRollbacks(seeds);
    expect(upperBound(rolledBack, seeds)).toBeLessThan(0.01);
  });

  it.each([
    ["with little traffic", { perMinute: 600 }],
    ["with next to no traffic", { perMinute: 100 }],
    ["with a fifth denied anyway", { denied: 0.2 }],
    ["with next to no denials", { denied: 0.0005 }],
  ])("also %s", { timeout: 60_000 }, (_, fixed) => {
    expect(countRollbacks(200, { ...ordinary, ...fixed })).toBeLessThanOrEqual(1);
  });

  it("are rolled back by the dozen if a single look beyond 2σ is enough", { timeout: 60_000 }, () => {
    expect(countRollbacks(60, ordinary, decideByBareSigma)).toBeGreaterThan(30);
  });

  it("are never rolled back in shadow, because both versions decide the same requests", { timeout: 60_000 }, () => {
    let done = 0;
    for (let seed = 0; seed < 100; seed++) {
      const { rollout } = simulateRollout(drawWorld(seed), seed, undefined, { shadow: true });
      if (rollout.state === "done") done++;
    }
    expect(done).toBe(100);
  });
});

describe("limits by subject", () => {
  const crowd: Crowd = { subjects: 1_000, perMinute: 5, uneven: 0.8, limit: 30, swell: () => 1 };

  it.each([
    ["their traffic grows", (minute: number) => 1 + minute * 0.3],
    ["some of them turn heavy", (minute: number, subject: number) => (minute > 15 && subject % 97 === 5 ? 8 : 1)],
    ["all of them send more for a while", (minute: number) => (minute >= 32 && minute < 38 ? 3 : 1)],
    ["they start when the rollout is underway", (minute: number) => (minute < 11 ? 0.02 : 1)],
  ])("may be rolled out while %s", { timeout: 60_000 }, (_, swell) => {
    let rolledBack = 0;
    for (let seed = 0; seed < 60; seed++)
      if (simulateSubjects({ ...crowd, swell }, seed, crowd.limit).state === "rolled_back") rolledBack++;
    expect(rolledBack).toBeLessThanOrEqual(1);
  });

  it("are rolled back if they are too low, even while traffic grows", { timeout: 60_000 }, () => {
    for (const swell of [() => 1, (minute: number) => 1 + minute * 0.05])
      for (let seed = 0; seed < 20; seed++)
        expect(simulateSubjects({ ...crowd, swell }, seed, 1).state).toBe("rolled_back");
  });
});

describe("bad rollouts", () => {
  const everything: NewVersion = () => 1;
  const more =
    (points: number): NewVersion =>
    (denied) =>
      denied + points / 100;

  // A look sees the first 1 % of subjects, which send this many requests a minute.
  it.each([
    ["everything is denied", everything, 30, [0.002, 0.01, 0.05, 0.2]],
    ["20 points more are denied", more(20), 300, [0.002, 0.01, 0.05]],
    ["5 points more are denied", more(5), 3_000, [0.002, 0.01, 0.05]],
    ["2 points more are denied", more(2), 3_000, [0.002, 0.01]],
  ])("are caught within five minutes if %s", { timeout: 60_000 }, (_, newVersion, perMinute, rates) => {
    const seeds = 200;
    for (const denied of rates) {
      let inTime = 0;
      let caught = 0;
      for (let seed = 0; seed < seeds; seed++) {
        const world = drawWorld(seed, { ...ordinary, denied, perMinute: perMinute * 100 });
        const { rollout, lastedMinutes } = simulateRollout(world, seed, newVersion);
        if (rollout.state !== "rolled_back") continue;
        caught++;
        if (lastedMinutes <= 5) inTime++;
      }
      expect({ denied, caught: caught / seeds }).toEqual({ denied, caught: expect.closeTo(1, 1) });
      expect({ denied, inTime: inTime >= 0.9 * seeds, of: inTime }).toMatchObject({ inTime: true });
    }
  });

  it("are caught on the first step, with a few requests a minute from its 1 %", { timeout: 60_000 }, () => {
    let onFirstStep = 0;
    for (let seed = 0; seed < 100; seed++) {
      const { rollout } = simulateRollout(drawWorld(seed, { ...ordinary, perMinute: 600 }), seed, everything);
      if (rollout.state === "rolled_back" && rollout.step === 0) onFirstStep++;
    }
    expect(onFirstStep).toBeGreaterThanOrEqual(90);
  });

  it("are caught later, on a larger step, if 1 % is too few to tell", { timeout: 60_000 }, () => {
    let caught = 0;
    for (let seed = 0; seed < 40; seed++) {
      const world = drawWorld(seed, { ...ordinary, denied: 0.01, perMinute: 30_000 });
      const { rollout } = simulateRollout(world, seed, more(2));
      if (rollout.state === "rolled_back") caught++;
    }
    expect(caught).toBeGreaterThanOrEqual(36);
  });

  it("are caught even if all subjects get the new version at once", { timeout: 60_000 }, () => {
    let inTime = 0;
    for (let seed = 0; seed < 40; seed++) {
      const steps = [{ percent: 100, holdMs: 600_000 }];
      const { rollout, lastedMinutes } = simulateRollout(drawWorld(seed), seed, everything, { steps });
      if (rollout.state === "rolled_back" && lastedMinutes <= 5) inTime++;
    }
    expect(inTime).toBeGreaterThanOrEqual(38);
  });

  it("are noticed in shadow, without denying any request", { timeout: 60_000 }, () => {
    let caught = 0;
    for (let seed = 0; seed < 40; seed++) {
      const { rollout, lastedMinutes } = simulateRollout(drawWorld(seed), seed, more(5), { shadow: true });
      if (rollout.state === "rolled_back" && lastedMinutes <= 5) caught++;
    }
    expect(caught).toBeGreaterThanOrEqual(36);
  });
});
