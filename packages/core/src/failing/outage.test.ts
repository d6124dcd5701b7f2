import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ManualClock } from "../clock.ts";
import type { CounterStore } from "../counters/counter-store.ts";
import { MemoryCounters } from "../counters/memory-counters.ts";
import { StoreUnavailable } from "../counters/store-unavailable.ts";
import { createLimiter } from "../create-limiter.ts";
import type { Decision } from "../decision/decision.ts";
import { SluiceError } from "../errors.ts";
import type { Limiter } from "../limiter.ts";
import { MemorySubjectDirectory } from "../match/subject-directory.ts";
import type { CheckRequest } from "../request/check-request.ts";
import { limiterStartMs, byUser as user } from "../testing/open-limiter.ts";

/** Remote counters that can be unavailable: they then reject with `away`. */
class DistantCounters implements CounterStore {
  readonly local = false;
  readonly memory: MemoryCounters;
  away: unknown;
  asked = 0;

  constructor(clock: ManualClock) {
    this.memory = new MemoryCounters({ clock });
  }

  async #answer<T>(ask: () => T): Promise<T> {
    this.asked += 1;
    if (this.away !== undefined) throw this.away;
    return ask();
  }

  take: CounterStore["take"] = (limits, options) => this.#answer(() => this.memory.take(limits, options));
  peek: CounterStore["peek"] = (limits) => this.#answer(() => this.memory.peek(limits));
  give: CounterStore["give"] = (receipt) => this.#answer(() => this.memory.give(receipt));
  charge: CounterStore["charge"] = (limits) => this.#answer(() => this.memory.charge(limits));
  block: CounterStore["block"] = (limits, forMs) => this.#answer(() => this.memory.block(limits, forMs));
  reset: CounterStore["reset"] = (limits) => this.#answer(() => this.memory.reset(limits));
  read: CounterStore["read"] = (limit) => this.#answer(() => this.memory.read(limit));
  close: CounterStore["close"] = () => this.memory.close();
}

interface Opened {
  readonly limiter: Limiter;
  readonly clock: ManualClock;
  readonly store: DistantCounters;
  readonly subjects: MemorySubjectDirectory;
  ask(request?: Partial<CheckRequest>): Promise<Decision>;
}

const gone = new StoreUnavailable("storage_unavailable");

/** A limiter whose counters are unavailable by default. */
function open(policies: readonly Record<string, unknown>[], away: unknown = gone): Opened {
  const clock = new ManualClock(limiterStartMs);
  const store = new DistantCounters(clock);
  store.away = away;
  const subjects = new MemorySubjectDirectory();
  const limiter = createLimiter({ policies: { policies }, clock, counters: store, subjects });
  return { limiter, clock, store, subjects, ask: (request) => limiter.check({ ...user("u"), ...request }) };
}

/** One policy by user, on whose failing the test turns. */
const policy = (windows: unknown, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  id: "p",
  on_failure: "local",
  limits: [{ by: "user", windows }],
  ...more,
});

describe("an outage under open and closed", () => {
  it.each([
    [new StoreUnavailable("storage_timeout"), "storage_timeout"],
    [new StoreUnavailable("storage_overloaded"), "storage_overloaded"],
    [new StoreUnavailable("storage_unavailable"), "storage_unavailable"],
    [new TypeError("x is undefined"), "storage_unavailable"],
  ])("says why the counters could not be asked: %s", async (away, degraded) => {
    const [allowing, denying] = ["open", "closed"].map((mode) => open([policy("10/h", { on_failure: mode })], away));
    expect(await allowing!.ask()).toMatchObject({ allowed: true, reason: "degraded", degraded, limit: 10 });
    expect(await denying!.ask()).toMatchObject({ allowed: false, reason: "degraded", degraded, retryAfterMs: 1_000 });
  });

  it("is never dressed up as a denial by a limit, nor thrown, whatever was asked", async () => {
    const requests = fc.record(
      {
        cost: fc.integer({ min: 1, max: 20 }),
        preview: fc.boolean(),
        receipt: fc.boolean(),
        details: fc.boolean(),
        id: fc.constantFrom("a", "b"),
      },
      { requiredKeys: ["cost"] },
    );
    const modes = fc.array(fc.constantFrom("open", "closed"), { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(modes, fc.array(requests, { maxLength: 10 }), async (failing, asked) => {
        const { ask } = open(failing.map((on_failure, i) => ({ ...policy("5/h"), id: `p${i}`, on_failure })));
        for (const request of asked) {
          const { allowed, reason, degraded, receipt } = await ask(request);
          expect({ reason, degraded, receipt }).toEqual({
            reason: "degraded",
            degraded: gone.reason,
            receipt: undefined,
          });
          expect(allowed).toBe(!failing.includes("closed"));
        }
      }),
    );
  });

  it("is the answer of a store that throws, too", async () => {
    const { limiter, store, ask } = open([policy("10/h", { on_failure: "closed" })]);
    const fail = (): never => {
      throw gone;
    };
    Object.assign(store, { take: fail, give: fail });
    expect(await ask()).toMatchObject({ allowed: false, reason: "degraded" });
    await expect(limiter.give("r")).rejects.toBe(gone);
  });

  it("is the answer of a store in this process that throws, also without waiting", () => {
    const fail = (): never => {
      throw gone;
    };
    const counters: CounterStore = {
      local: true,
      take: fail,
      peek: fail,
      give: fail,
      charge: fail,
      block: fail,
      reset: fail,
      read: fail,
      close() {},
    };
    const limiter = createLimiter({ policies: { policies: [policy("10/h", { on_failure: "closed" })] }, counters });
    expect(limiter.checkSync(user("u"))).toMatchObject({ allowed: false, reason: "degraded" });
  });

  it("does not affect what needs no counter: lists, missing dimensions, and requests without limits", async () => {
    const { ask, store } = open([
      policy("10/h", { match: { endpoint: "/a" }, on_failure: "closed", deny: { user: "mallory" } }),
      policy("10/h", { id: "q", match: { endpoint: "/b" }, on_failure: "closed", allow: { user: "ops" } }),
    ]);
    expect(await ask(user("mallory", { endpoint: "/a" }))).toMatchObject({ reason: "deny_list", degraded: undefined });
    expect(await ask(user("ops", { endpoint: "/b" }))).toMatchObject({ reason: "unlimited", degraded: undefined });
    expect(store.asked).toBe(0);
  });

  it("still reports what a policy in shadow mode would have denied by name", async () => {
    const { ask } = open([
      policy("10/h", { on_failure: "open" }),
      { id: "watched", mode: "shadow", deny: { user: "u" } },
    ]);
    expect(await ask()).toMatchObject({ allowed: true, shadow: [{ policy: "watched", reason: "deny_list" }] });
  });
});

describe("an outage under local", () => {
  it("is decided by half of the limit, with the real wait, and says why", async () => {
    const { ask, clock } = open([policy("10/h")]);
    expect(await ask({ cost: 4 })).toMatchObject({
      allowed: true,
      reason: "degraded",
      degraded: "storage_unavailable",
      limit: 5,
      remaining: 1,
      window: { limit: 5, burst: 5 },
    });
    expect(await ask({ cost: 2 })).toMatchObject({
      allowed: false,
      reason: "over_limit",
      degraded: "storage_unavailable",
      remaining: 1,
      retryAfterMs: 720_000,
    });
    clock.advance(719_999);
    expect((await ask({ cost: 2 })).allowed).toBe(false);
    clock.advance(1);
    expect((await ask({ cost: 2 })).allowed).toBe(true);
  });

  it("takes the share that the policy says, in tiers and for particular subjects as well", async () => {
    const tiers = { premium: { windows: "40/h" } };
    const { ask, subjects } = open([
      { id: "p", on_failure: "local", local_share: "25%", limits: [{ by: "user", windows: "20/h", tiers }] },
    ]);
    subjects.setLimit("user", "vip", {
      policy: "p",
      windows: [{ limit: 80, per: { kind: "ms", ms: 1000 }, burst: 80 }],
    });
    expect(await ask()).toMatchObject({ limit: 5 });
    expect(await ask(user("other", { tier: "premium" }))).toMatchObject({ limit: 10 });
    expect(await ask(user("vip"))).toMatchObject({ limit: 20 });
  });

  it("never lets more than its share through, under any algorithm", async () => {
    const algorithms = ["gcra", "token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log"];
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...algorithms),
        fc.integer({ min: 1, max: 30 }),
        fc.double({ min: 0.01, max: 1, noNaN: true }),
        fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 40 }),
        async (algorithm, limit, share, costs) => {
          const { ask } = open([
            policy(undefined, {
              local_share: share,
              limits: [{ by: "user", algorithm, windows: { limit, per: "1h" } }],
            }),
          ]);
          let taken = 0;
          for (const cost of costs) if ((await ask({ cost })).allowed) taken += cost;
          expect(taken).toBeLessThanOrEqual(Math.max(Math.floor(limit * share + 1e-9), 1));
          expect(costs.length === 0 || (await ask({ cost: 1, ...user("fresh") })).allowed).toBe(true);
        },
      ),
    );
  });

  it("says never_fits and blocked as the local counters do", async () => {
    const { ask } = open([policy(undefined, { limits: [{ by: "user", windows: "4/h", block_for: "1d" }] })]);
    expect(await ask({ cost: 3 })).toMatchObject({
      reason: "never_fits",
      retryAfterMs: undefined,
      degraded: gone.reason,
    });
    await ask({ cost: 2 });
    await ask();
    expect(await ask()).toMatchObject({ reason: "blocked", degraded: gone.reason });
  });

  it("is apart from the real counters: they stand as they stood when they are back", async () => {
    const { ask, store } = open([policy("10/h")], undefined);
    store.away = undefined;
    expect(await ask({ cost: 6 })).toMatchObject({ remaining: 4, reason: "within_limits" });
    store.away = gone;
    expect(await ask({ cost: 5 })).toMatchObject({ allowed: true, remaining: 0, limit: 5 });
    expect((await ask()).allowed).toBe(false);
    store.away = undefined;
    expect(await ask({ cost: 4 })).toMatchObject({ allowed: true, remaining: 0, limit: 10, degraded: undefined });
  });

  it("lasts from one outage to the next, so that coming and going hands nothing out anew", async () => {
    const { ask, store, clock } = open([policy("10/h")]);
    await ask({ cost: 5 });
    store.away = undefined;
    clock.advance(1000);
    await ask();
    store.away = gone;
    expect((await ask()).allowed).toBe(false);
  });

  it("peeks in a preview, and takes nothing", async () => {
    const { ask } = open([policy("10/h")]);
    for (let i = 0; i < 3; i++) {
      expect(await ask({ preview: true, cost: 5 })).toMatchObject({ allowed: true, remaining: 5, preview: true });
    }
    expect((await ask({ cost: 5 })).allowed).toBe(true);
    expect(await ask({ preview: true })).toMatchObject({ allowed: false, reason: "over_limit" });
  });

  it("charges a request id once, and binds it", async () => {
    const { ask, clock } = open([policy("10/h")]);
    const asked = { cost: 3, id: "order-1", idTtlMs: 1000 };
    expect(await ask(asked)).toMatchObject({ replayed: false, remaining: 2 });
    expect(await ask(asked)).toMatchObject({ replayed: true, remaining: 2, reason: "degraded" });
    await expect(ask({ ...asked, cost: 1 })).rejects.toMatchObject({ code: "idempotency_conflict" });
    clock.advance(1000);
    expect(await ask({ ...asked, cost: 1 })).toMatchObject({ replayed: false });
  });

  it("gives back by receipts that are not mistaken for the store's", async () => {
    const { limiter, store, ask } = open([policy("10/h")], undefined);
    store.away = undefined;
    const real = await ask({ cost: 1, receipt: true });
    store.away = gone;
    const local = await ask({ cost: 5, receipt: true });
    expect(local.receipt).toMatch(/^local:/);
    expect(await limiter.give(local.receipt!)).toBe(true);
    expect(await limiter.give(local.receipt!)).toBe(false);
    expect((await ask({ cost: 5 })).allowed).toBe(true);
    await expect(limiter.give(real.receipt!)).rejects.toBe(gone);
    store.away = undefined;
    expect(await limiter.give(real.receipt!)).toBe(true);
    expect(await limiter.give("local:m7")).toBe(false);
  });

  it("voids local receipts if there never was an outage", async () => {
    const { limiter } = open([policy("10/h")]);
    expect(await limiter.give("local:m1")).toBe(false);
  });

  it("answers for every local limit if details are asked for", async () => {
    const { ask } = open([policy("10/h"), { id: "q", on_failure: "open", limits: [{ by: "user", windows: "2/h" }] }]);
    expect((await ask({ details: true })).limits).toMatchObject([{ policy: "p", limit: 5, remaining: 4 }]);
  });

  it("charges a counter that two limits share once, by its slower rate", async () => {
    const limits = [
      { by: "user", windows: "4/h" },
      { by: "user", windows: "10/h" },
    ];
    const { ask } = open([policy(undefined, { limits })]);
    expect(await ask()).toMatchObject({ limit: 2, remaining: 1 });
    expect((await ask()).allowed).toBe(true);
    expect((await ask()).allowed).toBe(false);
  });

  it("keeps to the policies that the check began with", async () => {
    const { limiter, store } = open([policy("10/h")]);
    let fail: (error: unknown) => void = () => {};
    store.take = () =>
      new Promise((_, reject) => {
        fail = reject;
      });
    const early = limiter.check(user("u"));
    limiter.usePolicies({ policies: [policy("100/h", { on_failure: "closed" })] });
    fail(gone);
    expect(await early).toMatchObject({ allowed: true, limit: 5 });
  });
});

describe("several policies in an outage", () => {
  const by = (id: string, on_failure: string, windows: string, more = {}): Record<string, unknown> => ({
    ...policy(windows, more),
    id,
    on_failure,
  });

  it("are denied by one that fails closed, and nothing is taken locally", async () => {
    const { ask, limiter } = open([by("a", "local", "4/h"), by("b", "closed", "9/h")]);
    for (let i = 0; i < 5; i++) expect(await ask()).toMatchObject({ allowed: false, reason: "degraded", policy: "b" });
    limiter.usePolicies({ policies: [by("a", "local", "4/h")] });
    expect(await ask({ cost: 2 })).toMatchObject({ allowed: true, remaining: 0 });
  });

  it("are decided by the local ones if others are open", async () => {
    const { ask } = open([by("a", "open", "1/h"), by("b", "local", "4/h")]);
    expect(await ask({ cost: 2 })).toMatchObject({ allowed: true, policy: "b", remaining: 0 });
    expect(await ask()).toMatchObject({ allowed: false, policy: "b", reason: "over_limit" });
  });

  it("are taken from locally all or nothing", async () => {
    const { ask } = open([by("a", "local", "20/h"), by("b", "local", "4/h")]);
    await ask({ cost: 2 });
    expect(await ask()).toMatchObject({ allowed: false, policy: "b" });
    const { limits } = await ask({ preview: true, details: true });
    expect(limits).toMatchObject([{ policy: "a", remaining: 8 }, { policy: "b" }]);
  });

  it("in shadow mode deny nothing, however they fail", async () => {
    const { ask } = open([
      by("a", "closed", "1/h", { mode: "shadow" }),
      by("b", "local", "2/h", { mode: "shadow" }),
      by("c", "open", "9/h"),
    ]);
    expect(await ask()).toMatchObject({ allowed: true, reason: "degraded", policy: "c", shadow: [] });
    expect(await ask()).toMatchObject({
      allowed: true,
      reason: "degraded",
      policy: "c",
      remaining: undefined,
      shadow: [{ policy: "b", reason: "over_limit" }],
    });
  });

  it("in shadow mode are reported next to enforced local ones", async () => {
    const { ask } = open([by("a", "local", "1/h", { mode: "shadow" }), by("b", "local", "20/h")]);
    await ask();
    expect(await ask()).toMatchObject({ allowed: true, policy: "b", shadow: [{ policy: "a" }] });
  });
});

describe("local limits", () => {
  const login = (more: Record<string, unknown> = {}): Record<string, unknown> => ({
    id: "login",
    match: { endpoint: "/login" },
    on_failure: "local",
    limits: [
      { by: "user", windows: "5/m", block_for: "15m" },
      { name: "global", windows: "1000/s" },
    ],
    local_limits: [{ by: "ip", windows: "3/m" }],
    ...more,
  });
  const from = (ip: string, name = "u", more: Record<string, string> = {}): Pick<CheckRequest, "dimensions"> =>
    user(name, { ip, endpoint: "/login", ...more });

  it("stand in for the policy's own, at full size", async () => {
    const { ask } = open([login()]);
    for (const name of ["a", "b", "c"]) {
      expect(await ask(from("192.0.2.1", name))).toMatchObject({ allowed: true, scope: "ip", limit: 3 });
    }
    expect((await ask({ ...from("192.0.2.3"), details: true })).limits).toHaveLength(1);
    expect(await ask(from("192.0.2.1", "d"))).toMatchObject({ allowed: false, reason: "over_limit", scope: "ip" });
    expect((await ask(from("192.0.2.2", "a"))).allowed).toBe(true);
  });

  it("are not asked while the counters can be", async () => {
    const { ask, store } = open([login()], undefined);
    store.away = undefined;
    for (let i = 0; i < 4; i++) {
      expect(await ask(from("192.0.2.1"))).toMatchObject({ allowed: true, scope: "user", degraded: undefined });
    }
    expect(store.memory.stats.counters).toBe(2);
  });

  it("have separate counters, whatever they are called", async () => {
    const limits = [{ name: "local", by: "user", windows: "6/m" }];
    const { ask, limiter } = open([
      { ...policy("6/m", { limits }), id: "a" },
      { ...policy("6/m", { limits, local_limits: limits }), id: "b" },
    ]);
    expect(await ask({ cost: 3, details: true })).toMatchObject({
      limits: [
        { policy: "a", remaining: 0 },
        { policy: "b", remaining: 3 },
      ],
    });
    // The same policy by its share: what its local limits took is not taken from that.
    limiter.usePolicies({ policies: [{ ...policy("6/m", { limits }), id: "b" }] });
    expect(await ask({ cost: 3 })).toMatchObject({ allowed: true, remaining: 0 });
  });

  it("know the policy's cost and the parameters of its path", async () => {
    const { ask } = open([
      {
        id: "files",
        match: { endpoint: "/files/{file}" },
        on_failure: "local",
        cost: 2,
        limits: [{ by: "user", windows: "100/m" }],
        local_limits: [{ by: "file", windows: "4/m" }],
      },
    ]);
    const file = (name: string, who: string): Partial<CheckRequest> => user(who, { endpoint: `/files/${name}` });
    expect(await ask(file("one", "a"))).toMatchObject({ cost: 2, remaining: 2 });
    expect(await ask(file("one", "b"))).toMatchObject({ cost: 2, remaining: 0 });
    expect(await ask(file("two", "a"))).toMatchObject({ cost: 2, remaining: 2 });
  });

  it("have tiers, and are not changed by limits of particular subjects, which were written for the others", async () => {
    const local = [{ by: "user", windows: "3/m", tiers: { premium: { windows: "6/m" } } }];
    const { ask, subjects } = open([login({ local_limits: local })]);
    subjects.setTier("user", "paying", "premium");
    subjects.setLimit("user", "vip", {
      policy: "login",
      windows: [{ limit: 90, per: { kind: "ms", ms: 1000 }, burst: 90 }],
    });
    expect(await ask(from("192.0.2.1", "paying"))).toMatchObject({ limit: 6 });
    expect(await ask(from("192.0.2.1", "asks", { tier: "premium" }))).toMatchObject({ limit: 6 });
    expect(await ask(from("192.0.2.1", "vip"))).toMatchObject({ limit: 3 });
  });

  it("treat a missing dimension as they say", async () => {
    const ask = (missing: string): Promise<Decision> =>
      open([login({ local_limits: [{ by: "ip", windows: "1/m", missing }] })]).ask(user("u", { endpoint: "/login" }));
    expect(await ask("share")).toMatchObject({ allowed: true, reason: "degraded", remaining: 0 });
    expect(await ask("skip")).toMatchObject({ allowed: true, reason: "degraded", remaining: undefined });
    expect(await ask("deny")).toMatchObject({
      allowed: false,
      reason: "missing_dimension",
      degraded: "storage_unavailable",
    });
  });

  it("treat a value that no limit had to read before, and that cannot be read, as missing", async () => {
    const { ask } = open([login()]);
    for (const ip of ["unknown", "localhost", ""]) {
      expect(await ask(from(ip))).toMatchObject({ allowed: true, reason: "degraded", scope: "ip" });
    }
    expect(await ask(from("10.0.0.300"))).toMatchObject({ allowed: false, reason: "over_limit" });
    expect((await ask(from("192.0.2.1"))).allowed).toBe(true);
    const both = open([
      login({
        local_limits: [
          { by: "user", windows: "9/m" },
          { by: "ip", windows: "9/m" },
        ],
      }),
    ]);
    expect((await both.ask({ ...from("unknown"), details: true })).limits).toMatchObject([
      { subject: "u" },
      { subject: "" },
    ]);
    const bySubject = open([login({ local_limits: [{ by: "subject", windows: "1/m" }] })]);
    expect(await bySubject.ask({ dimensions: { endpoint: "/login", ip: "unknown" } })).toMatchObject({ allowed: true });
  });

  it("take nothing if one of them denies for a missing dimension", async () => {
    const { ask } = open([policy("4/m"), login({ local_limits: [{ by: "ip", windows: "9/m", missing: "deny" }] })]);
    for (let i = 0; i < 3; i++) {
      expect(await ask(user("u", { endpoint: "/login" }))).toMatchObject({ allowed: false, policy: "login" });
    }
    expect(await ask({ cost: 2 })).toMatchObject({ allowed: true, policy: "p", remaining: 0 });
  });

  it("do not limit subjects that the policy does not limit", async () => {
    const { ask } = open([
      login({ allow: { user: "ops" } }),
      { id: "all", on_failure: "open", limits: [{ by: "user", windows: "9/s" }] },
    ]);
    for (let i = 0; i < 5; i++) expect(await ask(from("192.0.2.1", "ops"))).toMatchObject({ policy: "all" });
  });

  it("share one counter if two of them have the same name, and charge it once", async () => {
    const local = [
      { by: "ip", windows: "2/m" },
      { by: "ip", windows: "10/m" },
    ];
    const { ask } = open([login({ local_limits: local })]);
    expect(await ask(from("192.0.2.1"))).toMatchObject({ limit: 2, remaining: 1 });
    expect((await ask(from("192.0.2.1"))).allowed).toBe(true);
    expect((await ask(from("192.0.2.1"))).allowed).toBe(false);
  });
});

describe("everything but checks, in an outage", () => {
  it("is refused with StoreUnavailable, which says why", async () => {
    const cause = new Error("connect ECONNREFUSED");
    const { limiter } = open([policy("10/h", { on_failure: "open" })], cause);
    const asked = ["explain", "reset", "give", "charge"] as const;
    for (const method of asked) {
      const answer: Promise<unknown> = method === "give" ? limiter.give("m1") : limiter[method](user("u"));
      await expect(answer).rejects.toBeInstanceOf(StoreUnavailable);
      await expect(answer).rejects.toMatchObject({ code: "store_unavailable", reason: "storage_unavailable", cause });
    }
  });

  it("keeps the store's own reason", async () => {
    const away = new StoreUnavailable("storage_overloaded");
    const { limiter } = open([policy("10/h")], away);
    await expect(limiter.explain(user("u"))).rejects.toBe(away);
    await expect(limiter.reset(user("u"))).rejects.toBe(away);
  });

  it("leaves the caller's mistakes as such", async () => {
    const mistake = new SluiceError("invalid_request", "no");
    const { limiter, ask } = open([policy("10/h")], mistake);
    await expect(ask()).rejects.toBe(mistake);
    await expect(limiter.charge(user("u"))).rejects.toBe(mistake);
    await expect(limiter.explain(user("u"))).rejects.toBe(mistake);
  });

  it("charges this node's own counters if a policy fails local and none fails closed", async () => {
    const { limiter, ask, store } = open([policy("10/h"), { ...policy("9/h"), id: "q", on_failure: "open" }]);
    await limiter.charge({ ...user("u"), cost: 4 });
    expect(await ask()).toMatchObject({ allowed: true, remaining: 0, policy: "p" });
    await limiter.charge({ ...user("u"), cost: 5 });
    expect(await ask()).toMatchObject({ allowed: false, retryAfterMs: 3_600_000 + 720_000 });
    store.away = undefined;
    expect(await ask({ details: true })).toMatchObject({ limits: [{ remaining: 9 }, { remaining: 8 }] });
  });

  it("is not charged to policies in shadow mode alone", async () => {
    const { limiter } = open([
      { ...policy("9/h"), mode: "shadow" },
      { ...policy("9/h"), id: "q", on_failure: "open" },
    ]);
    await expect(limiter.charge(user("u"))).rejects.toBe(gone);
  });

  it("charges nothing if a policy fails closed", async () => {
    const { limiter, ask } = open([policy("10/h"), { ...policy("9/h"), id: "q", on_failure: "closed" }]);
    await expect(limiter.charge(user("u"))).rejects.toBe(gone);
    limiter.usePolicies({ policies: [policy("10/h")] });
    expect(await ask()).toMatchObject({ remaining: 4 });
  });

  it("is not a reset, which forgets local counters too once the store is back", async () => {
    const { limiter, ask, store } = open([policy("10/h")]);
    await ask({ cost: 5 });
    await expect(limiter.reset(user("u"))).rejects.toBe(gone);
    expect((await ask()).allowed).toBe(false);
    store.away = undefined;
    await limiter.reset(user("u"));
    store.away = gone;
    expect((await ask({ cost: 5 })).allowed).toBe(true);
  });
});
