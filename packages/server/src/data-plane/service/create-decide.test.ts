import { type CounterStore, createLimiter, type Limiter, MemoryCounters, SluiceError } from "sluice";
import { describe, expect, it } from "vitest";
import { createDecide, type DecideOptions, whenDecided } from "./create-decide.ts";

const policies = {
  policies: [{ id: "p", limits: [{ by: ["user"], windows: ["1/h"] }], on_failure: "open" }],
  default: "none",
};

/** What was counted, in order. */
function counted(): DecideOptions["metrics"] & { readonly seen: string[] } {
  const seen: string[] = [];
  return {
    seen,
    countDecision: () => seen.push("decision"),
    countError: (code) => seen.push(code),
    countShed: (reason, checks) => seen.push(`shed ${checks} ${reason}`),
  };
}

/** A store that answers with promises, as one over a network does, each take when `whenTold` resolves. */
function remote(whenTold: () => Promise<void> = async () => {}): CounterStore {
  const store = new MemoryCounters();
  return {
    local: false,
    take: async (limits, options) => {
      await whenTold();
      return store.take(limits, options);
    },
    peek: async (limits) => store.peek(limits),
    give: async (receipt) => store.give(receipt),
    charge: async (limits) => store.charge(limits),
    block: async (limits, forMs) => store.block(limits, forMs),
    reset: async (limits) => store.reset(limits),
    read: async (limit) => store.read(limit),
    close: async () => store.close(),
  };
}

const away = (whenTold?: () => Promise<void>): Limiter =>
  createLimiter({ policies: { policies: [] }, counters: remote(whenTold) });

const user = { dimensions: { user: "u" } };

describe("deciding", () => {
  it("answers at once if counters are local", () => {
    const metrics = counted();
    const decide = createDecide({ limiter: createLimiter({ policies }), metrics });
    const decision = decide.one(user);
    expect(decision).not.toBeInstanceOf(Promise);
    expect(whenDecided(decision, ({ allowed }) => allowed)).toBe(true);
    expect(decide.pending).toBe(0);
    expect(metrics.seen).toEqual(["decision"]);
  });

  it("answers with a promise if they are not", async () => {
    const metrics = counted();
    const decide = createDecide({ limiter: createLimiter({ policies, counters: remote() }), metrics });
    const decision = decide.one(user);
    expect(decision).toBeInstanceOf(Promise);
    expect(decide.pending).toBe(1);
    expect(await whenDecided(decision, ({ allowed }) => allowed)).toBe(true);
    expect(decide.pending).toBe(0);
    expect(metrics.seen).toEqual(["decision"]);
  });

  it("counts what could not be decided by its code", async () => {
    const metrics = counted();
    const local = createDecide({ limiter: createLimiter({ policies }), metrics });
    expect(() => local.one({ policies: ["nowhere"] })).toThrow(SluiceError);
    expect(() => local.together([{ policies: ["nowhere"] }])).toThrow(SluiceError);
    const elsewhere = createDecide({ limiter: createLimiter({ policies, counters: remote() }), metrics });
    await expect(elsewhere.one({ policies: ["nowhere"] })).rejects.toThrow(SluiceError);
    expect(elsewhere.pending).toBe(0);
    expect(metrics.seen).toEqual(["policy_not_found", "policy_not_found", "policy_not_found"]);
  });

  it("decides several together, and counts each", async () => {
    for (const counters of [new MemoryCounters(), remote()]) {
      const metrics = counted();
      const decide = createDecide({ limiter: createLimiter({ policies, counters }), metrics });
      const decisions = await decide.together([user, { dimensions: { user: "v" } }]);
      expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true]);
      expect(metrics.seen).toEqual(["decision", "decision"]);
      expect(decide.pending).toBe(0);
    }
  });

  it("passes every decision to the observer", () => {
    const heard: unknown[] = [];
    const decide = createDecide({
      limiter: createLimiter({ policies }),
      metrics: counted(),
      observe: ({ dimensions }, { allowed }) => heard.push([dimensions?.user, allowed]),
    });
    decide.one(user);
    decide.one(user);
    decide.together([{ dimensions: { user: "v" } }]);
    expect(heard).toEqual([
      ["u", true],
      ["u", false],
      ["v", true],
    ]);
  });
});

const overloaded = expect.objectContaining({ code: "overloaded" });

describe("when too much is asked", () => {
  it("refuses at once what would wait beyond the bound, and continues when there is room again", async () => {
    const metrics = counted();
    let answer = (): void => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const decide = createDecide({ limiter: away(() => answered), metrics, maxPending: 2 });
    const waiting = [decide.one(user), decide.one(user)];
    expect(decide.pending).toBe(2);
    expect(() => decide.one(user)).toThrow(overloaded);
    expect(() => decide.together([user, user, user])).toThrow(overloaded);
    expect(decide.pending).toBe(2);
    expect(metrics.seen).toEqual(["shed 1 pending", "shed 3 pending"]);
    answer();
    await Promise.all(waiting);
    expect(decide.pending).toBe(0);
    await decide.one(user);
    expect(metrics.seen.slice(2)).toEqual(["decision", "decision", "decision"]);
  });

  it("lets a batch that is larger than the bound in when nothing waits, rather than never", async () => {
    const decide = createDecide({ limiter: away(), metrics: counted(), maxPending: 2 });
    expect(await decide.together([user, user, user])).toHaveLength(3);
    expect(decide.pending).toBe(0);
  });

  it("makes room again after an answer that is an error", async () => {
    const limiter = createLimiter({ policies, counters: remote() });
    const decide = createDecide({ limiter, metrics: counted(), maxPending: 1 });
    for (let times = 0; times < 3; times++) {
      await expect(decide.one({ policies: ["nowhere"] })).rejects.toThrow(SluiceError);
    }
    await decide.one(user);
    const conflict = new SluiceError("idempotency_conflict", "the id was used for something else");
    const refusing = createDecide({ limiter: away(() => Promise.reject(conflict)), metrics: counted(), maxPending: 1 });
    await expect(refusing.together([user, user])).rejects.toThrow(conflict);
    expect(refusing.pending).toBe(0);
  });

  it("never sheds for waiting if counters are local, because nothing waits", () => {
    const decide = createDecide({ limiter: createLimiter(), metrics: counted(), maxPending: 1 });
    for (let times = 0; times < 5; times++) decide.one(user);
    expect(decide.together([user, user, user])).toHaveLength(3);
  });

  it("decides a second's worth at once, then as fast as it comes back", () => {
    const metrics = counted();
    let nowMs = 0;
    const decide = createDecide({ limiter: createLimiter(), metrics, maxChecksPerSecond: 4, nowMs: () => nowMs });
    for (let times = 0; times < 4; times++) decide.one(user);
    expect(() => decide.one(user)).toThrow(overloaded);
    nowMs = 249;
    expect(() => decide.one(user)).toThrow(overloaded);
    nowMs = 250;
    decide.one(user);
    expect(() => decide.one(user)).toThrow(overloaded);
    expect(metrics.seen.filter((one) => one === "shed 1 rate")).toHaveLength(3);
    expect(metrics.seen.filter((one) => one === "decision")).toHaveLength(5);
  });

  it.each([3, 6, 7, 11, 30, 12_345])(
    "decides %i at once if that is a second's worth, and not one more",
    (perSecond) => {
      for (const nowMs of [0, 0.1, 1_234.567, 86_400_123.4567]) {
        const options = {
          limiter: createLimiter(),
          metrics: counted(),
          maxChecksPerSecond: perSecond,
          nowMs: () => nowMs,
        };
        const decide = createDecide(options);
        for (let times = 0; times < perSecond; times++) decide.one(user);
        expect(() => decide.one(user), `at ${nowMs}`).toThrow(overloaded);
      }
    },
  );

  it("counts each of a batch against the bound in a second, and lets a large one in when nothing else came", () => {
    const metrics = counted();
    let nowMs = 0;
    const decide = createDecide({ limiter: createLimiter(), metrics, maxChecksPerSecond: 2, nowMs: () => nowMs });
    decide.together([user, user, user, user]);
    nowMs = 1_999;
    expect(() => decide.together([user, user])).toThrow(overloaded);
    nowMs = 2_000;
    decide.together([user, user]);
    expect(metrics.seen.filter((one) => one.startsWith("shed"))).toEqual(["shed 2 rate"]);
  });
});
