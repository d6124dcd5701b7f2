import { describe, expect, it } from "vitest";
import { type Excusable, excuse, mostExcusedMs, Stalls, whyLate } from "./stalls.ts";

function waiting(startMs: number, patienceMs: number): { -readonly [K in keyof Excusable]: Excusable[K] } {
  return { startMs, patienceMs, expiresMs: startMs + patienceMs, excusedMs: 0 };
}

describe("stalls", () => {
  it("are delays of more than a few milliseconds, and each is counted once", () => {
    const stalls = new Stalls();
    expect(stalls.note(100, 103)).toBeUndefined();
    expect(stalls.note(100, 160)).toBe(100);
    expect(stalls.note(110, 161)).toBeUndefined();
    expect(stalls.note(160, 180)).toBe(160);
    expect(stalls.totalMs).toBe(80);
  });

  it("are also times of waiting for a processor between turns, though no timer is late", () => {
    const stalls = new Stalls();
    expect(stalls.note(0, 0, 0)).toBeUndefined();
    expect(stalls.note(25, 25, 18)).toBe(7);
    expect(stalls.note(50, 50, 20)).toBeUndefined();
    expect(stalls.totalMs).toBe(18);
  });
});

describe("a question that waits", () => {
  it("is excused for as long as this process did not run, and has half of its patience left then", () => {
    const early = waiting(0, 25);
    expect(excuse(early, 25, 125)).toBeGreaterThanOrEqual(100);
    expect(early.expiresMs + early.excusedMs).toBe(125 + 12.5);
    const patient = waiting(0, 500);
    expect(excuse(patient, 25, 125)).toBe(100);
  });

  it("is not excused for a stall before it was asked", () => {
    expect(excuse(waiting(100, 500), 0, 110)).toBe(10);
  });

  it("is excused for a second at most, so no check hangs", () => {
    const one = waiting(0, 25);
    for (let nowMs = 100; nowMs < 5000; nowMs += 100) {
      const movedMs = excuse(one, nowMs - 100, nowMs);
      one.expiresMs += movedMs;
    }
    expect(one.excusedMs).toBe(mostExcusedMs);
    expect(one.expiresMs).toBe(25 + mostExcusedMs);
  });

  it("went unanswered because of this process if that did not run for as long as the deadline", () => {
    expect(whyLate({ patienceMs: 25, excusedMs: 24 })).toBe("storage_timeout");
    expect(whyLate({ patienceMs: 25, excusedMs: 25 })).toBe("process_starved");
  });
});
