import { parsePolicies } from "sluice";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  admin,
  catchRefusal,
  createActor,
  document,
  openTestControl,
  type TestControl,
} from "../testing/open-test-control.ts";

let control: TestControl;
const operator = createActor("operator");

beforeEach(async () => {
  control = await openTestControl();
  await control.policies.put(admin, "orders", {
    on_failure: "open",
    match: { endpoint: "/v1/orders" },
    limits: [
      { name: "steady", by: ["user"], windows: ["10/s"], tiers: { gold: { windows: ["100/s"] } } },
      { name: "shared", by: ["tenant", "user"], windows: ["5/s"] },
      { name: "all", windows: ["1000/s"] },
    ],
  });
  await control.applyStored();
});

afterEach(() => control.close());

async function effective(user: string): Promise<readonly unknown[]> {
  const view = await control.subjects.get(operator, "user", user);
  return view.effective
    .filter(({ policy }) => policy === "orders")
    .map(({ limit, windows, source }) => [limit, windows[0]?.limit, source]);
}

describe("the state of a subject", () => {
  it("is empty at first, and its limits are the policies'", async () => {
    const view = await control.subjects.get(operator, "user", "u1");
    expect(view).toMatchObject({ dimension: "user", value: "u1", version: 0, tier: undefined, limits: [] });
    expect(await effective("u1")).toEqual([
      ["steady", 10, { kind: "policy" }],
      ["shared", 5, { kind: "policy" }],
    ]);
    // Requests that match no policy are limited by the default.
    expect(view.effective.at(-1)).toMatchObject({ policy: "default", by: ["subject"], source: { kind: "policy" } });
  });

  it("consists of its tier, then its custom limit, then an override while that lasts", async () => {
    await control.subjects.setTier(operator, "user", "u1", "gold");
    expect(await effective("u1")).toContainEqual(["steady", 100, { kind: "tier", tier: "gold" }]);
    await control.subjects.setLimit(operator, "user", "u1", { policy: "orders", limit: "steady", windows: ["200/s"] });
    expect(await effective("u1")).toContainEqual(["steady", 200, { kind: "custom" }]);
    const untilMs = control.clock.epochMs() + 60_000;
    await control.subjects.setLimit(
      operator,
      "user",
      "u1",
      { policy: "orders", windows: ["300/s"], untilMs },
      { why: "a sale" },
    );
    // An override precedes a custom limit, even one for a single limit.
    expect(await effective("u1")).toEqual([
      ["steady", 300, { kind: "override", untilMs }],
      ["shared", 300, { kind: "override", untilMs }],
    ]);
    const { limits } = await control.subjects.get(operator, "user", "u1");
    expect(limits.map(({ limit, windows, reason, author }) => [limit, windows, reason, author])).toEqual([
      [undefined, ["300/s"], "a sale", "operator"],
      ["steady", ["200/s"], "", "operator"],
    ]);
    control.clock.advance(60_000);
    expect(await effective("u1")).toEqual([
      ["steady", 200, { kind: "custom" }],
      ["shared", 5, { kind: "policy" }],
    ]);
    expect((await control.subjects.get(operator, "user", "u1")).limits).toHaveLength(1);
  });

  it("is applied by nodes, where an override ends on the millisecond", async () => {
    const untilMs = control.clock.epochMs() + 60_000;
    await control.subjects.setLimit(operator, "user", "u1", {
      policy: "orders",
      limit: "steady",
      windows: ["2/h"],
      untilMs,
    });
    await control.applyStored();
    const check = async (): Promise<unknown> => {
      const dimensions = { user: "u1", endpoint: "/v1/orders" };
      const { limits } = await control.limiter.peek({ dimensions, details: true });
      return limits?.find(({ scope }) => scope === "steady")?.limit;
    };
    expect(await check()).toBe(2);
    control.clock.advance(59_999);
    expect(await check()).toBe(2);
    control.clock.advance(1);
    expect(await check()).toBe(10);
  });

  it("shows its counters, for limits that count by it alone", async () => {
    const request = { dimensions: { user: "u1", tenant: "t1", endpoint: "/v1/orders" }, cost: 3 };
    await control.limiter.check(request);
    const view = await control.subjects.get(operator, "user", "u1");
    const usage = view.effective.map(({ limit, usage: windows }) => [
      limit,
      windows?.map(({ used, remaining }) => [used, remaining]),
    ]);
    expect(usage).toEqual([
      ["steady", [[3, 7]]],
      ["shared", undefined],
      ["subject", [[0, 1_000]]],
    ]);
    const other = await control.subjects.get(operator, "user", "u2");
    expect(other.effective[0]?.usage).toEqual([expect.objectContaining({ used: 0, remaining: 10, resetAfterMs: 0 })]);
  });

  it("counts versions up, which a caller may expect", async () => {
    const first = await control.subjects.setTier(operator, "user", "u1", "gold");
    const second = await control.subjects.setTier(operator, "user", "u1", "silver", { expected: first.value.version });
    expect(second.value.version).toBeGreaterThan(first.value.version);
    const late = control.subjects.setTier(operator, "user", "u1", "free", { expected: first.value.version });
    expect(await catchRefusal(late)).toMatchObject({ code: "version_conflict", currentVersion: second.value.version });
    await control.subjects.delete(operator, "user", "u1", { expected: second.value.version });
    // Even after it was deleted, it is not mistaken for the one that was seen.
    const again = await control.subjects.setTier(operator, "user", "u1", "gold", { expected: 0 });
    expect(again.value.version).toBeGreaterThan(second.value.version);
  });

  it("stays unchanged if it is written again", async () => {
    await control.subjects.setTier(operator, "user", "u1", "gold");
    const before = await control.dump();
    expect((await control.subjects.setTier(operator, "user", "u1", "gold")).generation).toBeUndefined();
    expect((await control.subjects.setTier(operator, "user", "u2", undefined)).generation).toBeUndefined();
    expect(await control.dump()).toBe(before);
  });

  it("is the same in all spellings of an address", async () => {
    await control.subjects.setTier(operator, "ip", "2001:DB8:0:0::1", "gold");
    for (const spelling of ["2001:db8::1", "2001:db8::ffff", "2001:db8::/64"])
      expect(await control.subjects.get(operator, "ip", spelling)).toMatchObject({
        value: "2001:db8::/64",
        tier: "gold",
      });
    await control.subjects.setTier(operator, "ip", "::ffff:192.0.2.1", "gold");
    expect(await control.subjects.get(operator, "ip", "192.0.2.1")).toMatchObject({ tier: "gold" });
    expect(await catchRefusal(control.subjects.get(operator, "ip", "nowhere"))).toMatchObject({
      code: "invalid_request",
    });
  });

  it("is listed by dimension, in pages", async () => {
    for (const user of ["a", "b", "c"]) await control.subjects.setTier(operator, "user", user, "gold");
    await control.subjects.setTier(operator, "tenant", "t", "gold");
    const first = await control.subjects.list(operator, "user", { limit: 2 });
    expect([first.items.map(({ value }) => value), first.next]).toEqual([["a", "b"], "b"]);
    const rest = await control.subjects.list(operator, "user", { limit: 2, after: first.next });
    expect([rest.items.map(({ value }) => value), rest.next]).toEqual([["c"], undefined]);
  });

  it("comes from a policy file if that wins", async () => {
    const filePolicies = parsePolicies({
      policies: [{ id: "filed", ...document("1/s") }],
      subjects: [
        { user: "u1", limits: [{ policy: "filed", windows: ["7/s"] }] },
        { user: "u0", limits: [{ policy: "filed", windows: ["8/s"], until: "2026-06-01" }] },
      ],
    });
    for (const [precedence, limit] of [
      ["files", 7],
      ["store", 9],
    ] as const) {
      const beside = await openTestControl({ filePolicies, precedence });
      expect((await beside.subjects.get(operator, "user", "u0")).effective[0]).toMatchObject({
        windows: [{ limit: 1 }],
      });
      await beside.subjects.setLimit(operator, "user", "u1", { policy: "filed", windows: ["9/s"] });
      const view = await beside.subjects.get(operator, "user", "u1");
      expect(view.effective.find(({ policy }) => policy === "filed")).toMatchObject({ windows: [{ limit }] });
      await beside.close();
    }
  });
});

describe("stored values of a subject", () => {
  const custom = { policy: "orders", windows: ["200/s"] };
  const untilMs = Date.parse("2026-06-01T01:00:00Z");
  const override = { policy: "orders", windows: ["300/s"], untilMs };
  type Options = NonNullable<Parameters<TestControl["subjects"]["setTier"]>[4]>;
  const changes: readonly (readonly [string, (options?: Options) => Promise<unknown>, unknown])[] = [
    [
      "another tier",
      (options) => control.subjects.setTier(operator, "user", "u1", "silver", options),
      { tier: "gold" },
    ],
    ["no tier", (options) => control.subjects.setTier(operator, "user", "u1", undefined, options), { tier: "gold" }],
    [
      "another limit",
      (options) => control.subjects.setLimit(operator, "user", "u1", { ...custom, windows: ["201/s"] }, options),
      { limits: [{ windows: ["200/s"], untilMs: undefined }] },
    ],
    [
      "another override",
      (options) => control.subjects.setLimit(operator, "user", "u1", { ...override, windows: ["301/s"] }, options),
      { limits: [{ windows: ["300/s"], untilMs }] },
    ],
    [
      "another end",
      (options) => control.subjects.setLimit(operator, "user", "u1", { ...override, untilMs: untilMs + 1 }, options),
      { limits: [{ windows: ["300/s"], untilMs }] },
    ],
    [
      "no limit",
      (options) => control.subjects.deleteLimit(operator, "user", "u1", { kind: "custom", policy: "orders" }, options),
      { limits: [{ windows: ["200/s"] }] },
    ],
    [
      "no override",
      (options) =>
        control.subjects.deleteLimit(operator, "user", "u1", { kind: "override", policy: "orders" }, options),
      { limits: [{ windows: ["300/s"] }] },
    ],
    [
      "nothing at all",
      (options) => control.subjects.delete(operator, "user", "u1", options),
      { tier: "gold", limits: [{ windows: ["200/s"] }, { windows: ["300/s"] }] },
    ],
  ];
  let version: number;

  beforeEach(async () => {
    await control.subjects.setTier(operator, "user", "u1", "gold");
    await control.subjects.setLimit(operator, "user", "u1", custom);
    const { value } = await control.subjects.setLimit(operator, "user", "u1", override, { why: "a sale" });
    version = value.version;
  });

  it.each(changes)("are not replaced unseen by %s, and the conflict shows them", async (_, change) => {
    const before = await control.dump();
    for (const options of [{}, { dryRun: true }, { expected: version - 1 }, { expected: 0 }])
      expect(await catchRefusal(change(options)), JSON.stringify(options)).toMatchObject({
        code: "version_conflict",
        currentVersion: version,
        current: {
          dimension: "user",
          value: "u1",
          version,
          tier: "gold",
          limits: [
            { windows: ["200/s"] },
            { windows: ["300/s"], until_ms: untilMs, reason: "a sale", author: "operator" },
          ],
        },
      });
    expect(await control.dump()).toBe(before);
  });

  it.each(changes)("are replaced by %s of a caller that saw them, or accepts any version", async (_, change, what) => {
    for (const options of [
      { expected: version, dryRun: true },
      { expected: "any" as const, dryRun: true },
    ])
      expect(await change(options)).toMatchObject({ dryRun: true, replaced: what });
    expect(await change({ expected: "any" })).toMatchObject({ replaced: what, generation: expect.any(Number) });
    expect(await catchRefusal(change({ expected: version }))).toMatchObject({ code: "version_conflict" });
  });

  it("may be written again unchanged, by any caller, and nothing changes", async () => {
    const before = await control.dump();
    const inFull = { ...custom, windows: [{ limit: 200, per: "1s" }] };
    for (const done of [
      await control.subjects.setTier(operator, "user", "u1", "gold"),
      await control.subjects.setLimit(operator, "user", "u1", custom, { why: "again" }),
      await control.subjects.setLimit(operator, "user", "u1", inFull),
      await control.subjects.setLimit(operator, "user", "u1", override, { expected: version }),
    ])
      expect(done).toMatchObject({ generation: undefined, replaced: undefined, value: { version } });
    expect(await control.dump()).toBe(before);
  });

  it("do not prevent setting something else", async () => {
    await control.policies.put(admin, "carts", document("1/s"));
    const { subjects } = control;
    for (const done of [
      await subjects.setLimit(operator, "user", "u1", { ...custom, limit: "steady" }),
      await subjects.setLimit(operator, "user", "u1", { ...custom, policy: "carts" }),
      await subjects.setLimit(operator, "user", "u1", { ...override, policy: "carts" }),
      await subjects.setTier(operator, "user", "u2", "silver"),
    ])
      expect(done).toMatchObject({ generation: expect.any(Number), replaced: undefined });
    expect((await subjects.get(operator, "user", "u1")).limits).toHaveLength(5);
  });

  it("do not include an override that has ended", async () => {
    control.clock.advance(3_600_000);
    const later = { ...override, windows: ["1/s"], untilMs: untilMs + 3_600_000 };
    expect(await control.subjects.setLimit(operator, "user", "u1", later)).toMatchObject({ replaced: undefined });
    await control.subjects.setLimit(operator, "user", "u3", { ...later, untilMs: untilMs + 1 });
    control.clock.advance(1);
    // The remaining record affects no decision.
    expect(await control.subjects.delete(operator, "user", "u3")).toMatchObject({ replaced: undefined });
    expect((await control.subjects.get(operator, "user", "u3")).version).toBe(0);
  });

  it("are not shown to a caller that may not change them", async () => {
    const refusal = await catchRefusal(control.subjects.setTier(createActor("check"), "user", "u1", "silver"));
    expect(refusal).toMatchObject({ code: "permission_denied" });
    expect(refusal).not.toHaveProperty("subject");
  });
});

describe("a request about a subject is refused for", () => {
  it.each([
    ["a policy that there is not", { policy: "nothing", windows: ["1/s"] }, "invalid_policies", "policy"],
    ["a missing limit", { policy: "orders", limit: "stedy", windows: ["1/s"] }, "invalid_policies", "limit"],
    ["invalid windows", { policy: "orders", windows: ["fast"] }, "invalid_request", "windows"],
    ["no windows", { policy: "orders", windows: [] }, "invalid_request", "windows"],
    ["an end that has passed", { policy: "orders", windows: ["1/s"], untilMs: 1 }, "invalid_request", "until_ms"],
    ["an end too far ahead", { policy: "orders", windows: ["1/s"], untilMs: 9e12 }, "invalid_request", "until_ms"],
    ["an invalid end", { policy: "orders", windows: ["1/s"], untilMs: 1e13 + 0.5 }, "invalid_request", "until_ms"],
  ])("%s", async (_, limit, code, field) => {
    const before = await control.dump();
    const refusal = await catchRefusal(control.subjects.setLimit(operator, "user", "u1", limit));
    expect(refusal).toMatchObject({ code });
    expect(JSON.stringify(refusal.problems)).toContain(field);
    expect(await control.dump()).toBe(before);
  });

  it("invalid names", async () => {
    for (const [dimension, value, tier] of [
      ["tier", "x", "gold"],
      ["an invalid dimension", "x", "gold"],
      ["user", "", "gold"],
      ["user", "u1", ""],
      ["user", "u\0", "gold"],
    ] as const)
      expect(await catchRefusal(control.subjects.setTier(operator, dimension, value, tier))).toMatchObject({
        code: "invalid_request",
      });
  });

  it("more limits than a policy file may have", async () => {
    for (let i = 0; i < 65; i++) await control.policies.put(admin, `p${i}`, document("1/s"));
    const wish = (i: number) =>
      control.subjects.setLimit(operator, "user", "u1", { policy: `p${i}`, windows: ["2/s"] });
    for (let i = 0; i < 64; i++) await wish(i);
    expect(await catchRefusal(wish(64))).toMatchObject({ code: "invalid_request", problems: [{ path: ["limits"] }] });
    await wish(63);
    await control.configuration.import(admin, await control.configuration.export(admin));
  });

  it("deleting a missing limit", async () => {
    const none = control.subjects.deleteLimit(operator, "user", "u1", { kind: "custom", policy: "orders" });
    expect(await catchRefusal(none)).toMatchObject({ code: "resource_not_found" });
    expect(await catchRefusal(control.subjects.delete(operator, "user", "u1"))).toMatchObject({
      code: "resource_not_found",
    });
    await control.subjects.setLimit(operator, "user", "u1", { policy: "orders", windows: ["1/s"] });
    const gone = await control.subjects.deleteLimit(
      operator,
      "user",
      "u1",
      { kind: "custom", policy: "orders" },
      { expected: "any" },
    );
    expect(gone.value.limits).toEqual([]);
  });

  it("every action that the role does not permit, with each attempt audited", async () => {
    const limit = { policy: "orders", windows: ["1/s"] };
    for (const actor of [createActor("viewer"), createActor("check"), createActor("editor", "api")]) {
      for (const attempt of [
        control.subjects.setTier(actor, "user", "u1", "gold"),
        control.subjects.setLimit(actor, "user", "u1", limit),
        control.subjects.deleteLimit(actor, "user", "u1", { kind: "custom", policy: "orders" }),
        control.subjects.delete(actor, "user", "u1"),
        control.subjects.reset(actor, "user", "u1"),
      ])
        expect(await catchRefusal(attempt)).toMatchObject({ code: "permission_denied" });
    }
    await control.settled();
    const { items } = await control.audit.list(admin, { kind: "subject", target: "user:u1", outcome: "refused" });
    expect(items).toHaveLength(15);
  });
});

describe("resetting a subject", () => {
  const request = { dimensions: { user: "u1", tenant: "t1", endpoint: "/v1/orders" }, cost: 3 };
  async function used(): Promise<unknown> {
    const { limits } = await control.limiter.explain(request);
    return limits.map(({ scope, windows }) => [scope, windows[0]!.window.capacity - windows[0]!.remaining]);
  }

  it("resets the counters of limits by it alone, and no others", async () => {
    await control.limiter.check(request);
    expect(await used()).toEqual([
      ["steady", 3],
      ["shared", 3],
      ["all", 3],
    ]);
    const { value } = await control.subjects.reset(operator, "user", "u1", { why: "a bug of theirs" });
    expect(value).toEqual({
      limits: ["orders/steady", "default/subject"],
      skipped: [{ limit: "orders/shared", by: ["tenant", "user"] }],
    });
    expect(await used()).toEqual([
      ["steady", 0],
      ["shared", 3],
      ["all", 3],
    ]);
    const { items } = await control.audit.list(admin, { kind: "subject", target: "user:u1" });
    expect(items).toEqual([
      expect.objectContaining({ action: "subject.reset", outcome: "done", why: "a bug of theirs" }),
    ]);
  });

  it("resets those that such a request uses, if more dimensions are given", async () => {
    await control.limiter.check(request);
    const { value } = await control.subjects.reset(operator, "user", "u1", {
      policy: "orders",
      dimensions: { tenant: "t1" },
    });
    expect(value.limits).toEqual(["orders/steady", "orders/shared", "orders/all"]);
    expect(await used()).toEqual([
      ["steady", 0],
      ["shared", 0],
      ["all", 0],
    ]);
  });

  it("resets nothing in a dry run, and refuses a policy without such a limit", async () => {
    await control.limiter.check(request);
    const { value } = await control.subjects.reset(operator, "user", "u1", { policy: "orders", dryRun: true });
    expect(value.limits).toEqual(["orders/steady"]);
    expect(await used()).toContainEqual(["steady", 3]);
    expect(await catchRefusal(control.subjects.reset(operator, "user", "u1", { policy: "nothing" }))).toMatchObject({
      code: "resource_not_found",
    });
  });
});

describe("subjects in the audit", () => {
  it("have the values before and after, and are found by subject", async () => {
    await control.subjects.setTier(operator, "user", "u1", "gold");
    await control.subjects.setTier(operator, "user", "u1", undefined, { expected: "any" });
    await control.subjects.setTier(operator, "user", "u2", "gold");
    const { items } = await control.audit.list(admin, { kind: "subject", target: "user:u1" });
    expect(items.map(({ before, after }) => [before, after])).toEqual([
      ['{"tier":"gold"}', "{}"],
      ["{}", '{"tier":"gold"}'],
    ]);
  });

  it("are found even by the longest possible value", async () => {
    const value = "x".repeat(4_096);
    await control.subjects.setTier(operator, "user", value, "gold");
    await control.subjects.setTier(operator, "user", `${value.slice(1)}y`, "gold");
    const { items } = await control.audit.list(admin, { target: `user:${value}` });
    expect(items.map(({ action }) => action)).toEqual(["subject.tier"]);
  });

  it("change nothing in a dry run", async () => {
    await control.subjects.setTier(operator, "user", "u1", "gold");
    const before = await control.dump();
    const options = { dryRun: true, expected: "any" } as const;
    await control.subjects.setTier(operator, "user", "u1", "free", options);
    await control.subjects.setLimit(operator, "user", "u9", { policy: "orders", windows: ["1/s"] }, options);
    await control.subjects.delete(operator, "user", "u1", options);
    expect(await control.dump()).toBe(before);
  });
});
