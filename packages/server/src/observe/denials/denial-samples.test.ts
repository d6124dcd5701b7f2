import fc from "fast-check";
import { type CheckRequest, createLimiter, type Decision, ManualClock } from "sluice";
import { describe, expect, it } from "vitest";
import { DenialSamples, type DenialSamplesOptions, type SampledDenial } from "./denial-samples.ts";

const policies = {
  policies: [
    { id: "api", match: { endpoint: "/api" }, limits: [{ name: "calls", by: ["user"], windows: ["1/h"] }] },
    { id: "search", match: { endpoint: "/search" }, limits: [{ by: ["tenant"], windows: ["1/h"] }] },
    { id: "trial", match: { endpoint: "/trial" }, mode: "shadow", limits: [{ by: ["user"], windows: ["1/h"] }] },
  ],
  default: "none",
};

function createChecks(options: Partial<DenialSamplesOptions> = {}) {
  const clock = new ManualClock(1_000_000);
  const limiter = createLimiter({ policies, clock });
  const samples = new DenialSamples({
    findBy: (policy) => ({ api: ["user"], search: ["tenant"], trial: ["user"] })[policy],
    shareBy: "tenant",
    nowMs: () => clock.epochMs(),
    ...options,
  });
  const check = (dimensions: Readonly<Record<string, string>>, more: Partial<CheckRequest> = {}): Decision => {
    const request = { dimensions, ...more };
    const decision = limiter.checkSync(request);
    samples.count(request, decision);
    return decision;
  };
  return { clock, samples, check };
}

const brief = (taken: readonly SampledDenial[]) =>
  taken.map(({ request, decision, denials, mixed }) => [
    decision.policy,
    request.dimensions?.user ?? request.dimensions?.tenant,
    denials,
    mixed,
  ]);

describe("samples of denials", () => {
  it("have each of a subject's first denials, and the rest in one record that describes the newest", () => {
    const { check, samples, clock } = createChecks({ maxRecords: 3 });
    for (let i = 0; i <= 7; i++) {
      check({ endpoint: "/api", user: "u1" }, { id: `r${i}` });
      clock.advance(1);
    }
    const taken = samples.take();
    expect(taken.map(({ request, atMs, sinceMs, denials }) => [request.id, atMs, sinceMs, denials])).toEqual([
      ["r1", 1_000_001, 1_000_001, 1],
      ["r2", 1_000_002, 1_000_002, 1],
      ["r7", 1_000_007, 1_000_003, 5],
    ]);
    expect(taken[0]).toMatchObject({ by: ["user"], mixed: false, shadow: undefined });
    expect(samples.take()).toEqual([]);
    expect(samples.denials).toBe(7);
  });

  it("keep limits apart that share a window, as those of an override do", () => {
    const shared = {
      policies: [
        {
          id: "api",
          limits: [
            { name: "calls", by: ["tenant"], windows: ["9/h"] },
            { name: "others", by: ["tenant", "user"], windows: ["9/h"] },
          ],
        },
      ],
      subjects: [{ tenant: "acme", limits: [{ policy: "api", windows: ["1/h"] }] }],
    };
    const clock = new ManualClock(1_000_000);
    const limiter = createLimiter({ policies: shared, clock });
    const by: Readonly<Record<string, readonly string[]>> = { calls: ["tenant"], others: ["tenant", "user"] };
    const samples = new DenialSamples({ findBy: (_policy, limit) => by[limit], nowMs: () => clock.epochMs() });
    const request = { dimensions: { tenant: "acme", user: "u1" } };
    limiter.checkSync(request);
    const decision = limiter.checkSync(request);
    for (const scope of ["calls", "others", "calls", "others"]) samples.count(request, { ...decision, scope });
    expect(samples.take().map(({ decision: { scope }, by: counts }) => [scope, counts])).toEqual([
      ["calls", ["tenant"]],
      ["calls", ["tenant"]],
      ["others", ["tenant", "user"]],
      ["others", ["tenant", "user"]],
    ]);
  });

  it("leave out previews, replayed decisions and allowed ones, and have denials in shadow mode", () => {
    const { check, samples } = createChecks();
    for (let i = 0; i < 2; i++) check({ endpoint: "/api", user: "u1" }, { id: "a" });
    check({ endpoint: "/api", user: "u1" }, { preview: true });
    check({ endpoint: "/api", user: "u1" });
    for (let i = 0; i < 2; i++) expect(check({ endpoint: "/trial", user: "u2" }).allowed).toBe(true);
    const taken = samples.take();
    expect(taken).toHaveLength(2);
    expect(taken[1]).toMatchObject({ denials: 1, shadow: { policy: "trial", scope: "user", reason: "over_limit" } });
  });

  it("keep room for others while one subject is denied without end", () => {
    const { check, samples } = createChecks({ maxSubjects: 4, maxRecords: 2 });
    for (let i = 0; i < 1_000; i++) check({ endpoint: "/search", tenant: "loud" });
    for (let i = 0; i < 2; i++) check({ endpoint: "/search", tenant: "acme" });
    expect(brief(samples.take())).toEqual([
      ["search", "loud", 1, false],
      ["search", "loud", 998, false],
      ["search", "acme", 1, false],
    ]);
  });

  it("share room equally among limits and tenants when one makes up subjects", () => {
    const { check, samples } = createChecks({ maxSubjects: 8, maxRecords: 1 });
    const deny = (endpoint: string, tenant: string, user: string): void => {
      for (let i = 0; i < 2; i++) check({ endpoint, tenant, user });
    };
    for (let i = 0; i < 500; i++) deny("/api", "loud", `made-up-${i}`);
    for (const user of ["a", "b"]) deny("/api", "acme", user);
    for (const tenant of ["acme", "globex"]) deny("/search", tenant, "x");
    for (let i = 500; i < 1_000; i++) deny("/api", "loud", `made-up-${i}`);
    const taken = samples.take();
    const found = (tenant: string, policy: string): number =>
      taken.filter(
        ({ request, decision, mixed }) => !mixed && decision.policy === policy && request.dimensions?.tenant === tenant,
      ).length;
    expect([found("acme", "api"), found("acme", "search"), found("globex", "search")]).toEqual([2, 1, 1]);
    expect(taken.reduce((sum, { denials }) => sum + denials, 0)).toBe(1_004);
    const newest = taken.find(({ mixed }) => mixed);
    expect(newest).toMatchObject({ request: { dimensions: { user: "made-up-999" } } });
  });

  it("have one record for all limits beyond the bound", () => {
    const { check, samples } = createChecks({ maxLimits: 1 });
    for (let i = 0; i < 2; i++) check({ endpoint: "/api", user: "u1" });
    for (let i = 0; i < 4; i++) check({ endpoint: "/search", tenant: "t" });
    expect(brief(samples.take())).toEqual([
      ["api", "u1", 1, false],
      ["search", "t", 3, true],
    ]);
  });

  it("are bounded, have the newest denial, and add up to all denials, whatever the traffic", () => {
    const step = fc.record({
      endpoint: fc.constantFrom("/api", "/search", "/trial", "/none"),
      tenant: fc.constantFrom("a", "b", "c"),
      user: fc.integer({ min: 0, max: 12 }).map(String),
      takes: fc.nat({ max: 20 }).map((n) => n === 0),
    });
    const bounds = fc.record({
      maxSubjects: fc.integer({ min: 1, max: 6 }),
      maxLimits: fc.integer({ min: 1, max: 4 }),
      maxRecords: fc.integer({ min: 1, max: 3 }),
      maxMore: fc.nat({ max: 5 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 150 }), bounds, (steps, bound) => {
        const { check, clock, samples } = createChecks(bound);
        const most = bound.maxSubjects + bound.maxMore + bound.maxLimits + 1;
        let denied = 0;
        let recorded = 0;
        let newestMs = 0;
        let countSinceTake = 0;
        const take = (): void => {
          const taken = samples.take();
          expect(taken.length).toBeLessThanOrEqual(most);
          const sum = taken.reduce((so, { denials }) => so + denials, 0);
          expect(sum).toBe(countSinceTake);
          if (sum > 0) expect(Math.max(...taken.map(({ atMs }) => atMs))).toBe(newestMs);
          for (const { atMs, sinceMs, denials } of taken) {
            expect(sinceMs).toBeLessThanOrEqual(atMs);
            if (denials === 1) expect(sinceMs).toBe(atMs);
          }
          recorded += sum;
          countSinceTake = 0;
        };
        for (const { endpoint, tenant, user, takes } of steps) {
          clock.advance(1);
          const decision = check({ endpoint, tenant, user });
          const count = (decision.allowed ? 0 : 1) + decision.shadow.length;
          if (count > 0) newestMs = clock.epochMs();
          denied += count;
          countSinceTake += count;
          if (takes) take();
        }
        take();
        expect([recorded, samples.denials]).toEqual([denied, denied]);
      }),
    );
  });
});
