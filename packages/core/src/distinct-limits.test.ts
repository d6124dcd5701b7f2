import { describe, expect, it } from "vitest";
import { ManualClock } from "./clock.ts";
import { MemoryCounters } from "./counters/memory-counters.ts";
import { createLimiter } from "./create-limiter.ts";
import { SluiceError } from "./errors.ts";
import { renderExplanation } from "./explain.ts";
import { lintPolicies } from "./lint/lint-policies.ts";
import { describePolicy } from "./policy/describe-policy.ts";
import { parsePolicies } from "./policy/parse-policies.ts";
import { conversationStartMs, failingCounters } from "./testing/index.ts";

const hourMs = 3_600_000;

function open(limits: readonly object[], more: object = {}, rest: object = {}) {
  const clock = new ManualClock(conversationStartMs);
  const policies = { policies: [{ id: "seats", on_failure: "open", limits, ...more }], ...rest };
  return { clock, limiter: createLimiter({ policies, clock, counters: new MemoryCounters({ clock }) }) };
}

const users = { by: ["tenant"], distinct: "user", windows: ["2/h"] };
const by = (user: string | undefined, more: object = {}) => ({
  dimensions: { tenant: "acme", ...(user !== undefined && { user }), ...more },
});

function problemsOf(limit: object, rest: object = {}): readonly string[] {
  try {
    parsePolicies({ policies: [{ id: "p", limits: [limit] }], ...rest });
    return [];
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return error.problems.map(({ path, message }) => `${path.join(".")} ${message}`);
  }
}

describe("a limit on distinct values", () => {
  it("lets its number of values through, each as often as it likes, and says when a new one may come", async () => {
    const { limiter, clock } = open([users]);
    for (const user of ["a", "b", "a", "b", "a"]) expect((await limiter.check(by(user))).allowed).toBe(true);
    clock.advance(1000);
    expect(await limiter.check(by("c"))).toMatchObject({
      allowed: false,
      reason: "over_limit",
      scope: "tenant.distinct.user",
      limit: 2,
      remaining: 0,
      limitRemaining: 0,
      retryAfterMs: hourMs - 1000,
      resetAtMs: conversationStartMs + hourMs,
      distinct: { dimension: "user", error: 0 },
    });
    expect(await limiter.check({ ...by("c"), dimensions: { tenant: "bolt", user: "c" } })).toMatchObject({
      allowed: true,
      remaining: 1,
      used: 1,
    });
    clock.advance(hourMs - 1000);
    expect((await limiter.check(by("c"))).allowed).toBe(true);
  });

  it("says how many more may pass where values are estimated", async () => {
    const { limiter } = open([{ ...users, windows: ["5000/h"] }]);
    const { distinct, limits } = await limiter.check({ ...by("a"), details: true });
    expect([distinct, limits![0]!.distinct]).toEqual(Array(2).fill({ dimension: "user", error: 0.05 }));
  });

  it("leaves what else is left to limits on cost, unless it denies", async () => {
    const { limiter } = open([users, { by: ["tenant"], windows: ["10/h"] }]);
    await limiter.check(by("a"));
    expect(await limiter.check({ ...by("b"), cost: 3 })).toMatchObject({
      allowed: true,
      remaining: 6,
      limitRemaining: 0,
    });
    expect(await limiter.check(by("c"))).toMatchObject({ allowed: false, remaining: 0 });
    expect(await limiter.check({ ...by("a"), cost: 6 })).toMatchObject({ allowed: true, remaining: 0 });
  });

  it("counts requests without the dimension as one value, skips or denies them", async () => {
    const shared = open([users]).limiter;
    for (const user of [undefined, "", "a"]) expect((await shared.check(by(user))).allowed).toBe(true);
    expect((await shared.check(by("b"))).allowed).toBe(false);
    expect((await shared.explain(by(undefined))).limits[0]!.missing).toEqual(["user"]);
    const skipped = open([{ ...users, missing: "skip" }]).limiter;
    expect((await skipped.check(by(undefined))).reason).toBe("unlimited");
    const denied = open([{ ...users, missing: "deny" }]).limiter;
    expect((await denied.check(by(undefined))).reason).toBe("missing_dimension");
  });

  it("reads its values as other limits do: networks of addresses, and parameters of the path", async () => {
    const networks = open([{ by: ["user"], distinct: "ip", windows: ["1/h"] }]).limiter;
    const from = async (ip: string) => (await networks.check({ dimensions: { user: "u", ip } })).allowed;
    expect([await from("2001:db8::1"), await from("2001:db8::2"), await from("2001:db9::1")]).toEqual([
      true,
      true,
      false,
    ]);
    const { limiter } = open([{ by: ["user"], distinct: "order", windows: ["1/h"] }], {
      match: { endpoint: "/orders/{order}" },
    });
    const order = async (id: string) =>
      (await limiter.check({ dimensions: { user: "u", endpoint: `/orders/${id}` } })).allowed;
    expect([await order("1"), await order("1"), await order("2")]).toEqual([true, true, false]);
  });

  it("has tiers and overrides, which keep what was seen", async () => {
    const tiered = { ...users, tiers: { pro: { windows: ["3/h"] } } };
    const subjects = [{ tenant: "bolt", limits: [{ policy: "seats", windows: ["1/h"] }] }];
    const { limiter } = open([tiered], {}, { subjects });
    for (const user of ["a", "b"]) await limiter.check(by(user));
    expect((await limiter.check(by("c"))).allowed).toBe(false);
    expect((await limiter.check(by("c", { tier: "pro" }))).allowed).toBe(true);
    expect((await limiter.check(by("d", { tier: "pro" }))).allowed).toBe(false);
    const bolt = async (user: string) => (await limiter.check({ dimensions: { tenant: "bolt", user } })).allowed;
    expect([await bolt("a"), await bolt("b")]).toEqual([true, false]);
  });

  it("in shadow mode denies nothing and notes what enforced limits allow", async () => {
    const { limiter } = open([users], { mode: "shadow" });
    for (const user of ["a", "b"]) await limiter.check(by(user));
    expect(await limiter.check(by("c"))).toMatchObject({ allowed: true, shadow: [{ reason: "over_limit" }] });
    expect((await limiter.check(by("a"))).shadow).toEqual([]);
  });

  it("binds a request id to the value, so the same id with another value is a conflict", async () => {
    const { limiter } = open([users]);
    const first = await limiter.check({ ...by("a"), id: "r1" });
    expect(await limiter.check({ ...by("a"), id: "r1" })).toEqual({ ...first, replayed: true });
    await expect(limiter.check({ ...by("b"), id: "r1" })).rejects.toMatchObject({ code: "idempotency_conflict" });
  });

  it("previews without adding, resets, blocks, and is blocked for a while after a denial if it says so", async () => {
    const { limiter, clock } = open([{ ...users, block_for: "10s" }]);
    for (const user of ["a", "b", "c", "d"]) expect((await limiter.peek(by(user))).allowed).toBe(true);
    for (const user of ["a", "b", "c"]) await limiter.check(by(user));
    expect((await limiter.check(by("a"))).reason).toBe("blocked");
    clock.advance(10_000);
    expect((await limiter.check(by("a"))).allowed).toBe(true);
    await limiter.reset(by("a"));
    expect((await limiter.check(by("c"))).allowed).toBe(true);
    await limiter.block(by("c"), 5000);
    expect((await limiter.check(by("c"))).reason).toBe("blocked");
  });

  it("charges values after the fact, and gives none back", async () => {
    const { limiter } = open([users]);
    for (const user of ["a", "b"]) await limiter.charge({ ...by(user), cost: 5 });
    await limiter.charge({ ...by("b"), cost: -5 });
    expect((await limiter.check(by("c"))).allowed).toBe(false);
    expect((await limiter.check({ ...by("a"), receipt: true })).receipt).toBeUndefined();
  });

  it("is held for nothing: a hold next to it gives back the other limits", async () => {
    const { limiter } = open([users, { by: ["tenant"], windows: ["10/h"] }]);
    const hold = await limiter.reserve({ ...by("a"), amount: 6 });
    await limiter.cancel(hold.id!);
    expect(await limiter.peek(by("a"))).toMatchObject({ remaining: 10, limitRemaining: 1 });
  });

  it("counts alone, in this node's share, while counters are unavailable", async () => {
    const policies = { policies: [{ id: "p", limits: [{ ...users, windows: ["4/h"] }], on_failure: "local" }] };
    const counters = { ...failingCounters(), distinct: true };
    const limiter = createLimiter({ policies, counters, clock: new ManualClock(conversationStartMs) });
    const allowed: boolean[] = [];
    for (const user of ["a", "b", "c", "a"]) allowed.push((await limiter.check(by(user))).allowed);
    expect(allowed).toEqual([true, true, false, true]);
  });

  it("is explained, with its error", async () => {
    const { limiter } = open([{ ...users, windows: ["2/h", "5000/d"] }]);
    for (const user of ["a", "b"]) await limiter.check(by(user));
    const text = renderExplanation(await limiter.explain(by("c")));
    expect(text).toContain(
      "2 distinct values ≥ 2: no new one passes until the window ends; one seen in this window does",
    );
    expect(text).toContain("up to 1536 values are counted exactly");
    expect(text).toContain("estimated on the low side: from 5000 to 5250 values pass");
  });

  it("is described for people", () => {
    const [policy] = parsePolicies({ policies: [{ id: "p", limits: [users] }] }).policies;
    expect(describePolicy(policy!)).toContain(
      "Allows 2 per hour, counted in different values of user, for each tenant.",
    );
  });
});

describe("a policy that counts distinct values", () => {
  it.each([
    [
      { ...users, algorithm: "gcra" },
      "algorithm is gcra, but distinct values are counted in fixed windows; leave it out",
    ],
    [
      { ...users, windows: ["5 once"] },
      "windows.0.per is a one-off quota, but distinct values are counted over a fixed time",
    ],
    [
      { ...users, windows: ["5/day in Europe/Berlin"] },
      "windows.0.per is a day or month of the calendar, but distinct",
    ],
    [{ ...users, windows: ["0/h"] }, "windows.0.limit must be at least 1 distinct value, but is 0"],
    [{ ...users, windows: ["2.5/h"] }, "windows.0.limit must be a whole number"],
    [{ ...users, windows: ["2/h burst 5"] }, "windows.0.burst does not belong to fixed_window"],
    [{ ...users, tiers: { pro: { windows: ["5 once"] } } }, "tiers.pro.windows.0.per is a one-off quota"],
    [{ ...users, distinct: ["user"] }, "distinct must be"],
  ])("is refused by the name of its field: %j", (limit, problem) => {
    expect(problemsOf(limit).join("\n")).toContain(`policies.0.limits.0.${problem}`);
  });

  it("is refused next to counters: strong", () => {
    const policy = { id: "p", counters: "strong", limits: [users] };
    expect(() => parsePolicies({ policies: [policy] })).toThrow("limits[0].distinct: is user, but counters is strong");
  });

  it("is checked in overrides too", () => {
    const subjects = [{ tenant: "acme", limits: [{ policy: "p", windows: ["5 once"] }] }];
    expect(problemsOf(users, { subjects })).toEqual([
      "subjects.0.limits.0.windows.0.per is a one-off quota, but distinct values are counted over a fixed time, such as 1d",
    ]);
  });

  it("is refused by counters that cannot count them, when it is loaded", () => {
    const policies = {
      policies: [
        { id: "other", unlimited: true },
        { id: "p", limits: [{ windows: ["1/s"] }, users] },
      ],
    };
    const limiter = createLimiter({ counters: failingCounters() });
    expect(() => limiter.usePolicies(policies)).toThrow(
      "policies[1].limits[1].distinct: is user, but these counters cannot count distinct values",
    );
    expect(() => createLimiter({ policies, counters: failingCounters() })).toThrow("cannot count distinct values");
  });

  it("is warned about values that can never be two, and about blocks", () => {
    const limits = [{ ...users, by: ["tenant", "user"], block_for: "1m" }];
    const warnings = lintPolicies(parsePolicies({ policies: [{ id: "p", on_failure: "open", limits }] }));
    expect(warnings.map(({ path, message }) => `${path.join(".")} ${message}`)).toEqual([
      "policies.0.limits.0.distinct is user, which the limit also counts by: each subject has one value of it, and none is ever denied",
      "policies.0.limits.0.block_for also denies values that were seen in the window, because a block is of the whole subject",
    ]);
  });

  it("keeps its counters apart from those of a limit on the same subject", async () => {
    const requests = { by: ["tenant"], algorithm: "fixed_window", windows: ["2/h"] };
    const { limiter } = open([users, requests, { ...users, distinct: "ip" }]);
    expect(lintPolicies(limiter.snapshot.policySet)).not.toContainEqual(
      expect.objectContaining({ message: expect.stringContaining("shares its counter") }),
    );
    const { limits } = await limiter.check({ ...by("a", { ip: "1.1.1.1" }), details: true });
    expect(limits!.map(({ scope, remaining }) => [scope, remaining])).toEqual([
      ["tenant.distinct.user", 1],
      ["tenant", 1],
      ["tenant.distinct.ip", 1],
    ]);
  });
});
