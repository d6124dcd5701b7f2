import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { startServer } from "@sluice/test-servers";
import { afterEach, describe, expect, it } from "vitest";
import { type RunningExample, runExample } from "./run-example.ts";

const folder = path.join(import.meta.dirname, "..", "..", "examples");
const timeout = 60_000;

const running: RunningExample[] = [];
afterEach(async () => {
  for (const example of running.splice(0)) await example.stop();
});

/** Starts an example that serves, and returns its address. */
async function serve(name: string, environment?: Readonly<Record<string, string>>): Promise<string> {
  const example = runExample(name, environment);
  running.push(example);
  return (await example.printed(/listening on (http:\/\/127\.0\.0\.1:\d+)/))[1]!;
}

async function statuses(count: number, ask: () => Promise<Response>): Promise<number[]> {
  const seen: number[] = [];
  for (let i = 0; i < count; i++) {
    const answer = await ask();
    await answer.arrayBuffer();
    seen.push(answer.status);
  }
  return seen;
}

describe("every example", () => {
  const examples = readdirSync(folder).filter((name) => existsSync(path.join(folder, name, "main.ts")));
  it.each(examples)("%s is short, and so is its page", (name) => {
    const lines = (file: string): number =>
      readFileSync(path.join(folder, name, file), "utf8")
        .trimEnd()
        .split("\n").length;
    expect(lines("main.ts")).toBeLessThan(60);
    expect(lines("README.md")).toBeLessThanOrEqual(5);
    const page = readFileSync(path.join(folder, name, "README.md"), "utf8");
    expect(page).toContain(`npm run example -- ${name}`);
  });
});

describe("the Express app", { timeout }, () => {
  const user = (name: string) => ({ headers: { "x-user": name } });
  it("limits all visitors, failed logins and each user's reports", async () => {
    const url = await serve("express-app");
    expect(await statuses(4, () => fetch(`${url}/reports/1`, user("ada")))).toEqual([200, 200, 200, 429]);
    expect(await statuses(1, () => fetch(`${url}/reports/1`, user("bob")))).toEqual([200]);
    // Visitors who are not signed in are counted separately.
    const visitor = (address: string) => () => fetch(`${url}/reports/1`, { headers: { "x-forwarded-for": address } });
    expect(await statuses(4, visitor("192.0.2.7"))).toEqual([200, 200, 200, 429]);
    expect(await statuses(1, visitor("192.0.2.8"))).toEqual([200]);
    const login = (password: string) => () =>
      fetch(`${url}/login`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-forwarded-for": "192.0.2.1" },
        body: JSON.stringify({ password }),
      });
    expect(await statuses(8, login("correct horse"))).toEqual(Array(8).fill(200));
    expect(await statuses(6, login("123456"))).toEqual([401, 401, 401, 401, 401, 429]);
    const { headers } = await login("correct horse")();
    expect(headers.get("x-ratelimit-policy")).toBe("login");
  });

  it("shares its counters between processes if configured", async () => {
    const server = await startServer({ flavor: "valkey" });
    try {
      const urls = [
        await serve("express-app", { REDIS_URL: server.url }),
        await serve("express-app", { REDIS_URL: server.url }),
      ];
      // On a busy machine an answer may come without counters, and says so; the limit holds for all others.
      let counted = 0;
      for (let turn = 0; turn < 20; turn++) {
        const { status, headers } = await fetch(`${urls[turn % 2]}/reports/1`, user("eve"));
        if (status === 429) break;
        if (headers.get("x-ratelimit-degraded") === null) counted += 1;
      }
      expect(counted).toBeGreaterThan(0);
      expect(counted).toBeLessThanOrEqual(3);
    } finally {
      await server.close();
    }
  });
});

describe("the gateway before a language model", { timeout }, () => {
  it("holds tokens until the answer is out, by the tenant's tier", async () => {
    const url = await serve("llm-gateway");
    const chat = (tenant: string, words: number) =>
      fetch(`${url}/v1/chat`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${tenant}` },
        body: JSON.stringify({ prompt: Array(words).fill("word").join(" ") }),
      });
    const first = await chat("small", 700);
    expect(first.headers.get("x-ratelimit-remaining")).toBe("600");
    expect(await first.text()).toContain('"usage":{"tokens":700}');
    // It took more than it held: too little is left for another.
    expect(await statuses(1, () => chat("small", 1))).toEqual([429]);
    // Of three at once, two find room for what they might take. They take that much, whichever answer is out first.
    const atOnce = await Promise.all([1, 2, 3].map(() => statuses(1, () => chat("other", 400))));
    expect(atOnce.flat().sort()).toEqual([200, 200, 429]);
    expect(await statuses(3, () => chat("acme", 700))).toEqual([200, 200, 200]);
    expect((await fetch(`${url}/v1/chat`, { method: "POST" })).status).toBe(429);
  });
});

describe("the Fastify app", { timeout }, () => {
  it("gives more to paying users, and exempts only health", async () => {
    const url = await serve("fastify-tiers");
    const as = (key: string) => ({ headers: { "x-api-key": key } });
    expect(await statuses(3, () => fetch(`${url}/export`, as("key-of-bob")))).toEqual([200, 200, 429]);
    expect(await statuses(5, () => fetch(`${url}/export`, as("key-of-ada")))).toEqual(Array(5).fill(200));
    expect(await statuses(30, () => fetch(`${url}/health`))).toEqual(Array(30).fill(200));
    expect((await fetch(`${url}/search`, as("key-of-ada"))).headers.get("x-ratelimit-limit")).toBe("1000");
  });
});

describe("the Hono app", { timeout }, () => {
  it("limits requests, and bytes once they are out", async () => {
    const url = await serve("hono-app");
    // 512 KiB each, of 1 000.
    const download = () => fetch(`${url}/files/a`);
    expect(await statuses(2, download)).toEqual([200, 200]);
    await expect.poll(async () => (await statuses(1, download))[0], { timeout: 30_000 }).toBe(429);
  });
});

describe("the Nest app", { timeout }, () => {
  it("limits all routes by its module, some by decorators, and skips those marked", async () => {
    const url = await serve("nest-module");
    const exports = () => fetch(`${url}/orders/export`, { method: "POST", headers: { "x-tenant": "acme" } });
    expect(await statuses(3, exports)).toEqual([201, 201, 429]);
    // Without a tenant it counts by address.
    expect((await fetch(`${url}/orders/export`, { method: "POST" })).status).toBe(201);
    expect((await fetch(`${url}/orders/7`)).headers.get("x-ratelimit-limit")).toBe("100");
    expect((await fetch(`${url}/health`)).headers.get("x-ratelimit-limit")).toBe(null);
  });
});

describe("the worker", { timeout }, () => {
  it("makes all of its calls at a pace at which none is refused", async () => {
    const example = runExample("paced-worker");
    running.push(example);
    expect(await example.ended).toBe(0);
    expect(example.output()).toMatch(/^40 jobs in \d+ ms, 0 refused$/m);
  });
});
