import type { StoreUnavailable } from "sluice";
import { Stalls } from "sluice/internal";
import { compileTestLimit, testWindow } from "sluice/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createKeyNames } from "../place/key-names.ts";
import { GuardedShard } from "./guarded-shard.ts";
import { type AskCounts, Lane } from "./lane.ts";
import { ArrivalQuestion } from "./question.ts";
import { RunDelay } from "./run-delay.ts";

const deadlineMs = 25;
const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, 1000)] });

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate", "clearImmediate"] });
});
afterEach(() => {
  vi.useRealTimers();
});

function setUp() {
  let nowMs = 1_000;
  let waitedMs = 0;
  const replies: ((reply: unknown) => void)[] = [];
  const shard = {
    name: "one",
    ready: true,
    send: () => new Promise<unknown>((resolve) => replies.push(resolve)),
    renew: () => undefined,
  };
  const guarded = new GuardedShard(
    shard,
    {},
    () => nowMs,
    () => undefined,
  );
  const counts: AskCounts = {
    ...{ calls: 0, questions: 0, failedCalls: 0, timeouts: 0, starved: 0 },
    ...{ retries: 0, loads: 0, foreign: 0, healed: 0, moves: 0 },
  };
  const lane = new Lane({
    slot: 0,
    names: createKeyNames("s{0}"),
    shard: () => guarded,
    starting: () => false,
    maxCallWeight: 64,
    maxInFlight: 4,
    maxWaiting: 100,
    nowMs: () => nowMs,
    stalls: new Stalls(),
    runDelay: new RunDelay(() => `0 ${waitedMs * 1e6} 0`),
    counts,
    onSuspect: () => undefined,
    onFailure: () => undefined,
  });
  const asker = {
    decide: () => "decided",
    fail: (_request: unknown, error: unknown) => (error as StoreUnavailable).reason,
  };
  const answers: unknown[] = [];
  return {
    lane,
    guarded,
    counts,
    answers,
    /** Asks, and sends at the end of the turn. */
    async ask(): Promise<void> {
      const question = new ArrivalQuestion(limit, limit.windows, "u", 1, {}, asker as never);
      void lane.askArrival(question, deadlineMs, deadlineMs).then((answer) => answers.push(answer));
      await vi.advanceTimersByTimeAsync(0);
    },
    async reply(): Promise<void> {
      replies.shift()!([nowMs * 1000, 0, 0, 0, [0]]);
      await Promise.resolve();
    },
    /** The process runs, and timers are on time. */
    async run(ms: number): Promise<void> {
      for (let i = 0; i < ms; i++) {
        nowMs += 1;
        await vi.advanceTimersByTimeAsync(1);
      }
    },
    /** The process does not run; whatever was due meanwhile happens at once after it. */
    async stall(ms: number, timersMs = ms): Promise<void> {
      nowMs += ms;
      await vi.advanceTimersByTimeAsync(timersMs);
    },
    wait(ms: number): void {
      waitedMs += ms;
    },
  };
}

describe("a check in a process that does not run", () => {
  it("is answered by a reply that is read after the stall, however long after the deadline that is", async () => {
    const { ask, stall, reply, run, answers, counts, guarded } = setUp();
    for (let i = 0; i < 8; i++) {
      await ask();
      await stall(200, 26);
      await reply();
      await run(2);
    }
    expect(answers).toEqual(Array(8).fill("decided"));
    expect(counts).toMatchObject({ timeouts: 0, starved: 0 });
    expect(guarded.closed).toBe(true);
  });

  it("fails as starved if there is no reply then either, which is not held against a server that answers", async () => {
    const { ask, stall, reply, run, answers, counts, guarded } = setUp();
    await ask();
    await reply();
    for (let i = 0; i < 8; i++) {
      await ask();
      await stall(100, 26);
      await run(40);
    }
    expect(answers).toEqual(["decided", ...Array(8).fill("process_starved")]);
    expect(counts).toMatchObject({ timeouts: 0, starved: 8 });
    expect(guarded.figures.failures).toMatchObject({ timeout: 0, starved: 8 });
    expect(guarded.closed).toBe(true);
  });

  it("opens the breaker of a server that has not answered for seconds all the same", async () => {
    const { ask, stall, run, guarded, lane } = setUp();
    for (let i = 0; i < 5; i++) {
      await ask();
      await stall(100, 26);
      await run(40);
    }
    expect(guarded.closed).toBe(false);
    lane.close();
    guarded.close();
  });

  it("has its deadline moved by waits for a processor that no timer shows", async () => {
    const { ask, run, wait, reply, answers } = setUp();
    await ask();
    await run(20);
    wait(20);
    await run(15);
    expect(answers).toEqual([]);
    await reply();
    await run(1);
    expect(answers).toEqual(["decided"]);
  });

  it("is over within its deadline and a second, whatever this process does", async () => {
    const { ask, run, stall, answers } = setUp();
    await ask();
    for (let i = 0; i < 12; i++) await stall(100, 100);
    await run(1);
    expect(answers).toEqual(["process_starved"]);
  });
});

describe("a check in a process that runs", () => {
  it("fails as timed out by a server that does not answer, whose breaker opens", async () => {
    const { ask, run, answers, counts, guarded, lane } = setUp();
    for (let i = 0; i < 5; i++) {
      await ask();
      await run(deadlineMs + 2);
    }
    expect(answers).toEqual(Array(5).fill("storage_timeout"));
    expect(counts).toMatchObject({ timeouts: 5, starved: 0 });
    expect(guarded.closed).toBe(false);
    lane.close();
    guarded.close();
  });
});
