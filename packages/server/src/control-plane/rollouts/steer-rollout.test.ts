import type { RolloutRecord } from "@sluice/sql";
import { SluiceError } from "sluice";
import { describe, expect, it } from "vitest";
import { type RolloutStart, startRollout } from "./start-rollout.ts";
import { advanceRollout, endRollout, pauseRollout, resumeRollout } from "./steer-rollout.ts";

const nowMs = 1_700_000_000_000;
const minuteMs = 60_000;
const request: RolloutStart = { id: "r", policy: "p", fromVersion: 3, toVersion: 4, author: "ada", by: "user" };

function findProblems(work: () => unknown): readonly string[] {
  try {
    work();
  } catch (error) {
    if (error instanceof SluiceError && error.code === "invalid_request")
      return error.problems.map(({ path }) => path.join("."));
    throw error;
  }
  return [];
}

describe("startRollout", () => {
  it("observes for ten minutes, then goes to 1 %, 10 % and all subjects, ten minutes each", () => {
    const rollout = startRollout(request, nowMs);
    expect(rollout).toMatchObject({ state: "observing", step: -1, observeForMs: 10 * minuteMs, shadow: false });
    expect(rollout.steps).toEqual([1, 10, 100].map((percent) => ({ percent, holdMs: 10 * minuteMs })));
  });

  it("waits for its time", () => {
    expect(startRollout({ ...request, startsMs: nowMs + 1 }, nowMs)).toMatchObject({ state: "waiting", step: -1 });
    expect(startRollout({ ...request, startsMs: nowMs }, nowMs).state).toBe("observing");
  });

  it("observes nothing in shadow, for a new policy, or on request", () => {
    expect(startRollout({ ...request, shadow: true }, nowMs)).toMatchObject({ state: "running", step: 0 });
    expect(startRollout({ ...request, fromVersion: 0 }, nowMs)).toMatchObject({ state: "running", step: 0 });
    expect(startRollout({ ...request, observeForMs: 0 }, nowMs)).toMatchObject({ state: "running", step: 0 });
  });

  it.each([
    [{ steps: [] }, ["rollout.steps"]],
    [{ steps: [{ percent: 0, holdMs: 1 }] }, ["rollout.steps.0.percent"]],
    [{ steps: [{ percent: 1.234, holdMs: 1 }] }, ["rollout.steps.0.percent"]],
    [{ steps: [{ percent: Number.NaN, holdMs: -1 }] }, ["rollout.steps.0.percent", "rollout.steps.0.hold_ms"]],
    [{ steps: [10, 10, 100].map((percent) => ({ percent, holdMs: 0 })) }, ["rollout.steps.1.percent"]],
    [{ steps: [{ percent: 50, holdMs: 0 }] }, ["rollout.steps.0.percent"]],
    [{ observeForMs: 0.5 }, ["rollout.observe_for_ms"]],
    [{ observeForMs: 60_000 }, ["rollout.observe_for_ms"]],
    [{ observeForMs: 299_999 }, ["rollout.observe_for_ms"]],
    [{ startsMs: Number.POSITIVE_INFINITY }, ["rollout.starts_ms"]],
  ])("refuses %j, and names the problem", (wrong, paths) => {
    expect(findProblems(() => startRollout({ ...request, ...wrong }, nowMs))).toEqual(paths);
  });

  it("accepts hundredths of a percent, manual steps, and in shadow an end before 100 %", () => {
    const steps = [0.07, 1.15, 100].map((percent) => ({ percent, holdMs: 0 }));
    expect(startRollout({ ...request, steps }, nowMs).steps).toEqual(steps);
    expect(startRollout({ ...request, shadow: true, steps: [{ percent: 5, holdMs: 1 }] }, nowMs).step).toBe(0);
  });
});

describe("by hand a rollout", () => {
  const observing = startRollout(request, nowMs);
  const later = nowMs + minuteMs;

  it("advances from observing to each step, and from the last one to its end", () => {
    let rollout: RolloutRecord = observing;
    for (const step of [0, 1, 2]) {
      rollout = advanceRollout(rollout, later + step);
      expect(rollout).toMatchObject({ state: "running", step, stepSinceMs: later + step });
    }
    expect(advanceRollout(rollout, later)).toMatchObject({ state: "done", step: 2 });
  });

  it("keeps its strikes when it is advanced", () => {
    expect(advanceRollout({ ...observing, strikes: 2 }, later).strikes).toBe(2);
  });

  it("is paused at its step, and continues there with its time starting over", () => {
    const running = advanceRollout(observing, nowMs);
    const paused = pauseRollout(running, later);
    expect(paused).toMatchObject({ state: "paused", step: 0, stepSinceMs: nowMs });
    expect(resumeRollout(paused, later + 1)).toMatchObject({ state: "running", step: 0, stepSinceMs: later + 1 });
    expect(resumeRollout(pauseRollout(observing, later), later)).toMatchObject({ state: "observing", step: -1 });
    const waiting = startRollout({ ...request, startsMs: later + 1 }, nowMs);
    expect(resumeRollout(pauseRollout(waiting, nowMs), later)).toMatchObject({ state: "waiting" });
    expect(resumeRollout(pauseRollout(waiting, nowMs), later + 1)).toMatchObject({ state: "observing" });
  });

  it("ends as requested, once", () => {
    for (const end of ["done", "rolled_back", "cancelled"] as const) {
      const ended = endRollout(observing, end, later, "because");
      expect(ended).toMatchObject({ state: end, reason: "because", changedMs: later });
      for (const again of [
        () => advanceRollout(ended, later),
        () => pauseRollout(ended, later),
        () => resumeRollout(ended, later),
        () => endRollout(ended, "done", later, ""),
      ])
        expect(findProblems(again)).toEqual(["state"]);
    }
  });

  it("is not paused twice, and not resumed while it runs", () => {
    expect(findProblems(() => pauseRollout(pauseRollout(observing, later), later))).toEqual(["state"]);
    expect(findProblems(() => resumeRollout(observing, later))).toEqual(["state"]);
  });
});
