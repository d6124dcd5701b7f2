import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { createRequire } from "node:module";
import { createAdaptorServer, getRequestListener, upgradeWebSocket } from "@hono/node-server";
import { findTicket, rateLimit, type Sent } from "@sluice/middleware/hono";
import { type Context, Hono } from "hono";
import { cors } from "hono/cors";
import { HTTPException } from "hono/http-exception";
import { limit } from "sluice";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import type { RunningApp } from "./framework-under-test.ts";
import { ask } from "./http-exchange.ts";
import { leaveDuringAnswer } from "./leave-early.ts";
import { listenOnLoopback } from "./listen-on-loopback.ts";
import { describeMiddleware } from "./middleware-contract.ts";
import { thousandAtATime } from "./thousand-at-a-time.ts";

const listen = (app: Hono): Promise<RunningApp> => listenOnLoopback(createServer(getRequestListener(app.fetch)));

function addRoutes(app: Hono): Hono {
  app.get("/hello", (c) => c.text("hello"));
  app.get("/items/:id", (c) => c.text(c.req.param("id")));
  app.get("/broken", () => {
    throw new Error("broken");
  });
  app.post("/echo", (c) => new Response(c.req.raw.body));
  app.get("/stream", () => new Response(thousandAtATime(3)));
  app.get("/endless", () => new Response(thousandAtATime(1, { ends: false })));
  app.get("/charged", async (c) => {
    const ticket = findTicket(c)!;
    await ticket.charge(5);
    return c.text(String(ticket.decision.remaining));
  });
  // Quiet: Hono would print the error of a broken handler.
  app.onError((_error, c) => c.text("broken", 500));
  return app;
}

/** Hono exports no package.json; its own folder has one. */
function findVersion(name: string): string {
  const entry = createRequire(import.meta.url).resolve(name);
  const folder = entry.slice(0, entry.lastIndexOf(`/node_modules/${name}/`) + `/node_modules/${name}/`.length);
  return (JSON.parse(readFileSync(`${folder}package.json`, "utf8")) as { version: string }).version;
}

describeMiddleware({
  name: `Hono ${findVersion("hono")}`,
  knowsRoutes: true,
  header: (name) => (c: Context) => c.req.header(name),
  start: async (limits, options) => {
    const app = new Hono();
    app.use(rateLimit(limits, options));
    return listen(addRoutes(app));
  },
});

const soon = { timeout: 30_000, interval: 20 };
const running: RunningApp[] = [];
afterEach(async () => {
  for (const one of running.splice(0)) await one.close();
});

async function start(app: Hono): Promise<string> {
  const one = await listen(app);
  running.push(one);
  return one.url;
}

/** Without Node: no connection, no Node response. */
const offNode = { peer: () => "192.0.2.1" };

describe("Hono: the endpoint", () => {
  const endpoints: (string | undefined)[] = [];
  const watching = (): Hono => {
    endpoints.length = 0;
    const app = new Hono();
    const policies = {
      policies: [{ id: "each", limits: [{ by: ["endpoint"], windows: ["1/h"] }], on_failure: "open" }],
    };
    app.use(
      rateLimit({ policies }, { onDecision: (decision) => endpoints.push(decision.allowed ? "first" : "again") }),
    );
    return app;
  };
  const seen = async (app: Hono, paths: readonly string[]): Promise<unknown> => {
    for (const path of paths) await app.request(path);
    return endpoints;
  };

  it("is the pattern of the route that will answer, past middleware that matches too", async () => {
    const app = watching();
    app.use("/items/*", async (_c, next) => next());
    app.get(
      "/items/:id",
      async (_c, next) => next(),
      (c) => c.text("item"),
    );
    app.get("/items/:id/:part", async (c, next) => (c.req.param("id") === "0" ? next() : c.text("part")));
    expect(await seen(app, ["/items/1", "/items/2", "/items/1/a", "/items/2/b"])).toEqual([
      "first",
      "again",
      "first",
      "again",
    ]);
  });

  it("is a mounted app's pattern as well, whichever app handles its errors", async () => {
    const app = watching();
    for (const path of ["/plain", "/careful"]) {
      const inner = new Hono();
      if (path === "/careful") inner.onError((_error, c) => c.text("oops", 500));
      inner.get("/:id", (c) => c.text("inner"));
      inner.get("/:id/more", (c) => c.text("more"));
      inner.get("/*", (c) => c.text("never"));
      app.route(path, inner);
    }
    for (const path of ["/plain", "/careful"]) {
      for (const answer of ["first", "again"]) {
        endpoints.length = 0;
        expect(await seen(app, [`${path}/${answer}`, `${path}/${answer}/more`])).toEqual([answer, answer]);
      }
    }
  });

  it("is the path if nothing or everything matches", async () => {
    const app = watching();
    app.all("/proxied/*", (c) => c.text("proxied"));
    expect(await seen(app, ["/a", "/b", "/proxied/a", "/proxied/b", "/proxied/a"])).toEqual([
      ...["first", "first", "first", "first"],
      "again",
    ]);
    const catchAll = watching();
    catchAll.get("*", (c) => c.text("page"));
    expect(await seen(catchAll, ["/a", "/b", "/a"])).toEqual(["first", "first", "again"]);
  });

  it("is the pattern of the route that it is attached to", async () => {
    const app = new Hono();
    app.get("/items/:id", rateLimit(limit("1/h").by("endpoint")), (c) => c.text("item"));
    expect((await app.request("/items/1")).status).toBe(200);
    expect((await app.request("/items/2")).status).toBe(429);
  });
});

describe("Hono: header fields", () => {
  const remaining = async (app: Hono, path: string): Promise<unknown> => {
    const answer = await app.request(path);
    return [answer.status, answer.headers.get("x-ratelimit-remaining")];
  };

  it("are on answers that cannot be changed, and on those of errors", async () => {
    const app = new Hono();
    app.use(rateLimit("9/h", offNode));
    app.get("/fetched", () => fetch("data:text/plain,hello"));
    app.get("/exception", () => {
      throw new HTTPException(403, { res: new Response("no", { status: 403 }) });
    });
    app.get("/broken", () => {
      throw new Error("broken");
    });
    app.get("/cookies", (c) => {
      c.header("set-cookie", "a=1", { append: true });
      c.header("set-cookie", "b=2", { append: true });
      return c.text("cookies");
    });
    app.onError((error, c) => (error instanceof HTTPException ? error.getResponse() : c.text(error.message, 500)));
    app.notFound(() => new Response("nothing", { status: 404 }));
    expect(await remaining(app, "/fetched")).toEqual([200, "8"]);
    expect(await remaining(app, "/exception")).toEqual([403, "7"]);
    expect(await remaining(app, "/broken")).toEqual([500, "6"]);
    expect(await remaining(app, "/nowhere")).toEqual([404, "5"]);
    expect((await app.request("/cookies")).headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    expect(await (await app.request("/fetched")).text()).toBe("hello");
  });

  it("take the place of those that another server put on its answer", async () => {
    const upstream = await listenOnLoopback(
      createServer((_request, response) => void response.setHeader("x-ratelimit-remaining", "77").end("far away")),
    );
    running.push(upstream);
    const app = new Hono();
    app.use(rateLimit("9/h", offNode));
    app.get("/proxied", () => fetch(upstream.url));
    expect(await remaining(app, "/proxied")).toEqual([200, "8"]);
  });

  it("are on the answer if the not-found handler fails", async () => {
    const app = new Hono();
    app.use(rateLimit("9/h", offNode));
    app.notFound(() => {
      throw new Error("broken");
    });
    app.onError((_error, c) => c.text("oops", 500));
    expect(await remaining(app, "/nowhere")).toEqual([500, "8"]);
  });

  it("of middleware before it stay when it refuses", async () => {
    const app = new Hono();
    app.use(cors({ origin: "https://app.example" }));
    app.use(async (c, next) => {
      c.header("x-request-id", "r1");
      await next();
    });
    app.use(rateLimit("1/h", offNode));
    app.get("/hello", (c) => c.text("hello"));
    await app.request("/hello");
    const refused = await app.request("/hello", { headers: { origin: "https://app.example" } });
    expect(refused.status).toBe(429);
    expect(Object.fromEntries(refused.headers)).toMatchObject({
      "access-control-allow-origin": "https://app.example",
      "x-request-id": "r1",
      "content-type": "application/problem+json",
      "retry-after": expect.any(String),
    });
  });
});

describe("Hono: loaded by require", () => {
  it("may be another copy of Hono, whose routes are still found", async () => {
    const { Hono: Required } = createRequire(import.meta.url)("hono") as { Hono: typeof Hono };
    expect(Required).not.toBe(Hono);
    const app = new Required();
    app.use(rateLimit(limit("1/h").by("endpoint")));
    const url = await start(addRoutes(app));
    expect((await ask(`${url}/items/1`)).text).toBe("1");
    expect((await ask(`${url}/items/2`)).status).toBe(429);
  });
});

describe("Hono: whose address", () => {
  it("is the app's, if the runtime does not know it", async () => {
    const app = new Hono();
    app.use(rateLimit("1/h", { peer: (c) => c.req.header("x-peer"), trustedProxies: ["10.0.0.0/8"] }));
    app.get("/hello", (c) => c.text("hello"));
    const readStatus = async (headers: Record<string, string>): Promise<number> =>
      (await app.request("/hello", { headers })).status;
    expect(await readStatus({ "x-peer": "192.0.2.1", "x-forwarded-for": "192.0.2.9" })).toBe(200);
    expect(await readStatus({ "x-peer": "10.0.0.1", "x-forwarded-for": "192.0.2.2" })).toBe(200);
    expect(await readStatus({ "x-peer": "10.0.0.2", "x-forwarded-for": "192.0.2.1" })).toBe(429);
  });

  it("is the same for all if unknown, with a warning", async () => {
    const codes: unknown[] = [];
    const listener = (warning: Error): void => void codes.push((warning as NodeJS.ErrnoException).code);
    process.on("warning", listener);
    const app = new Hono();
    app.use(rateLimit("1/h"));
    app.get("/hello", (c) => c.text("hello"));
    // An app may be asked with an environment, or with none at all.
    expect((await app.request("/hello")).status).toBe(200);
    expect((await app.request("/hello", {}, { KV: {} })).status).toBe(429);
    await expect.poll(() => codes, soon).toContain("SLUICE_NO_ADDRESS");
    process.off("warning", listener);
  });
});

describe("Hono: WebSockets", () => {
  it("limits their handshakes", async () => {
    const charged: Sent[] = [];
    const app = new Hono();
    app.use(rateLimit("1/h", { charge: (_c, sent) => void charged.push(sent) }));
    app.get(
      "/talk",
      upgradeWebSocket(() => ({ onMessage: (event, socket) => socket.send(`you said ${event.data}`) })),
    );
    const websocket = { server: new WebSocketServer({ noServer: true }) };
    const settings = { fetch: app.fetch, websocket } as Parameters<typeof createAdaptorServer>[0];
    const one = await listenOnLoopback(createAdaptorServer(settings) as Server);
    running.push(one);
    const talk = (): WebSocket => new WebSocket(`${one.url.replace("http", "ws")}/talk`);
    const admitted = talk();
    const [[upgrade]] = (await Promise.all([once(admitted, "upgrade"), once(admitted, "open")])) as [
      [IncomingMessage],
      [],
    ];
    expect(upgrade.headers["x-ratelimit-remaining"]).toBe("0");
    admitted.send("hello");
    expect(String((await once(admitted, "message"))[0])).toBe("you said hello");
    admitted.terminate();
    const refused = talk();
    refused.on("error", () => {});
    const [, answer] = (await once(refused, "unexpected-response")) as [unknown, IncomingMessage];
    expect(answer.statusCode).toBe(429);
    answer.resume();
    expect(charged).toHaveLength(1);
  });
});

describe("Hono: charging", () => {
  it("charges a client that leaves in the middle once, on Node", async () => {
    const charged: Sent[] = [];
    const app = new Hono();
    app.use(rateLimit("9/h", { charge: (_c, sent) => void charged.push(sent) }));
    const url = await start(addRoutes(app));
    await leaveDuringAnswer(`${url}/endless`);
    await expect.poll(() => charged, soon).toEqual([{ status: 200, bytes: 1000 }]);
    await ask(`${url}/hello`);
    await expect.poll(() => charged, soon).toHaveLength(2);
  });

  it("charges answers once off Node: read, given up, without a body, broken", async () => {
    const charged: Sent[] = [];
    const app = new Hono();
    app.use(rateLimit("9/h", { ...offNode, charge: (_c, sent) => void charged.push(sent) }));
    addRoutes(app);
    app.get("/nothing", (c) => c.body(null, 204));
    app.get("/text", () => {
      throw "not even an error";
    });
    expect(await (await app.request("/stream")).text()).toHaveLength(3000);
    const reader = (await app.request("/endless")).body!.getReader();
    await reader.read();
    await reader.cancel();
    await app.request("/nothing");
    await app.request("/stream", { method: "HEAD" });
    await expect(app.request("/text")).rejects.toBe("not even an error");
    await expect
      .poll(() => charged, soon)
      .toEqual([
        { status: 200, bytes: 3000 },
        { status: 200, bytes: 1000 },
        { status: 204, bytes: 0 },
        { status: 200, bytes: 0 },
        { status: 500, bytes: 0 },
      ]);
  });

  it("keeps a Worker awake until it is done", async () => {
    const app = new Hono();
    let charged = 0;
    app.use(
      rateLimit("9/h", {
        ...offNode,
        charge: async () => {
          charged += 1;
          return 1;
        },
      }),
    );
    addRoutes(app);
    const waitedFor: Promise<unknown>[] = [];
    const context = {
      waitUntil: (promise: Promise<unknown>) => void waitedFor.push(promise),
      passThroughOnException: () => {},
      props: {},
    };
    const answer = await app.request("/hello", {}, {}, context);
    expect(waitedFor).toHaveLength(1);
    expect(charged).toBe(0);
    await answer.text();
    await waitedFor[0];
    expect(charged).toBe(1);
  });
});
