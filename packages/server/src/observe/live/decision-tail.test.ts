import { type CheckRequest, createLimiter, type Decision, type Limiter, ManualClock } from "sluice";
import { beforeEach, describe, expect, it } from "vitest";
import { DecisionTail } from "./decision-tail.ts";

const policies = {
  policies: [
    { id: "orders", match: { endpoint: "/orders" }, limits: [{ by: ["user"], windows: ["2/m"] }] },
    { id: "search", match: { endpoint: "/search" }, limits: [{ by: ["user"], windows: ["1000000/m"] }] },
  ],
  default: "none",
};

let limiter: Limiter;
let tail: DecisionTail;

beforeEach(() => {
  limiter = createLimiter({ policies, clock: new ManualClock(1_000_000) });
  tail = new DecisionTail({ nowMs: () => 5_000 });
});

function decide(endpoint: string, user: string, preview = false): Decision {
  const request: CheckRequest = { dimensions: { endpoint, user }, ...(preview && { preview }) };
  const decision = limiter.checkSync(request);
  tail.count(request, decision);
  return decision;
}

describe("the live tail", () => {
  it("shows nothing that was decided before it was watched, or after", () => {
    decide("/orders", "early");
    const watcher = tail.watch(() => true);
    expect(watcher.take(10)).toMatchObject({ matched: 0, drawn: [] });
    decide("/orders", "now");
    watcher.close();
    decide("/orders", "late");
    expect(watcher.take(10).drawn.map(({ request }) => request.dimensions?.user)).toEqual(["now"]);
    expect(tail.watchers).toBe(0);
  });

  it("draws few of many, which stand for all of them", () => {
    const watcher = tail.watch(() => true);
    for (let i = 0; i < 10_000; i++) decide("/search", `u${i}`);
    const { matched, drawn } = watcher.take(10);
    expect([matched, drawn.length]).toEqual([10_000, 10]);
    expect(drawn.reduce((sum, { standsFor }) => sum + standsFor, 0)).toBe(10_000);
    expect(drawn.every(({ mixed }) => !mixed)).toBe(true);
  });

  it("does not hide a rare denial behind a flood of another kind", () => {
    const watcher = tail.watch(() => true);
    for (let i = 0; i < 5_000; i++) decide("/search", "flood");
    for (let i = 0; i < 3; i++) decide("/orders", "acme");
    for (let i = 0; i < 5_000; i++) decide("/search", "flood");
    const { drawn } = watcher.take(10);
    const denied = drawn.filter(({ decision }) => !decision.allowed);
    expect(denied).toMatchObject([{ standsFor: 1, request: { dimensions: { user: "acme" } } }]);
    expect(drawn.reduce((sum, { standsFor }) => sum + standsFor, 0)).toBe(10_003);
  });

  it("gives every decision of a kind the same chance", () => {
    const halves = [0, 0];
    for (let round = 0; round < 200; round++) {
      const watcher = tail.watch(() => true);
      for (let i = 0; i < 100; i++) decide("/search", String(i));
      for (const { request } of watcher.take(10).drawn) halves[Number(request.dimensions?.user) < 50 ? 0 : 1]! += 1;
      watcher.close();
    }
    // 2000 draws: each half is 1000, give or take 22. Ten times that is never seen.
    expect(Math.abs(halves[0]! - halves[1]!)).toBeLessThan(440);
  });

  it("holds a bounded number of kinds; what has no place is shown together with another", () => {
    const watcher = tail.watch(() => true);
    const request = { dimensions: { user: "u" } };
    const decision = decide("/search", "u");
    watcher.take(10);
    for (let i = 0; i < 1_000; i++) tail.count(request, { ...decision, policy: `p${i}` });
    const { drawn, matched } = watcher.take(10);
    expect([matched, drawn.length]).toEqual([1_000, 10]);
    expect(drawn.reduce((sum, { standsFor }) => sum + standsFor, 0)).toBe(1_000);
    expect(drawn.some(({ mixed }) => mixed)).toBe(true);
  });

  it("leaves out previews, and what the filter does", () => {
    const watcher = tail.watch((_request, { allowed }) => !allowed);
    decide("/orders", "a", true);
    for (let i = 0; i < 4; i++) decide("/orders", "a");
    expect(watcher.take(10)).toMatchObject({ matched: 2, drawn: [{}, {}] });
    expect(watcher.take(10).matched).toBe(0);
  });
});
