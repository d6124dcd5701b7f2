import { describe, expect, expectTypeOf, it } from "vitest";
import { ManualClock } from "./clock.ts";
import { MemoryCounters } from "./counters/memory-counters.ts";
import { limit, type OneLimit } from "./limit.ts";
import { parsePolicies } from "./policy/parse-policies.ts";

describe("a limit in one line", () => {
  it("counts each value of its dimension", async () => {
    const perUser = limit("2/h").by("user");
    expect(perUser.checkSync("ada").allowed).toBe(true);
    expect((await perUser.check("ada")).allowed).toBe(true);
    expect(perUser.checkSync({ user: "ada" }).allowed).toBe(false);
    expect(perUser.checkSync("grace").remaining).toBe(1);
  });

  it("takes a cost, gives a take back, charges afterwards, peeks, resets and explains", async () => {
    const perUser = limit("10/h").by("user");
    const { receipt } = await perUser.check("ada", { cost: 4, receipt: true });
    expect((await perUser.peek("ada")).remaining).toBe(6);
    expect(await perUser.give(receipt!)).toBe(true);
    await perUser.charge("ada", 7);
    expect((await perUser.peek("ada", { cost: 4 })).allowed).toBe(false);
    expect((await perUser.explain("ada")).limits[0]).toMatchObject({ policy: "limit", subject: "ada" });
    await perUser.reset("ada");
    expect((await perUser.peek("ada")).remaining).toBe(10);
  });

  it("needs every dimension by name if there are several", async () => {
    const both = limit(["1/s", "5/h"]).by("tenant", "user");
    expect(both.checkSync({ tenant: "acme", user: "ada" }).allowed).toBe(true);
    expect(both.checkSync({ tenant: "acme", user: "bob" }).allowed).toBe(true);
    expect(() => both.checkSync("acme")).toThrow(/dimensions must name every dimension of the limit \(tenant, user\)/);
    await expect(both.check("acme")).rejects.toMatchObject({ code: "invalid_request" });
    expectTypeOf(both).toEqualTypeOf<OneLimit<"tenant" | "user">>();
  });

  it("is a policy, which a file could hold", () => {
    const clock = new ManualClock();
    const options = { name: "login", algorithm: "sliding_window", blockFor: "5m", onFailure: "closed", clock } as const;
    const login = limit({ limit: 3, per: "1m" }, options).by("ip");
    expect(parsePolicies({ policies: [login.policy] }).policies[0]).toMatchObject({
      id: "login",
      onFailure: "closed",
      limits: [{ by: ["ip"], algorithm: "sliding_window", blockForMs: 300_000 }],
    });
    for (let i = 0; i < 4; i++) login.checkSync("192.0.2.1");
    expect(login.checkSync("192.0.2.1")).toMatchObject({ reason: "blocked", retryAfterMs: 300_000 });
    clock.advance(300_000);
    expect(login.checkSync("192.0.2.1").allowed).toBe(true);
  });

  it("blocks a subject by hand, if it is blockable", async () => {
    const clock = new ManualClock();
    const perUser = limit("10/h", { blockable: true, clock }).by("user");
    await perUser.block("ada", 60_000);
    expect(perUser.checkSync("ada")).toMatchObject({ reason: "blocked", retryAfterMs: 60_000 });
    expect(perUser.checkSync("bob").allowed).toBe(true);
    await perUser.reset("ada");
    expect(perUser.checkSync("ada").allowed).toBe(true);
    await expect(limit("10/h").by("user").block("ada", 1000)).rejects.toThrow(/blockable/);
  });

  it("throws at once if something is wrong with it", () => {
    expect(() => limit("10 per second").by("user")).toThrow(/windows/);
    expect(() => limit("10/s").by("no such name!")).toThrow(/by/);
  });

  it("requires a name if others may use the same counters", () => {
    const memory = new MemoryCounters();
    const shared: MemoryCounters = Object.create(memory, { local: { value: false } }); // a remote store, never asked here
    expect(() => limit("1/s", { counters: shared }).by("user")).toThrow(/name must be given if counters are shared/);
    expect(limit("1/s", { counters: shared, name: "api" }).by("user").policy.id).toBe("api");
    expect(limit("1/s", { counters: memory }).by("user").checkSync("ada").allowed).toBe(true);
  });
});
