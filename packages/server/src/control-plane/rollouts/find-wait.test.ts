import type { RolloutRecord, TallyRecord } from "@sluice/sql";
import { describe, expect, it } from "vitest";
import { decideRollout } from "./decide-rollout.ts";
import { findWait, patienceMs, waitNeedsTallies } from "./find-wait.ts";
import { type RolloutStart, startRollout, takeStep } from "./start-rollout.ts";
import { pauseRollout } from "./steer-rollout.ts";
import { sumTallies } from "./trial-sums.ts";

const minuteMs = 60_000;
const firstMinute = 28_000_000;

function at(minute: number): number {
  return (firstMinute + minute) * minuteMs;
}

function begun(request: Partial<RolloutStart> = {}): RolloutRecord {
  const start = { id: "r", policy: "p", fromVersion: 1, toVersion: 2, author: "ada", by: "user" };
  return startRollout({ ...start, ...request }, at(0));
}

function tallies(from: number, to: number, step: number, side: TallyRecord["side"], decided: number): TallyRecord[] {
  return Array.from({ length: to - from + 1 }, (_, i) => {
    return { rollout: "r", node: "a", minute: firstMinute + from + i, step, side, decided, denied: 0 };
  });
}

function findWaitNow(rollout: RolloutRecord, counted: readonly TallyRecord[], nowMs: number): unknown {
  const needed = waitNeedsTallies(rollout, nowMs) ? counted : [];
  return findWait(rollout, sumTallies(needed), nowMs);
}

const onFirstStep = (more: Partial<RolloutRecord> = {}): RolloutRecord => ({
  ...takeStep(begun(), 0, at(10), ""),
  ...more,
});

describe("a rollout reports that it waits", () => {
  it("until it starts, and for its observation, with the traffic so far", () => {
    expect(findWaitNow(begun({ startsMs: at(3) }), [], at(1))).toEqual({ code: "start", untilMs: at(3) });
    const seen = [...tallies(0, 2, 0, "old", 4), ...tallies(0, 2, 1, "old", 400)];
    expect(findWaitNow(begun(), seen, at(3))).toEqual({
      code: "observation",
      untilMs: at(10),
      minutes: 3,
      minutesNeeded: 5,
      decided: 12,
      decidedNeeded: 20,
    });
  });

  it("for more traffic under the old version, and until when", () => {
    const scarce = tallies(0, 9, 0, "old", 1);
    const late = at(10) + 167_000;
    const missing = { minutes: 10, minutesNeeded: 5, decided: 10, decidedNeeded: 20 };
    expect(findWaitNow(begun(), scarce, late)).toEqual({ code: "baseline", untilMs: at(10) + patienceMs, ...missing });
    expect(decideRollout(begun(), scarce, late)).toBeUndefined();
    expect(decideRollout(begun(), scarce, at(10) + patienceMs)).toMatchObject({
      kind: "step",
      rollout: { reason: "observed for long enough; there was too little traffic to compare the first step" },
    });
  });

  it("for nothing if no subject of the first step sends anything, while others do", () => {
    const others = tallies(0, 9, 1, "old", 100);
    expect(findWaitNow(begun(), others, at(10))).toBeUndefined();
    expect(decideRollout(begun(), others, at(10))).toMatchObject({ kind: "step", rollout: { step: 0 } });
    const still = tallies(0, 20, 1, "old", 100);
    expect(decideRollout(onFirstStep(), still, at(20))).toMatchObject({ kind: "step", rollout: { step: 1 } });
    // Without traffic, only time counts.
    expect(findWaitNow(begun(), [], at(10))).toMatchObject({ code: "baseline", decided: 0 });
    expect(findWaitNow(onFirstStep(), [], at(20))).toMatchObject({ code: "looks" });
  });

  it("for its time, and for minutes to compare", () => {
    expect(findWaitNow(onFirstStep(), [], at(12))).toEqual({ code: "hold", untilMs: at(20) });
    const figures = JSON.stringify({ verdict: "fine", minute: firstMinute + 12, looks: 1 });
    expect(findWaitNow(onFirstStep({ figures }), [], at(21))).toEqual({
      code: "looks",
      untilMs: at(25),
      looks: 1,
      looksNeeded: 3,
    });
  });

  it("for a fine look after one that was not, and for traffic that has stopped", () => {
    expect(findWaitNow(onFirstStep({ strikes: 2 }), [], at(40))).toEqual({
      code: "fine_look",
      strikes: 2,
      strikesToRollBack: 3,
    });
    const ceased = [...tallies(0, 9, 0, "old", 50), ...tallies(10, 14, 0, "new", 50), ...tallies(15, 16, 0, "new", 2)];
    const figures = JSON.stringify({ verdict: "fine", minute: firstMinute + 14, looks: 4 });
    expect(findWaitNow(onFirstStep({ figures, lookedAtMinute: firstMinute + 14 }), ceased, at(40))).toEqual({
      code: "traffic",
      decided: 4,
      decidedNeeded: 10,
    });
  });

  it("for an operator if it is paused or a step is manual, and for nothing once it has ended", () => {
    expect(findWaitNow(pauseRollout(onFirstStep(), at(11)), [], at(12))).toEqual({ code: "operator" });
    const steps = [1, 100].map((percent) => ({ percent, holdMs: 0 }));
    expect(findWaitNow(begun({ steps, observeForMs: 0 }), [], at(1))).toEqual({ code: "operator" });
    expect(findWaitNow(onFirstStep({ state: "rolled_back" }), [], at(12))).toBeUndefined();
  });
});
