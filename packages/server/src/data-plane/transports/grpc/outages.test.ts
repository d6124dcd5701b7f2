import { type Metadata, status } from "@grpc/grpc-js";
import { Dimension, RateLimiterDefinition as sluice } from "@sluice/protocol";
import { RateLimiterServiceDefinition as ratelimiter } from "@sluice/protocol/ratelimiter";
import { RedisCounters } from "@sluice/redis";
import { startServer } from "@sluice/test-servers";
import { createLimiter, type Limiter } from "sluice";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectForTest, type GrpcTestClient } from "../../../testing/grpc-client.ts";
import { createTestService, type ListeningTransport, listenForTest } from "../../../testing/test-service.ts";
import { wholeGrpcServer } from "../../../testing/whole-servers.ts";

const limits = [{ by: ["subject"], windows: ["5/h"] }];
const policies = [
  { id: "open", match: { endpoint: "/open" }, limits, on_failure: "open" },
  { id: "closed", match: { endpoint: "/closed" }, limits, on_failure: "closed" },
  { id: "keys", domain: "keys", limits, on_failure: "closed" },
];

describe("an outage of the counters", () => {
  let limiter: Limiter;
  let listening: ListeningTransport;
  let client: GrpcTestClient;

  beforeAll(async () => {
    const server = await startServer({ flavor: "valkey" });
    const counters = new RedisCounters({ servers: server.url, deadlineMs: 5000 });
    await counters.connected();
    limiter = createLimiter({ policies: { policies }, counters });
    listening = await listenForTest("grpc", wholeGrpcServer(createTestService(limiter)));
    client = connectForTest(listening.address);
    expect(await client.call(sluice, "checkRateLimit", asked("/closed"))).toMatchObject({
      allowed: true,
      remaining: 4,
      degraded: false,
      degradedReason: "",
    });
    await server.close();
  });
  afterAll(async () => {
    client.close();
    await listening.close();
    await limiter.close();
  });

  const asked = (endpoint: string) => ({
    identifier: "u1",
    dimension: Dimension.USER,
    endpoint,
    cost: 1,
    timestamp: 0,
  });
  const reason = expect.stringMatching(/^storage_(unavailable|timeout)$/);

  it("can be told from a decision of CheckRateLimit", async () => {
    const outage = { degraded: true, degradedReason: reason };
    expect(await client.call(sluice, "checkRateLimit", asked("/open"))).toMatchObject({ allowed: true, ...outage });
    const denied = await client.call(sluice, "checkRateLimit", asked("/closed"));
    expect(denied).toMatchObject({ allowed: false, retryAfter: 1, ...outage });
  });

  it("can be told from a decision of CheckAndIncrement", async () => {
    const ask = (policyId: string) =>
      client.call(sluice, "checkAndIncrement", {
        policyId,
        dimensions: { user: "u1" },
        cost: 1,
        requestId: "",
        domain: "",
      });
    const outage = { degraded: true, degradedReason: reason };
    expect(await ask("open")).toMatchObject({ allowed: true, retryAfterMs: 0, ...outage });
    expect(await ask("closed")).toMatchObject({ allowed: false, retryAfterMs: 1000, ...outage });
  });

  it("can be told from a decision of ConsumeAndCheckLimit, by the answer's metadata", async () => {
    let heard: Metadata | undefined;
    const answer = await client.call(
      ratelimiter,
      "consumeAndCheckLimit",
      { domain: "keys", limitKey: "a", cost: 1 },
      {
        onMetadata: (metadata) => {
          heard = metadata;
        },
      },
    );
    expect(answer).toMatchObject({ allowed: false });
    expect(heard?.get("x-ratelimit-degraded")).toEqual(["true"]);
    expect(heard?.get("x-ratelimit-degraded-reason")).toEqual([reason]);
  });

  it("is an error of GetRemainingQuota, whose zeros would say that nothing limits", async () => {
    const { code } = await client.fail(sluice, "getRemainingQuota", {
      identifier: "u1",
      dimension: Dimension.USER,
      endpoint: "/open",
    });
    expect(code).toBe(status.UNAVAILABLE);
  });
});
