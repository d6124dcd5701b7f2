import { type Metadata, status } from "@grpc/grpc-js";
import { PolicyAdminDefinition as admin, Dimension, RateLimiterDefinition as sluice } from "@sluice/protocol";
import { RateLimiterServiceDefinition as ratelimiter } from "@sluice/protocol/ratelimiter";
import { createLimiter } from "sluice";
import { afterEach, describe, expect, it } from "vitest";
import { connectForTest, type GrpcTestClient } from "../../testing/grpc-client.ts";
import { createTestService, type ListeningTransport, listenForTest } from "../../testing/test-service.ts";
import { wholeGrpcServer } from "../../testing/whole-servers.ts";

let listening: ListeningTransport;
let client: GrpcTestClient;

async function open(idempotencyHeader = false): Promise<void> {
  const policies = { policies: [{ id: "p", limits: [{ by: ["subject"], windows: ["10/h"] }] }] };
  const service = createTestService(createLimiter({ policies }));
  listening = await listenForTest("grpc", wholeGrpcServer({ ...service, idempotencyHeader }));
  client = connectForTest(listening.address);
}

afterEach(async () => {
  client.close();
  await listening.close();
});

const who = { identifier: "u1", dimension: Dimension.USER, endpoint: "/x" };
const metadata = { "x-idempotency-key": "4be0643f-1d98-573b-97cd-ca98a65347dd" };

describe("the metadata x-idempotency-key", () => {
  const checks = {
    CheckRateLimit: () => client.call(sluice, "checkRateLimit", { ...who, cost: 4, timestamp: 0 }, { metadata }),
    CheckAndIncrement: () =>
      client.call(
        sluice,
        "checkAndIncrement",
        { policyId: "p", dimensions: { user: "u1" }, cost: 4, requestId: "", domain: "" },
        { metadata },
      ),
    Check: () => {
      const message = { domain: "", dimensions: { user: "u1" }, cost: 4, id: "", idTtlMs: 0, policies: [] };
      const plain = { preview: false, details: false, receipt: false };
      return client.call(sluice, "check", { ...message, ...plain }, { metadata });
    },
  };

  it.each(Object.entries(checks))("charges a repeated %s once", async (_, check) => {
    await open(true);
    for (let times = 0; times < 3; times++) expect(await check()).toMatchObject({ allowed: true, remaining: 6 });
  });

  it("charges a repeated ConsumeAndCheckLimit once", async () => {
    await open(true);
    for (let times = 0; times < 3; times++) {
      const answer = client.call(ratelimiter, "consumeAndCheckLimit", { limitKey: "a", cost: 4 }, { metadata });
      expect(await answer).toMatchObject({ allowed: true, remainingCapacity: 6 });
    }
  });

  it.each(Object.entries(checks))("is not trusted for %s unless that is configured", async (_, check) => {
    await open();
    expect(await check()).toMatchObject({ remaining: 6 });
    expect(await check()).toMatchObject({ remaining: 2 });
  });

  it("does not override the id in a message", async () => {
    await open(true);
    const check = (requestId: string) =>
      client.call(
        sluice,
        "checkAndIncrement",
        { policyId: "p", dimensions: { user: "u1" }, cost: 4, requestId, domain: "" },
        { metadata },
      );
    expect(await check("one")).toMatchObject({ remaining: 6 });
    expect(await check("two")).toMatchObject({ remaining: 2 });
  });
});

describe("the service RateLimiter without a package", () => {
  const bare = { ...sluice, fullName: "RateLimiter" };

  it("answers the calls that clients know", async () => {
    await open();
    expect(await client.call(bare, "checkRateLimit", { ...who, cost: 3, timestamp: 0 })).toMatchObject({
      allowed: true,
      remaining: 7,
    });
    expect(await client.call(bare, "getRemainingQuota", who)).toMatchObject({ remaining: 7 });
    const key = { policyId: "p", dimensions: { user: "u1" }, domain: "" };
    expect(await client.call(bare, "checkAndIncrement", { ...key, cost: 2, requestId: "" })).toMatchObject({
      allowed: true,
      remaining: 5,
      policyVersion: "p#1",
    });
    const usage = { ...key, fromUnixMs: 0, toUnixMs: 0 };
    expect(await client.call(bare, "getUsage", usage)).toMatchObject({ quotas: [{ remaining: 5 }] });
    // The same permissions apply: resets need an operator's token.
    expect((await client.fail(bare, "resetKey", key)).code).toBe(status.PERMISSION_DENIED);
    expect((await client.fail(bare, "resetLimit", who)).code).toBe(status.PERMISSION_DENIED);
  });

  it("has the methods for policies too, and no methods that clients do not know", async () => {
    await open();
    // Without a control plane they say so, which differs from being unknown.
    const policies = { ...admin, fullName: "RateLimiter" };
    const { details } = await client.fail(policies, "configurePolicy", {} as never);
    expect(details).not.toMatch(/unimplemented|no such method/i);
    const { code } = await client.fail(bare, "giveBack", { receipt: "x" });
    expect(code).toBe(status.UNIMPLEMENTED);
  });

  it("reports no outage if there is none", async () => {
    await open();
    let heard: Metadata | undefined;
    const onMetadata = (given: Metadata): void => {
      heard = given;
    };
    await client.call(ratelimiter, "consumeAndCheckLimit", { limitKey: "a" }, { onMetadata });
    expect(heard?.get("x-ratelimit-degraded") ?? []).toEqual([]);
  });
});
