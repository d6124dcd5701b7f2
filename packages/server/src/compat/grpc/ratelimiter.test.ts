import { status } from "@grpc/grpc-js";
import { RateLimiterDefinition as sluice } from "@sluice/protocol";
import { RateLimiterServiceDefinition as service } from "@sluice/protocol/ratelimiter";
import { type CounterStore, createLimiter, type Limiter, ManualClock, MemoryCounters, StoreUnavailable } from "sluice";
import { parsePolicyFiles } from "sluice/policy-text";
import { failingCounters } from "sluice/testing";
import { afterEach, describe, expect, it } from "vitest";
import { connectForTest, type GrpcTestClient } from "../../testing/grpc-client.ts";
import { createTestService, type ListeningTransport, listenForTest } from "../../testing/test-service.ts";
import { wholeGrpcServer } from "../../testing/whole-servers.ts";

const file = JSON.stringify({
  domains: [
    { domain: "shop", prefix: "user", rate: { capacity: 10, leak_rate_per_second: 2 } },
    {
      domain: "shop",
      prefix: "vip",
      policies: [
        { name: "per_second", flow_rate_per_second: 10, burst_capacity: 20 },
        { name: "per_minute", flow_rate_per_second: 2.78, burst_capacity: 25 },
      ],
    },
    { domain: "default", prefix: "any", rate: { capacity: 3, leak_rate_per_second: 0.5 } },
  ],
});

let listening: ListeningTransport | undefined;
let client: GrpcTestClient;
const clock = new ManualClock(Date.UTC(2026, 0, 15));

async function open(counters: CounterStore = new MemoryCounters({ clock })): Promise<Limiter> {
  const { policySet } = parsePolicyFiles([{ file: "domains.json", text: file }]);
  const limiter = createLimiter({ policies: policySet, clock, counters });
  listening = await listenForTest("grpc", wholeGrpcServer(createTestService(limiter)));
  client = connectForTest(listening.address);
  return limiter;
}

afterEach(async () => {
  client.close();
  await listening?.close();
});

const consume = (limitKey: string, cost?: number, domain: string | undefined = "shop"): Promise<unknown> =>
  client.call(service, "consumeAndCheckLimit", { domain, limitKey, cost });

describe("ConsumeAndCheckLimit", () => {
  it("reports what remains, below zero for a denial, and the cost denied in a row", async () => {
    await open();
    const allowed = { allowed: true, limitingRateIndex: 0, denyCount: 0 };
    expect(await consume("user:1", 4)).toEqual({ ...allowed, remainingCapacity: 6 });
    expect(await consume("user:1", 8)).toEqual({
      allowed: false,
      remainingCapacity: -2,
      limitingRateIndex: 0,
      denyCount: 8,
    });
    expect(await consume("user:1", 7)).toMatchObject({ allowed: false, remainingCapacity: -1, denyCount: 15 });
    expect(await consume("user:1")).toEqual({ ...allowed, remainingCapacity: 5 });
    expect(await consume("user:1", 6)).toMatchObject({ denyCount: 6 });
  });

  it("returns the index of the rate with the fewest units left, from 0", async () => {
    await open();
    expect(await consume("vip:1", 1)).toMatchObject({ remainingCapacity: 19, limitingRateIndex: 0 });
    await consume("vip:1", 19);
    clock.advance(1_500);
    // 15 have leaked out of the first bucket, 4.17 of the second: 15 and 9.17 are left.
    const response = (await consume("vip:1", 1)) as { remainingCapacity: number };
    expect(response).toMatchObject({ allowed: true, limitingRateIndex: 1 });
    expect(response.remainingCapacity).toBeCloseTo(8.17, 6);
    expect(await consume("vip:1", 12)).toMatchObject({ allowed: false, limitingRateIndex: 1, denyCount: 12 });
  });

  it("counts a key without a known prefix by the domain's first policy, and no domain as default", async () => {
    await open();
    expect(await consume("somebody", 10)).toMatchObject({ allowed: true, remainingCapacity: 0 });
    expect(await consume("other:thing", 10)).toMatchObject({ allowed: true, remainingCapacity: 0 });
    const request = { domain: undefined, limitKey: "k", cost: undefined };
    expect(await client.call(service, "consumeAndCheckLimit", request)).toMatchObject({ remainingCapacity: 2 });
  });

  it("uses the default policy if a domain has none: 10 a second, 1 000 at once, for each key", async () => {
    await open();
    expect(await consume("k1", 1_000, "elsewhere")).toMatchObject({ allowed: true, remainingCapacity: 0 });
    expect(await consume("k1", 1, "elsewhere")).toMatchObject({ allowed: false, remainingCapacity: -1 });
    expect(await consume("k2", 1, "elsewhere")).toMatchObject({ allowed: true, remainingCapacity: 999 });
  });

  it("answers bad input with INVALID_ARGUMENT and names it", async () => {
    await open();
    const refusals = [];
    for (const request of [
      { domain: "", limitKey: "k", cost: 1 },
      { domain: "d".repeat(129), limitKey: "k", cost: 1 },
      { domain: "shop", limitKey: "", cost: 1 },
      { domain: "shop", limitKey: "k", cost: 0 },
      { domain: "shop", limitKey: "k", cost: -5 },
    ]) {
      const { code, details } = await client.fail(service, "consumeAndCheckLimit", request);
      refusals.push([code, details.split(" ")[0]]);
    }
    expect(refusals).toEqual(
      ["domain", "domain", "limit_key", "cost", "cost"].map((field) => [status.INVALID_ARGUMENT, field]),
    );
  });

  it("allows requests while counters are unavailable, and answers reads with UNAVAILABLE", async () => {
    await open(failingCounters(() => new StoreUnavailable("storage_unavailable", "10.1.2.3 is down")));
    expect(await consume("user:1")).toMatchObject({ allowed: true });
    expect(await consume("vip:1")).toMatchObject({ allowed: true, limitingRateIndex: 0 });
    const error = await client.fail(service, "getBucketStatus", { domain: "shop", limitKey: "user:1" });
    expect(error.code).toBe(status.UNAVAILABLE);
    expect(error.message).not.toContain("10.1.2.3");
    const request = { policyId: "", domain: "", dimensions: { user: "ada" }, fromUnixMs: 0, toUnixMs: 0 };
    const usage = await client.fail(sluice, "getUsage", request);
    expect(usage.code).toBe(status.UNAVAILABLE);
  });
});

describe("ConsumeAndCheckLimit and GetBucketStatus", () => {
  it("each ask the counters once, so that their answer is from one moment", async () => {
    const store = new MemoryCounters({ clock });
    const asked: string[] = [];
    const fail = (): Promise<never> => Promise.reject(new StoreUnavailable("storage_timeout", "too slow"));
    await open({
      local: false,
      take: async (limits, options) => {
        asked.push("take");
        return store.take(limits, options);
      },
      peek: async (limits, options) => {
        asked.push("peek");
        return store.peek(limits, options);
      },
      give: fail,
      charge: fail,
      block: fail,
      reset: fail,
      read: fail,
      close() {},
    });
    expect(await consume("vip:1", 5)).toMatchObject({ allowed: true, remainingCapacity: 15, limitingRateIndex: 0 });
    expect(await consume("vip:1", 16)).toMatchObject({ allowed: false, denyCount: 16 });
    expect(await client.call(service, "getBucketStatus", { domain: "shop", limitKey: "vip:1" })).toMatchObject({
      levels: [{ currentLevel: 5 }, { currentLevel: 5 }],
      denyCount: 16,
    });
    expect(asked).toEqual(["take", "take", "peek"]);
  });
});

describe("policies in another format", () => {
  const policies = [
    { id: "quota", domain: "native", limits: [{ by: ["limit_key"], windows: ["4/h"] }] },
    { id: "trial", domain: "native", mode: "shadow", limits: [{ by: ["limit_key"], windows: ["1/h"] }] },
  ];
  const any = {
    id: "any",
    domain: "any",
    match: { prefix: "*" },
    limits: [{ by: ["prefix"], windows: ["2/h"] }],
  };
  const fallback = {
    limits: [{ by: ["subject"], algorithm: "leaky_bucket", windows: ["20/s burst 20", "300/m burst 9"] }],
  };

  it("of any prefix count keys with their own prefix", async () => {
    const limiter = await open();
    limiter.usePolicies({ policies: [any], default: "none" });
    for (const [key, allowed] of Object.entries({ "login:1": true, "login:2": true, "login:3": false }))
      expect(await consume(key, 1, "any")).toMatchObject({ allowed });
    expect(await consume("signup:1", 1, "any")).toMatchObject({ allowed: true, remainingCapacity: 1 });
    expect(await consume(":1", 1, "any")).toMatchObject({ allowed: true, remainingCapacity: 1 });
  });

  it("leave shadow policies out, and include every bucket of a default policy", async () => {
    const limiter = await open();
    limiter.usePolicies({ policies, default: fallback });
    for (const remaining of [3, 2])
      expect(await consume("k", 1, "native")).toMatchObject({ allowed: true, remainingCapacity: remaining });
    const look = await client.call(service, "getBucketStatus", { domain: "native", limitKey: "k" });
    expect(look.levels).toMatchObject([{ currentLevel: 2, burstCapacity: 4, remainingCapacity: 2 }]);
    expect(await consume("k", 2, "elsewhere")).toMatchObject({ remainingCapacity: 7, limitingRateIndex: 1 });
  });
});

describe("GetBucketStatus", () => {
  it("reports the level of every bucket, and takes nothing", async () => {
    await open();
    await consume("vip:1", 5);
    const look = (): Promise<unknown> => client.call(service, "getBucketStatus", { domain: "shop", limitKey: "vip:1" });
    const levels = [
      { currentLevel: 5, flowRate: 10, burstCapacity: 20, remainingCapacity: 15 },
      { currentLevel: 5, flowRate: 2.78, burstCapacity: 25, remainingCapacity: 20 },
    ];
    expect(await look()).toMatchObject({ levels, denyCount: 0 });
    expect(await look()).toMatchObject({ levels });
    await consume("vip:1", 30);
    expect(await look()).toMatchObject({ levels, denyCount: 30 });
  });

  it("reports levels with fractions, and when they last decided, which a read does not change", async () => {
    await open();
    const look = () => client.call(service, "getBucketStatus", { domain: "shop", limitKey: "vip:2" });
    expect(await look()).toMatchObject({ levels: [{ currentLevel: 0 }, { currentLevel: 0 }], lastUpdateTimestamp: 0 });
    await consume("vip:2", 5);
    const takenMs = clock.epochMs();
    clock.advance(333);
    const { levels, lastUpdateTimestamp } = await look();
    expect(levels[0]!.currentLevel).toBeCloseTo(5 - 3.33, 6);
    expect(levels[1]!.currentLevel).toBeCloseTo(5 - 0.333 * 2.78, 6);
    expect(levels[1]!.remainingCapacity).toBeCloseTo(20 + 0.333 * 2.78, 6);
    expect(lastUpdateTimestamp).toBe(takenMs);
    expect((await look()).lastUpdateTimestamp).toBe(takenMs);
    clock.advance(100);
    await consume("vip:2", 30);
    expect(await look()).toMatchObject({ lastUpdateTimestamp: clock.epochMs(), denyCount: 30 });
  });
});

describe("GetCurrentConfig", () => {
  it("lists domains, prefixes and rates, and follows the policies in force", async () => {
    const limiter = await open();
    const { configs } = await client.call(service, "getCurrentConfig", {});
    expect(configs).toEqual([
      { domain: "shop", prefixKey: "user", policies: [{ flowRatePerSecond: 2, burstCapacity: 10, name: "" }] },
      {
        domain: "shop",
        prefixKey: "vip",
        policies: [
          { flowRatePerSecond: 10, burstCapacity: 20, name: "per_second" },
          { flowRatePerSecond: 2.78, burstCapacity: 25, name: "per_minute" },
        ],
      },
      { domain: "default", prefixKey: "any", policies: [{ flowRatePerSecond: 0.5, burstCapacity: 3, name: "" }] },
      { domain: "*", prefixKey: "", policies: [{ flowRatePerSecond: 10, burstCapacity: 1_000, name: "" }] },
    ]);
    limiter.usePolicies({ policies: [], default: "none" });
    expect(await client.call(service, "getCurrentConfig", {})).toEqual({ configs: [] });
  });
});
