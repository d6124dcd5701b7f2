import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createRequire } from "node:module";
import { findTicket, type NextRateLimitOptions, rateLimit, rateLimitProxy, type Sent } from "@sluice/middleware/next";
import manifest from "next/package.json" with { type: "json" };
import { limit } from "sluice";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { type BuiltApp, buildNextApp } from "./build-next-app.ts";
import type { RunningApp } from "./framework-under-test.ts";
import { ask } from "./http-exchange.ts";
import { listenOnLoopback } from "./listen-on-loopback.ts";
import { describeMiddleware } from "./middleware-contract.ts";
import { placeHeader, type RequestedSetup, requestedSetups, setupHeader } from "./next-app/requested-setups.ts";

const { version } = manifest;
const soon = { timeout: 30_000, interval: 20 };
/** Two cores, both busy, take a while to build an app. */
const patienceMs = 300_000;

let built: BuiltApp;
/** The parts of Next's server that these tests use. Next's own types would change the global environment's types. */
interface NextServer {
  prepare(): Promise<void>;
  getRequestHandler(): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  close(): Promise<void>;
}
let server: NextServer;

beforeAll(async () => {
  built = await buildNextApp();
  vi.stubEnv("NODE_ENV", "production");
  vi.stubEnv("NEXT_TELEMETRY_DISABLED", "1");
  // Next prints what handlers throw, and how long it took to read its settings.
  for (const method of ["error", "log"] as const) vi.spyOn(console, method).mockImplementation(() => {});
  const createNext = createRequire(import.meta.url)("next") as (options: object) => NextServer;
  server = createNext({ dev: false, dir: built.folder });
  await server.prepare();
}, patienceMs);

afterAll(async () => {
  await server?.close();
  built?.remove();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

const header =
  (name: string) =>
  (request: Request): string | undefined =>
    request.headers.get(name) ?? undefined;
const peer = header("x-peer");

/** Every test has a separate server in front of the one app, which applies its setup. It passes on the peer, as Next does not. */
async function open(setup: RequestedSetup): Promise<RunningApp> {
  const name = `setup ${requestedSetups().size}`;
  requestedSetups().set(name, setup);
  const handle = server.getRequestHandler();
  const app = await listenOnLoopback(
    createServer((request, response) => {
      request.headers[setupHeader] = name;
      request.headers[placeHeader] = request.url === "/set-up" ? "none" : setup.at;
      request.headers["x-peer"] = request.socket.remoteAddress;
      void handle(request, response);
    }),
  );
  const { status, text } = await ask(`${app.url}/set-up`);
  if (status === 204) return app;
  await app.close();
  throw new Error(text);
}

describeMiddleware({
  name: `Next ${version}`,
  knowsRoutes: false,
  header,
  start: (limits, options) => open({ at: "routes", limits, options: { peer, ...options } }),
});

const running: RunningApp[] = [];
afterEach(async () => {
  for (const app of running.splice(0)) await app.close();
});
async function start(setup: RequestedSetup): Promise<string> {
  const app = await open(setup);
  running.push(app);
  return app.url;
}

describe(`Next ${version}: route handlers`, () => {
  it("are charged by Next's answer to what they throw, once", async () => {
    const sent: Sent[] = [];
    const options = { peer, charge: (_request: unknown, one: Sent) => void sent.push(one) };
    const url = await start({ at: "routes", limits: "9/h", options });
    const statuses: number[] = [];
    for (const path of ["/redirected", "/missing", "/thrown"]) statuses.push((await ask(url + path)).status);
    expect(statuses).toEqual([307, 404, 500]);
    await expect.poll(() => sent.map(({ status }) => status), soon).toEqual(statuses);
  });

  it("keep the platform awake until their answers are charged", async () => {
    const awake: Promise<unknown>[] = [];
    const platform = Symbol.for("@next/request-context");
    Object.assign(globalThis, {
      [platform]: { get: () => ({ waitUntil: (settled: Promise<unknown>) => void awake.push(settled) }) },
    });
    try {
      let charged = 0;
      const charge = async (): Promise<undefined> => {
        await new Promise((resolve) => setImmediate(resolve));
        charged += 1;
      };
      const url = await start({ at: "routes", limits: "9/h", options: { peer, charge } });
      awake.length = 0;
      expect((await ask(`${url}/hello`)).status).toBe(200);
      await expect.poll(() => awake.length, soon).toBeGreaterThan(0);
      await Promise.all(awake);
      expect(charged).toBe(1);
    } finally {
      Reflect.deleteProperty(globalThis, platform);
    }
  });

  it("can be called without Next, as in a test of theirs", async () => {
    const { NextRequest } = await import("next/server.js");
    const sent: Sent[] = [];
    const GET = rateLimit("1/h", { ip: () => "192.0.2.1", charge: (_request, one) => void sent.push(one) })(
      (request, { params }: { params: { id: string } }) => new Response(`${request.nextUrl.pathname} ${params.id}`),
    );
    const call = async (): Promise<Response> => GET(new NextRequest("http://localhost/a"), { params: { id: "7" } });
    expect(await (await call()).text()).toBe("/a 7");
    expect((await call()).status).toBe(429);
    await expect.poll(() => sent, soon).toEqual([{ status: 200, bytes: 4 }]);
  });
});

describe(`Next ${version}: whose address`, () => {
  it("must be configured: setup reports what is missing", () => {
    for (const set of [rateLimit, rateLimitProxy]) {
      expect(() => set("1/s")).toThrow(/ip is required, or .*trustedProxies/);
      expect(() => set("1/s", { trustedProxies: 0 })).toThrow(/ip is required/);
      expect(() => set("1/s", { trustedProxies: ["10.0.0.0/8"] })).toThrow(/ip is required/);
      expect(() => set("1/s", { trustedProxies: 1 })).not.toThrow();
      expect(() => set("1/s", { ip: () => undefined })).not.toThrow();
      expect(() => set(limit("1/s").by("user"))).not.toThrow();
    }
  });

  it.each(["routes", "proxy"] as const)(
    "is the one that the nearest proxies wrote, and not the client: %s",
    async (at) => {
      const forwarded = async (url: string, chain: string): Promise<number> =>
        (await ask(`${url}/hello`, { headers: { "x-forwarded-for": chain } })).status;
      const behindOne = await start({ at, limits: "1/h", options: { trustedProxies: 1 } });
      expect(await forwarded(behindOne, "198.51.100.1, 192.0.2.1")).toBe(200);
      expect(await forwarded(behindOne, "198.51.100.2, 192.0.2.1")).toBe(429);
      expect(await forwarded(behindOne, "198.51.100.1, 192.0.2.2")).toBe(200);
      const behindTwo = await start({ at, limits: "1/h", options: { trustedProxies: 2 } });
      expect(await forwarded(behindTwo, "198.51.100.1, 192.0.2.1")).toBe(200);
      expect(await forwarded(behindTwo, "203.0.113.9, 198.51.100.1, 192.0.2.2")).toBe(429);
      expect(await forwarded(behindTwo, "198.51.100.2, 192.0.2.1")).toBe(200);
    },
  );
});

describe(`Next ${version}: proxy.ts`, () => {
  const limited = (limits: string, more?: Partial<RequestedSetup>, options?: NextRateLimitOptions): Promise<string> =>
    start({ at: "proxy", limits, options: { peer, ...options }, ...more });

  it("lets in what a limit allows, and refuses the rest before there is a route", async () => {
    const url = await limited("2/h");
    expect((await ask(`${url}/hello`)).text).toBe("hello");
    expect((await ask(url)).text).toContain("a page");
    for (const path of ["/hello", "/", "/nowhere", "/file.txt"]) {
      const refused = await ask(url + path);
      expect(refused.status).toBe(429);
      expect(refused.headers["content-type"]).toBe("application/problem+json");
      expect(refused.headers["cache-control"]).toBe("no-store");
      expect(Number(refused.headers["retry-after"])).toBeGreaterThanOrEqual(1);
      expect(JSON.parse(refused.text)).toMatchObject({ status: 429, reason: "over_limit", limit: 2 });
    }
    expect(await ask(`${url}/hello`, { method: "HEAD" })).toMatchObject({ status: 429, text: "" });
    expect((await ask(`${url}/hello`, { from: "127.0.0.2" })).status).toBe(200);
  });

  it("has header fields on whatever Next answers, and counts each once", async () => {
    const url = await limited("20/h");
    const statuses: number[] = [];
    const paths = ["/hello", "/items/7", "/", "/file.txt", "/nowhere", "/thrown", "/redirected", "/stream"];
    for (const [i, path] of paths.entries()) {
      const { status, headers } = await ask(url + path);
      statuses.push(status);
      expect(headers).toMatchObject({ "x-ratelimit-limit": "20", "x-ratelimit-remaining": String(19 - i) });
      expect(headers["x-middleware-next"]).toBeUndefined();
    }
    expect(statuses).toEqual([200, 200, 200, 200, 404, 500, 307, 200]);
  });

  it("passes bodies through as they are", async () => {
    const url = await limited("9/h");
    const body = "0123456789".repeat(10_000);
    const echoed = await ask(`${url}/echo`, { method: "POST", body, headers: { "content-type": "text/plain" } });
    expect([echoed.status, echoed.text === body]).toEqual([200, true]);
  });

  it("asks the app's own proxy for whom the limits let in, and leaves its answers as they are", async () => {
    const { NextResponse } = await import("next/server.js");
    const seen: unknown[] = [];
    const url = await limited("4/h", {
      proxy: (request, event) => {
        event.waitUntil(Promise.resolve());
        const { pathname } = request.nextUrl;
        seen.push([pathname, findTicket(request)?.decision.remaining]);
        if (pathname === "/old") return Response.redirect(new URL("/hello", request.url), 308);
        if (pathname === "/other") return NextResponse.rewrite(new URL("/hello", request.url));
        if (pathname === "/own") return Promise.resolve(NextResponse.json({ own: true }, { status: 401 }));
        return undefined;
      },
    });
    const answers: unknown[] = [];
    for (const path of ["/old", "/other", "/own", "/hello", "/old"]) {
      const { status, text, headers } = await ask(url + path);
      answers.push([status, status === 200 ? text : "", headers["x-ratelimit-remaining"]]);
    }
    expect(answers).toEqual([
      [308, "", "3"],
      [200, "hello", "2"],
      [401, "", "1"],
      [200, "hello", "0"],
      [429, "", "0"],
    ]);
    expect(seen).toEqual([
      ["/old", 3],
      ["/other", 2],
      ["/own", 1],
      ["/hello", 0],
    ]);
  });

  it("finds policies by endpoint and method, and skips what the app says", async () => {
    const policies = {
      policies: [
        {
          id: "items",
          match: { endpoint: "/items/{id}", method: "GET" },
          limits: [{ windows: ["1/h"] }],
          on_failure: "open",
        },
      ],
      default: { unlimited: true },
    };
    const skip = (request: Request): boolean => header("x-user")(request) === "ops";
    const url = await start({ at: "proxy", limits: { policies }, options: { skip } });
    expect((await ask(`${url}/items/1`)).headers["ratelimit-policy"]).toMatch(/^"items\//);
    expect((await ask(`${url}/items/2`)).status).toBe(429);
    expect((await ask(`${url}/items/2`, { headers: { "x-user": "ops" } })).text).toBe("2");
    expect((await ask(`${url}/hello`)).headers["ratelimit-policy"]).toBeUndefined();
  });

  it("does not pretend to see answers", () => {
    expect(() => rateLimitProxy("1/s", { trustedProxies: 1, charge: () => 1 } as NextRateLimitOptions)).toThrow(
      /charge works in route handlers only/,
    );
    const nothing = { trustedProxies: 1, charge: undefined } as NextRateLimitOptions;
    expect(() => rateLimitProxy("1/s", nothing)).not.toThrow();
  });

  it("refuses an upload, which Next reads to its end first", async () => {
    const url = await limited("1/h");
    await ask(`${url}/hello`);
    const body = "0123456789".repeat(10_000);
    expect((await ask(`${url}/echo`, { method: "POST", body })).status).toBe(429);
  });
});
