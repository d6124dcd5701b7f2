import { describe, expect, it } from "vitest";
import { ManualTime, settled } from "../testing/manual-time.ts";
import { type Pace, pace } from "./pace.ts";
import type { PaceOptions } from "./pacer.ts";

function setUp(limit: string | readonly string[] | undefined, options: PaceOptions = {}) {
  const time = new ManualTime();
  const paced = pace(limit, { ...options, clock: time.clock, schedule: time.schedule });
  const starts: (readonly [string, number])[] = [];
  const call = (name: string, turn: Parameters<Pace["wait"]>[0] = {}): Promise<string> =>
    paced(() => {
      starts.push([name, time.clock.nowMs()]);
      return name;
    }, turn);
  return { time, paced, starts, call };
}

/** A call that ends when the test ends it. */
function endless(): { readonly run: () => Promise<void>; readonly end: () => void } {
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { run: () => ended, end };
}

describe("a pace by a limit", () => {
  it("lets the burst through at once and the rest as it comes back, first come, first served", async () => {
    const { time, starts, call, paced } = setUp("10/s burst 2");
    const answers = Promise.all(["a", "b", "c", "d"].map((name) => call(name)));
    await settled();
    expect(paced.waiting).toBe(2);
    expect(time.timers).toBe(1);
    await time.advance(1000);
    expect(starts).toEqual([
      ["a", 0],
      ["b", 0],
      ["c", 100],
      ["d", 200],
    ]);
    expect(await answers).toEqual(["a", "b", "c", "d"]);
    expect(time.timers).toBe(0);
  });

  it("keeps to several windows at once", async () => {
    const { time, starts, call } = setUp(["10/s burst 10", "2/m burst 2"]);
    for (const name of ["a", "b", "c"]) void call(name);
    await time.advance(30_000);
    expect(starts).toEqual([
      ["a", 0],
      ["b", 0],
      ["c", 30_000],
    ]);
  });

  it("lets no call overtake one that costs more", async () => {
    const { time, starts, call } = setUp("10/s burst 5");
    void call("small", { cost: 4 });
    void call("large", { cost: 5 });
    void call("late");
    await time.advance(1000);
    expect(starts).toEqual([
      ["small", 0],
      ["large", 400],
      ["late", 500],
    ]);
  });

  it("passes on what a call returns or throws, and goes on", async () => {
    const { call, paced } = setUp("1/s burst 5");
    await expect(paced(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    await expect(
      paced(() => {
        throw new Error("at once");
      }),
    ).rejects.toThrow("at once");
    expect(await call("next")).toBe("next");
    expect(paced.running).toBe(0);
  });

  it("gives turns without a call as well", async () => {
    const { time, paced } = setUp("1/s burst 1");
    await paced.wait();
    let turned = false;
    const turn = paced.wait().then(() => {
      turned = true;
    });
    await time.advance(999);
    expect(turned).toBe(false);
    await time.advance(1);
    await turn;
    expect(paced.running).toBe(0);
  });

  it("may be used by a call that it runs", async () => {
    const { paced } = setUp("10/s burst 5");
    expect(await paced(() => paced(() => "inner"))).toBe("inner");
  });
});

describe("concurrency", () => {
  it("is how many calls run at once, and an end lets the next one start", async () => {
    const { time, paced, starts, call } = setUp(undefined, { concurrency: 2 });
    const one = endless();
    const two = endless();
    const running = [paced(one.run), paced(two.run)];
    const third = call("third");
    await settled();
    expect([paced.running, paced.waiting, time.timers]).toEqual([2, 1, 0]);
    one.end();
    expect(await third).toBe("third");
    expect(starts).toEqual([["third", 0]]);
    two.end();
    await Promise.all(running);
    expect(paced.running).toBe(0);
  });

  it("counts a call that throws as ended", async () => {
    const { paced, call } = setUp(undefined, { concurrency: 1 });
    await expect(paced(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(await call("next")).toBe("next");
  });
});

describe("a call that is not made", () => {
  it("would wait too long, which is known at the latest when it is the first of the line", async () => {
    const { time, paced, call } = setUp("1/s burst 1", { maxWaitMs: 1500 });
    await call("a");
    const waiting = call("b");
    const refused = call("c").catch((error) => error);
    await time.advance(1000);
    expect(await waiting).toBe("b");
    expect(await refused).toMatchObject({ code: "wait_too_long", retryAfterMs: 1000 });
    expect([paced.waiting, time.timers]).toEqual([0, 0]);
  });

  it("is refused as soon as the first in line cannot make it", async () => {
    const { time, call } = setUp("1/m burst 1", { maxWaitMs: 30_000 });
    await call("a");
    await expect(call("b")).rejects.toMatchObject({ code: "wait_too_long", retryAfterMs: 60_000 });
    expect(time.timers).toBe(0);
  });

  it("has waited for another to end for as long as it may", async () => {
    const { time, paced, call } = setUp(undefined, { concurrency: 1, maxWaitMs: 100 });
    const one = endless();
    void paced(one.run);
    const refused = expect(call("late")).rejects.toMatchObject({ code: "wait_too_long", retryAfterMs: undefined });
    await time.advance(100);
    await time.advance(1);
    await refused;
    expect([paced.waiting, time.timers]).toEqual([0, 0]);
    one.end();
  });

  it("finds the line full", async () => {
    const { time, paced, call } = setUp("1/s burst 1", { maxQueue: 1 });
    await call("a");
    const waiting = call("b");
    await expect(call("c")).rejects.toMatchObject({ name: "PaceError", code: "queue_full" });
    expect(paced.waiting).toBe(1);
    await time.advance(1000);
    expect(await waiting).toBe("b");
  });

  it("finds no line at all if none may wait", async () => {
    const { time, paced, call } = setUp("1/s burst 1", { maxQueue: 0 });
    expect(await call("a")).toBe("a");
    await expect(call("b")).rejects.toMatchObject({ code: "queue_full" });
    expect([paced.waiting, time.timers]).toEqual([0, 0]);
  });

  it("never fits, and is refused at once even behind others", async () => {
    const { time, call } = setUp("1/s burst 2");
    await call("a", { cost: 2 });
    const waiting = call("b");
    await expect(call("c", { cost: 3 })).rejects.toMatchObject({ code: "never_fits" });
    await time.advance(1000);
    expect(await waiting).toBe("b");
  });

  it("finds a quota used up that does not come back", async () => {
    const { call } = setUp("1 once");
    await call("a");
    await expect(call("b")).rejects.toMatchObject({ code: "never_fits" });
  });
});

describe("aborting", () => {
  it("rejects at once with the signal's reason, and leaves nothing behind", async () => {
    const { time, paced, starts, call } = setUp("1/s burst 1");
    await call("a");
    const controller = new AbortController();
    const aborted = call("b", { signal: controller.signal });
    controller.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    expect([paced.waiting, time.timers]).toEqual([0, 0]);
    await time.advance(5000);
    expect(starts).toEqual([["a", 0]]);
  });

  it("lets those behind move up", async () => {
    const { time, starts, call } = setUp("1/s burst 2");
    await call("a", { cost: 2 });
    const controller = new AbortController();
    const aborted = call("large", { cost: 2, signal: controller.signal });
    void call("small");
    await time.advance(500);
    controller.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    await time.advance(500);
    expect(starts.at(-1)).toEqual(["small", 1000]);
  });

  it("before the call means that it takes nothing", async () => {
    const { call } = setUp("1/h burst 1");
    await expect(call("a", { signal: AbortSignal.abort(new Error("before")) })).rejects.toThrow("before");
    expect(await call("b")).toBe("b");
  });

  it("at the moment its turn comes means that it is not made, and not counted as running", async () => {
    const { paced, starts, call } = setUp("1/s burst 1", { concurrency: 1 });
    const controller = new AbortController();
    const aborted = call("a", { signal: controller.signal });
    controller.abort(new Error("late"));
    await expect(aborted).rejects.toThrow("late");
    expect([starts, paced.running]).toEqual([[], 0]);
  });

  it("leaves no listener on a signal that lives on", async () => {
    const { call } = setUp("1/s burst 5");
    const { signal } = new AbortController();
    const listeners = { added: 0, removed: 0 };
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>): void => {
      listeners.added += 1;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>): void => {
      listeners.removed += 1;
      remove(...args);
    };
    await call("a", { signal });
    await call("b", { signal });
    expect(listeners).toEqual({ added: 2, removed: 2 });
  });
});

describe("learning from answers", () => {
  it("stops every call until Retry-After has passed", async () => {
    const { time, paced, starts, call } = setUp(undefined);
    await call("a");
    paced.learn({ "Retry-After": "3" });
    void call("b");
    void call("c");
    await time.advance(2999);
    expect(starts).toHaveLength(1);
    await time.advance(1);
    expect(starts.slice(1)).toEqual([
      ["b", 3000],
      ["c", 3000],
    ]);
  });

  it("is never made to start earlier by a later answer", async () => {
    const { time, paced, starts, call } = setUp(undefined);
    paced.learn({ "Retry-After": "3" });
    paced.learn({ "Retry-After": "1" });
    paced.learn({ RateLimit: '"a";r=100;t=1', "RateLimit-Policy": '"a";q=100' });
    void call("a");
    await time.advance(10_000);
    expect(starts).toEqual([["a", 3000]]);
  });

  it("refuses calls at once that cannot wait for as long as the server asks", async () => {
    const { time, paced, call } = setUp("1/s burst 1", { maxWaitMs: 5000 });
    await call("a");
    const waiting = call("b").catch((error) => error);
    paced.learn({ "Retry-After": "60" });
    expect(await waiting).toMatchObject({ code: "wait_too_long", retryAfterMs: 60_000 });
    expect(time.timers).toBe(0);
  });

  it("spreads the remainder over the time until the reset", async () => {
    const { time, paced, starts, call } = setUp(undefined);
    await call("a");
    paced.learn({ "X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "3", "X-RateLimit-Reset": "8" });
    for (const name of ["b", "c", "d", "e", "f"]) void call(name);
    await time.advance(20_000);
    // The three remaining calls, and the first after the reset; after that nothing is known.
    expect(starts.slice(1)).toEqual([
      ["b", 2000],
      ["c", 4000],
      ["d", 6000],
      ["e", 8000],
      ["f", 8000],
    ]);
  });

  it("does not slow down while most of the limit is left", async () => {
    const { paced, starts, call } = setUp(undefined);
    await call("a");
    paced.learn({ "X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "5", "X-RateLimit-Reset": "8" });
    await call("b");
    expect(starts.at(-1)).toEqual(["b", 0]);
  });

  it("follows the limit that is nearest to its end, and none that counts another unit", async () => {
    const { time, paced, starts, call } = setUp(undefined);
    await call("a");
    paced.learn({
      "RateLimit-Policy": '"s";q=9, "m";q=90, "bytes";q=1000;qu="content-bytes"',
      RateLimit: '"s";r=3;t=1, "m";r=9;t=20, "bytes";r=0;t=3600',
    });
    void call("b");
    await time.advance(20_000);
    expect(starts.at(-1)).toEqual(["b", 2000]);
  });

  it("never locks out by reported limits alone: calls are at most ten seconds apart", async () => {
    const { time, paced, starts, call } = setUp(undefined);
    await call("a");
    paced.learn({ "X-RateLimit-Limit": "3000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "3600" });
    void call("b");
    await time.advance(60_000);
    expect(starts.at(-1)).toEqual(["b", 10_000]);
  });

  it("refuses no call by reported limits alone: at its deadline a call starts", async () => {
    const { time, paced, starts, call } = setUp(undefined, { maxWaitMs: 500 });
    await call("a");
    paced.learn({ "X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "60" });
    const answer = call("b");
    await time.advance(500);
    expect(await answer).toBe("b");
    expect(starts.at(-1)).toEqual(["b", 500]);
  });

  it("counts running calls that the answer may not have counted", async () => {
    const { time, paced, starts, call } = setUp(undefined);
    const others = [endless(), endless(), endless()];
    for (const { run } of others) void paced(run);
    await settled();
    paced.learn({ "X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "3", "X-RateLimit-Reset": "8" });
    void call("next");
    await time.advance(8000);
    expect(starts).toEqual([["next", 4000]]);
    for (const { end } of others) end();
  });

  it("keeps its knowledge if an answer reports no limits", async () => {
    const { time, paced, starts, call } = setUp(undefined);
    await call("a");
    paced.learn({ "X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "4" });
    paced.learn({ "Content-Type": "text/plain" });
    void call("b");
    await time.advance(4000);
    expect(starts.at(-1)).toEqual(["b", 2000]);
  });

  it("takes a reading as well as headers", async () => {
    const { time, paced, starts, call } = setUp(undefined);
    paced.learn({ limits: [], retryAfterMs: 250 });
    void call("a");
    await time.advance(250);
    expect(starts).toEqual([["a", 250]]);
  });
});

describe("options that are wrong", () => {
  it.each([
    ["limit", () => pace("ten per second")],
    ["limit", () => pace(["1/s", "5/month"])],
    ["concurrency", () => pace("1/s", { concurrency: 0 })],
    ["maxWaitMs", () => pace("1/s", { maxWaitMs: -1 })],
    ["maxQueue", () => pace("1/s", { maxQueue: Number.NaN })],
    ["spreadBelow", () => pace("1/s", { spreadBelow: -1 })],
    ["maxSpacingMs", () => pace("1/s", { maxSpacingMs: "1s" as never })],
    ["limit", () => pace([])],
    ["limit", () => pace(5 as never)],
    ["limit", () => pace(null as never)],
    ["clock", () => pace("1/s", { clock: {} as never })],
    ["schedule", () => pace("1/s", { schedule: 5 as never })],
    ["options", () => pace("1/s", null as never)],
    ["options", () => pace("1/s", 5 as never)],
  ])("are named: %s", (name, create) => {
    expect(create).toThrow(
      expect.objectContaining({ code: "invalid_request", problems: [expect.objectContaining({ path: [name] })] }),
    );
  });

  it.each([0, -1, Number.NaN, 1.5, 1e9])("include a cost of %s, which blocks nothing", async (cost) => {
    const { call, paced } = setUp("1/s burst 2");
    await expect(call("a", { cost })).rejects.toMatchObject({ code: "invalid_request" });
    expect(await call("b")).toBe("b");
    expect(paced.waiting).toBe(0);
  });
});

describe("what plain JavaScript may do wrong", () => {
  it.each([
    ["signal", { signal: {} }],
    ["signal", { signal: 5 }],
    ["options", 5],
    ["options", null],
  ])("is refused by name, and takes no turn: %s", async (name, turn) => {
    const { call } = setUp("1/h burst 1");
    await expect(call("a", turn as never)).rejects.toMatchObject({ problems: [{ path: [name] }] });
    expect(await call("b")).toBe("b");
  });

  it("is refused for a call that is not a function, which takes no turn", async () => {
    const { paced, call } = setUp("1/h burst 1");
    await expect(paced("x" as never)).rejects.toMatchObject({ problems: [{ path: ["call"] }] });
    expect(await call("b")).toBe("b");
  });

  it.each([
    undefined,
    null,
    5,
    "x",
    { limits: 5 },
    { limits: [null, 5, { remaining: "1", resetAfterMs: 5 }, { remaining: Number.NaN, resetAfterMs: -5 }] },
    { limits: [], retryAfterMs: "5" },
    { limits: [], retryAfterMs: Number.NaN },
    { limits: [], retryAfterMs: Number.POSITIVE_INFINITY },
    { limits: [], retryAfterMs: -5 },
  ])("changes nothing if learned from: %j", async (source) => {
    const { time, paced, starts, call } = setUp(undefined);
    paced.learn(source as never);
    await call("a");
    paced.learn({ "Retry-After": "3" });
    paced.learn(source as never);
    void call("b");
    await time.advance(3000);
    expect(starts).toEqual([
      ["a", 0],
      ["b", 3000],
    ]);
  });
});

it("spaces expensive calls no further apart by reported limits alone than others", async () => {
  const { time, paced, starts, call } = setUp(undefined);
  await call("a", { cost: 100 });
  paced.learn({ "X-RateLimit-Limit": "3000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "3600" });
  void call("b");
  await time.advance(60_000);
  expect(starts.at(-1)).toEqual(["b", 10_000]);
});
