import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ManualClock } from "./clock.ts";
import { createLimiter } from "./create-limiter.ts";
import type { Limiter } from "./limiter.ts";
import { inRollout } from "./match/in-rollout.ts";
import { parsePolicies } from "./policy/parse-policies.ts";
import type { Policy, PolicySet, Trial } from "./policy/policy.ts";
import type { CheckRequest } from "./request/check-request.ts";

const written = (limit: string, more: object = {}): Policy =>
  parsePolicies({
    policies: [{ id: "p", limits: [{ by: ["user"], windows: [limit] }], on_failure: "open", ...more }],
    default: "none",
  }).policies[0]!;

type Given = Partial<Omit<Trial, "side">>;

/** Version 1 and version 2 of policy p, both in force. */
function onTrial(old: Policy, next: Policy, given: Given): PolicySet {
  const trial = { rollout: "r", by: "user", percent: 10, steps: [1, 10, 100], shadow: false, ...given };
  return {
    kind: "policy_set",
    subjects: [],
    policies: [
      { ...old, version: 1, trial: { ...trial, side: "old" } },
      { ...next, version: 2, trial: { ...trial, side: "new" } },
    ],
  };
}

const users = Array.from({ length: 2_000 }, (_, i) => `user-${i}`);
const versionFor = (limiter: Limiter, user: string, more: CheckRequest = {}): number | undefined =>
  limiter.checkSync({ ...more, dimensions: { user, ...more.dimensions } }).version;

describe("two versions of a policy in force", () => {
  it("share the subjects among them, about as many as was said, always the same", () => {
    const limiter = createLimiter({ policies: onTrial(written("5/m"), written("3/m"), {}) });
    const joined = users.filter((user) => versionFor(limiter, user) === 2);
    expect(joined.length).toBeGreaterThan(140);
    expect(joined.length).toBeLessThan(260);
    expect(users.filter((user) => versionFor(limiter, user) === 2)).toEqual(joined);
    const later = createLimiter({ policies: onTrial(written("5/m"), written("3/m"), { percent: 50 }) });
    expect(joined.every((user) => versionFor(later, user) === 2)).toBe(true);
  });

  it("are for all subjects or none at 0 % and 100 %", () => {
    for (const [percent, version] of [
      [0, 1],
      [100, 2],
    ] as const) {
      const limiter = createLimiter({ policies: onTrial(written("5/m"), written("3/m"), { percent }) });
      for (const user of users.slice(0, 200)) expect(versionFor(limiter, user)).toBe(version);
      expect(limiter.checkSync({ dimensions: { tenant: "t" } }).version).toBe(version);
    }
  });

  it("leave requests without the dimension under the old one", () => {
    const limiter = createLimiter({ policies: onTrial(written("5/m"), written("3/m"), { percent: 99.99 }) });
    expect(limiter.checkSync({ dimensions: { tenant: "t" } }).version).toBe(1);
  });

  it("decide by their own matches: a subject is under one of them wherever either matches", () => {
    const old = written("5/m", { match: { endpoint: "/a" } });
    const next = written("3/m", { match: { endpoint: "/b" } });
    const limiter = createLimiter({ policies: onTrial(old, next, { percent: 50 }) });
    const at = (user: string, endpoint: string) => versionFor(limiter, user, { dimensions: { endpoint } });
    for (const user of users.slice(0, 100)) {
      const isIn = at(user, "/b") === 2;
      expect([at(user, "/a"), at(user, "/b")]).toEqual(isIn ? [undefined, 2] : [1, undefined]);
    }
  });

  it("are both found by name, each by its own subjects", () => {
    const limiter = createLimiter({ policies: onTrial(written("5/m"), written("3/m"), { percent: 50 }) });
    for (const user of users.slice(0, 100)) {
      const matched = versionFor(limiter, user);
      expect(versionFor(limiter, user, { policies: ["p"] })).toBe(matched);
    }
  });

  it("charge the same counters, and neither brings the other's back", () => {
    // Counted by tenant, and divided by user: both versions charge one counter.
    const byTenant = (window: string): Policy => written(window, { limits: [{ by: ["tenant"], windows: [window] }] });
    const clock = new ManualClock();
    const policies = onTrial(byTenant("10/m burst 100"), byTenant("10/m burst 5"), { percent: 50 });
    const limiter = createLimiter({ policies, clock });
    const isIn = (user: string) => limiter.checkSync({ dimensions: { user, tenant: user }, cost: 1 }).version === 2;
    const joined = users.find(isIn)!;
    const other = users.find((user) => !isIn(user))!;
    const ask = (user: string, cost: number) => limiter.checkSync({ dimensions: { user, tenant: "t" }, cost });
    expect(ask(other, 50)).toMatchObject({ allowed: true, remaining: 50 });
    expect(ask(joined, 1).allowed).toBe(false);
    expect(ask(other, 1), "what the old version counted is still counted").toMatchObject({ remaining: 49 });
    clock.advance(60_000);
    expect(ask(other, 1)).toMatchObject({ remaining: 58 });
  });

  it("never admit more to a subject than the more generous of the two does, while the percent changes", () => {
    const step = fc.record({
      percent: fc.integer({ min: 0, max: 100 }),
      user: fc.nat(20),
      waitMs: fc.nat(3_000),
    });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 20 }),
        fc.array(step, { maxLength: 200 }),
        (before, after, steps) => {
          const clock = new ManualClock();
          const createSet = (percent: number): PolicySet =>
            onTrial(written(`${before}/s`), written(`${after}/s`), { percent, steps: [percent] });
          const limiter = createLimiter({ policies: createSet(0), clock });
          const admitted = new Map<number, number[]>();
          let atMs = 0;
          for (const { percent, user, waitMs } of steps) {
            clock.advance(waitMs);
            atMs += waitMs;
            limiter.usePolicies(createSet(percent));
            for (let i = 0; i < 3; i++) {
              if (!limiter.checkSync({ dimensions: { user: String(user) } }).allowed) continue;
              admitted.set(user, [...(admitted.get(user) ?? []), atMs]);
            }
          }
          const most = Math.max(before, after);
          for (const times of admitted.values())
            for (const fromMs of times) {
              const within = times.filter((one) => one >= fromMs && one < fromMs + 1_000).length;
              expect(within).toBeLessThanOrEqual(2 * most);
            }
        },
      ),
    );
  });
});

describe("a trial that is only evaluated", () => {
  const look = (percent: number) => {
    const told: [number, number, boolean][] = [];
    const limiter = createLimiter({
      policies: onTrial(written("5/m"), written("2/m"), { percent, shadow: true }),
      onTrial: ({ version }, step, denied) => told.push([version, step, denied]),
    });
    return { limiter, told };
  };

  it("denies no request by the new version, and counts it separately", () => {
    const { limiter, told } = look(100);
    const decisions = Array.from({ length: 6 }, () => limiter.checkSync({ dimensions: { user: "u" } }));
    expect(decisions.map(({ allowed, version }) => [allowed, version])).toEqual([
      ...Array.from({ length: 5 }, () => [true, 1]),
      [false, 1],
    ]);
    expect(decisions[2]!.shadow).toMatchObject([{ policy: "p", version: 2, reason: "over_limit" }]);
    const denials = (version: number) => told.filter((one) => one[0] === version).map((one) => one[2]);
    expect(denials(1)).toEqual([false, false, false, false, false, true]);
    expect(denials(2)).toEqual([false, false, true, true, true, true]);
  });

  it("evaluates only its share", () => {
    const { limiter, told } = look(10);
    for (const user of users) limiter.checkSync({ dimensions: { user } });
    const looked = told.filter(([version]) => version === 2);
    expect(told.filter(([version]) => version === 1)).toHaveLength(users.length);
    expect(looked.length).toBeGreaterThan(140);
    expect(looked.length).toBeLessThan(260);
    expect(new Set(looked.map(([, step]) => step))).toEqual(new Set([0, 1]));
  });
});

describe("a listener to trials", () => {
  it("is called with the version, the step and whether it denies; not for previews and replays", () => {
    const told: string[] = [];
    const limiter = createLimiter({
      policies: onTrial(written("1/m"), written("1/m"), { percent: 10 }),
      onTrial: (policy, step, denied) => told.push(`${policy.version} ${policy.trial?.rollout} ${step} ${denied}`),
    });
    const joined = users.find((user) => versionFor(limiter, user) === 2)!;
    told.length = 0;
    limiter.checkSync({ dimensions: { user: joined }, preview: true });
    expect(told).toEqual([]);
    limiter.checkSync({ dimensions: { user: joined } });
    expect(told).toEqual([expect.stringMatching(/^2 r [01] true$/)]);
    told.length = 0;
    limiter.checkSync({ dimensions: { user: "nobody-else" }, id: "i" });
    limiter.checkSync({ dimensions: { user: "nobody-else" }, id: "i" });
    expect(told).toHaveLength(1);
  });

  it("is called once per step, however a request is asked", async () => {
    const told: number[] = [];
    const limiter = createLimiter({
      policies: onTrial(written("10/m"), written("10/m"), { percent: 1, steps: [1, 10, 50] }),
      onTrial: (_, step) => told.push(step),
    });
    for (const user of users) await limiter.check({ dimensions: { user } });
    await limiter.checkTogether(users.map((user) => ({ dimensions: { user } })));
    const counts = [0, 1, 2, 3].map((step) => told.filter((one) => one === step).length / (2 * users.length));
    for (const [i, share] of [0.01, 0.09, 0.4, 0.5].entries()) expect(Math.abs(counts[i]! - share)).toBeLessThan(0.03);
  });

  it("is called for every request that either version matches, so that both are asked about the same", () => {
    const narrow = written("1/m", { match: { endpoint: "/a" } });
    const wide = written("1/m", { match: { endpoint: "/**" } });
    for (const [old, next] of [
      [narrow, wide],
      [wide, narrow],
    ] as const)
      for (const shadow of [false, true]) {
        const told: string[] = [];
        const limiter = createLimiter({
          policies: onTrial(old, next, { percent: 50, steps: [50, 100], shadow }),
          onTrial: ({ version }, step, denied) => told.push(`${version} ${step} ${denied}`),
        });
        const ask = (user: string, endpoint: string): readonly string[] => {
          told.length = 0;
          limiter.checkSync({ dimensions: { user, endpoint } });
          return [...told];
        };
        for (const user of users.slice(0, 50)) {
          const step = inRollout("p", user, 50) ? 0 : 1;
          const sides = [...(shadow || step === 1 ? [1] : []), ...(step === 0 ? [2] : [])];
          const all = (denied: boolean) => sides.map((version) => `${version} ${step} ${denied}`);
          expect(ask(user, "/b").toSorted(), "one of them matches").toEqual(all(false));
          const isNarrow = (version: number) => (version === 1 ? old : next) === narrow;
          const again = sides.map((version) => `${version} ${step} ${!isNarrow(version)}`);
          expect(ask(user, "/b").toSorted(), "one of them limits").toEqual(again);
          expect(ask(user, "/a").toSorted(), "both match").toEqual(again);
        }
      }
  });

  it("is not called for a request that another policy decides in place of either version", () => {
    const told: unknown[] = [];
    const narrow = written("1/m", { match: { endpoint: "/a" } });
    const wide = written("1/m", { match: { endpoint: "/**" } });
    const set = onTrial(narrow, wide, { percent: 0 });
    const { policies } = parsePolicies({
      policies: [
        { id: "p", limits: [{ by: ["user"], windows: ["1/m"] }] },
        { id: "vip", match: { endpoint: "/b" }, unlimited: true, replaces: ["p"] },
      ],
    });
    const limiter = createLimiter({
      policies: { ...set, policies: [...set.policies, policies.find(({ id }) => id === "vip")!] },
      onTrial: (...all) => told.push(all),
    });
    limiter.checkSync({ dimensions: { user: "u", endpoint: "/b" } });
    expect(told).toEqual([]);
  });

  it("is not called if only one version is in force", () => {
    const told: unknown[] = [];
    const policies = { policies: [{ id: "p", limits: [{ by: ["user"], windows: ["1/m"] }] }] };
    const limiter = createLimiter({ policies, onTrial: (...all) => told.push(all) });
    limiter.checkSync({ dimensions: { user: "u" } });
    expect(told).toEqual([]);
  });

  it("is told why the other version does not apply", async () => {
    const limiter = createLimiter({ policies: onTrial(written("5/m"), written("3/m"), { percent: 0 }) });
    const { policies } = await limiter.explain({ dimensions: { user: "u" } });
    expect(policies.map(({ applies, why }) => [applies, why])).toEqual([
      [true, expect.any(String)],
      [false, "version 2 is for 0 % by user: not this one"],
    ]);
  });
});
