import { type CheckRequest, type Decision, limit, SluiceError, StoreUnavailable } from "sluice";
import { describe, expect, it } from "vitest";
import { connectServers } from "./connect-servers.ts";
import { parseAddresses } from "./parse-addresses.ts";
import type { ConnectOptions } from "./remote-limiter.ts";
import { ManualTime, settled } from "./testing/manual-time.ts";
import { allowed, ScriptedExchange } from "./testing/scripted-exchange.ts";

/** A client of `count` servers that the test plays, on time that the test moves. */
function setUp(options: ConnectOptions = {}, servers = 1, maxInFlight = 32, random = 1) {
  const time = new ManualTime();
  const exchanges: ScriptedExchange[] = [];
  const changes: string[] = [];
  /** Input from the network before the end of this turn of the event loop. */
  const arriving: (() => void)[] = [];
  const scheme = options.tls === undefined ? "grpc" : "grpcs";
  const names = Array.from({ length: servers }, (_, i) => `${scheme}://s${i}`);
  const limiter = connectServers(
    parseAddresses(names, ["grpc"]),
    {
      ...options,
      onChange: (change) => {
        changes.push(`${change.address} ${change.state}`);
        options.onChange?.(change);
      },
    },
    (_address, _options, events) => {
      const exchange = new ScriptedExchange(events, maxInFlight);
      exchanges.push(exchange);
      return exchange;
    },
    {
      clock: time.clock,
      schedule: time.schedule,
      scheduleIdly: time.schedule,
      soon: (act) =>
        void setImmediate(() => {
          for (const arrive of arriving.splice(0)) arrive();
          setImmediate(act);
        }),
    },
    () => random,
  );
  const checks = (users: readonly string[], more: CheckRequest = {}): Promise<Decision>[] =>
    users.map((user) => limiter.check({ ...more, dimensions: { user } }));
  /** Past the opening, and past the turn of the event loop that makes batches. */
  const flushed = async (): Promise<void> => {
    for (let i = 0; i < 6; i++) await settled();
  };
  return { limiter, time, exchanges, first: exchanges[0]!, second: exchanges[1]!, changes, arriving, checks, flushed };
}

const users = (count: number): string[] => Array.from({ length: count }, (_, i) => `u${i}`);

describe("checks of one turn of the event loop", () => {
  it("travel together, and each gets its own answer", async () => {
    const { first, checks, flushed, limiter } = setUp();
    const asked = Promise.all(checks(["a", "b", "c"]));
    await flushed();
    expect(first.batches.map((batch) => batch.users)).toEqual([["a", "b", "c"]]);
    const denied = { ...(await createDecision(limiter, first)), allowed: false };
    first.batches[0]!.answer([
      { kind: "answer", value: { ...denied, allowed: true, remaining: 1 } },
      { kind: "answer", value: { ...denied, remaining: 2 } },
      { kind: "answer", value: { ...denied, remaining: 3 } },
    ]);
    expect((await asked).map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, 1],
      [false, 2],
      [false, 3],
    ]);
  });

  it("are cut into batches of 256, and of 128 Ki characters", async () => {
    const { first, checks, flushed, limiter } = setUp();
    void Promise.all(checks(users(600)));
    await flushed();
    expect(first.batches.map(({ questions }) => questions.length)).toEqual([256, 256, 88]);
    const dimensions = Object.fromEntries(Array.from({ length: 15 }, (_, i) => [`d${i}`, "x".repeat(4096)]));
    for (let i = 0; i < 5; i++) void limiter.check({ dimensions });
    await flushed();
    expect(first.batches.slice(3).map(({ questions }) => questions.length)).toEqual([2, 2, 1]);
    await limiter.close();
  });

  it("wait while as many batches as permitted are in flight, and then go together", async () => {
    const { first, checks, flushed, limiter } = setUp({}, 1, 1);
    void checks(["a"]);
    await flushed();
    void checks(["b"]);
    await flushed();
    void checks(["c"]);
    await flushed();
    expect(first.batches).toHaveLength(1);
    expect(limiter.stats).toMatchObject({ waiting: 2, unanswered: 1 });
    first.batches[0]!.answer();
    await flushed();
    expect(first.batches[1]!.users).toEqual(["b", "c"]);
    await limiter.close();
  });

  it("are measured with their policies", async () => {
    const { first, flushed, limiter } = setUp();
    const policies = Array.from({ length: 32 }, (_, i) => `p${i}`.padEnd(256, "x"));
    for (let i = 0; i < 20; i++) void limiter.check({ policies });
    await flushed();
    expect(first.batches.map(({ questions }) => questions.length)).toEqual([16, 4]);
    await limiter.close();
  });

  it("do not share a batch if one has far less time than another", async () => {
    const { first, checks, flushed, limiter } = setUp();
    void checks(["patient"]);
    void checks(["hasty"], { deadlineMs: 10 });
    await flushed();
    expect(first.batches.map((batch) => [batch.users, batch.questions[0]!.withinMs])).toEqual([
      [["patient"], 80],
      [["hasty"], 8],
    ]);
    await limiter.close();
  });
});

async function createDecision(
  limiter: ReturnType<typeof setUp>["limiter"],
  exchange: ScriptedExchange,
): Promise<Decision> {
  const asked = limiter.check({});
  for (let i = 0; i < 6; i++) await settled();
  exchange.batches.pop()!.answer();
  return asked;
}

describe("before the first check", () => {
  it("nothing is opened, and no timer runs", async () => {
    const { first, time, limiter, flushed } = setUp();
    await flushed();
    expect([first.opened, time.timers]).toEqual([0, 0]);
    expect(limiter.stats.addresses).toMatchObject([{ address: "s0:8081", state: "idle", breaker: "closed" }]);
  });
});

describe("a deadline", () => {
  it("is answered by whenUnavailable: open by default", async () => {
    const { time, checks, flushed, limiter, first } = setUp();
    const [asked] = checks(["a"]);
    await flushed();
    await time.advance(99);
    expect(limiter.stats.degraded.storage_timeout).toBe(0);
    await time.advance(2);
    await flushed();
    expect(await asked).toMatchObject({ allowed: true, reason: "degraded", degraded: "storage_timeout" });
    expect(limiter.stats.degraded.storage_timeout).toBe(1);
    expect([time.timers, first.batches[0]!.abandoned]).toEqual([0, true]);
  });

  it.each([
    ["25ms", undefined, 25],
    [undefined, 40, 40],
  ])("may be given as %s or %s", async (deadline, deadlineMs, expectedMs) => {
    const { time, checks, flushed } = setUp({ deadline, deadlineMs });
    void checks(["a"]);
    await flushed();
    expect(time.nextMs).toBe(expectedMs);
  });

  it("is shortened by the request's own, and never lengthened", async () => {
    const { time, checks, flushed, limiter } = setUp({ deadlineMs: 50 });
    void checks(["a"], { deadlineMs: 5_000 });
    await flushed();
    expect(time.nextMs).toBe(50);
    void checks(["b"], { deadlineMs: 5 });
    await flushed();
    expect(time.nextMs).toBe(5);
    await limiter.close();
  });

  it("never comes early, although timers may", async () => {
    const time = new ManualTime();
    const limiter = connectServers(
      parseAddresses("grpc://s0", ["grpc"]),
      { deadlineMs: 50 },
      (_address, _options, events) => new ScriptedExchange(events),
      {
        clock: time.clock,
        schedule: (waitMs, wake) => time.schedule(waitMs - 0.5, wake),
        scheduleIdly: time.schedule,
        soon: (act) => void setImmediate(act),
      },
    );
    let answeredMs: number | undefined;
    const asked = limiter.check({ dimensions: { user: "a" } }).then(() => {
      answeredMs = time.clock.nowMs();
    });
    const startedMs = time.clock.nowMs();
    for (let i = 0; i < 6; i++) await settled();
    await time.advance(49.75);
    await settled();
    expect(answeredMs).toBeUndefined();
    await time.advance(0.5);
    await asked;
    expect(answeredMs! - startedMs).toBeGreaterThanOrEqual(50);
  });

  it("is not held against a server while this process was stalled", async () => {
    const { time, checks, flushed, first, arriving } = setUp();
    const [asked] = checks(["a"]);
    await flushed();
    // The timer is due at 100, and fires at 190: the answer that arrived in between is read first.
    time.clock.advance(190);
    arriving.push(() => first.batches[0]!.answer());
    await time.advance(0);
    await flushed();
    expect(await asked).toMatchObject({ allowed: true, degraded: undefined });
  });

  it("starts when a check can be sent, if this process was stalled before that", async () => {
    const { time, checks, flushed, first, limiter } = setUp();
    void checks(["first"]);
    await flushed();
    first.batches[0]!.answer();
    await flushed();
    const [asked] = checks(["a"]);
    time.clock.advance(90);
    await flushed();
    expect(first.batches[1]!.questions[0]!.withinMs).toBe(80);
    await time.advance(90);
    expect(limiter.stats.degraded.storage_timeout).toBe(0);
    first.batches[1]!.answer();
    expect(await asked).toMatchObject({ degraded: undefined });
  });

  it("does not cut short the wait for a first connection", async () => {
    const { first, time, checks, flushed } = setUp({ whenUnavailable: "closed" });
    first.reachable = new Promise(() => undefined);
    const [asked] = checks(["a"]);
    await flushed();
    await time.advance(102);
    await flushed();
    expect(await asked).toMatchObject({ allowed: false, degraded: "storage_timeout", retryAfterMs: 1_000 });
  });
});

describe("a question that was sent and lost", () => {
  it("is not sent again, because it may have been charged", async () => {
    const { first, checks, flushed, limiter } = setUp();
    const [asked] = checks(["a"]);
    await flushed();
    first.batches[0]!.fail("lost");
    expect(await asked).toMatchObject({ allowed: true, degraded: "storage_unavailable" });
    expect([first.batches.length, limiter.stats.repeated]).toEqual([1, 0]);
  });

  it.each([
    ["too few", ["a", "b"]],
    ["too many", []],
  ])("may be a whole batch, if there are %s answers to it", async (_, more) => {
    const { first, checks, flushed } = setUp({ whenUnavailable: "closed" });
    const asked = Promise.all(checks(["a", ...more]));
    await flushed();
    first.batches[0]!.answer(["x", "y"].map(() => ({ kind: "answer", value: allowed })));
    const answers = await asked;
    expect(answers.map(({ degraded }) => degraded)).toEqual(answers.map(() => "storage_unavailable"));
  });

  it.each([
    ["it has an id", { id: "order-17" }],
    ["it is a preview", { preview: true }],
  ] as const)("is sent to another server if %s", async (_, more) => {
    const { exchanges, checks, flushed, limiter } = setUp({}, 2);
    const [asked] = checks(["a"], more);
    await flushed();
    const from = exchanges.find(({ batches }) => batches.length === 1)!;
    const other = exchanges.find((one) => one !== from)!;
    from.batches[0]!.fail("lost");
    await flushed();
    expect(other.batches.map((batch) => batch.users)).toEqual([["a"]]);
    other.batches[0]!.answer();
    expect(await asked).toMatchObject({ allowed: true, degraded: undefined });
    expect(limiter.stats.repeated).toBe(1);
  });

  it("is sent to another server after 60 % of its time if that is safe, and the first answer counts", async () => {
    const { exchanges, checks, flushed, time } = setUp({}, 2);
    const [asked] = checks(["a"], { id: "order-17" });
    await flushed();
    await time.advance(61);
    await flushed();
    expect(exchanges.map(({ batches }) => batches.length)).toEqual([1, 1]);
    exchanges[0]!.batches[0]!.answer();
    expect(await asked).toMatchObject({ degraded: undefined });
    exchanges[1]!.batches[0]!.answer();
  });

  it("is not sent twice to one server, which would make it twice as slow", async () => {
    const { first, checks, flushed, time } = setUp();
    const [asked] = checks(["a"], { id: "order-17" });
    await flushed();
    await time.advance(61);
    await flushed();
    expect(first.batches).toHaveLength(1);
    first.batches[0]!.answer();
    expect(await asked).toMatchObject({ degraded: undefined });
  });

  it.each([
    ["is overloaded", { kind: "elsewhere", reason: "storage_overloaded" }],
    ["has failed", { kind: "failed", reason: "storage_unavailable" }],
  ] as const)("is not given up because one server %s while another may still answer", async (_, reply) => {
    const { exchanges, checks, flushed, time } = setUp({}, 2);
    const [asked] = checks(["a"], { id: "order-17" });
    await flushed();
    await time.advance(61);
    await flushed();
    exchanges[0]!.batches[0]!.answer([reply]);
    await flushed();
    exchanges[1]!.batches[0]!.answer();
    expect(await asked).toMatchObject({ degraded: undefined });
  });

  it("goes to another server if it was not carried out: a server that drains", async () => {
    const { exchanges, checks, flushed } = setUp({}, 2);
    const [asked] = checks(["a"]);
    await flushed();
    const from = exchanges.find(({ batches }) => batches.length === 1)!;
    const other = exchanges.find((one) => one !== from)!;
    from.reachable = false;
    from.events.onEnd("the server ended the stream");
    from.batches[0]!.fail("not_asked");
    await flushed();
    expect(other.batches).toHaveLength(1);
    other.batches[0]!.answer();
    expect(await asked).toMatchObject({ degraded: undefined });
  });

  it("goes to another server if one is overloaded, and is degraded if all are", async () => {
    const { exchanges, checks, flushed } = setUp({}, 2);
    const [asked] = checks(["a"]);
    await flushed();
    const from = exchanges.find(({ batches }) => batches.length === 1)!;
    const other = exchanges.find((one) => one !== from)!;
    from.batches[0]!.turnAway("storage_overloaded");
    await flushed();
    other.batches[0]!.turnAway("storage_overloaded");
    expect(await asked).toMatchObject({ allowed: true, degraded: "storage_overloaded" });
  });
});

describe("several servers", () => {
  it("take turns", async () => {
    const { exchanges, checks, flushed } = setUp({}, 3);
    void checks(["first"]);
    await flushed();
    for (const { batches } of exchanges) for (const batch of batches) batch.answer();
    for (let turn = 0; turn < 8; turn++) {
      void checks([`u${turn}`]);
      await flushed();
      for (const { batches } of exchanges) for (const batch of batches) batch.answer();
    }
    expect(exchanges.map(({ batches }) => batches.length)).toEqual([3, 3, 3]);
  });

  it("get less the more they leave unanswered", async () => {
    const { exchanges, checks, flushed, limiter } = setUp({}, 2);
    void checks(users(10));
    await flushed();
    const stuck = exchanges.find(({ batches }) => batches.length === 1)!;
    const other = exchanges.find((one) => one !== stuck)!;
    for (let turn = 0; turn < 5; turn++) {
      void checks([`v${turn}`]);
      await flushed();
    }
    expect([stuck.batches.length, other.batches.length]).toEqual([1, 5]);
    await limiter.close();
  });

  it("are used as soon as the first is connected, and an unreachable one is never used", async () => {
    const { first, second, checks, flushed, changes } = setUp({}, 2);
    first.reachable = false;
    const asked = Promise.all(checks(["a", "b"]));
    await flushed();
    expect([first.batches.length, second.batches.length]).toEqual([0, 1]);
    second.batches[0]!.answer();
    await asked;
    expect(changes).toEqual(["s0:8081 connecting", "s1:8081 connecting", "s0:8081 aside", "s1:8081 ready"]);
  });

  it("are not retried at the same moment by all clients that lost them", async () => {
    const { first, checks, flushed, time } = setUp({}, 1, 32, 0);
    first.reachable = false;
    await checks(["a"])[0];
    await flushed();
    expect(time.nextMs).toBe(25);
  });

  it("are put aside if their connections keep ending", async () => {
    const { first, checks, flushed, changes, limiter } = setUp();
    void checks(["a"]);
    await flushed();
    for (let end = 0; end < 4; end++) {
      expect(limiter.stats.addresses[0]!.state).toBe("ready");
      first.events.onEnd("GOAWAY");
      await flushed();
    }
    expect([changes.at(-1), first.opened]).toEqual(["s0:8081 aside", 4]);
    await limiter.close();
  });

  it("are retried in the background: after 50 ms, 100 ms, … and 5 s at most", async () => {
    const { first, checks, flushed, time } = setUp({}, 1);
    first.reachable = false;
    expect(await checks(["a"])[0]).toMatchObject({ degraded: "storage_unavailable" });
    await flushed();
    const waits: number[] = [];
    for (let attempt = 0; attempt < 9; attempt++) {
      const beforeMs = time.clock.nowMs();
      const nextMs = time.nextMs!;
      waits.push(nextMs - beforeMs);
      await time.advance(nextMs - beforeMs);
      await flushed();
    }
    expect(waits).toEqual([50, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    first.reachable = true;
    await time.advance(5_000);
    await flushed();
    const [asked] = checks(["b"]);
    await flushed();
    first.batches[0]!.answer();
    expect(await asked).toMatchObject({ degraded: undefined });
  });
});

describe("while no server is available", () => {
  it("a check is answered at once, and touches nothing", async () => {
    const { first, checks, flushed, time, limiter } = setUp();
    first.reachable = false;
    await checks(["a"])[0];
    await flushed();
    const { opened } = first;
    const { timers } = time;
    const answers = await Promise.all(checks(users(100)));
    expect(answers.every(({ allowed, degraded }) => allowed && degraded === "storage_unavailable")).toBe(true);
    expect([first.opened, first.batches.length, time.timers]).toEqual([opened, 0, timers]);
    expect(limiter.stats.degraded.storage_unavailable).toBe(101);
  });

  it("a waiting check is answered when the last server is put aside, not at its deadline", async () => {
    const { first, checks, flushed, time } = setUp();
    let fail = (_error: Error): void => undefined;
    first.reachable = new Promise((_, reject) => {
      fail = reject;
    });
    const [asked] = checks(["a"]);
    await flushed();
    fail(new Error("no route"));
    expect(await asked).toMatchObject({ degraded: "storage_unavailable" });
    expect(time.clock.nowMs()).toBe(0);
  });

  it("a server that does not answer is dropped after five batches, and probed", async () => {
    const { first, checks, flushed, time, limiter } = setUp();
    for (let batch = 0; batch < 5; batch++) {
      void checks([`u${batch}`]);
      await flushed();
    }
    await time.advance(102);
    await flushed();
    expect(first.closed).toBe(1);
    expect(limiter.stats.addresses).toMatchObject([{ state: "aside", breaker: "open", failedBatches: 5 }]);
    expect(await checks(["v"])[0]).toMatchObject({ degraded: "storage_unavailable" });
    expect(first.batches).toHaveLength(5);
    expect(first.opened).toBe(1);
    await time.advance(1_100);
    await flushed();
    expect(first.opened).toBe(2);
    expect(limiter.stats.addresses).toMatchObject([{ state: "ready", breaker: "closed" }]);
    const [asked] = checks(["w"]);
    await flushed();
    first.batches[5]!.answer();
    expect(await asked).toMatchObject({ degraded: undefined });
  });

  it("a server that does not answer is dropped even if this process is always busy", async () => {
    const { checks, flushed, time, limiter } = setUp();
    void checks(["first"]);
    await flushed();
    for (let turn = 0; turn < 150; turn++) {
      void checks([`u${turn}`]);
      time.clock.advance(10);
      await flushed();
      await time.advance(0);
    }
    expect(limiter.stats.addresses).toMatchObject([{ state: "aside", breaker: "open" }]);
    await limiter.close();
  });

  it("a server is not dropped because of a few very short deadlines", async () => {
    const { first, checks, flushed, time, limiter } = setUp();
    for (let turn = 0; turn < 10; turn++) {
      const [asked] = checks([`u${turn}`], { deadlineMs: 2 });
      await flushed();
      await time.advance(5);
      await flushed();
      expect(await asked).toMatchObject({ degraded: "storage_timeout" });
      first.batches[turn]!.answer();
      await flushed();
    }
    expect(limiter.stats).toMatchObject({ unanswered: 0, addresses: [{ state: "ready", failedBatches: 0 }] });
    expect(time.timers).toBe(0);
  });

  it("a probe that fails is followed by another", async () => {
    const { first, checks, flushed, time, limiter } = setUp();
    for (let batch = 0; batch < 5; batch++) {
      void checks([`u${batch}`]);
      await flushed();
    }
    first.reachable = false;
    await time.advance(102);
    await flushed();
    await time.advance(10_000);
    await flushed();
    expect(first.opened).toBeGreaterThan(3);
    first.reachable = true;
    await time.advance(5_100);
    await flushed();
    expect(limiter.stats.addresses).toMatchObject([{ state: "ready", breaker: "closed" }]);
  });

  it("a check beyond the bound on waiting ones is answered at once", async () => {
    const { checks, limiter, first } = setUp({ maxWaiting: 2, whenUnavailable: "closed" });
    first.reachable = new Promise(() => undefined);
    const [, , third] = checks(["a", "b", "c"]);
    expect(await third).toMatchObject({ allowed: false, degraded: "storage_overloaded" });
    await limiter.close();
  });
});

describe("whenUnavailable", () => {
  async function answer(options: ConnectOptions, ...requests: readonly CheckRequest[]): Promise<readonly Decision[]> {
    const { limiter, first } = setUp(options);
    first.reachable = false;
    const answers: Decision[] = [];
    for (const request of requests) answers.push(await limiter.check(request));
    return answers;
  }

  it("may be a limit of this process, which then counts", async () => {
    const local = limit("1/h").by("user");
    const request = { dimensions: { user: "u1" } };
    const [first, second] = await answer({ whenUnavailable: "local", local }, request, request);
    expect(first).toMatchObject({ allowed: true, remaining: 0, degraded: "storage_unavailable" });
    expect(second).toMatchObject({ allowed: false, reason: "over_limit", degraded: "storage_unavailable" });
  });

  it("may be policies, each of which applies its on_failure", async () => {
    const policies = {
      policies: [
        { id: "a", match: { kind: "a" }, limits: [{ by: ["user"], windows: ["4/h"] }], on_failure: "closed" },
        { id: "b", match: { kind: "b" }, limits: [{ by: ["user"], windows: ["4/h"] }], on_failure: "open" },
        {
          id: "c",
          match: { kind: "c" },
          limits: [{ by: ["user"], windows: ["4/h"] }],
          on_failure: "local",
          local_share: 0.25,
        },
      ],
    };
    const ask = (kind: string): CheckRequest => ({ dimensions: { user: "u1", kind } });
    const answers = await answer(
      { whenUnavailable: "local", local: { policies } },
      ...["a", "b", "c", "c"].map((kind) => ask(kind)),
    );
    expect(answers.map(({ allowed, reason, policy }) => [allowed, reason, policy])).toEqual([
      [false, "degraded", "a"],
      [true, "degraded", "b"],
      [true, "degraded", "c"],
      [false, "over_limit", "c"],
    ]);
    expect(answers.every(({ degraded }) => degraded === "storage_unavailable")).toBe(true);
  });

  it("may be a function, which says yes or no or more", async () => {
    const whenUnavailable = ({ domain }: CheckRequest): boolean => domain !== "billing";
    const [free, billed] = await answer({ whenUnavailable }, {}, { domain: "billing" });
    expect([free!.allowed, billed!.allowed, billed!.degraded]).toEqual([true, false, "storage_unavailable"]);
  });

  it("passes on what the function throws", async () => {
    const whenUnavailable = (): boolean => {
      throw new TypeError("own mistake");
    };
    await expect(answer({ whenUnavailable }, {})).rejects.toThrow("own mistake");
  });

  it("must be a function that decides", async () => {
    const whenUnavailable = (() => undefined) as unknown as () => boolean;
    await expect(answer({ whenUnavailable }, {})).rejects.toMatchObject({
      code: "invalid_request",
      message: expect.stringContaining("whenUnavailable"),
    });
  });

  it("gives back to the local limit, and charges it", async () => {
    const { limiter, first } = setUp({ whenUnavailable: "local", local: limit("2/h").by("user") });
    first.reachable = false;
    const request = { dimensions: { user: "u1" } };
    const { receipt, remaining } = await limiter.check({ ...request, receipt: true });
    expect(remaining).toBe(1);
    expect(await limiter.give(receipt!)).toBe(true);
    expect(await limiter.give(receipt!)).toBe(false);
    await limiter.charge({ ...request, cost: 2 });
    expect(await limiter.check(request)).toMatchObject({ allowed: false });
    expect(first.batches).toEqual([]);
  });
});

describe("charge, give and reset", () => {
  it("are sent, and answered", async () => {
    const { limiter, first, flushed } = setUp();
    const request = { dimensions: { user: "u1" } };
    const asked = Promise.all([limiter.charge({ ...request, cost: 5 }), limiter.give("r1"), limiter.reset(request)]);
    await flushed();
    expect(first.batches.map(({ kind, questions }) => [kind, questions.length])).toEqual([
      ["charge", 1],
      ["give", 1],
      ["reset", 1],
    ]);
    for (const batch of first.batches) batch.answer();
    expect(await asked).toEqual([undefined, true, 1]);
  });

  it("reject if no server is available, and say what that means", async () => {
    const { limiter, first } = setUp();
    first.reachable = false;
    await expect(limiter.charge({ cost: 1 })).rejects.toBeInstanceOf(StoreUnavailable);
    await expect(limiter.give("r1")).rejects.toMatchObject({ reason: "storage_unavailable" });
    await expect(limiter.reset({})).rejects.toMatchObject({ message: expect.stringContaining("nothing was done") });
  });

  it("say that it may have been done if the answer is lost", async () => {
    const { limiter, first, flushed } = setUp();
    const lost = expect(limiter.charge({ cost: 1 })).rejects.toMatchObject({
      reason: "storage_unavailable",
      message: expect.stringContaining("may have been done"),
    });
    await flushed();
    first.batches[0]!.fail("lost");
    await lost;
    const closed = expect(limiter.give("r1")).rejects.toThrow("may have been done");
    await flushed();
    await limiter.close();
    await closed;
    expect(first.batches[1]!.abandoned).toBe(true);
  });

  it("travel separately: one without an answer delays no other, and no check", async () => {
    const { limiter, first, flushed, checks } = setUp({}, 1, 2);
    const charges = [1, 2, 3].map((cost) => limiter.charge({ cost }));
    await flushed();
    expect(first.batches.map(({ questions }) => questions.length)).toEqual([1, 1]);
    const [asked] = checks(["a"]);
    await flushed();
    expect(first.batches.map(({ kind }) => kind)).toEqual(["charge", "charge", "check"]);
    for (const batch of first.batches.slice(1)) batch.answer();
    await Promise.all([charges[1], asked]);
    await flushed();
    first.batches[3]!.answer();
    await charges[2];
    first.batches[0]!.answer();
    await charges[0];
  });

  it("open the breaker if they are lost, and are retried if they were not carried out", async () => {
    const { limiter, first, flushed } = setUp();
    for (let i = 0; i < 5; i++) {
      const charged = limiter.charge({ cost: 1 }).catch((error: unknown) => error);
      await flushed();
      first.batches.at(-1)!.fail("not_asked");
      await flushed();
      first.batches.at(-1)!.fail("lost");
      expect(await charged).toBeInstanceOf(StoreUnavailable);
    }
    expect(first.batches).toHaveLength(10);
    expect(limiter.stats.addresses).toMatchObject([{ state: "aside", breaker: "open" }]);
  });

  it("have a second, and a charge is not repeated", async () => {
    const { limiter, first, flushed, time } = setUp();
    const asked = limiter.charge({ cost: 1 });
    const failed = expect(asked).rejects.toMatchObject({ reason: "storage_timeout" });
    await flushed();
    await time.advance(998);
    expect(first.batches).toHaveLength(1);
    await time.advance(4);
    await flushed();
    await failed;
    expect(first.batches).toHaveLength(1);
  });
});

describe("a mistake of the caller", () => {
  it.each([
    ["cost", { cost: 0 }],
    ["dimensions.user", { dimensions: { user: 5 } }],
    ["dimensions", { dimensions: [] }],
    ["deadlineMs", { deadlineMs: -1 }],
    ["dimensions.user", { dimensions: { user: "x".repeat(4_097) } }],
    ["dimensions", { dimensions: { ["x".repeat(129)]: "u1" } }],
    ["dimensions", { dimensions: { "": "u1" } }],
    ["dimensions", { dimensions: Object.fromEntries(users(33).map((name) => [name, "x"])) }],
    ["domain", { domain: "x".repeat(129) }],
    ["policies", { policies: ["x".repeat(257)] }],
    ["limits", { limits: [{ name: "x", by: [], window: { limit: 1, per: { kind: "never" }, burst: 1 } }] }],
    ["the request", null],
  ])("is refused before anything is sent, by its name: %s", async (field, request) => {
    const { limiter, first, flushed } = setUp();
    const error = await limiter.check(request as CheckRequest).catch((one: unknown) => one);
    expect(error).toBeInstanceOf(SluiceError);
    expect(error).toMatchObject({ code: "invalid_request", message: expect.stringContaining(field) });
    await flushed();
    expect(first.batches).toEqual([]);
  });

  it("is reported by the server, and does not affect other checks", async () => {
    const { checks, first, flushed, limiter } = setUp();
    const [bad, good] = checks(["a", "b"]);
    const failed = expect(bad).rejects.toMatchObject({ code: "policy_not_found" });
    await flushed();
    const decision = await createDecision(limiter, first);
    first.batches[0]!.answer([
      { kind: "refused", error: new SluiceError("policy_not_found", "no such policy") },
      { kind: "answer", value: decision },
    ]);
    await failed;
    expect(await good).toMatchObject({ allowed: true });
  });

  it.each([
    [{ whenUnavailable: "shut" }, "whenUnavailable"],
    [{ whenUnavailable: "local" }, "local"],
    [{ local: limit("1/s").by("user") }, "local"],
    [{ deadline: "soon" }, "deadline"],
    [{ deadline: "2m" }, "deadline"],
    [{ deadlineMs: 0 }, "deadlineMs"],
    [{ deadline: "1s", deadlineMs: 5 }, "deadline"],
    [{ maxWaiting: 0 }, "maxWaiting"],
    [{ tls: true }, "tls"],
    [{ tls: { ca: 5 } }, "tls.ca"],
    [{ tls: { cert: "PEM" } }, "tls.key"],
    [{ tls: { key: "PEM" } }, "tls.cert"],
    [{ tls: { serverName: "" } }, "tls.serverName"],
  ])("is an invalid option: %j", (options, name) => {
    expect(() => setUp(options as ConnectOptions)).toThrow(
      expect.objectContaining({ code: "invalid_request", problems: [expect.objectContaining({ path: [name] })] }),
    );
  });

  it.each([
    [{ whenUnavailble: "closed" }, /^whenUnavailble is not an option of connect; did you mean whenUnavailable\?$/],
    [{ onFailure: "closed" }, /^onFailure is not .* did you mean whenUnavailable\?$/],
    [{ tls: { rejectUnauthorized: false } }, /^rejectUnauthorized is not an option of tls; its options are ca, /],
    [{ leases: { perMinute: 5 } }, /^perMinute is not an option of leases; /],
  ])("is an option that does not exist: %j", (options, message) => {
    expect(() => setUp(options as ConnectOptions)).toThrow(message);
    expect(() => setUp(options as ConnectOptions)).toThrow(SluiceError);
  });

  it("is TLS for plaintext addresses", () => {
    const none = (): never => {
      throw new Error("nothing is opened");
    };
    expect(() => connectServers(parseAddresses("grpc://s0", ["grpc"]), { tls: {} }, none)).toThrow("tls is for");
  });

  it("is reported without the token", () => {
    expect(() => setUp({ token: "secret\n" })).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining("secret") }),
    );
  });
});

describe("onChange", () => {
  it("may throw, and checks go on", async () => {
    const onChange = (): never => {
      throw new Error("the log is full");
    };
    const { checks, first, flushed } = setUp({ onChange });
    const [asked] = checks(["a"]);
    await flushed();
    first.batches[0]!.answer();
    expect(await asked).toMatchObject({ degraded: undefined });
  });
});

describe("leases", () => {
  it("that fail because a server's counters do not answer put no server aside: it says so after a second", async () => {
    const { first, checks, flushed, time, limiter } = setUp({ leases: { perSecond: 1 } });
    void checks(users(6));
    await flushed();
    const asked = first.batches.filter(({ kind }) => kind === "lease");
    expect(asked).toHaveLength(6);
    first.batches.find(({ kind }) => kind === "check")!.answer();
    await time.advance(1_500);
    for (const { answer } of asked) answer([{ kind: "failed", reason: "storage_unavailable" }]);
    await flushed();
    expect(limiter.stats.addresses).toMatchObject([{ state: "ready", failedBatches: 0 }]);
    expect(limiter.stats.leases).toMatchObject({ failed: 6 });
  });
});

describe("close", () => {
  it("answers open questions, and ends everything", async () => {
    const { limiter, checks, flushed, time, first, second } = setUp({ whenUnavailable: "closed" }, 2);
    const asked = Promise.all(checks(["a", "b"]));
    await flushed();
    await limiter.close();
    expect(await asked).toMatchObject([{ degraded: "storage_unavailable" }, { degraded: "storage_unavailable" }]);
    expect([first.closed, second.closed, time.timers]).toEqual([1, 1, 0]);
    expect(await limiter.check({})).toMatchObject({ allowed: false, degraded: "storage_unavailable" });
    expect(first.opened).toBe(1);
  });
});
