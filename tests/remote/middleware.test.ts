import { createServer } from "node:http";
import { connect, type RemoteLimiter } from "@sluice/client";
import { rateLimit as limitExpress } from "@sluice/middleware/express";
import { rateLimit as limitFastify } from "@sluice/middleware/fastify";
import express from "express";
import { fastify } from "fastify";
import { limit } from "sluice";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { AnyOptions, RunningApp } from "../frameworks/framework-under-test.ts";
import { ask } from "../frameworks/http-exchange.ts";
import { listenOnLoopback } from "../frameworks/listen-on-loopback.ts";
import { createTestFiles, type TestFiles } from "./remote-policies.ts";
import { type SluiceProcess, startSluice } from "./sluice-process.ts";

let files: TestFiles;
let server: SluiceProcess;
const running: { close(): Promise<unknown> }[] = [];
let users = 0;

beforeAll(async () => {
  files = await createTestFiles();
  server = await startSluice("--config", files.policies);
}, 60_000);

afterEach(async () => {
  for (const one of running.splice(0)) await one.close();
});

afterAll(async () => {
  await server?.close();
  await files?.close();
});

const patientMs = 15_000;
const soon = { timeout: patientMs, interval: 10 };

const apps: Readonly<Record<string, (limiter: RemoteLimiter, options: AnyOptions) => Promise<RunningApp>>> = {
  async Express(limiter, options) {
    const app = express();
    app.use(limitExpress(limiter, options));
    app.get("/hello", (_request, response) => void response.send("hello"));
    app.get("/broken", (_request, response) => void response.status(500).send("broken"));
    return listenOnLoopback(createServer(app));
  },
  async Fastify(limiter, options) {
    const app = fastify({ forceCloseConnections: true });
    app.register(limitFastify(limiter, options));
    app.get("/hello", async () => "hello");
    app.get("/broken", async (_request, reply) => reply.code(500).send("broken"));
    const url = await app.listen({ host: "127.0.0.1", port: 0 });
    return { url, close: async () => void (await app.close()) };
  },
};

describe.each(Object.keys(apps))("%s with a remote limiter", (framework) => {
  describe.each(["grpc", "http"] as const)("over %s", (protocol) => {
    async function setUp(options: AnyOptions = {}, of: SluiceProcess = server, connectOptions: object = {}) {
      const limiter = connect(of[protocol], { deadlineMs: patientMs, whenUnavailable: "closed", ...connectOptions });
      users += 1;
      const user = `m${users}`;
      const app = await apps[framework]!(limiter, {
        dimensions: { user: () => user, kind: () => "small" },
        // Give-backs that are pending when a test ends.
        onError: () => undefined,
        ...options,
      });
      running.push(app, limiter);
      const remaining = async (): Promise<number | undefined> =>
        (await limiter.peek({ dimensions: { user, kind: "small" } })).remaining;
      return { url: app.url, limiter, remaining };
    }

    it("admits requests until the limit is reached, and reports its state", async () => {
      const { url } = await setUp();
      const answers = [];
      for (let i = 0; i < 6; i++) answers.push(await ask(`${url}/hello`));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 429]);
      expect(answers[0]!.headers).toMatchObject({
        "x-ratelimit-limit": "5",
        "x-ratelimit-remaining": "4",
        "ratelimit-policy": '"small/user";q=5;w=3600',
      });
      expect(JSON.parse(answers[5]!.text)).toMatchObject({ status: 429, policy: "small", reason: "over_limit" });
      expect(Number(answers[5]!.headers["retry-after"])).toBeGreaterThan(0);
    });

    it("charges the actual cost of an answer, and gives back what did not count", async () => {
      const { url, remaining } = await setUp({
        charge: (_request: unknown, { status }: { status: number }) => (status === 200 ? 2 : undefined),
        giveBack: (_request: unknown, { status }: { status: number }) => status >= 500,
      } as AnyOptions);
      await ask(`${url}/hello`);
      await expect.poll(remaining, soon).toBe(2);
      expect((await ask(`${url}/broken`)).headers["x-ratelimit-remaining"]).toBe("1");
      await expect.poll(remaining, soon).toBe(2);
    });

    it("answers a client's mistake as a bad request", async () => {
      const { url } = await setUp({ dimensions: { user: () => "x".repeat(5_000) } });
      expect(await ask(`${url}/hello`)).toMatchObject({ status: 400 });
    });

    it("continues with whenUnavailable when the server dies in the middle of traffic", async () => {
      const dying = await startSluice("--config", files.policies);
      running.push(dying);
      const errors: unknown[] = [];
      const { url, limiter } = await setUp({ onError: (error: unknown) => void errors.push(error) }, dying, {
        whenUnavailable: "local",
        local: limit("2/h").by("user"),
      });
      const statuses = new Map<number, number>();
      let stopped = false;
      const lanes = Array.from({ length: 4 }, async () => {
        while (!stopped) {
          const { status } = await ask(`${url}/hello`);
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
        }
      });
      await expect.poll(() => statuses.get(429) ?? 0, soon).toBeGreaterThan(5);
      dying.child.kill("SIGKILL");
      await dying.exited;
      const before = limiter.stats.degraded.storage_unavailable;
      await expect.poll(() => limiter.stats.degraded.storage_unavailable - before, soon).toBeGreaterThan(20);
      stopped = true;
      await Promise.all(lanes);
      // Five by the server, two by the limit of this process, and the rest is refused; no request gets an error.
      expect([...statuses.keys()].sort()).toEqual([200, 429]);
      expect(statuses.get(200)).toBe(7);
      // The outage is reported once.
      expect(errors).toMatchObject([{ code: "store_unavailable", reason: "storage_unavailable" }]);
    });
  });
});
