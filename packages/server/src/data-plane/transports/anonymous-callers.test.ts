import { ChargeRequest, LeaseRequest, RateLimiterDefinition as service } from "@sluice/protocol";
import { RateLimitServiceDefinition as envoy, RateLimitRequest } from "@sluice/protocol/envoy";
import { createLimiter, type Limiter } from "sluice";
import { epochMs } from "sluice/store";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connectForTest, type GrpcTestClient } from "../../testing/grpc-client.ts";
import { createTestService, type ListeningTransport, listenForTest } from "../../testing/test-service.ts";
import { wholeGrpcServer } from "../../testing/whole-servers.ts";
import { type StartedHttp, startHttp } from "./http/testing/start-http.ts";

const policies = {
  policies: [
    { id: "api", limits: [{ by: ["user"], windows: ["1000/30d"] }], max_overshoot: 0.5 },
    { id: "shop", domain: "shop", limits: [{ by: ["user"], windows: ["1000/30d"] }] },
  ],
  default: "none",
};
const ada = { dimensions: { user: "ada" } };

let limiter: Limiter;
let http: StartedHttp;
let grpc: ListeningTransport;
let client: GrpcTestClient;

beforeEach(async () => {
  limiter = createLimiter({ policies });
  http = await startHttp(limiter);
  grpc = await listenForTest("grpc", wholeGrpcServer(createTestService(limiter)));
  client = connectForTest(grpc.address);
});

afterEach(async () => {
  client.close();
  await Promise.all([http.close(), grpc.close()]);
});

async function post(path: string, body: unknown): Promise<{ status: number; body: Record<string, unknown> }> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(http.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await response.text();
  return { status: response.status, body: text === "" ? {} : JSON.parse(text) };
}

const used = async (): Promise<unknown> => (await limiter.peek(ada)).used;
const readCode = ({ metadata }: { metadata: { get(name: string): unknown[] } }): string =>
  String(metadata.get("sluice-code")[0]);

describe("a caller without a token", () => {
  it("may take and charge, and undo its own take by the receipt", async () => {
    const { body } = await post("/v1/check", { ...ada, cost: 4, receipt: true });
    expect((await post("/v1/charge", { ...ada, cost: 6 })).status).toBe(204);
    expect(await used()).toBe(10);
    expect((await post("/v1/give-back", { receipt: body.receipt })).body).toEqual({ given_back: true });
    expect(await used()).toBe(6);
  });

  it("empties no counter by charging less than nothing, over any protocol", async () => {
    await limiter.charge({ ...ada, cost: 500 });
    const refused = await post("/v1/charge", { ...ada, cost: -100 });
    expect([refused.status, refused.body.code]).toEqual([403, "permission_denied"]);
    const message = ChargeRequest.fromPartial({ ...ada, cost: -100 });
    expect(readCode(await client.fail(service, "charge", message))).toBe("permission_denied");
    const entries = [{ key: "user", value: "ada" }];
    const descriptors = [{ entries, limit: undefined, hitsAddend: 100, isNegativeHits: true }];
    const asked = RateLimitRequest.fromPartial({ domain: "shop", descriptors });
    expect(readCode(await client.fail(envoy, "shouldRateLimit", asked))).toBe("permission_denied");
    const json = { domain: "shop", descriptors: [{ entries, hits_addend: 100, is_negative_hits: true }] };
    expect((await post("/json", json)).status).toBe(403);
    expect(await used()).toBe(500);
  });

  it("gives back nothing by guessing receipts", async () => {
    const receipts = new Set<string>();
    for (let i = 0; i < 100; i++) receipts.add((await limiter.check({ ...ada, receipt: true })).receipt!);
    expect(receipts.size).toBe(100);
    for (let i = 1; i <= 100; i++) {
      for (const guess of [`m${i}`, `m${i}.`, `m${i}.0`])
        expect((await post("/v1/give-back", { receipt: guess })).body).toEqual({ given_back: false });
    }
    expect(await used()).toBe(100);
  });

  it("gives back nothing that others lease, by any epoch", async () => {
    const { granted, atMs } = await limiter.lease(ada, { want: 100, holdMs: 60_000 });
    for (let epoch = Math.floor(atMs / epochMs) * epochMs; epoch < atMs + 100_000; epoch += epochMs) {
      const settled = { epoch, spent: 0, kept: 0, returned: 1_000 };
      expect((await post("/v1/lease", { check: ada, want: 0, settled })).status).toBe(200);
      await client.call(service, "lease", LeaseRequest.fromPartial({ check: ada, want: 0, settled }));
    }
    expect(await used()).toBe(granted);
  });
});
