import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  findRefusal,
  findTicket,
  type Limits,
  type ProcedureAnswer,
  type ProcedureCall,
  rateLimit,
  type Ticket,
  type TrpcRateLimitOptions,
} from "@sluice/middleware/trpc";
import { RedisCounters } from "@sluice/redis";
import { startServer } from "@sluice/test-servers";
import {
  createTRPCProxyClient,
  httpBatchLink,
  httpLink,
  TRPCClientError,
  unstable_httpBatchStreamLink,
} from "@trpc/client";
import { initTRPC, TRPCError } from "@trpc/server";
import { createExpressMiddleware } from "@trpc/server/adapters/express";
import { fetchRequestHandler } from "@trpc/server/adapters/fetch";
import { createHTTPHandler } from "@trpc/server/adapters/standalone";
import { observable } from "@trpc/server/observable";
import manifest from "@trpc/server/package.json" with { type: "json" };
import express from "express";
import fastify, { type FastifyReply } from "fastify";
import { createLimiter, type Decision, limit } from "sluice";
import type { ProblemBody } from "sluice/internal";
import { afterEach, describe, expect, inject, it } from "vitest";
import { ask, readStatuses } from "./http-exchange.ts";

const { version } = manifest;
const soon = { timeout: 30_000, interval: 20 };

interface Context {
  readonly req?: IncomingMessage | Request | undefined;
  readonly res?: ServerResponse | undefined;
  readonly resHeaders?: Headers | undefined;
  readonly user?: string | undefined;
  readonly rateLimit?: Ticket | undefined;
}

const t = initTRPC.context<Context>().create({
  errorFormatter: ({ shape, error }) => {
    const refusal = findRefusal(error);
    return {
      ...shape,
      data: { ...shape.data, refusal: refusal?.problem, retryAfterMs: refusal?.retryAfterMs },
    };
  },
});

const text = (value: unknown): string => String(value);

function createRouter(limits: Limits, options?: TrpcRateLimitOptions<Context>) {
  const limited = t.procedure.use(rateLimit(limits, options));
  return t.router({
    hello: limited.query(() => "hello"),
    save: limited.input(text).mutation(({ input }) => input.toUpperCase()),
    broken: limited.query((): string => {
      throw new TRPCError({ code: "NOT_FOUND" });
    }),
    charged: limited.query(async ({ ctx }) => {
      expect(findTicket(ctx)).toBe(ctx.rateLimit);
      await ctx.rateLimit!.charge(5);
      return ctx.rateLimit!.decision.remaining;
    }),
    ticks: limited.subscription(() => observable<number>((observer) => observer.complete())),
    post: t.router({ byId: limited.input(text).query(({ input }) => input) }),
    free: t.procedure.query(() => "free"),
  });
}
type Router = ReturnType<typeof createRouter>;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function findUser({ headers }: IncomingMessage): string | undefined {
  return headers["x-user"]?.toString();
}

/** A server by tRPC's own adapter for Node, with its request and response in the context. */
function start(limits: Limits, options?: TrpcRateLimitOptions<Context>): Promise<string> {
  const router = createRouter(limits, options);
  return listen(createHTTPHandler({ router, createContext: ({ req, res }) => ({ req, res, user: findUser(req) }) }));
}

function createClient(url: string, headers: Record<string, string> = {}) {
  return createTRPCProxyClient<Router>({ links: [httpLink({ url, headers })] });
}

/** The outcome of a call: its data, or the code of its error. */
async function outcome(calling: Promise<unknown>): Promise<unknown> {
  return calling.catch((error: unknown) => (error as TRPCClientError<Router>).data?.code ?? error);
}

const refusedCode = "TOO_MANY_REQUESTS";
const user = ({ ctx }: ProcedureCall<Context>): string | undefined => ctx.user;

describe(`tRPC ${version}: refusing`, () => {
  it("lets in what a limit in one line allows, by client address, and refuses the rest", async () => {
    const url = await start("2/h");
    const client = createClient(url);
    expect(await client.hello.query()).toBe("hello");
    expect(await client.save.mutate("a")).toBe("A");
    const error: unknown = await client.hello.query().catch((one: unknown) => one);
    expect(error).toBeInstanceOf(TRPCClientError);
    const { message, data } = error as TRPCClientError<Router>;
    expect(message).toContain("Policy limit, limit ip, allows 2 per hour");
    expect(data).toMatchObject({ code: refusedCode, httpStatus: 429, path: "hello" });
    const refusal = data!.refusal as ProblemBody;
    expect(refusal).toMatchObject({ title: "Too Many Requests", status: 429, reason: "over_limit", limit: 2 });
    expect(refusal["violated-policies"]).toEqual(["limit/ip"]);
    expect(data!.retryAfterMs).toBe(refusal.retry_after_ms);
    expect(data!.retryAfterMs).toBeGreaterThan(0);
    expect((await ask(`${url}/hello`, { from: "127.0.0.2" })).status).toBe(200);
  });

  it("counts every call of a batch, and refuses only those without room", async () => {
    const url = await start("3/h");
    const client = createTRPCProxyClient<Router>({ links: [httpBatchLink({ url })] });
    const calls = [
      client.hello.query(),
      client.post.byId.query("7"),
      client.free.query(),
      client.hello.query(),
      client.hello.query(),
      client.free.query(),
    ];
    expect(await Promise.all(calls.map(outcome))).toEqual(["hello", "7", "free", "hello", refusedCode, "free"]);
    expect((await ask(`${url}/hello,free?batch=1&input=%7B%7D`)).status).toBe(207);
  });

  it("counts every call of a streamed batch, whose headers are out before anything is decided", async () => {
    const url = await start("2/h", { skip: () => new Promise((resolve) => setImmediate(resolve, false)) });
    const client = createTRPCProxyClient<Router>({ links: [unstable_httpBatchStreamLink({ url })] });
    const calls = [client.hello.query(), client.hello.query(), client.hello.query()];
    expect((await Promise.all(calls.map(outcome))).sort()).toEqual([refusedCode, "hello", "hello"]);
  });

  it("refuses subscriptions, and calls from the server itself", async () => {
    const caller = createRouter(limit("1/h").by("user"), { dimensions: { user } }).createCaller({ user: "ada" });
    await caller.ticks();
    await expect(caller.ticks()).rejects.toMatchObject({ code: refusedCode });
    await expect(caller.hello()).rejects.toMatchObject({ code: refusedCode });
  });

  it("gives error handlers the reason", async () => {
    const caller = createRouter("0/h", { ip: () => "192.0.2.1" }).createCaller({});
    const error = await caller.hello().catch((one: unknown) => one as TRPCError);
    expect(error).toBeInstanceOf(TRPCError);
    const refusal = findRefusal(error as TRPCError)!;
    expect(refusal).toMatchObject({ message: (error as TRPCError).message, retryAfterMs: undefined });
    expect(refusal.decision).toMatchObject({ allowed: false, reason: "never_fits" });
    expect(findRefusal(new TRPCError({ code: refusedCode }))).toBeUndefined();
  });

  it("answers with the app's own message if there is one", async () => {
    const url = await start("0/h", { refuse: ({ status }) => ({ code: "FORBIDDEN", message: `not ${status}` }) });
    await expect(createClient(url).hello.query()).rejects.toMatchObject({
      message: "not 429",
      data: { code: "FORBIDDEN", httpStatus: 403, refusal: { status: 429 } },
    });
  });
});

describe(`tRPC ${version}: headers`, () => {
  it("are on every answer, whatever the procedure did with the call", async () => {
    const url = await start("2/h");
    const statuses: number[] = [];
    for (const [i, path] of ["/hello", "/broken", "/hello"].entries()) {
      const { status, headers } = await ask(url + path);
      statuses.push(status);
      expect(headers).toMatchObject({
        "x-ratelimit-limit": "2",
        "x-ratelimit-remaining": String(Math.max(0, 1 - i)),
        "ratelimit-policy": '"limit/ip";q=2;w=3600',
      });
      expect(headers["content-type"]).toMatch(/^application\/json/);
      expect(headers["retry-after"] !== undefined).toBe(status === 429);
    }
    expect(statuses).toEqual([200, 404, 429]);
    expect((await ask(`${url}/free`)).headers["x-ratelimit-limit"]).toBeUndefined();
  });

  it("go to the fetch adapter's response headers", async () => {
    const router = createRouter("1/h", { ip: () => "192.0.2.1" });
    const request = (path: string): Promise<Response> =>
      fetchRequestHandler({
        endpoint: "/trpc",
        req: new Request(`http://localhost/trpc/${path}`),
        router,
        createContext: ({ req, resHeaders }) => ({ req, resHeaders }),
      });
    const passed = await request("hello");
    expect([passed.status, passed.headers.get("x-ratelimit-remaining")]).toEqual([200, "0"]);
    const refused = await request("hello");
    expect([refused.status, Number(refused.headers.get("retry-after")) > 0]).toEqual([429, true]);
    expect(refused.headers.get("content-type")).toMatch(/^application\/json/);
  });

  it("go to the target that the app names", async () => {
    const app = fastify();
    closing.push(() => app.close());
    const own = initTRPC.context<{ reply: FastifyReply }>().create();
    const limited = own.procedure.use(rateLimit("1/h", { ip: () => "192.0.2.1", response: ({ ctx }) => ctx.reply }));
    const router = own.router({ hello: limited.query(() => "hello") });
    app.get("/", async (_request, reply) => router.createCaller({ reply }).hello());
    const { headers, body } = await app.inject("/");
    expect(body).toBe("hello");
    expect(headers["x-ratelimit-limit"]).toBe("1");
    const given = new Headers();
    const refusing = createRouter("0/h", { ip: () => "192.0.2.1", response: () => given });
    await expect(refusing.createCaller({}).hello()).rejects.toMatchObject({ code: refusedCode });
    expect(Object.fromEntries(given)).toMatchObject({ "x-ratelimit-limit": "0", "cache-control": "no-store" });
    // What goes out is tRPC's, and no problem body.
    expect(given.has("content-type")).toBe(false);
  });

  it("go nowhere if there is nothing to set them on", async () => {
    const router = createRouter("1/h", { ip: () => "192.0.2.1" });
    const url = await listen(createHTTPHandler({ router, createContext: () => ({}) }));
    expect((await ask(`${url}/hello`)).status).toBe(200);
    expect((await ask(`${url}/hello`)).status).toBe(429);
    const bare = initTRPC.create();
    const limited = bare.procedure.use(rateLimit("1/h", { ip: () => "192.0.2.1" }));
    const withoutContext = await listen(
      createHTTPHandler({ router: bare.router({ hello: limited.query(() => "hello") }) }),
    );
    expect((await ask(`${withoutContext}/hello`)).status).toBe(200);
    expect((await ask(`${withoutContext}/hello`)).status).toBe(429);
  });
});

describe(`tRPC ${version}: whom it counts`, () => {
  it("counts by what the context says, known at once or later", async () => {
    const atOnce = await start(limit("1/h").by("user"), { dimensions: { user } });
    const later = await start(limit("1/h").by("user"), { dimensions: { user: async (call) => user(call) } });
    for (const url of [atOnce, later]) {
      const asked = ["ada", "bob", "ada"].map((name) => ask(`${url}/hello`, { headers: { "x-user": name } }));
      expect((await readStatuses(asked)).sort()).toEqual([200, 200, 429]);
    }
  });

  it("knows what middleware before it added to the context, and the input", async () => {
    const limited = t.procedure
      .use(({ next }) => next({ ctx: { team: { id: 7 } } }))
      .input(text)
      .use(
        rateLimit(limit("1/h").by("team", "item"), {
          dimensions: { team: ({ ctx }) => ctx.team.id, item: ({ input }) => text(input) },
        }),
      );
    const caller = t.router({ byId: limited.query(({ ctx, input }) => `${ctx.team.id} ${input}`) }).createCaller({});
    expect(await caller.byId("a")).toBe("7 a");
    expect(await caller.byId("b")).toBe("7 b");
    await expect(caller.byId("a")).rejects.toMatchObject({ code: refusedCode });
  });

  it("trusts no client that claims another address", async () => {
    const url = await start("1/h");
    const asking = [1, 2, 3].map((i) =>
      ask(`${url}/hello`, { headers: { "x-forwarded-for": `192.0.2.${i}`, "x-real-ip": `192.0.2.${i}` } }),
    );
    expect((await readStatuses(asking)).sort()).toEqual([200, 429, 429]);
  });

  it.each([
    ["by address", ["127.0.0.0/8"]],
    ["by number", 1],
  ] as const)("trusts its own proxies, given %s, and only them", async (_how, trustedProxies) => {
    const url = await start("1/h", { trustedProxies });
    const forwarded = async (chain: string): Promise<number> =>
      (await ask(`${url}/hello`, { headers: { "x-forwarded-for": chain } })).status;
    expect(await forwarded("192.0.2.1")).toBe(200);
    expect(await forwarded("192.0.2.2")).toBe(200);
    expect(await forwarded("198.51.100.7, 192.0.2.1")).toBe(429);
    expect(await forwarded("<script>")).toBe(200);
    expect(await forwarded("' or 1=1")).toBe(429);
  });

  it("reads a fetch request's headers if a number of proxies is trusted", async () => {
    const caller = (chain: string) =>
      router.createCaller({ req: new Request("http://localhost", { headers: { "x-forwarded-for": chain } }) });
    const router = createRouter("1/h", { trustedProxies: 1 });
    expect(await caller("192.0.2.1").hello()).toBe("hello");
    expect(await caller("192.0.2.2").hello()).toBe("hello");
    await expect(caller("198.51.100.7, 192.0.2.1").hello()).rejects.toMatchObject({ code: refusedCode });
  });

  it("takes the address that Express found by its own settings", async () => {
    const app = express();
    app.set("trust proxy", 1);
    const router = createRouter("1/h");
    app.use(createExpressMiddleware({ router, createContext: ({ req, res }) => ({ req, res }) }));
    const url = await listen(app);
    const forwarded = async (chain: string): Promise<number> =>
      (await ask(`${url}/hello`, { headers: { "x-forwarded-for": chain } })).status;
    expect(await forwarded("192.0.2.1")).toBe(200);
    expect(await forwarded("192.0.2.2")).toBe(200);
    expect(await forwarded("192.0.2.1")).toBe(429);
  });

  it("takes the procedure's path for the endpoint", async () => {
    const url = await start(limit("1/h").by("endpoint"));
    const byId = (id: string): string => `${url}/post.byId?input=${encodeURIComponent(JSON.stringify(id))}`;
    const asked = [`${url}/hello`, byId("1"), byId("2"), `${url}/hello`];
    const statuses: number[] = [];
    for (const one of asked) statuses.push((await ask(one)).status);
    expect(statuses).toEqual([200, 200, 429, 429]);
    const policies = [{ id: "posts", match: { endpoint: "/post.byId" }, limits: [{ windows: ["0/h"] }] }];
    const byPolicy = createClient(await start({ policies: { policies, default: { unlimited: true } } }));
    expect(await outcome(byPolicy.post.byId.query("1"))).toBe(refusedCode);
    expect(await outcome(byPolicy.hello.query())).toBe("hello");
  });
});

describe(`tRPC ${version}: how much it takes`, () => {
  it("skips what the app says, and takes the cost that it says", async () => {
    const url = await start("10/h", {
      skip: ({ type }) => type === "mutation",
      cost: ({ ctx }) => Number(ctx.user ?? 1),
    });
    expect(await createClient(url).save.mutate("a")).toBe("A");
    const costing = (cost: string) => ask(`${url}/hello`, { headers: { "x-user": cost } });
    expect((await costing("4")).headers["x-ratelimit-remaining"]).toBe("6");
    expect((await costing("0")).headers["x-ratelimit-remaining"]).toBe("6");
    await expect(createClient(url, { "x-user": "100001" }).hello.query()).rejects.toMatchObject({
      data: { code: "BAD_REQUEST", httpStatus: 400, refusal: { problems: [{ field: "cost" }] } },
    });
  });

  it("charges by what the procedure came to, once", async () => {
    const answers: ProcedureAnswer[] = [];
    const url = await start("1000/d", {
      charge: (_call, answer) => {
        answers.push(answer);
        return answer.status === 200 ? 100 * String(answer.data).length : 0;
      },
    });
    expect((await ask(`${url}/hello`)).headers["x-ratelimit-remaining"]).toBe("999");
    expect((await ask(`${url}/broken`)).headers["x-ratelimit-remaining"]).toBe("498");
    expect((await ask(`${url}/broken`)).headers["x-ratelimit-remaining"]).toBe("497");
    expect(answers).toEqual([
      { status: 200, data: "hello" },
      { status: 404, data: undefined },
      { status: 404, data: undefined },
    ]);
  });

  it("gives back what the app says, once the answer is known", async () => {
    const url = await start("3/h", { giveBack: (_call, { status }) => status === 200 });
    const left = async (path: string): Promise<unknown> => (await ask(url + path)).headers["x-ratelimit-remaining"];
    expect(await left("/broken")).toBe("2");
    for (let i = 0; i < 4; i++) await expect.poll(() => left("/hello"), soon).toBe("1");
  });

  it("lets a procedure charge more by the ticket in its context", async () => {
    const url = await start("20/h");
    expect(await createClient(url).charged.query()).toBe(19);
    expect((await ask(`${url}/hello`)).headers["x-ratelimit-remaining"]).toBe("13");
  });

  it("takes several limits behind one another", async () => {
    const seen: Decision[] = [];
    const limited = t.procedure
      .use(t.middleware(rateLimit(limit("3/h").by("all"), { dimensions: { all: () => "all" } })))
      .use(rateLimit(limit("2/h").by("user"), { dimensions: { user }, onDecision: (one) => seen.push(one) }))
      .use(rateLimit("1/h", { skip: () => true }));
    const router = t.router({ left: limited.query(({ ctx }) => ctx.rateLimit?.decision.remaining) });
    const asked = ["ada", "ada", "ada", "bob"];
    const outcomes: unknown[] = [];
    for (const name of asked) {
      outcomes.push(
        await router
          .createCaller({ user: name })
          .left()
          .catch((error: TRPCError) => error.code),
      );
    }
    expect(outcomes).toEqual([1, 0, refusedCode, refusedCode]);
    expect(seen.map(({ allowed }) => allowed)).toEqual([true, true, false]);
  });
});

describe(`tRPC ${version}: when something is broken`, () => {
  it("lets calls pass when the limiter fails, and reports it to the listener", async () => {
    const errors: unknown[] = [];
    const broken = new Error("broken in an unexpected way");
    const limiter = createLimiter();
    const breaks = (): never => {
      throw broken;
    };
    for (const check of [() => Promise.reject(broken), breaks]) {
      const asked = { check, checkSync: breaks, charge: limiter.charge, give: limiter.give };
      const url = await start(asked, { onError: (error) => errors.push(error) });
      expect(await createClient(url).hello.query()).toBe("hello");
    }
    expect(errors).toEqual([broken, broken]);
  });

  it("hands errors of the app's own functions to the app", async () => {
    const fails = (): never => {
      throw new TRPCError({ code: "UNAUTHORIZED" });
    };
    const failsLater = async (): Promise<never> => {
      throw new Error("the app's own");
    };
    for (const [options, code] of [
      [{ skip: fails }, "UNAUTHORIZED"],
      [{ dimensions: { user: fails } }, "UNAUTHORIZED"],
      [{ cost: failsLater }, "INTERNAL_SERVER_ERROR"],
    ] as const) {
      expect(await outcome(createClient(await start("1/h", options)).hello.query())).toBe(code);
    }
  });

  it("charges a call whose answer was lost on its way back as one that failed", async () => {
    const answers: ProcedureAnswer[] = [];
    const limited = t.procedure
      .use(rateLimit("9/h", { ip: () => "192.0.2.1", charge: (_call, answer) => void answers.push(answer) }))
      // @ts-expect-error: its required result is missing
      .use(async ({ next }) => {
        await next();
      });
    const router = t.router({ lost: limited.query(() => "lost") });
    await expect(router.createCaller({}).lost()).rejects.toThrow(/No result from middlewares/);
    expect(answers).toEqual([{ status: 500, data: undefined }]);
  });

  it("reports mistakes in its setup at once", () => {
    expect(() => rateLimit("ten per second")).toThrow(/windows/);
    expect(() => rateLimit("1/s", { trustedProxies: -1 })).toThrow(/trustedProxies/);
  });
});

describe(`tRPC ${version}: on a real server`, () => {
  it("two apps let in together exactly what the limit allows", async () => {
    const shared = await startServer({ flavor: "valkey" });
    closing.push(() => shared.close());
    const open = async (): Promise<string> => {
      const counters = new RedisCounters({ servers: shared.url, deadlineMs: 2000 });
      closing.push(() => counters.close());
      await counters.connected();
      return start("20/h", { name: "shared", counters });
    };
    const urls = [await open(), await open()];
    const statuses = await readStatuses(Array.from({ length: 50 }, (_, i) => ask(`${urls[i % 2]}/hello`)));
    expect(statuses.filter((status) => status === 200)).toHaveLength(20);
    expect(statuses.filter((status) => status === 429)).toHaveLength(30);
  });

  it("answers without its counters as the policy says: passes, or an error of the server and never 429", async () => {
    const gone = await startServer({ flavor: "valkey" });
    const counters = new RedisCounters({ servers: gone.url, deadlineMs: 200 });
    closing.push(() => counters.close());
    await counters.connected();
    const open = await start("1/h", { name: "open", counters });
    const closed = createClient(await start("1/h", { name: "closed", counters, onFailure: "closed" }));
    await gone.close();
    // tRPC 10 has no code for an unavailable service.
    const [code, httpStatus] =
      inject("majors") === "oldest" ? ["INTERNAL_SERVER_ERROR", 500] : ["SERVICE_UNAVAILABLE", 503];
    for (let i = 0; i < 2; i++) {
      const passed = await ask(`${open}/hello`);
      expect([passed.status, passed.headers["x-ratelimit-degraded"]]).toEqual([200, "true"]);
      await expect(closed.hello.query()).rejects.toMatchObject({
        data: { code, httpStatus, refusal: { status: 503, reason: "degraded" } },
      });
    }
  });
});
