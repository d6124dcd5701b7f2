import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CircuitBreaker, type CircuitBreakerOptions } from "./circuit-breaker.ts";

/** Calls and settles at once, at `nowMs`. */
function call(breaker: CircuitBreaker, nowMs: number, outcome: "succeed" | "fail"): void {
  expect(breaker.admit(nowMs)).not.toBe("refuse");
  breaker[outcome](nowMs, breaker.generation);
}

function callTimes(breaker: CircuitBreaker, times: number, nowMs: number, outcome: "succeed" | "fail"): void {
  for (let i = 0; i < times; i++) call(breaker, nowMs, outcome);
}

function opened(atMs = 0, options?: CircuitBreakerOptions): CircuitBreaker {
  const breaker = new CircuitBreaker(options);
  callTimes(breaker, 5, atMs, "fail");
  expect(breaker.state).toBe("open");
  return breaker;
}

describe("a closed circuit breaker", () => {
  it("lets every call through", () => {
    const breaker = new CircuitBreaker();
    expect(breaker.state).toBe("closed");
    for (let i = 0; i < 10; i++) expect(breaker.admit(i)).toBe("call");
  });

  it("opens at five failures in a row, and not at four", () => {
    const breaker = new CircuitBreaker();
    callTimes(breaker, 4, 0, "fail");
    expect(breaker.state).toBe("closed");
    call(breaker, 0, "fail");
    expect(breaker.state).toBe("open");
  });

  it("starts counting failures in a row afresh after a success", () => {
    const breaker = new CircuitBreaker();
    callTimes(breaker, 4, 0, "fail");
    call(breaker, 0, "succeed");
    callTimes(breaker, 4, 0, "fail");
    expect(breaker.state).toBe("closed");
  });

  it("opens when more than 1 % of a hundred calls failed, and not at 1 %", () => {
    const breaker = new CircuitBreaker();
    callTimes(breaker, 199, 0, "succeed");
    callTimes(breaker, 2, 0, "fail");
    expect(breaker.state).toBe("closed"); // 2 of 201 is under 1 %
    call(breaker, 0, "fail");
    expect(breaker.state).toBe("open"); // 3 of 202
  });

  it("opens at the hundredth call if too many of the first hundred failed, though that one succeeded", () => {
    const breaker = new CircuitBreaker();
    callTimes(breaker, 2, 0, "fail");
    callTimes(breaker, 97, 0, "succeed");
    expect(breaker.state).toBe("closed");
    call(breaker, 0, "succeed");
    expect(breaker.state).toBe("open");
  });

  it("forgets calls after thirty seconds", () => {
    const breaker = new CircuitBreaker();
    callTimes(breaker, 4, 0, "fail");
    callTimes(breaker, 99, 30_000, "succeed");
    call(breaker, 30_000, "fail");
    expect(breaker.state).toBe("closed"); // 1 of 100
    call(breaker, 59_999, "fail");
    expect(breaker.state).toBe("open"); // 2 of 101
  });

  it("reports every change with its reason", () => {
    const changes: string[] = [];
    const breaker = new CircuitBreaker({ onChange: (state, why) => changes.push(`${state}: ${why}`) });
    callTimes(breaker, 5, 0, "fail");
    call(breaker, 5_000, "fail");
    call(breaker, 10_000, "succeed");
    callTimes(breaker, 100, 10_000, "succeed");
    callTimes(breaker, 2, 10_000, "fail");
    expect(changes).toEqual([
      "open: 5 calls in a row failed",
      "half_open: a probe finds out whether it answers again",
      "open: the probe failed",
      "half_open: a probe finds out whether it answers again",
      "closed: the probe was answered",
      "open: 2 of 102 calls within 30000 ms failed",
    ]);
  });
});

describe("an open circuit breaker", () => {
  it("lets an early probe through if there is a sign of recovery, and only one", () => {
    const breaker = opened();
    expect(breaker.admit(1)).toBe("refuse");
    expect(breaker.admit(1, true)).toBe("probe");
    expect(breaker.admit(2, true)).toBe("refuse");
    breaker.succeed(3, breaker.generation);
    expect(breaker.state).toBe("closed");
  });

  it("refuses for five seconds, then lets one probe through and refuses the rest", () => {
    const breaker = opened(100);
    expect([100, 2_000, 5_099].map((ms) => breaker.admit(ms))).toEqual(["refuse", "refuse", "refuse"]);
    expect([5_100, 5_100, 7_000].map((ms) => breaker.admit(ms))).toEqual(["probe", "refuse", "refuse"]);
    expect(breaker.state).toBe("half_open");
  });

  it("closes when the probe succeeds, with a clean slate", () => {
    const breaker = opened();
    call(breaker, 5_000, "succeed");
    expect(breaker.state).toBe("closed");
    callTimes(breaker, 4, 5_000, "fail");
    expect(breaker.state).toBe("closed");
  });

  it("waits another five seconds when the probe fails", () => {
    const breaker = opened();
    call(breaker, 5_000, "fail");
    expect(breaker.state).toBe("open");
    expect([5_000, 9_999, 10_000].map((ms) => breaker.admit(ms))).toEqual(["refuse", "refuse", "probe"]);
  });

  it("sends another probe if the last one is unanswered after five seconds", () => {
    const breaker = opened();
    expect(breaker.admit(5_000)).toBe("probe");
    const lost = breaker.generation;
    expect([9_999, 10_000].map((ms) => breaker.admit(ms))).toEqual(["refuse", "probe"]);
    breaker.fail(10_001, lost);
    expect(breaker.state).toBe("half_open");
    breaker.succeed(10_002, breaker.generation);
    expect(breaker.state).toBe("closed");
  });

  it("is neither closed nor kept open by calls that began before it opened", () => {
    const breaker = new CircuitBreaker();
    const before = breaker.generation;
    callTimes(breaker, 5, 0, "fail");
    breaker.succeed(10, before);
    expect(breaker.state).toBe("open");
    breaker.fail(4_999, before);
    expect(breaker.admit(5_000)).toBe("probe");
    breaker.succeed(5_001, before);
    breaker.fail(5_001, before);
    expect(breaker.state).toBe("half_open");
    breaker.succeed(5_002, breaker.generation);
    for (let i = 0; i < 10; i++) breaker.fail(5_003, before);
    expect(breaker.state).toBe("closed");
  });
});

interface Event {
  readonly kind: "admit" | "settle";
  readonly afterMs: number;
  /** Which of the calls that are out, and how it ends. */
  readonly which: number;
  readonly fails: boolean;
}

const event = (minMs: number): fc.Arbitrary<Event> =>
  fc.record({
    kind: fc.constantFrom("admit", "settle"),
    afterMs: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, fc.integer({ min: minMs, max: 4_000 })),
    which: fc.nat(),
    fails: fc.boolean(),
  });

describe("whatever happens, a circuit breaker", () => {
  const options = { failuresInARow: 3, failureShare: 0.2, minCalls: 5, overMs: 3_000, probeEveryMs: 1_000 };

  it("opens exactly when a count of every call says so", () => {
    fc.assert(
      fc.property(fc.array(event(0), { maxLength: 200 }), (events) => {
        const breaker = new CircuitBreaker(options);
        const out: { generation: number; probe: boolean }[] = [];
        let nowMs = 0;
        let settled: { bucket: number; failed: boolean }[] = [];
        for (const { kind, afterMs, which, fails } of events) {
          nowMs += afterMs;
          if (kind === "admit") {
            const admission = breaker.admit(nowMs);
            if (admission !== "refuse") out.push({ generation: breaker.generation, probe: admission === "probe" });
            continue;
          }
          if (out.length === 0) continue;
          const [{ generation, probe }] = out.splice(which % out.length, 1) as [(typeof out)[0]];
          const counts = generation === breaker.generation;
          const before = breaker.state;
          if (fails) breaker.fail(nowMs, generation);
          else breaker.succeed(nowMs, generation);
          if (!counts) {
            expect(breaker.state).toBe(before);
          } else if (probe) {
            expect(breaker.state).toBe(fails ? "open" : "closed");
            settled = [];
          } else {
            const bucket = Math.floor(nowMs / 100);
            settled.push({ bucket, failed: fails });
            const recent = settled.filter((one) => one.bucket > bucket - 30);
            const failures = recent.filter((one) => one.failed).length;
            const inARow = settled.slice(-3).every((one) => one.failed) && settled.length >= 3;
            const tooMany = recent.length >= 5 && failures > 0.2 * recent.length;
            expect(breaker.state).toBe(inARow || tooMany ? "open" : "closed");
            if (breaker.state === "open") settled = [];
          }
        }
      }),
    );
  });

  it("never opens by share below the least number of calls", () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { maxLength: 99 }), fc.array(fc.nat(1_000)), (fails, steps) => {
        const breaker = new CircuitBreaker({ failuresInARow: 1_000 });
        let nowMs = 0;
        for (const [i, failed] of fails.entries()) {
          nowMs += steps[i] ?? 0;
          call(breaker, nowMs, failed ? "fail" : "succeed");
        }
        expect(breaker.state).toBe("closed");
      }),
    );
  });

  it("has one probe out at a time, at most one in each wait, and always another, also when time steps back", () => {
    fc.assert(
      fc.property(fc.array(event(-10_000), { maxLength: 200 }), (events) => {
        const breaker = new CircuitBreaker(options);
        callTimes(breaker, 3, 0, "fail");
        let nowMs = 0;
        /** Time passed since the last probe, steps back left out. */
        let sinceMs = 0;
        let probe: number | undefined;
        for (const { kind, afterMs, fails } of events) {
          nowMs += afterMs;
          sinceMs += Math.max(afterMs, 0);
          if (kind === "settle") {
            if (probe === undefined) continue;
            // A probe that fails: the circuit stays open, and the next one is due as before.
            if (fails) breaker.fail(nowMs, probe);
            probe = undefined;
            continue;
          }
          const admission = breaker.admit(nowMs);
          expect(admission).not.toBe("call");
          if (admission !== "probe") continue;
          expect(sinceMs).toBeGreaterThanOrEqual(1_000);
          sinceMs = 0;
          probe = breaker.generation;
        }
        // Standing still after a step back costs at most a tenth of a second here.
        const admissions = [0, 1_100].map((ms) => breaker.admit(nowMs + ms));
        expect(admissions).toContain("probe");
      }),
    );
  });
});
