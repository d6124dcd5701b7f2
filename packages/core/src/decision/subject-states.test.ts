import { describe, expect, it } from "vitest";
import { type Observation, SubjectStates } from "./subject-states.ts";

const seen = (subject: string, more: Partial<Observation> = {}): Observation => ({
  identity: "p|user:gcra",
  subject,
  allowed: false,
  exhausted: true,
  cost: 1,
  usedShare: 1,
  warnAt: 0.8,
  resetAfterMs: 60_000,
  nowMs: 1000,
  ...more,
});

describe("subject states", () => {
  it("are kept for a bounded number of subjects, and only while they are not normal", () => {
    const states = new SubjectStates(1000);
    for (let i = 0; i < 10_000; i++) states.observe(seen(`u${i}`), false);
    expect(states.size).toBe(889);
    for (let i = 0; i < 10_000; i++) states.observe(seen(`u${i}`, { allowed: true, usedShare: 0.1 }), false);
    expect(states.size).toBe(0);
  });

  it("distinguish subjects and limits", () => {
    const states = new SubjectStates();
    states.observe(seen("u"), false);
    expect(states.observe(seen("u"), true).denyCount).toBe(2);
    expect(states.observe(seen("v"), true).denyCount).toBe(1);
    expect(states.observe(seen("u", { identity: "q|user:gcra" }), true).denyCount).toBe(1);
  });
});
