import { type CheckRequest, createLimiter, type Decision, type Limiter, ManualClock } from "sluice";
import { beforeEach, describe, expect, it } from "vitest";
import type { UsageEvent } from "./usage-event.ts";
import { UsageEvents } from "./usage-events.ts";

const startMs = 1_800_000_003_000;
const windowMs = 1_800_000_000_000;
let clock: ManualClock;
let limiter: Limiter;
let published: UsageEvent[];
let events: UsageEvents;

const policies = [
  {
    id: "api",
    version: 3,
    match: { endpoint: "/v1/**" },
    limits: [{ by: ["tenant", "user"], windows: ["2/h"] }],
    on_failure: "open",
  },
  {
    id: "billed",
    match: { endpoint: "/paid/{thing}/**" },
    limits: [{ name: "things", by: ["tenant", "thing"], windows: ["3/h"] }],
    on_failure: "open",
    events: "each",
  },
  {
    id: "guard",
    match: { endpoint: "/paid/**" },
    limits: [{ name: "guard", by: ["ip"], windows: ["1/h"] }],
    on_failure: "open",
  },
  {
    id: "quiet",
    match: { endpoint: "/quiet" },
    limits: [{ by: ["user"], windows: ["1/h"] }],
    on_failure: "open",
    events: "none",
  },
  {
    id: "visits",
    match: { endpoint: "/visits" },
    limits: [{ by: ["user"], windows: ["1000/h"] }],
    on_failure: "open",
  },
  { id: "free", match: { endpoint: "/free" }, unlimited: true },
];

beforeEach(() => {
  clock = new ManualClock(startMs);
  limiter = createLimiter({ policies: { policies }, clock });
  published = [];
  events = open();
});

function open(more: { readonly boot?: string; readonly maxSubjects?: number } = {}): UsageEvents {
  const made = new UsageEvents({
    ...{ limiter, ipv6PrefixBits: 64, node: "n1", boot: "b1", source: "/sluice", subjectDimension: "tenant", ...more },
    publish: (event) => published.push(event),
    nowMs: () => clock.epochMs(),
  });
  made.active = true;
  return made;
}

function check(request: CheckRequest): Decision {
  const decision = limiter.checkSync(request);
  events.count(request, decision);
  return decision;
}

const order = { tenant: "acme", user: "u1", endpoint: "/v1/orders" };

describe("usage events", () => {
  it("sum up all decisions alike within ten seconds", async () => {
    check({ dimensions: order });
    clock.advance(1_000);
    check({ dimensions: order });
    check({ dimensions: order });
    check({ dimensions: { ...order, user: "u2" }, cost: 2 });
    expect(published).toEqual([]);
    await events.flush();
    expect(published.map(({ data }) => [data.key, data.allowed, data.requests, data.cost, data.remaining])).toEqual([
      ["acme|u1", true, 2, 2, 0],
      ["acme|u1", false, 1, 1, 0],
      ["acme|u2", true, 1, 2, 0],
    ]);
    expect(published[1]).toEqual({
      specversion: "1.0",
      type: "io.sluice.usage.v1",
      source: "/sluice",
      id: expect.stringMatching(/^[0-9a-f]{32}$/),
      subject: "acme",
      time: new Date(windowMs).toISOString(),
      datacontenttype: "application/json",
      data: {
        ...{
          kind: "summary",
          key: "acme|u1",
          cost: 1,
          allowed: false,
          ts: windowMs,
          requests: 1,
          reason: "over_limit",
        },
        ...{ policy: "api", version: 3, scope: "tenant,user", limit: 2, remaining: 0, denied_by: "api/tenant,user" },
        ...{ degraded: undefined, node: "n1" },
      },
    });
  });

  it("end a summary when its ten seconds are over", async () => {
    check({ dimensions: order });
    clock.advance(7_000);
    check({ dimensions: order });
    await events.flush();
    expect(published.map(({ data }) => [data.ts, data.requests])).toEqual([
      [windowMs, 1],
      [windowMs + 10_000, 1],
    ]);
  });

  it("have ids that differ by start, window, flush and field, also when policies are replaced meanwhile", async () => {
    check({ dimensions: order });
    limiter.usePolicies({ policies });
    check({ dimensions: order });
    await events.flush();
    expect(published.map(({ data }) => data.requests)).toEqual([2]);
    check({ dimensions: order });
    await events.flush();
    events = open({ boot: "b2" });
    check({ dimensions: order });
    await events.flush();
    expect(published).toHaveLength(3);
    expect(new Set(published.map(({ id }) => id)).size).toBe(3);
  });

  it("are made of each decision where the policy says so, with the request's id or one of their own", () => {
    const dimensions = { tenant: "acme", ip: "10.0.0.1", region: "eu", endpoint: "/paid/map/tile" };
    check({ dimensions, id: "r-1", cost: 1 });
    check({ dimensions: { ...dimensions, ip: "10.0.0.2" } });
    check({ dimensions: { ...dimensions, ip: "10.0.0.3" } });
    expect(published.map(({ id }) => id)).toEqual(["r-1", "n1-b1-2", "n1-b1-3"]);
    expect(published[0]!.data).toEqual({
      ...{ kind: "each", key: "acme|map", cost: 1, allowed: true, ts: startMs, requests: 1, reason: "within_limits" },
      // The guard decided, because it has the smaller share left; the usage is that of the billed policy.
      ...{ request_id: "r-1", policy: "billed", version: 1, region: "eu", node: "n1" },
    });
    check({ dimensions: { ...dimensions, ip: "10.0.0.3" } });
    expect(published.at(-1)!.data).toMatchObject({ allowed: false, policy: "billed", denied_by: "guard/guard" });
    check({ dimensions: { ...dimensions, ip: "10.0.0.4" } });
    expect(published.at(-1)!.data).toMatchObject({
      ...{ allowed: false, policy: "billed", scope: "things", limit: 3, remaining: 0, denied_by: "billed/things" },
    });
  });

  it("have the request's id only if it was charged, so that a charge after a denial is no repeat of it", () => {
    const dimensions = { tenant: "acme", endpoint: "/paid/map/tile" };
    for (let i = 0; i < 3; i++) check({ dimensions: { ...dimensions, ip: `10.0.0.${i}` } });
    for (let i = 3; i < 5; i++) check({ dimensions: { ...dimensions, ip: `10.0.0.${i}` }, id: "retried" });
    clock.advance(3_600_000);
    check({ dimensions: { ...dimensions, ip: "10.0.0.5" }, id: "retried" });
    const ofRequest = published.filter(({ data }) => data.request_id === "retried");
    expect(ofRequest.map(({ id, data }) => [id, data.allowed])).toEqual([
      ["n1-b1-4", false],
      ["n1-b1-5", false],
      ["retried", true],
    ]);
  });

  it("leave out previews, replayed decisions, and policies that want none", async () => {
    const dimensions = { tenant: "acme", ip: "10.0.0.1", endpoint: "/paid/map" };
    check({ dimensions, preview: true });
    check({ dimensions, id: "r-1" });
    expect(check({ dimensions, id: "r-1" }).replayed).toBe(true);
    check({ dimensions: { user: "u", endpoint: "/quiet" } });
    await events.flush();
    expect(published.map(({ id }) => id)).toEqual(["r-1"]);
  });

  it("include decisions without counters and without limits", async () => {
    check({ dimensions: { tenant: "acme", endpoint: "/free" } });
    limiter.force({ mode: "closed", untilMs: startMs + 60_000 });
    check({ dimensions: order });
    check({ dimensions: { tenant: "acme", endpoint: "/paid/map" } });
    await events.flush();
    expect(published.map(({ data }) => [data.kind, data.policy, data.reason, data.degraded, data.allowed])).toEqual([
      ["each", "billed", "degraded", "kill_switch", false],
      ["summary", "free", "unlimited", undefined, true],
      ["summary", undefined, "degraded", "kill_switch", false],
    ]);
    expect(published.map(({ subject }) => subject)).toEqual(["acme", "acme", "acme"]);
  });

  it("name limits that requests bring along", async () => {
    const window = { limit: 1, per: { kind: "ms", ms: 60_000 }, burst: 1 } as const;
    check({ dimensions: { user: "u1" }, limits: [{ name: "mine", by: ["user"], window }] });
    // One that is called like a policy is not that policy.
    check({ dimensions: { ip: "10.0.0.1" }, limits: [{ name: "quiet", by: ["ip"], window }] });
    await events.flush();
    expect(published.map(({ subject, data }) => [subject, data.key, data.policy])).toEqual([
      ["u1", "u1", "mine"],
      ["10.0.0.1", "10.0.0.1", "quiet"],
    ]);
  });

  it("cost nothing if another request that was checked together was denied", async () => {
    const request = { dimensions: order, cost: 2 };
    events.count(request, limiter.checkSync(request), false);
    await events.flush();
    expect(published[0]!.data).toMatchObject({ allowed: true, cost: 0, requests: 1 });
  });

  it("sum up subjects above the bound as one", async () => {
    events = open({ maxSubjects: 2 });
    for (const user of ["a", "b", "c", "d", "a"]) check({ dimensions: { ...order, user } });
    await events.flush();
    expect(published.map(({ data }) => [data.key, data.requests])).toEqual([
      ["acme|a", 2],
      ["acme|b", 1],
      ["(other)", 2],
    ]);
    expect(events.stats).toEqual({ untracked: 2, failed: 0 });
  });

  it("stay within that bound if callers take the name of all others, and invent customers", async () => {
    events = open({ maxSubjects: 2 });
    for (let i = 0; i < 50; i++) check({ dimensions: { tenant: `t${i}`, user: "(other)", endpoint: "/visits" } });
    await events.flush();
    expect(published.map(({ subject, data }) => [subject, data.key, data.requests])).toEqual([
      ["t0", "(other)", 1],
      ["t1", "(other)", 1],
      ["(other)", "(other)", 48],
    ]);
  });

  it("sum up what has no room because names are long", async () => {
    events = open({ maxSubjects: 40 });
    const user = "u".repeat(1_500);
    for (let i = 0; i < 40; i++) check({ dimensions: { user: `${user}${i}`, endpoint: "/visits" } });
    await events.flush();
    // Each name twice, as key and as subject: 40 times 256 characters are room for three.
    expect(published.map(({ data }) => data.requests)).toEqual([1, 1, 1, 37]);
    published = [];
    for (let i = 0; i < 40; i++) check({ dimensions: { user: `u${i}`, endpoint: "/visits" } });
    await events.flush();
    expect(published).toHaveLength(40);
  });

  it("sum up limits that requests bring along if there are too many", async () => {
    const window = { limit: 1, per: { kind: "ms", ms: 60_000 }, burst: 1 } as const;
    const request = { dimensions: { user: "u1" }, limits: [{ name: "mine", by: ["user"], window }] };
    const decision = limiter.checkSync(request);
    for (let i = 0; i < 20_003; i++) events.count(request, { ...decision, policy: `mine-${i}` });
    await events.flush();
    expect(published).toHaveLength(20_001);
    expect(published.at(-1)).toMatchObject({ subject: "(other)", data: { policy: "(other)", requests: 3 } });
  });

  it("do nothing while they go nowhere, and never fail a decision", async () => {
    events.active = false;
    check({ dimensions: order });
    await events.flush();
    expect(published).toEqual([]);
    events.active = true;
    const broken = {
      get dimensions(): never {
        throw new Error("broken");
      },
    };
    events.count(broken, limiter.checkSync({ dimensions: order }));
    expect(events.stats.failed).toBe(1);
  });
});
