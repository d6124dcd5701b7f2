import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ManualClock } from "../clock.ts";
import { MemoryCounters } from "../counters/memory-counters.ts";
import { createLimiter } from "../create-limiter.ts";
import { LeasedCounters } from "../leases/leased-counters.ts";
import type { CheckRequest } from "../request/check-request.ts";
import { joinSubject } from "../subject/join-subject.ts";
import { conversationStartMs } from "../testing/index.ts";
import { subjectWithin } from "./subject-within.ts";

describe("the subject of the default policy", () => {
  it("is the plain one if nothing but the default domain is named", () => {
    expect(subjectWithin("user:u1", 1, undefined, { user: "u1" })).toBe("user:u1");
    expect(subjectWithin("user:u1", 1, "default", { user: "u1", endpoint: "/x" })).toBe("user:u1");
  });

  it("adds the domain, and the resource, prefix or API", () => {
    expect(subjectWithin("user:u1", 1, "payments", {})).toBe("user:u1|in|domain:payments");
    const named = { resource: "search", prefix: "p", api: "/a" };
    expect(subjectWithin("a|b", 2, undefined, named)).toBe("a|b|in|resource:search|prefix:p|api:/a");
  });

  it("is never the same for two domains, resources or subjects, whatever they are called", () => {
    const tricky = fc.array(fc.constantFrom("a", "|", "\\", "in", "|in", "|in|domain:", "domain:", ":"), {
      maxLength: 5,
    });
    const text = tricky.map((parts) => parts.join(""));
    const asked = fc.record({
      values: fc.array(text, { minLength: 1, maxLength: 1 }),
      domain: fc.option(text, { nil: undefined }),
      resource: text,
      api: text,
    });
    const other = fc
      .integer({ min: 1, max: 3 })
      .chain((length) =>
        fc.tuple(
          ...[0, 1].map(() => asked.map((one) => ({ ...one, values: Array(length).fill(one.values[0]) as string[] }))),
        ),
      );
    const name = ({
      values,
      domain,
      resource,
      api,
    }: {
      values: string[];
      domain?: string | undefined;
      resource: string;
      api: string;
    }) => subjectWithin(joinSubject(values), values.length, domain, { resource, api });
    fc.assert(
      fc.property(other, ([one, two]) => {
        const same = JSON.stringify([one!.values, one!.domain ?? "default", one!.resource, one!.api]);
        const alike = JSON.stringify([two!.values, two!.domain ?? "default", two!.resource, two!.api]);
        expect(name(one!) === name(two!)).toBe(same === alike);
      }),
      { numRuns: 5000 },
    );
  });
});

describe.each(["in memory", "with leases"])("the default policy %s", (kind) => {
  const clock = new ManualClock(conversationStartMs, 1000);
  const counters = (): MemoryCounters | LeasedCounters => {
    const memory = new MemoryCounters({ clock });
    return kind === "in memory" ? memory : new LeasedCounters(memory, { clock, callLater: () => () => undefined });
  };

  it.each<[string, CheckRequest, CheckRequest]>([
    ["domain", { domain: "one" }, { domain: "two" }],
    ["domain, also where one is not named", { domain: "one" }, {}],
    ["resource", { dimensions: { resource: "one" } }, { dimensions: { resource: "two" } }],
    ["prefix", { dimensions: { prefix: "one" } }, { dimensions: { prefix: "two" } }],
    ["API", { dimensions: { api: "/one" } }, { dimensions: { api: "/two" } }],
  ])("has a counter for every %s", async (_, one, two) => {
    const limiter = createLimiter({ counters: counters(), clock });
    const by = (request: CheckRequest, more: Partial<CheckRequest> = {}): CheckRequest => ({
      ...request,
      dimensions: { user: "u1", ...request.dimensions },
      ...more,
    });
    expect(await limiter.check(by(one, { cost: 1000 }))).toMatchObject({ allowed: true, remaining: 0 });
    expect(await limiter.check(by(one))).toMatchObject({ allowed: false });
    // The straight way, and the way round.
    expect(await limiter.check(by(two))).toMatchObject({ allowed: true, remaining: 999 });
    expect(await limiter.check(by(two, { details: true }))).toMatchObject({ allowed: true, remaining: 998 });
    await limiter.reset(by(one));
    expect(await limiter.check(by(one))).toMatchObject({ allowed: true, remaining: 999 });
    await limiter.close();
  });

  it("has the same counter for the domain default and for none", async () => {
    const limiter = createLimiter({ counters: counters(), clock });
    await limiter.check({ domain: "default", dimensions: { user: "u1" }, cost: 1000 });
    expect(await limiter.check({ dimensions: { user: "u1" } })).toMatchObject({ allowed: false });
    await limiter.close();
  });

  it("counts every path in one counter", async () => {
    const limiter = createLimiter({ counters: counters(), clock });
    await limiter.check({ dimensions: { user: "u1", endpoint: "/x1" }, cost: 1000 });
    expect(await limiter.check({ dimensions: { user: "u1", endpoint: "/x2" } })).toMatchObject({ allowed: false });
    await limiter.close();
  });

  it("separates domains if a policy file writes the default", async () => {
    const written = { default: { limits: [{ by: ["tenant", "user"], windows: ["2/h"] }] } };
    const limiter = createLimiter({ policies: written, counters: counters(), clock });
    const dimensions = { tenant: "t", user: "u1" };
    expect(await limiter.check({ domain: "one", dimensions, cost: 2 })).toMatchObject({ allowed: true });
    expect(await limiter.check({ domain: "one", dimensions })).toMatchObject({ allowed: false });
    expect(await limiter.check({ domain: "two", dimensions })).toMatchObject({ allowed: true, remaining: 1 });
    expect(await limiter.check({ dimensions })).toMatchObject({ allowed: true, remaining: 1 });
    await limiter.close();
  });
});

describe("limits that a request brings along", () => {
  it("are not those of the default policy, and know no domains", async () => {
    const limiter = createLimiter();
    const window = { limit: 1, per: { kind: "ms", ms: 60_000 }, burst: 1 } as const;
    const limits = [{ name: "own", by: ["user"], window }];
    await limiter.check({ domain: "one", dimensions: { user: "u1" }, limits });
    expect(await limiter.check({ domain: "two", dimensions: { user: "u1" }, limits })).toMatchObject({
      allowed: false,
    });
  });
});
