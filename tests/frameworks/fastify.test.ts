import { Readable } from "node:stream";
import { findTicket, limitRoute, rateLimit, type Sent } from "@sluice/middleware/fastify";
import { type FastifyInstance, type FastifyRequest, fastify } from "fastify";
import manifest from "fastify/package.json" with { type: "json" };
import { limit, MemoryCounters } from "sluice";
import { afterEach, describe, expect, it } from "vitest";
import type { RunningApp } from "./framework-under-test.ts";
import { ask } from "./http-exchange.ts";
import { leaveDuringAnswer } from "./leave-early.ts";
import { describeMiddleware } from "./middleware-contract.ts";

async function listen(app: FastifyInstance): Promise<RunningApp> {
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  return {
    url,
    close: async () => {
      app.server.closeAllConnections();
      await app.close();
    },
  };
}

describeMiddleware({
  name: `Fastify ${manifest.version}`,
  knowsRoutes: true,
  header: (name) => (request: FastifyRequest) => request.headers[name] as string | undefined,
  start: async (limits, options) => {
    const app = fastify();
    // Not waited for: limits apply to routes that are declared right after.
    app.register(rateLimit(limits, options));
    app.get("/hello", async () => "hello");
    app.get<{ Params: { id: string } }>("/items/:id", async ({ params }) => params.id);
    app.get("/broken", async () => {
      throw new Error("broken");
    });
    app.addContentTypeParser("text/plain", (_request, payload, done) => done(null, payload));
    app.post("/echo", (request, reply) => reply.send(request.body));
    app.get("/stream", (_request, reply) => reply.send(Readable.from(["x", "x", "x"].map((x) => x.repeat(1000)))));
    app.get("/charged", async (request) => {
      const ticket = findTicket(request)!;
      await ticket.charge(5);
      return String(ticket.decision.remaining);
    });
    return listen(app);
  },
});

const soon = { timeout: 30_000, interval: 20 };
const running: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const one of running.splice(0)) await one.close();
});

async function start(app: FastifyInstance): Promise<string> {
  const one = await listen(app);
  running.push(one);
  return one.url;
}

type Settings = Parameters<FastifyInstance["get"]>[1];

/** Settings of a route. The types of @fastify/rate-limit, which are loaded here too, know only its own. */
function config(rateLimit: unknown): Settings & object {
  return { config: { rateLimit } } as Settings & object;
}

const hello = async (): Promise<string> => "hello";

describe("Fastify: where it applies", () => {
  it("limits a single route, by its pattern", async () => {
    const app = fastify();
    const byEndpoint = limit("1/h").by("endpoint");
    app.get("/items/:id", { onRequest: limitRoute(byEndpoint) }, hello);
    app.get("/free", hello);
    const url = await start(app);
    expect((await ask(`${url}/items/1`)).headers["x-ratelimit-remaining"]).toBe("0");
    expect((await ask(`${url}/items/2`)).status).toBe(429);
    expect((await ask(`${url}/free`)).headers["x-ratelimit-limit"]).toBeUndefined();
  });

  it("decides synchronously if counters are in this process", async () => {
    const app = fastify();
    const limited = limitRoute("9/h");
    const decidedAtOnce: boolean[] = [];
    app.addHook("onRequest", function (request, reply, done) {
      let decided = false;
      const returned: unknown = limited.call(this, request, reply, () => {
        decided = true;
      });
      decidedAtOnce.push(decided && returned === undefined);
      done();
    });
    app.get("/hello", hello);
    expect((await ask(`${await start(app)}/hello`)).headers["x-ratelimit-remaining"]).toBe("8");
    expect(decidedAtOnce).toEqual([true]);
  });

  it("limits what the instance it is registered on holds, and nothing else", async () => {
    const app = fastify();
    await app.register(async (inner) => {
      await inner.register(rateLimit("1/h"));
      inner.get("/inner", hello);
      await inner.register(async (innermost) => void innermost.get("/innermost", hello));
    });
    app.get("/outer", hello);
    const url = await start(app);
    expect((await ask(`${url}/inner`)).headers["x-ratelimit-remaining"]).toBe("0");
    expect((await ask(`${url}/innermost`)).status).toBe(429);
    expect((await ask(`${url}/outer`)).headers["x-ratelimit-limit"]).toBeUndefined();
  });

  it("exempts a route that says so, whenever it was declared", async () => {
    const app = fastify();
    app.get("/early", config(false), hello);
    await app.register(rateLimit("1/h"));
    app.get("/late", config(false), hello);
    app.get("/hello", hello);
    const url = await start(app);
    await ask(`${url}/hello`);
    for (const path of ["/early", "/late"]) {
      const { status, headers } = await ask(url + path);
      expect(status).toBe(200);
      expect(headers["x-ratelimit-limit"]).toBeUndefined();
    }
    expect((await ask(`${url}/hello`)).status).toBe(429);
  });

  it("gives a route its own limits instead of the app's, counted apart from all others", async () => {
    const app = fastify();
    // All in the same counters, as they would be on a server.
    const counters = new MemoryCounters();
    app.get("/early", config("2/h"), hello);
    await app.register(rateLimit("100/h", { counters, name: "api" }));
    app.get("/one", config("2/h"), hello);
    app.get("/two", config("2/h"), hello);
    app.post("/one", config("2/h"), hello);
    app.get("/files/*", config(["2/h"]), hello);
    app.get("/hello", hello);
    const url = await start(app);
    for (const path of ["/early", "/one", "/two", "/files/a"]) {
      expect((await ask(url + path)).headers).toMatchObject({
        "x-ratelimit-limit": "2",
        "x-ratelimit-remaining": "1",
      });
    }
    expect((await ask(`${url}/one`, { method: "POST" })).headers["x-ratelimit-remaining"]).toBe("1");
    // A HEAD request is as good as a GET.
    expect((await ask(`${url}/one`, { method: "HEAD" })).headers["x-ratelimit-remaining"]).toBe("0");
    const refused = await ask(`${url}/one`);
    expect(refused.status).toBe(429);
    expect(refused.headers["x-ratelimit-policy"]).toBe("api:GET:/one");
    expect((await ask(`${url}/files/b`)).headers["ratelimit-policy"]).toMatch(/^"api:GET:\/files\/@2a\.\//);
    expect((await ask(`${url}/hello`)).headers["x-ratelimit-remaining"]).toBe("99");
  });

  it("counts a route's own limits once, below two plugins that both would", async () => {
    const app = fastify();
    await app.register(rateLimit("100/h"));
    await app.register(async (inner) => {
      await inner.register(rateLimit("50/h"));
      inner.get("/own", config(limit("10/h").by("ip")), hello);
      inner.get("/both", hello);
    });
    const url = await start(app);
    expect((await ask(`${url}/own`)).headers["x-ratelimit-remaining"]).toBe("9");
    expect((await ask(`${url}/own`)).headers["x-ratelimit-remaining"]).toBe("8");
    expect((await ask(`${url}/both`)).headers["x-ratelimit-remaining"]).toBe("49");
  });

  it("reports mistakes in a route's own limits where they are written", async () => {
    const app = fastify();
    await app.register(rateLimit("100/h", { counters: new MemoryCounters() }));
    expect(() => app.get("/a", config("ten"), hello)).toThrow(/config\.rateLimit of GET:\/a: .*windows/s);
    expect(() => app.get("/b", config({ max: 3, timeWindow: "1 minute" }), hello)).toThrow(/GET:\/b: must be false/);
    app.get("/c", { ...config("1/h"), constraints: { host: "a.example" } }, hello);
    expect(() => app.get("/c", { ...config("2/h"), constraints: { host: "b.example" } }, hello)).toThrow(
      /GET:\/c.*name/,
    );
    await app.close();
  });

  it("limits a catch-all by the path, which says more", async () => {
    const app = fastify();
    await app.register(rateLimit(limit("1/h").by("endpoint")));
    app.get("*", hello);
    const url = await start(app);
    expect((await ask(`${url}/a`)).status).toBe(200);
    expect((await ask(`${url}/b`)).status).toBe(200);
    expect((await ask(`${url}/a`)).status).toBe(429);
  });
});

describe("Fastify: answers", () => {
  it("have their header fields whatever answers: an error handler, the not-found handler, bad bodies", async () => {
    const app = fastify();
    await app.register(rateLimit("9/h"));
    app.setErrorHandler((_error, _request, reply) => reply.code(418).send("teapot"));
    app.setNotFoundHandler((_request, reply) => reply.code(404).send("nothing"));
    app.get("/broken", async () => {
      throw new Error("broken");
    });
    app.post("/json", hello);
    const url = await start(app);
    const body = { method: "POST", body: "{", headers: { "content-type": "application/json" } };
    const answers = [await ask(`${url}/broken`), await ask(`${url}/nowhere`), await ask(`${url}/json`, body)];
    expect(answers.map(({ status, text, headers }) => [status, text, headers["x-ratelimit-remaining"]])).toEqual([
      [418, "teapot", "8"],
      [404, "nothing", "7"],
      [418, "teapot", "6"],
    ]);
  });

  it("pass the hooks of other plugins when they refuse", async () => {
    const app = fastify();
    app.addHook("onSend", async (_request, reply) => void reply.header("x-seen", String(reply.statusCode)));
    await app.register(rateLimit("1/h"));
    app.get("/hello", hello);
    const url = await start(app);
    await ask(`${url}/hello`);
    const refused = await ask(`${url}/hello`);
    expect(refused.headers["x-seen"]).toBe("429");
    expect(refused.headers["content-length"]).toBe(String(Buffer.byteLength(refused.text)));
  });

  it("are charged once when the client leaves in the middle", async () => {
    const charged: Sent[] = [];
    const app = fastify();
    await app.register(rateLimit("9/h", { charge: (_request, sent) => void charged.push(sent) }));
    app.get("/endless", (_request, reply) => {
      const stream = new Readable({ read() {} });
      stream.push("x".repeat(1000));
      return reply.send(stream);
    });
    app.get("/hello", hello);
    const url = await start(app);
    await leaveDuringAnswer(`${url}/endless`);
    await expect.poll(() => charged, soon).toEqual([{ status: 200, bytes: 1000 }]);
    await ask(`${url}/hello`);
    await expect.poll(() => charged, soon).toHaveLength(2);
  });

  it("are charged under inject() as well", async () => {
    const charged: Sent[] = [];
    const app = fastify();
    await app.register(rateLimit("9/h", { charge: (_request, sent) => void charged.push(sent) }));
    app.get("/hello", hello);
    running.push(app);
    expect((await app.inject("/hello")).headers["x-ratelimit-remaining"]).toBe("8");
    await expect.poll(() => charged, soon).toEqual([{ status: 200, bytes: 5 }]);
  });
});

describe("Fastify: whose address", () => {
  const forwarded = (address: string): object => ({ headers: { "x-forwarded-for": address } });

  it("is Fastify's own, by its trustProxy", async () => {
    const app = fastify({ trustProxy: "127.0.0.1" });
    await app.register(rateLimit("1/h"));
    app.get("/hello", hello);
    const url = await start(app);
    expect((await ask(`${url}/hello`, forwarded("192.0.2.1"))).status).toBe(200);
    expect((await ask(`${url}/hello`, forwarded("192.0.2.2"))).status).toBe(200);
    expect((await ask(`${url}/hello`, forwarded("198.51.100.7, 192.0.2.1"))).status).toBe(429);
    // A peer that is not a trusted proxy is not trusted.
    const stranger = { from: "127.0.0.2" };
    expect((await ask(`${url}/hello`, { ...forwarded("192.0.2.3"), ...stranger })).status).toBe(200);
    expect((await ask(`${url}/hello`, { ...forwarded("192.0.2.4"), ...stranger })).status).toBe(429);
  });

  it("causes a warning if any client may choose it", async () => {
    const codes = async (trustProxy: boolean | string): Promise<unknown[]> => {
      const seen: unknown[] = [];
      const listener = (warning: Error): void => void seen.push((warning as NodeJS.ErrnoException).code);
      process.on("warning", listener);
      const app = fastify({ trustProxy });
      await app.register(rateLimit("9/h"));
      app.get("/hello", hello);
      const url = await start(app);
      await ask(`${url}/hello`);
      await new Promise((resolve) => setImmediate(resolve));
      process.off("warning", listener);
      return seen;
    };
    expect(await codes(false)).not.toContain("SLUICE_TRUSTS_ANYBODY");
    expect(await codes("127.0.0.0/8")).not.toContain("SLUICE_TRUSTS_ANYBODY");
    expect(await codes(true)).toContain("SLUICE_TRUSTS_ANYBODY");
  });
});
