import { createFaultyProxy, startCluster, startServer } from "@sluice/test-servers";
import fc from "fast-check";
import { type CheckRequest, createLimiter, type Decision, type Limiter } from "sluice";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RedisCounters } from "./redis-counters.ts";
import { scriptsOnTestTime, testTime } from "./testing/scripts-on-test-time.ts";

const policies = {
  policies: [
    { id: "tenant", match: { endpoint: "/tenant" }, limits: [{ by: ["tenant"], windows: ["4/s", "9/m"] }] },
    { id: "user", match: { endpoint: "/user" }, limits: [{ by: ["tenant", "user"], windows: "3/10s" }] },
    { id: "ip", match: { endpoint: "/ip" }, limits: [{ by: ["ip"], windows: "5/m", algorithm: "sliding_window" }] },
    { id: "log", match: { endpoint: "/log" }, mode: "shadow", limits: [{ by: ["user"], windows: "2/s" }] },
  ],
  default: "none",
};

const generous = { id: "user", limits: [{ by: ["user"], windows: "1000/h" }], on_failure: "open" };
/** On a busy machine this process may be the one that is late. */
const lateReason = /^(storage_timeout|process_starved)$/;

const stepArbitrary = fc.record({
  waitMs: fc.constantFrom(0, 0, 100, 1_000, 4_000),
  id: fc.option(fc.constantFrom("a", "b"), { nil: undefined, freq: 5 }),
  requests: fc.array(
    fc.record({
      endpoint: fc.constantFrom("/tenant", "/user", "/ip", "/log"),
      who: fc.constantFrom("1", "2"),
      cost: fc.integer({ min: 1, max: 3 }),
    }),
    { minLength: 1, maxLength: 4 },
  ),
});

interface Opened {
  readonly url: string;
  close(): Promise<unknown>;
}

async function openServer(): Promise<Opened> {
  return startServer({ flavor: "valkey" });
}

async function openCluster(): Promise<Opened> {
  const cluster = await startCluster({ flavor: "valkey" });
  const nodes = cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(",");
  return { url: `redis+cluster://${nodes}`, close: () => cluster.close() };
}

describe.each([
  ["one server", openServer, true],
  // In a cluster the reuse of an id is noticed within a slot only.
  ["a cluster, across slots", openCluster, false],
] as const)("requests decided together on %s", (_name, start, withIds) => {
  let server: Opened;

  beforeAll(async () => {
    server = await start();
  }, 60_000);
  afterAll(() => server.close());

  it("are decided as in memory", async () => {
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(stepArbitrary, { minLength: 1, maxLength: 12 }), async (steps) => {
        const clock = testTime();
        const prefix = `together${run++}`;
        const counters = new RedisCounters({
          servers: server.url,
          prefix,
          deadlineMs: 10_000,
          tune: scriptsOnTestTime(clock),
        });
        const elsewhere = createLimiter({ policies, counters, clock });
        const memory = createLimiter({ policies, clock });
        try {
          for (const { requests, waitMs, ...step } of steps) {
            const id = withIds ? step.id : undefined;
            clock.advance(waitMs);
            const asked = requests.map(
              ({ endpoint, who, cost }): CheckRequest => ({
                dimensions: { endpoint, tenant: `t${who}`, user: `u${who}`, ip: `192.0.2.${who}` },
                cost,
              }),
            );
            const [here, there] = await Promise.all([outcome(memory, asked, id), outcome(elsewhere, asked, id)]);
            expect(there).toEqual(here);
          }
        } finally {
          await elsewhere.close();
        }
      }),
      { numRuns: 40 },
    );
  }, 120_000);
});

/** The decision, without what a replay leaves open. */
async function outcome(limiter: Limiter, requests: readonly CheckRequest[], id: string | undefined): Promise<unknown> {
  try {
    const decisions = await limiter.checkTogether(requests, { id });
    return decisions.map(({ allowed, reason, remaining, retryAfterMs, policy, replayed, shadow }) => ({
      allowed,
      reason,
      remaining,
      retryAfterMs,
      policy,
      replayed,
      shadow,
    }));
  } catch (error) {
    return (error as { code: string }).code;
  }
}

describe("a caller's deadline", () => {
  it("says nothing about the server, and costs no other caller an answer", async () => {
    const server = await startServer({ flavor: "valkey" });
    const proxy = await createFaultyProxy({ host: server.host, port: server.port });
    const counters = new RedisCounters({ servers: proxy.url, deadlineMs: 60_000 });
    const limiter = createLimiter({ policies: { policies: [generous] }, counters, previewCacheMs: 0 });
    const request: CheckRequest = { dimensions: { user: "u" } };
    const impatient = (): Promise<Decision> => limiter.check({ ...request, deadlineMs: 1 });
    try {
      await counters.connected();
      proxy.delayMs = 150;
      for (let i = 0; i < 8; i++) expect((await impatient()).degraded).toMatch(lateReason);
      const [patient, ...others] = await Promise.all([limiter.check(request), impatient(), impatient()]);
      for (const { degraded } of others) expect(degraded).toMatch(lateReason);
      expect(patient.degraded).toBeUndefined();
      expect(counters.stats.shards.map(({ breaker }) => breaker)).toEqual(["closed"]);
      // A check that travels with an impatient one to a stalled server need not travel again.
      proxy.delayMs = 0;
      const { calls } = counters.stats;
      await server.command("CLIENT", "PAUSE", 100, "ALL");
      const [late] = await Promise.all([limiter.check(request), impatient()]);
      expect([late.degraded, counters.stats.calls - calls]).toEqual([undefined, 1]);
    } finally {
      await limiter.close();
      await proxy.close();
      await server.close();
    }
  });

  it("shortens the store's own, for a check, a preview and several together", async () => {
    const server = await startServer({ flavor: "valkey" });
    const proxy = await createFaultyProxy({ host: server.host, port: server.port });
    const counters = new RedisCounters({ servers: proxy.url, deadlineMs: 60_000 });
    const limiter = createLimiter({ policies, counters, previewCacheMs: 0 });
    const request: CheckRequest = { dimensions: { endpoint: "/user", tenant: "t", user: "u" } };
    try {
      await counters.connected();
      proxy.blackhole();
      const answered = { allowed: true, degraded: expect.stringMatching(lateReason) };
      const deadlineMs = 30;
      expect(await limiter.check({ ...request, deadlineMs })).toMatchObject(answered);
      expect(await limiter.peek({ ...request, deadlineMs })).toMatchObject({ degraded: expect.anything() });
      expect(await limiter.check({ ...request, deadlineMs, id: "x" })).toMatchObject({ degraded: expect.anything() });
      expect(await limiter.checkTogether([request], { deadlineMs })).toMatchObject([{ degraded: expect.anything() }]);
    } finally {
      await limiter.close();
      await proxy.close();
      await server.close();
    }
  });
});
