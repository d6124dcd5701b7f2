import fc from "fast-check";
import { type CheckRequest, createLimiter, ManualClock } from "sluice";
import { describe, expect, it } from "vitest";
import { otherUsage, type UsageCounts, UsageSums } from "./usage-sums.ts";

const policies = {
  policies: [
    {
      id: "api",
      match: { endpoint: "/api" },
      limits: [{ by: ["user"], windows: ["3/s", "5/m"] }],
      on_failure: "open",
    },
    { id: "search", match: { endpoint: "/search" }, limits: [{ name: "all", by: ["tenant"], windows: ["4/m"] }] },
    { id: "trial", match: { endpoint: "/api" }, mode: "shadow", limits: [{ by: ["user"], windows: ["1/h"] }] },
  ],
  default: "none",
};

const createChecks = () => {
  const clock = new ManualClock();
  const limiter = createLimiter({ policies, clock });
  return { clock, check: (request: CheckRequest) => limiter.checkSync(request) };
};

const brief = (sums: readonly UsageCounts[]) =>
  sums.map(({ policy, limit, dimension, subject, decided, allowed, denied, cost }) => [
    ...[policy, limit, dimension, subject],
    ...[decided, allowed, denied, cost],
  ]);

describe("sums of usage", () => {
  it("count a decision once for the limit that spoke, and once for each tracked subject", () => {
    const { check } = createChecks();
    const sums = new UsageSums({ dimensions: ["tenant", "user"] });
    for (let i = 0; i < 5; i++) {
      const request = { dimensions: { endpoint: "/api", user: "u1", tenant: "acme" } };
      sums.count(request, check(request));
    }
    const anonymous = { dimensions: { endpoint: "/search", tenant: "globex" }, cost: 4 };
    sums.count(anonymous, check(anonymous));
    const taken = sums.take();
    expect(brief(taken)).toEqual([
      ["api", "user", "", "", 5, 3, 2, 3],
      ["api", "user", "tenant", "acme", 5, 3, 2, 3],
      ["api", "user", "user", "u1", 5, 3, 2, 3],
      ["search", "all", "", "", 1, 1, 0, 4],
      ["search", "all", "tenant", "globex", 1, 1, 0, 4],
    ]);
    expect([...taken[0]!.denials!.values()]).toEqual([{ reason: "over_limit", window: "3/s", denied: 2 }]);
    expect(taken[0]!.shadowDenied).toBe(4);
    expect(sums.take()).toEqual([]);
  });

  it("add no cost for what was allowed, but not charged because a request checked with it was denied", () => {
    const { check } = createChecks();
    const sums = new UsageSums({ dimensions: ["tenant"] });
    const request = { dimensions: { endpoint: "/search", tenant: "acme" }, cost: 3 };
    sums.count(request, check(request), false);
    expect(brief(sums.take())).toEqual([
      ["search", "all", "", "", 1, 1, 0, 0],
      ["search", "all", "tenant", "acme", 1, 1, 0, 0],
    ]);
  });

  it("count all spellings of an address for one subject, the one that limits count by", () => {
    const { check } = createChecks();
    const sums = new UsageSums({ dimensions: ["ip"] });
    for (const ip of ["2001:db8::1", "2001:DB8:0:0::2", "2001:db8::1", "2001:db8:0:1::1"]) {
      const request = { dimensions: { endpoint: "/none", ip } };
      sums.count(request, check(request));
    }
    expect(brief(sums.take()).map(([, , , subject, decided]) => [subject, decided])).toEqual([
      ["", 4],
      ["2001:db8::/64", 3],
      ["2001:db8:0:1::/64", 1],
    ]);
  });

  it("keep limits apart that share a window", () => {
    const { check } = createChecks();
    const sums = new UsageSums({ dimensions: [] });
    const decision = check({ dimensions: { endpoint: "/api", user: "u1" } });
    sums.count({}, decision);
    sums.count({}, { ...decision, scope: "another" });
    sums.count({}, { ...decision, policy: "other" });
    expect(brief(sums.take()).map(([policy, limit, , , decided]) => [policy, limit, decided])).toEqual([
      ["api", "user", 1],
      ["api", "another", 1],
      ["other", "user", 1],
    ]);
  });

  it("leave out previews and replayed decisions", () => {
    const { check } = createChecks();
    const sums = new UsageSums({ dimensions: [] });
    const dimensions = { endpoint: "/api", user: "u1" };
    for (const request of [
      { dimensions, preview: true },
      { dimensions, id: "a" },
      { dimensions, id: "a" },
    ])
      sums.count(request, check(request));
    expect(brief(sums.take())).toEqual([["api", "user", "", "", 1, 1, 0, 1]]);
  });

  it("stay within their bounds, and count the rest together", () => {
    const { check } = createChecks();
    const sums = new UsageSums({ dimensions: ["tenant"], maxSubjects: 2, maxLimits: 1 });
    for (const tenant of ["a", "b", "c", "d", "a"]) {
      const request = { dimensions: { endpoint: "/api", user: tenant, tenant } };
      sums.count(request, check(request));
    }
    const search = { dimensions: { endpoint: "/search", tenant: "z" } };
    sums.count(search, check(search));
    expect(brief(sums.take())).toEqual([
      ["api", "user", "", "", 5, 5, 0, 5],
      ["api", "user", "tenant", "a", 2, 2, 0, 2],
      ["api", "user", "tenant", "b", 1, 1, 0, 1],
      ["api", "user", "tenant", otherUsage, 2, 2, 0, 2],
      [otherUsage, otherUsage, "", "", 1, 1, 0, 1],
      [otherUsage, otherUsage, "tenant", otherUsage, 1, 1, 0, 1],
    ]);
    expect(sums.untracked).toBe(3);
  });

  it("are bounded in number, however many limits a subject is counted by, and add up", () => {
    const { check } = createChecks();
    const sums = new UsageSums({ dimensions: ["tenant"], maxSubjects: 5, maxSums: 7 });
    const decision = check({ dimensions: { endpoint: "/api", user: "u" } });
    for (let period = 0; period < 2; period++) {
      for (const tenant of ["a", "b", "c"])
        for (let limit = 0; limit < 4; limit++)
          sums.count({ dimensions: { tenant } }, { ...decision, policy: `p${limit}`, window: undefined });
      const taken = sums.take(1);
      const apart = taken.filter(({ subject }) => subject !== "" && subject !== otherUsage);
      expect(apart).toHaveLength(7);
      expect(taken.filter(({ subject }) => subject === "").map(({ decided }) => decided)).toEqual([3, 3, 3, 3]);
      const ofSubjects = taken.filter(({ dimension }) => dimension === "tenant");
      expect(ofSubjects.reduce((sum, { decided }) => sum + decided, 0)).toBe(12);
    }
    expect(sums.untracked).toBe(10);
  });

  it("track no subject whose name is long, from the first decision on", () => {
    const { check } = createChecks();
    const sums = new UsageSums({ dimensions: ["tenant"] });
    for (const tenant of ["t".repeat(257), "t".repeat(256)]) {
      const request = { dimensions: { endpoint: "/api", user: "u", tenant } };
      sums.count(request, check(request));
    }
    const subjects = sums.take().flatMap(({ dimension, subject }) => (dimension === "" ? [] : [subject.length]));
    expect(subjects).toEqual([256, otherUsage.length]);
  });

  it("track no more subjects in the next period, until names are forgotten", () => {
    const { check } = createChecks();
    const sums = new UsageSums({ dimensions: ["tenant"], maxSubjects: 1 });
    const count = (tenant: string): readonly string[] => {
      const request = { dimensions: { endpoint: "/api", user: tenant, tenant } };
      sums.count(request, check(request));
      return sums.take().flatMap(({ dimension, subject }) => (dimension === "" ? [] : [subject]));
    };
    expect([count("a"), count("b"), count("a")]).toEqual([["a"], [otherUsage], ["a"]]);
    sums.forgetNames();
    expect([count("b"), count("a")]).toEqual([["b"], [otherUsage]]);
  });

  it("count a subject with the name of all others among them", () => {
    const { check } = createChecks();
    const sums = new UsageSums({ dimensions: ["tenant"], maxSubjects: 1 });
    for (const tenant of [otherUsage, "a", "b"]) {
      const request = { dimensions: { endpoint: "/search", tenant } };
      sums.count(request, check(request));
    }
    expect(brief(sums.take()).map(([, , , subject, decided]) => [subject, decided])).toEqual([
      ["", 3],
      ["a", 1],
      [otherUsage, 2],
    ]);
  });

  it("give places to busy subjects evenly over the day, the busiest first", () => {
    const { check } = createChecks();
    const decision = check({ dimensions: { endpoint: "/search", tenant: "any" } });
    const sums = new UsageSums({ dimensions: ["tenant"], maxSubjects: 100 });
    const count = (tenant: string, times = 1): void => {
      for (let i = 0; i < times; i++) sums.count({ dimensions: { tenant } }, decision);
    };
    for (let i = 0; i < 1_000; i++) count(`invented ${i}`);
    const named = (shareOfDay: number): readonly string[] => {
      for (let i = 0; i < 30; i++) count(`busy ${i}`, 10 + i);
      const subjects = sums.take(shareOfDay).map(({ subject }) => subject);
      return subjects.filter((subject) => subject.startsWith("busy"));
    };
    expect(named(0)).toEqual([]);
    expect(named(0.5)).toEqual(["busy 28", "busy 29"]);
    expect(named(0.5)).toHaveLength(2 + 9);
    expect(named(1)).toHaveLength(2 + 9);
    // The busiest twenty, and no more.
    const twenty = Array.from({ length: 20 }, (_, i) => `busy ${i + 10}`);
    for (let i = 0; i < 10; i++) expect(named(1)).toEqual(twenty);
    sums.forgetNames();
    expect(named(0)).toHaveLength(30);
  });

  it("give places to subjects that are busy in a flood, where not every decision is noted", () => {
    const { check } = createChecks();
    const decision = check({ dimensions: { endpoint: "/search", tenant: "any" } });
    const sums = new UsageSums({ dimensions: ["tenant"], maxSubjects: 100 });
    const namesAfter = (): readonly string[] => {
      for (let i = 0; i < 40_000; i++) {
        sums.count({ dimensions: { tenant: `invented ${i}` } }, decision);
        if (i > 100 && i % 40 === 0) sums.count({ dimensions: { tenant: "busy" } }, decision);
      }
      return sums.take().map(({ subject }) => subject);
    };
    expect(namesAfter()).not.toContain("busy");
    const names = namesAfter();
    expect(names).toContain("busy");
    // The total, the first subjects, the others, and this one.
    expect(names).toHaveLength(1 + 80 + 1 + 1);
  });

  it("track no busy subject whose name the sketch would cut", () => {
    const { check } = createChecks();
    const decision = check({ dimensions: { endpoint: "/search", tenant: "any" } });
    const sums = new UsageSums({ dimensions: ["tenant"], maxSubjects: 5 });
    for (const tenant of ["a", "b", "c", "d"]) sums.count({ dimensions: { tenant } }, decision);
    const long = "x".repeat(4_000);
    for (let i = 0; i < 100; i++) sums.count({ dimensions: { tenant: i % 2 === 0 ? long : "busy" } }, decision);
    sums.take();
    for (const tenant of [long, "busy"]) sums.count({ dimensions: { tenant } }, decision);
    expect(sums.take().map(({ subject }) => subject)).toEqual(["", "busy", otherUsage]);
  });

  it("name a bounded number of windows that callers bring along", () => {
    const sums = new UsageSums({ dimensions: [] });
    const { check } = createChecks();
    const denied = { ...check({ dimensions: { endpoint: "/api", user: "u" } }), allowed: false };
    for (let limit = 1; limit <= 1_000; limit++)
      sums.count({}, { ...denied, reason: "over_limit", window: { ...denied.window!, limit } });
    const [counts] = sums.take();
    const denials = [...counts!.denials!.values()];
    expect(denials.length).toBeLessThan(100);
    expect(denials.reduce((sum, one) => sum + one.denied, 0)).toBe(1_000);
    expect(denials.at(-1)).toMatchObject({ window: otherUsage });
  });

  it("add up to the decisions, whatever the traffic, the bounds and the times of taking", () => {
    const step = fc.record({
      endpoint: fc.constantFrom("/api", "/search", "/none"),
      tenant: fc.constantFrom("a", "b", "c", undefined),
      user: fc.constantFrom("u1", "u2"),
      cost: fc.integer({ min: 1, max: 3 }),
      takes: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 4 }), (steps, maxSubjects) => {
        const { check, clock } = createChecks();
        const sums = new UsageSums({ dimensions: ["tenant"], maxSubjects });
        const expected = { decided: 0, allowed: 0, denied: 0, cost: 0, ofTenants: 0 };
        const taken: UsageCounts[] = [];
        for (const { endpoint, tenant, user, cost, takes } of steps) {
          clock.advance(100);
          const request = { dimensions: { endpoint, user, ...(tenant === undefined ? {} : { tenant }) }, cost };
          const decision = check(request);
          sums.count(request, decision);
          expected.decided += 1;
          expected[decision.allowed ? "allowed" : "denied"] += 1;
          if (decision.allowed) expected.cost += cost;
          if (tenant !== undefined) expected.ofTenants += 1;
          if (takes) taken.push(...sums.take());
        }
        taken.push(...sums.take());
        const total = { decided: 0, allowed: 0, denied: 0, cost: 0, ofTenants: 0 };
        for (const { dimension, decided, allowed, denied, cost, denials } of taken) {
          if (dimension === "tenant") total.ofTenants += decided;
          else {
            total.decided += decided;
            total.allowed += allowed;
            total.denied += denied;
            total.cost += cost;
          }
          const byWindow = [...(denials?.values() ?? [])].reduce((sum, one) => sum + one.denied, 0);
          expect(byWindow).toBe(denied);
        }
        expect(total).toEqual(expected);
      }),
    );
  });

  it("keep the hundred busiest subjects apart in a flood of invented ones, and still add up", {
    timeout: 60_000,
  }, () => {
    const [whales, most] = [100, 50_000];
    const flood = fc.record({
      // How many subjects it invents in a period, and how often it repeats each.
      invented: fc.integer({ min: 100, max: 2_000 }),
      repeats: fc.integer({ min: 1, max: 12 }),
      // It runs alone first, and takes all places that it can get.
      alone: fc.integer({ min: 1, max: 8 }),
      together: fc.integer({ min: 2, max: 4 }),
    });
    fc.assert(
      fc.property(flood, ({ invented, repeats, alone, together }) => {
        const { check } = createChecks();
        const decision = check({ dimensions: { endpoint: "/search", tenant: "any" } });
        const sums = new UsageSums({ dimensions: ["tenant"] });
        let counted = 0;
        const count = (tenant: string): void => {
          sums.count({ dimensions: { tenant } }, decision);
          counted += 1;
        };
        for (let i = 0; i < most; i++) count(`midnight ${i}`);
        const taken: UsageCounts[] = [];
        let last: readonly UsageCounts[] = [];
        for (let period = 0; period < alone + together; period++) {
          for (let i = 0; i < invented; i++) for (let j = 0; j < repeats; j++) count(`${period} ${i}`);
          for (let i = 0; period >= alone && i < 200; i++) for (let j = 0; j < whales; j++) count(`whale ${j}`);
          last = sums.take(0);
          taken.push(...last);
        }
        expect(last.filter(({ subject }) => subject.startsWith("whale"))).toHaveLength(whales);
        const subjects = new Set(taken.map(({ subject }) => subject));
        expect(subjects.size).toBeLessThanOrEqual(most + 2);
        const total = (dimension: string): number =>
          taken.reduce((sum, one) => (one.dimension === dimension ? sum + one.decided : sum), 0);
        expect([total(""), total("tenant")]).toEqual([counted, counted]);
      }),
      { numRuns: 15 },
    );
  });
});
