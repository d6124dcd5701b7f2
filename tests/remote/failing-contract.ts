import { setImmediate as turn } from "node:timers/promises";
import { type ConnectOptions, connect, type RemoteLimiter } from "@sluice/client";
import { createFaultyProxy, type FaultyProxy, startServer, type TestServer } from "@sluice/test-servers";
import type { CheckRequest, Decision } from "sluice";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createTestFiles, type TestFiles } from "./remote-policies.ts";
import { type SluiceProcess, startSluice } from "./sluice-process.ts";

/** Even on a busy machine a check is answered within this time. */
const patientMs = 15_000;

/**
 * The promises of a remote limiter when servers and networks fail. One file for each protocol, because they take a
 * while.
 */
export function describeFailing(protocol: "grpc" | "http"): void {
  let files: TestFiles;
  let valkey: TestServer;
  /** Survives, and reports the charges in the end. */
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

  /** Removed with the test. */
  function kept<T extends { close(): Promise<unknown> }>(one: T): T {
    running.unshift(one);
    return one;
  }

  /** The user whose counter is at stake: its usage is all charges. */
  function newRequest(): CheckRequest {
    subjects += 1;
    return { dimensions: { user: `${protocol}-${subjects}`, kind: "api" }, policies: ["total"] };
  }

  /** Once per test: previews of remote counters are cached for a moment. */
  async function readUsed(request: CheckRequest): Promise<number> {
    const limiter = connect(witness[protocol], { deadlineMs: patientMs, whenUnavailable: "closed" });
    try {
      const { used, degraded } = await limiter.peek(request);
      if (degraded !== undefined) throw new Error("the witness did not answer");
      return used!;
    } finally {
      await limiter.close();
    }
  }

  /** Sends checks continuously, some at once, until it is stopped, or there are enough decisions. */
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

  it("a server that is drained loses no check, and each is charged once", { timeout: 60_000 }, async () => {
    // HTTP cannot show which requests on a closed connection were read: the server announces the end first.
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
    expect(await readUsed(request)).toBe(decisions.length);
  });

  it("a server that is killed loses its checks in flight, and nothing is charged twice", {
    timeout: 60_000,
  }, async () => {
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
    const used = await readUsed(request);
    // Lost checks may have been charged or not; all others were, once.
    expect(used).toBeGreaterThanOrEqual(decisions.length - degraded.length);
    expect(used).toBeLessThanOrEqual(decisions.length);
    expect(degraded.every(({ allowed, degraded: why }) => allowed && why === "storage_unavailable")).toBe(true);
    const states = (): readonly string[] => limiter.stats.addresses.map(({ state }) => state);
    await expect.poll(states, { timeout: patientMs, interval: 5 }).toEqual(["aside", "ready"]);
  });

  it("a stalled server delays no check, and is used again when it continues", { timeout: 60_000 }, async () => {
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
    const used = await readUsed(request);
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
    expect(await readUsed(request)).toBe(decisions.length);
  });

  describe("through a network that fails", () => {
    async function behindProxy(options: ConnectOptions = {}): Promise<{ limiter: RemoteLimiter; proxy: FaultyProxy }> {
      const port = protocol === "grpc" ? witness.grpcPort : witness.httpPort;
      const proxy = kept(await createFaultyProxy({ host: "127.0.0.1", port }));
      const address = `${protocol}://127.0.0.1:${proxy.port}`;
      const limiter = kept(connect(address, { deadlineMs: patientMs, whenUnavailable: "open", ...options }));
      return { limiter, proxy };
    }

    it("a check whose answer is lost is not repeated, so it is charged once", async () => {
      const { limiter, proxy } = await behindProxy();
      const request = newRequest();
      await limiter.check(request);
      proxy.dropRepliesOnce();
      expect(await limiter.check(request)).toMatchObject({ allowed: true, degraded: "storage_unavailable" });
      expect(await limiter.check(request)).toMatchObject({ degraded: undefined, used: 3 });
    });

    it("a check with an id is repeated if its answer is lost, and charged once", async () => {
      const { limiter, proxy } = await behindProxy();
      const request = newRequest();
      await limiter.check(request);
      proxy.dropRepliesOnce();
      const id = `id-${protocol}-${subjects}`;
      expect(await limiter.check({ ...request, id })).toMatchObject({ degraded: undefined, replayed: true });
      expect(await limiter.check(request)).toMatchObject({ used: 3 });
    });

    it("cut connections are replaced", async () => {
      const { limiter, proxy } = await behindProxy();
      const request = newRequest();
      for (let cut = 0; cut < 3; cut++) {
        expect(await limiter.check(request)).toMatchObject({ degraded: undefined });
        proxy.resetAll();
        await expect.poll(() => proxy.connections, { timeout: patientMs, interval: 1 }).toBe(0);
      }
    });

    it("a late answer is replaced by whenUnavailable, and the next one in time is right", async () => {
      const { limiter, proxy } = await behindProxy({ deadlineMs: 150, whenUnavailable: "closed" });
      const request = newRequest();
      const inTime = async (): Promise<boolean> => (await limiter.check(request)).degraded === undefined;
      await expect.poll(inTime, { timeout: patientMs }).toBe(true);
      proxy.delayMs = 60_000;
      const answers = await Promise.all([limiter.check(request), limiter.check(request)]);
      // A busy machine may keep this process from running for all of the deadline.
      const degraded = expect.stringMatching(/^(storage_timeout|process_starved)$/);
      expect(answers).toMatchObject([
        { allowed: false, degraded },
        { allowed: false, degraded },
      ]);
      proxy.heal();
      await expect.poll(inTime, { timeout: patientMs }).toBe(true);
    });

    it("a black hole opens the breaker, which avoids waiting, and closes when it is gone", async () => {
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

    it("without a server checks are answered at once, and are right as soon as there is one", async () => {
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
