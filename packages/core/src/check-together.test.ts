import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ManualClock } from "./clock.ts";
import type { CounterStore } from "./counters/counter-store.ts";
import { MemoryCounters } from "./counters/memory-counters.ts";
import { StoreUnavailable } from "./counters/store-unavailable.ts";
import { createLimiter } from "./create-limiter.ts";
import type { Decision } from "./decision/decision.ts";
import type { Limiter, TogetherOptions } from "./limiter.ts";
import type { CheckRequest } from "./request/check-request.ts";
import { failingCounters } from "./testing/failing-counters.ts";
import { openLimiter as open, byUser as user } from "./testing/open-limiter.ts";

const policies = [
  { id: "user", match: { endpoint: "/user" }, limits: [{ by: ["user"], windows: "3/h" }] },
  { id: "ip", match: { endpoint: "/ip" }, limits: [{ by: ["ip"], windows: "5/h" }] },
  { id: "banned", match: { endpoint: "/banned" }, deny: { user: ["eve"] }, limits: [{ by: ["user"], windows: "9/h" }] },
  { id: "quiet", match: { endpoint: "/quiet" }, mode: "shadow", limits: [{ by: ["user"], windows: "1/h" }] },
];

const at = (endpoint: string, more: Record<string, string>, cost = 1): CheckRequest => ({
  dimensions: { endpoint, ...more },
  cost,
});

function together(limiter: Limiter, requests: readonly CheckRequest[], options?: TogetherOptions): readonly Decision[] {
  const decisions = limiter.checkTogether(requests, options);
  if (decisions instanceof Promise) throw new Error("counters in this process answer at once");
  return decisions;
}

describe("requests decided together", () => {
  it("are all charged if all of them fit, each with its own answer", () => {
    const { limiter } = open({ policies, default: "none" });
    const decisions = together(limiter, [at("/user", { user: "u" }), at("/ip", { ip: "192.0.2.1" }, 2)]);
    expect(decisions).toMatchObject([
      { allowed: true, policy: "user", remaining: 2, cost: 1 },
      { allowed: true, policy: "ip", remaining: 3, cost: 2 },
    ]);
  });

  it("charge nothing anywhere if one does not fit, and the others say how they stand", () => {
    const { limiter } = open({ policies, default: "none" });
    const requests = [at("/user", { user: "u" }), at("/ip", { ip: "192.0.2.1" }, 6)];
    for (let times = 0; times < 3; times++)
      expect(together(limiter, requests)).toMatchObject([
        { allowed: true, remaining: 3 },
        { allowed: false, reason: "never_fits", remaining: 5 },
      ]);
    expect(limiter.checkSync(at("/user", { user: "u" }))).toMatchObject({ remaining: 2 });
  });

  it("add up if they lead to the same counter", () => {
    const { limiter } = open({ policies, default: "none" });
    const twice = [at("/user", { user: "u" }), at("/user", { user: "u" })];
    expect(together(limiter, twice)).toMatchObject([{ remaining: 1, cost: 1 }, { remaining: 1 }]);
    expect(together(limiter, twice)).toMatchObject([{ allowed: false }, { allowed: false, remaining: 1 }]);
    expect(limiter.checkSync(at("/user", { user: "u" }))).toMatchObject({ allowed: true, remaining: 0 });
  });

  it("add up if two limits of their policy have the same counter, and are charged there once", () => {
    const limits = [
      { by: ["user"], windows: "3/h" },
      { by: ["user"], windows: "4/h" },
    ];
    const { limiter } = open({ policies: [{ id: "p", limits }] });
    const twice = [user("u"), user("u")];
    expect(together(limiter, twice)).toMatchObject([{ remaining: 1 }, { remaining: 1 }]);
    expect(together(limiter, twice)).toMatchObject([{ allowed: false }, { allowed: false }]);
    expect(limiter.checkSync(user("u"))).toMatchObject({ allowed: true, remaining: 0 });
  });

  it.each(["gcra", "fixed_window"])("are all held to the strictest tier that any of them names (%s)", (algorithm) => {
    const limit = { by: ["user"], algorithm, windows: "3/h", tiers: { gold: { windows: "30/h" } } };
    const { limiter } = open({ policies: [{ id: "p", limits: [limit] }] });
    const both = [user("u", { tier: "gold" }), user("u")];
    for (const requests of [both, both.toReversed()]) {
      const costly = requests.map((request) => ({ ...request, cost: 2 }));
      expect(together(limiter, costly).some(({ allowed }) => !allowed)).toBe(true);
    }
    expect(together(limiter, both)).toMatchObject([
      { allowed: true, limit: 30 },
      { allowed: true, limit: 3, remaining: 1 },
    ]);
    expect(limiter.checkSync(user("u"))).toMatchObject({ allowed: true, remaining: 0 });
    // Whichever of them comes last does the same charge.
    const reversed = [user("v"), user("v", { tier: "gold" })];
    expect(together(limiter, reversed)).toMatchObject([{ remaining: 1 }, { allowed: true }]);
    expect(limiter.checkSync(user("v"))).toMatchObject({ allowed: true, remaining: 0 });
  });

  it("add up if they bring limits with the same name along, whatever their numbers", () => {
    const { limiter } = open({ policies: [] });
    const brought = (limit: number): CheckRequest => ({
      limits: [{ name: "l", by: ["user"], window: { limit, per: { kind: "ms", ms: 3_600_000 }, burst: limit } }],
      ...user("u"),
      cost: 2,
    });
    expect(together(limiter, [brought(30), brought(3)]).map(({ allowed }) => allowed)).toEqual([true, false]);
    expect(together(limiter, [brought(30), brought(5)])).toMatchObject([{ allowed: true }, { remaining: 1 }]);
  });

  it("add nothing if they only peek", () => {
    const { limiter } = open({ policies, default: "none" });
    const look = at("/user", { user: "u" }, 0);
    const preview = (...requests: CheckRequest[]): boolean[] =>
      together(limiter, requests, { preview: true }).map(({ allowed }) => allowed);
    limiter.checkSync(at("/user", { user: "u" }, 2));
    expect(preview(look, look, look)).toEqual([true, true, true]);
    expect(preview(look, at("/user", { user: "u" }))).toEqual([true, true]);
    expect(preview(look, at("/user", { user: "u" }, 2))).toEqual([false, false]);
    limiter.checkSync(at("/user", { user: "u" }));
    expect(preview(look, look)).toEqual([false, false]);
  });

  it("charge nothing if one is denied by name", () => {
    const { limiter } = open({ policies, default: "none" });
    const decisions = together(limiter, [at("/banned", { user: "eve" }), at("/user", { user: "u" })]);
    expect(decisions).toMatchObject([
      { allowed: false, reason: "deny_list" },
      { allowed: true, remaining: 3 },
    ]);
    expect(limiter.checkSync(at("/user", { user: "u" }))).toMatchObject({ remaining: 2 });
  });

  it("ignore policies in shadow mode, but report them on the requests they concern", () => {
    const { limiter } = open({ policies, default: "none" });
    const requests = [at("/quiet", { user: "a" }), at("/quiet", { user: "b" }), at("/user", { user: "u" })];
    expect(together(limiter, requests).map(({ shadow }) => shadow.length)).toEqual([0, 0, 0]);
    const later = together(limiter, requests);
    expect(later.map(({ allowed }) => allowed)).toEqual([true, true, true]);
    expect(later.map(({ shadow }) => shadow.length)).toEqual([1, 1, 0]);
  });

  it("count shadow policies for each of them, however it stands for the others", () => {
    const { limiter } = open({ policies, default: "none" });
    limiter.checkSync(at("/quiet", { user: "b" }));
    together(
      limiter,
      ["a", "b", "c"].map((name) => at("/quiet", { user: name })),
    );
    for (const name of ["a", "c"])
      expect(limiter.checkSync(at("/quiet", { user: name })).shadow).toMatchObject([{ policy: "quiet" }]);
  });

  it("are charged once by an id that belongs to all of them", () => {
    const { limiter } = open({ policies, default: "none" });
    const requests = [at("/user", { user: "u" }), at("/ip", { ip: "192.0.2.1" })];
    expect(together(limiter, requests, { id: "one" })).toMatchObject([{ replayed: false }, { replayed: false }]);
    expect(together(limiter, requests, { id: "one" })).toMatchObject([
      { replayed: true, remaining: 2 },
      { replayed: true, remaining: 4 },
    ]);
    expect(() => together(limiter, requests.slice(1), { id: "one" })).toThrow(/other|another|used/);
  });

  it("can be asked as a preview", () => {
    const { limiter } = open({ policies, default: "none" });
    const requests = [at("/user", { user: "u" }, 3), at("/ip", { ip: "192.0.2.1" })];
    for (let times = 0; times < 2; times++)
      expect(together(limiter, requests, { preview: true })).toMatchObject([
        { allowed: true, preview: true, remaining: 3 },
        { allowed: true, preview: true },
      ]);
  });

  it("may be none at all, or limited by nothing", () => {
    const { limiter } = open({ policies, default: "none" });
    expect(together(limiter, [])).toEqual([]);
    expect(together(limiter, [at("/free", {})])).toMatchObject([{ allowed: true, reason: "unlimited" }]);
  });

  it.each([
    ["id", "x"],
    ["idTtlMs", 1_000],
    ["preview", true],
    ["deadlineMs", 1_000],
    ["receipt", true],
  ] as const)("refuse %s of a single one, naming it", (field, value) => {
    const { limiter } = open({ policies });
    const request = { ...user("u"), [field]: value };
    expect(() => limiter.checkTogether([user("u"), request])).toThrow(`requests[1].${field}`);
  });

  it.each([
    ["id", ""],
    ["id", "x".repeat(257)],
    ["idTtlMs", Number.NaN],
    ["deadlineMs", 0],
  ] as const)("refuse an invalid %s for all of them, and charge nothing", (field, value) => {
    const { limiter } = open({ policies, default: "none" });
    const request = at("/user", { user: "u" });
    expect(() => limiter.checkTogether([request], { [field]: value })).toThrow(new RegExp(`^${field} must be`));
    expect(limiter.checkSync(request)).toMatchObject({ remaining: 2 });
  });

  it("are each answered by their own policies while counters are unavailable", async () => {
    const counters = failingCounters(() => new StoreUnavailable("storage_timeout"));
    const modes = ["open", "closed"].map((id) => ({
      id,
      match: { endpoint: `/${id}` },
      on_failure: id,
      limits: [{ by: ["user"], windows: "3/h" }],
    }));
    const limiter = createLimiter({ policies: { policies: modes }, counters });
    const decisions = await limiter.checkTogether([at("/open", { user: "u" }), at("/closed", { user: "u" })]);
    expect(decisions).toMatchObject([
      { allowed: true, degraded: "storage_timeout" },
      { allowed: false, reason: "degraded", degraded: "storage_timeout" },
    ]);
    const throwing: CounterStore = {
      ...counters,
      take() {
        throw new StoreUnavailable("storage_timeout");
      },
    };
    const answer = createLimiter({ policies: { policies: modes }, counters: throwing }).checkTogether([
      at("/open", { user: "u" }),
    ]);
    expect(answer).toBeInstanceOf(Promise);
    expect(await answer).toMatchObject([{ allowed: true, degraded: "storage_timeout" }]);
  });

  it("never admit more, and never less, than the same requests as one policy with all their limits", () => {
    const windows = ["2/s", "3/10s", "5/m"] as const;
    const part = fc.record({ limit: fc.nat(2), user: fc.constantFrom("a", "b"), cost: fc.integer({ min: 1, max: 3 }) });
    const step = fc.record({
      parts: fc.uniqueArray(part, { minLength: 1, maxLength: 3, selector: ({ limit }) => limit }),
      waitMs: fc.nat(3_000),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const clock = new ManualClock(1_700_000_000_000);
        const limits = windows.map((window, i) => ({
          id: `p${i}`,
          match: { endpoint: `/${i}` },
          limits: [{ by: ["user"], windows: window }],
        }));
        const limiter = createLimiter({ policies: { policies: limits, default: "none" }, clock });
        const model = new MemoryCounters({ clock });
        const reference = createLimiter({ policies: { policies: limits, default: "none" }, clock, counters: model });
        for (const { parts, waitMs } of steps) {
          clock.advance(waitMs);
          const requests = parts.map(({ limit, user: who, cost }) => at(`/${limit}`, { user: who }, cost));
          const previews = requests.map((request) => reference.checkSync({ ...request, preview: true }).allowed);
          const fits = previews.every(Boolean);
          const decisions = together(limiter, requests);
          expect(decisions.map(({ allowed }) => allowed)).toEqual(previews);
          if (fits) for (const request of requests) expect(reference.checkSync(request).allowed).toBe(true);
        }
      }),
      { numRuns: 300 },
    );
  });
});
