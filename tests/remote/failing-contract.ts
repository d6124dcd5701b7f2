import { setImmediate as turn } from "node:timers/promises";
import { type ConnectOptions, connect, type RemoteLimiter } from "@sluice/client";
import { createFaultyProxy, type FaultyProxy, startServer, type TestServer } from "@sluice/test-servers";
import type { CheckRequest, Decision } from "sluice";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createTestFiles, type TestFiles } from "./remote-policies.ts";
import { type SluiceProcess, startSluice } from "./sluice-process.ts";

/** Also on a busy machine a check is answered within this. */
const patientMs = 15_000;

/** What a remote limiter promises when servers and networks fail. A file for each protocol, because they take a while. */
export function describeFailing(protocol: "grpc" | "http"): void {
  let files: TestFiles;
  let valkey: TestServer;
  /** Stays, and tells what was charged in the end. */
  let witness: SluiceProcess;
  const running: { close(): Promise<unknown> }[] = [];
  let subjects = 0;

  beforeAll(async () => {
    files = await createTestFiles();
    valkey = await startServer({ flavor: "valkey" });
    witness = await start();
  }, 60_000);

  afterEach(async () => {
    for (const one of running.splice(0)) await one.close();
  });

  afterAll(async () => {
    await witness?.close();
    await valkey?.close();
    await files?.close();
  });

  function start(...args: readonly string[]): Promise<SluiceProcess> {
    return startSluice("--config", files.policies, "--redis", valkey.url, ...args);
  }

  /** Goes with the test. */
  function kept<T extends { close(): Promise<unknown> }>(one: T): T {
    running.unshift(one);
    return one;
  }

  /** Which user's counter is at stake: what is charged is all that it has used. */
  function newRequest(): CheckRequest {
    subjects += 1;
    return { dimensions: { user: `${protocol}-${subjects}`, kind: "api" }, policies: ["total"] };
  }

  /** Once a test: previews of counters elsewhere are answered from memory for a moment. */
  async function usedOf(request: CheckRequest): Promise<number> {
    const limiter = connect(witness[protocol], { deadlineMs: patientMs, whenUnavailable: "closed" });
    try {
      const { used, degraded } = await limiter.peek(request);
      if (degraded !== undefined) throw new Error("the witness did not answer");
      return used!;
    } finally {
      await limiter.close();
    }
  }

  /** Asks all the time, some at once, until it is told to stop, or there are more decisions than anybody looks at. */
  function traffic(limiter: RemoteLimiter, request: CheckRequest, width = 8): { stop(): Promise<readonly Decision[]> } {
    const decisions: Decision[] = [];
    let stopped = false;
    const lanes = Array.from({ length: width }, async () => {
      while (!stopped && decisions.length < 500_000) {
        decisions.push(await limiter.check(request));
        await turn();
      }
    });
    return {
      async stop() {
        stopped = true;
        await Promise.all(lanes);
        return decisions;
      },
    };
  }

  async function untilSent(limiter: RemoteLimiter, address: number, more: number): Promise<void> {
    const sent = (): number => limiter.stats.addresses[address]!.sent;
    const before = sent();
    await expect.poll(() => sent() - before, { timeout: patientMs, interval: 5 }).toBeGreaterThanOrEqual(more);
  }

  async function setUp(options: ConnectOptions = {}, ...args: readonly string[]) {
    const servers = await Promise.all([start(...args), start(...args)]);
    for (const server of servers) kept(server);
    const limiter = kept(
      connect(
        servers.map((server) => server[protocol]),
        { deadlineMs: patientMs, whenUnavailable: "open", ...options },
      ),
    );
    return { servers, limiter, first: servers[0]!, second: servers[1]! };
  }

  it("a server that is drained takes no check with it, and each is charged once", { timeout: 60_000 }, async () => {
    // HTTP has no way to tell which requests on a connection it closes were read: it announces that first.
    const { limiter, first } = await setUp({}, ...(protocol === "http" ? ["--drain", "1s"] : []));
    const request = newRequest();
    const asking = traffic(limiter, request);
    await untilSent(limiter, 0, 50);
    await untilSent(limiter, 1, 50);
    first.child.kill("SIGTERM");
    expect(await first.exited).toBe(0);
    await untilSent(limiter, 1, 100);
    const decisions = await asking.stop();
    expect(decisions.filter(({ allowed, degraded }) => !allowed || degraded !== undefined)).toEqual([]);
    expect(await usedOf(request)).toBe(decisions.length);
  });

  it("a server that is killed loses what it had, and nothing is charged twice", { timeout: 60_000 }, async () => {
    const { limiter, first } = await setUp();
    const request = newRequest();
    const asking = traffic(limiter, request);
    await untilSent(limiter, 0, 50);
    await untilSent(limiter, 1, 50);
    first.child.kill("SIGKILL");
    await first.exited;
    await untilSent(limiter, 1, 100);
    const decisions = await asking.stop();
    const degraded = decisions.filter((one) => one.degraded !== undefined);
    const used = await usedOf(request);
    // What was lost may have been charged or not; everything else was, once.
    expect(used).toBeGreaterThanOrEqual(decisions.length - degraded.length);
    expect(used).toBeLessThanOrEqual(decisions.length);
    expect(degraded.every(({ allowed, degraded: why }) => allowed && why === "storage_unavailable")).toBe(true);
    const states = (): readonly string[] => limiter.stats.addresses.map(({ state }) => state);
    await expect.poll(states, { timeout: patientMs, interval: 5 }).toEqual(["aside", "ready"]);
  });

  it("a server that stands still keeps nobody, and is asked again when it goes on", { timeout: 60_000 }, async () => {
    const { limiter, first } = await setUp({ deadlineMs: 250 });
    const request = newRequest();
    const asking = traffic(limiter, request);
    await untilSent(limiter, 0, 50);
    await untilSent(limiter, 1, 50);
    first.child.kill("SIGSTOP");
    const { addresses } = limiter.stats;
    await expect
      .poll(() => limiter.stats.addresses[0]!.failedBatches, { timeout: patientMs, interval: 5 })
      .toBeGreaterThan(addresses[0]!.failedBatches);
    await untilSent(limiter, 1, 200);
    first.child.kill("SIGCONT");
    await untilSent(limiter, 0, 50);
    const decisions = await asking.stop();
    const inTime = decisions.filter((one) => one.degraded === undefined).length;
    const used = await usedOf(request);
    expect(used).toBeGreaterThanOrEqual(inTime);
    expect(used).toBeLessThanOrEqual(decisions.length);
  });

  it("servers that come back one after the other fail no check", { timeout: 90_000 }, async () => {
    const drain = protocol === "http" ? ["--drain", "1s"] : [];
    const { limiter, servers } = await setUp({}, ...drain);
    const request = newRequest();
    const asking = traffic(limiter, request);
    for (const [i, server] of servers.entries()) {
      await untilSent(limiter, i, 20);
      server.child.kill("SIGTERM");
      expect(await server.exited).toBe(0);
      const ports = ["--port", String(server.httpPort), "--grpc-port", String(server.grpcPort)];
      kept(await start(...drain, ...ports));
      await expect.poll(() => limiter.stats.addresses[i]!.state, { timeout: patientMs, interval: 5 }).toBe("ready");
    }
    const decisions = await asking.stop();
    expect(decisions.filter(({ degraded }) => degraded !== undefined)).toEqual([]);
    expect(await usedOf(request)).toBe(decisions.length);
  });

  describe("through a network that fails", () => {
    async function behindProxy(options: ConnectOptions = {}): Promise<{ limiter: RemoteLimiter; proxy: FaultyProxy }> {
      const port = protocol === "grpc" ? witness.grpcPort : witness.httpPort;
      const proxy = kept(await createFaultyProxy({ host: "127.0.0.1", port }));
      const address = `${protocol}://127.0.0.1:${proxy.port}`;
      const limiter = kept(connect(address, { deadlineMs: patientMs, whenUnavailable: "open", ...options }));
      return { limiter, proxy };
    }

    it("a lost answer is not asked for again, so it is charged once", async () => {
      const { limiter, proxy } = await behindProxy();
      const request = newRequest();
      await limiter.check(request);
      proxy.dropRepliesOnce();
      expect(await limiter.check(request)).toMatchObject({ allowed: true, degraded: "storage_unavailable" });
      expect(await limiter.check(request)).toMatchObject({ degraded: undefined, used: 3 });
    });

    it("a lost answer is asked for again by its id, and charged once", async () => {
      const { limiter, proxy } = await behindProxy();
      const request = newRequest();
      await limiter.check(request);
      proxy.dropRepliesOnce();
      const id = `id-${protocol}-${subjects}`;
      expect(await limiter.check({ ...request, id })).toMatchObject({ degraded: undefined, replayed: true });
      expect(await limiter.check(request)).toMatchObject({ used: 3 });
    });

    it("connections that are cut are made anew", async () => {
      const { limiter, proxy } = await behindProxy();
      const request = newRequest();
      for (let cut = 0; cut < 3; cut++) {
        expect(await limiter.check(request)).toMatchObject({ degraded: undefined });
        proxy.resetAll();
        await expect.poll(() => proxy.connections, { timeout: patientMs, interval: 1 }).toBe(0);
      }
    });

    it("an answer that takes too long is answered by whenUnavailable, and the next in time is right", async () => {
      const { limiter, proxy } = await behindProxy({ deadlineMs: 150, whenUnavailable: "closed" });
      const request = newRequest();
      const inTime = async (): Promise<boolean> => (await limiter.check(request)).degraded === undefined;
      await expect.poll(inTime, { timeout: patientMs }).toBe(true);
      proxy.delayMs = 60_000;
      const answers = await Promise.all([limiter.check(request), limiter.check(request)]);
      expect(answers).toMatchObject([
        { allowed: false, degraded: "storage_timeout" },
        { allowed: false, degraded: "storage_timeout" },
      ]);
      proxy.heal();
      await expect.poll(inTime, { timeout: patientMs }).toBe(true);
    });

    it("a black hole opens the breaker, which then costs no waiting, and closes when it is gone", async () => {
      const { limiter, proxy } = await behindProxy({ deadlineMs: 100 });
      const request = newRequest();
      const inTime = async (): Promise<boolean> => (await limiter.check(request)).degraded === undefined;
      await expect.poll(inTime, { timeout: patientMs }).toBe(true);
      proxy.blackhole();
      const state = async (): Promise<string> => {
        await limiter.check(request);
        return limiter.stats.addresses[0]!.state;
      };
      await expect.poll(state, { timeout: patientMs, interval: 1 }).toBe("aside");
      const { batches } = limiter.stats;
      for (let i = 0; i < 100; i++)
        expect(await limiter.check(request)).toMatchObject({ degraded: "storage_unavailable" });
      expect(limiter.stats.batches).toBe(batches);
      proxy.heal();
      await expect.poll(inTime, { timeout: patientMs }).toBe(true);
    });

    it("nobody listens there: answered at once, and right as soon as somebody does", async () => {
      const { limiter, proxy } = await behindProxy();
      proxy.refuse();
      const request = newRequest();
      expect(await limiter.check(request)).toMatchObject({ allowed: true, degraded: "storage_unavailable" });
      proxy.heal();
      const inTime = async (): Promise<boolean> => (await limiter.check(request)).degraded === undefined;
      await expect.poll(inTime, { timeout: patientMs }).toBe(true);
    });
  });
}
