import { status } from "@grpc/grpc-js";
import { HealthCheckResponse_ServingStatus, HealthDefinition as health } from "@sluice/protocol/health";
import { createLimiter } from "sluice";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connectForTest, type GrpcTestClient } from "../../../testing/grpc-client.ts";
import { createTestService, type ListeningTransport, listenForTest } from "../../../testing/test-service.ts";
import { wholeGrpcServer } from "../../../testing/whole-servers.ts";
import type { Access } from "../../access/access.ts";
import { createHealthFeed } from "./health.ts";

const { SERVING, NOT_SERVING, SERVICE_UNKNOWN } = HealthCheckResponse_ServingStatus;
const names = [
  "",
  "ratelimiter.v1.RateLimiterService",
  "sluice.v1.RateLimiter",
  "sluice.v1.PolicyAdmin",
  "envoy.service.ratelimit.v3.RateLimitService",
  "ratelimit",
];

const strict = "ratelimiter.v1.RateLimiterService";

let accepting: boolean;
let looks = 0;
let ready: boolean;
let listening: ListeningTransport;
let client: GrpcTestClient;

beforeEach(async () => {
  accepting = true;
  ready = true;
  const access: Access = {
    identify() {
      throw new Error("health needs no token");
    },
  };
  const service = createTestService(createLimiter({}), {
    access,
    accepting: () => {
      looks += 1;
      return accepting;
    },
    countersStatus: () => ({ ready, shards: 1, away: [], slow: [] }),
  });
  listening = await listenForTest("grpc", wholeGrpcServer(service));
  client = connectForTest(listening.address);
});

afterEach(async () => {
  client.close();
  await listening.close();
});

describe("health", () => {
  it("is reported for the whole and for every service, to any caller", async () => {
    for (const service of names) expect(await client.call(health, "check", { service })).toEqual({ status: SERVING });
    const { statuses } = await client.call(health, "list", {});
    expect(Object.keys(statuses).sort()).toEqual([...names].sort());
    expect((await client.fail(health, "check", { service: "nothing.here" })).code).toBe(status.NOT_FOUND);
  });

  it("stays good while counters cannot be reached, except for the service that promises to reach them", async () => {
    ready = false;
    for (const service of names) {
      const expected = service === strict ? NOT_SERVING : SERVING;
      expect(await client.call(health, "check", { service }), service).toEqual({ status: expected });
    }
    const { statuses } = await client.call(health, "list", {});
    expect(statuses[""]).toEqual({ status: SERVING });
    expect(statuses[strict]).toEqual({ status: NOT_SERVING });
  });

  it("is bad for every name while the server stops", async () => {
    accepting = false;
    for (const service of names)
      expect(await client.call(health, "check", { service }), service).toEqual({ status: NOT_SERVING });
  });

  it("sends nothing to watchers of the server as a whole when counters come and go", async () => {
    const seen: number[] = [];
    const strictSeen: number[] = [];
    const whole = client.watch(health, "watch", { service: "" });
    whole.on("error", () => {}).on("data", (answer) => seen.push(answer.status));
    const strictly = client.watch(health, "watch", { service: strict });
    strictly.on("error", () => {}).on("data", (answer) => strictSeen.push(answer.status));
    await expect.poll(() => [seen, strictSeen]).toEqual([[SERVING], [SERVING]]);
    ready = false;
    await expect.poll(() => strictSeen, { timeout: 30_000 }).toEqual([SERVING, NOT_SERVING]);
    expect(seen).toEqual([SERVING]);
    whole.cancel();
    strictly.cancel();
  });

  it("is watched: every change is told, the stop is the last", async () => {
    const seen: number[] = [];
    const watching = client.watch(health, "watch", { service: strict });
    watching.on("data", (answer) => seen.push(answer.status));
    const ended = new Promise((resolve) => watching.on("status", resolve));
    await expect.poll(() => seen).toEqual([SERVING]);
    ready = false;
    await expect.poll(() => seen, { timeout: 30_000 }).toEqual([SERVING, NOT_SERVING]);
    ready = true;
    await expect.poll(() => seen, { timeout: 30_000 }).toEqual([SERVING, NOT_SERVING, SERVING]);
    const drained = listening.close(20_000);
    expect(await ended).toMatchObject({ code: status.OK });
    expect(seen).toEqual([SERVING, NOT_SERVING, SERVING, NOT_SERVING]);
    expect(await drained).toBe(0);
  });

  it("is looked at once for all who watch, and not at all when they have left", async () => {
    const watching = Array.from({ length: 50 }, () => client.watch(health, "watch", { service: strict }));
    const seen = new Map<unknown, number>();
    for (const one of watching) one.on("error", () => {}).on("data", ({ status }) => seen.set(one, status));
    const told = (): number[] => [...seen.values()];
    await expect.poll(told, { timeout: 30_000 }).toEqual(watching.map(() => SERVING));
    looks = 0;
    ready = false;
    await expect.poll(told, { timeout: 30_000 }).toEqual(watching.map(() => NOT_SERVING));
    expect(looks).toBeLessThan(50);
    for (const one of watching) one.cancel();
    const stillness = async (): Promise<number> => {
      looks = 0;
      await new Promise((resolve) => setTimeout(resolve, 700));
      return looks;
    };
    await expect.poll(stillness, { timeout: 30_000 }).toBe(0);
  });

  it("is read again for each new watcher, and earlier watchers are notified too", () => {
    const feed = createHealthFeed({
      accepting: () => accepting,
      countersStatus: () => undefined,
      draining: { begun: false },
    });
    const first: string[] = [];
    const second: string[] = [];
    const stopFirst = feed.watch((health) => first.push(health));
    accepting = false;
    const stopSecond = feed.watch((health) => second.push(health));
    stopFirst();
    accepting = true;
    feed.watch(() => {})();
    stopSecond();
    expect([first, second]).toEqual([
      ["counting", "stopping"],
      ["stopping", "counting"],
    ]);
  });

  it("of a missing service is unknown to its watchers", async () => {
    const watching = client.watch(health, "watch", { service: "nothing.here" });
    watching.on("error", () => {});
    const first = await new Promise((resolve) => watching.once("data", resolve));
    expect(first).toEqual({ status: SERVICE_UNKNOWN });
    watching.cancel();
  });
});
