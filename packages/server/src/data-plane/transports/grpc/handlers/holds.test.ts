import { HoldState, RateLimiterDefinition as service } from "@sluice/protocol";
import { createLimiter, ManualClock } from "sluice";
import { failingCounters } from "sluice/testing";
import { afterEach, describe, expect, it } from "vitest";
import { connectForTest, type GrpcTestClient } from "../../../../testing/grpc-client.ts";
import { createTestService, type ListeningTransport, listenForTest } from "../../../../testing/test-service.ts";
import { wholeGrpcServer } from "../../../../testing/whole-servers.ts";

const policies = { policies: [{ id: "tokens", limits: [{ by: ["key"], windows: ["100/h"] }], on_failure: "open" }] };
const asked = { domain: "", dimensions: { key: "k" }, policies: [], ttlMs: 0, id: "", details: false };

let server: ListeningTransport | undefined;
let client: GrpcTestClient | undefined;

async function open(limiter = createLimiter({ policies, clock: new ManualClock() })): Promise<GrpcTestClient> {
  server = await listenForTest("grpc", wholeGrpcServer(createTestService(limiter)));
  client = connectForTest(server.address);
  return client;
}

afterEach(async () => {
  client?.close();
  await server?.close();
});

describe("holds over gRPC", () => {
  it("are reserved, reported about, extended and settled", async () => {
    const clock = new ManualClock();
    const grpc = await open(createLimiter({ policies, clock }));
    const held = await grpc.call(service, "reserve", { ...asked, amount: 60, ttlMs: 5000, id: "chat-1" });
    expect(held).toMatchObject({ amount: 60, expiresAtMs: clock.epochMs() + 5000, decision: { remaining: 40 } });
    const { holdId } = held;
    const again = await grpc.call(service, "reserve", { ...asked, amount: 60, ttlMs: 5000, id: "chat-1" });
    expect(again).toMatchObject({ holdId, decision: { replayed: true } });
    expect(await grpc.call(service, "commit", { holdId, actual: 20, more: true })).toMatchObject({
      hold: { state: HoldState.HELD, actual: 20 },
    });
    expect(await grpc.call(service, "extend", { holdId, ttlMs: 9000 })).toMatchObject({
      hold: { state: HoldState.HELD, expiresAtMs: clock.epochMs() + 9000 },
    });
    expect(await grpc.call(service, "commit", { holdId, actual: 70, more: false })).toEqual({
      hold: {
        state: HoldState.SETTLED,
        amount: 60,
        actual: 70,
        overdraft: 10,
        expired: false,
        expiresAtMs: clock.epochMs() + 9000,
        replayed: false,
      },
    });
    expect(await grpc.call(service, "cancel", { holdId })).toMatchObject({ hold: { actual: 70, replayed: true } });
    expect(await grpc.call(service, "commit", { holdId: "h1", actual: 5, more: false })).toMatchObject({
      hold: { state: HoldState.UNKNOWN },
    });
  });

  it("are cut if they are estimates, and denied as an answer if not", async () => {
    const grpc = await open();
    const never = await grpc.call(service, "reserve", { ...asked, amount: 101 });
    expect([never.holdId, never.decision?.allowed, never.expiresAtMs]).toEqual(["", false, 0]);
    expect(await grpc.call(service, "reserve", { ...asked, estimate: 4000 })).toMatchObject({ amount: 100 });
  });

  it("are refused by name: what is not valid, and where counters keep none", async () => {
    const grpc = await open(createLimiter({ policies, counters: failingCounters() }));
    const codes = [
      await grpc.fail(service, "reserve", { ...asked, amount: 5 }),
      await grpc.fail(service, "reserve", { ...asked, amount: 10_000_001 }),
      await grpc.fail(service, "cancel", { holdId: "" }),
      await grpc.fail(service, "extend", { holdId: "h1", ttlMs: 0 }),
    ].map(({ metadata }) => metadata.get("sluice-code")[0]);
    expect(codes).toEqual(["not_holdable", "invalid_request", "invalid_request", "invalid_request"]);
  });
});
