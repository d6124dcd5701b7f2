import { connect } from "node:net";
import type { Limits, Sent } from "@sluice/middleware";
import { RedisCounters } from "@sluice/redis";
import { startServer, type TestServer } from "@sluice/test-servers";
import { createLimiter, type Decision, limit, SluiceError } from "sluice";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { AnyOptions, FrameworkUnderTest, RunningApp } from "./framework-under-test.ts";
import { ask, readStatuses } from "./http-exchange.ts";

/** What every adapter promises, over real HTTP. */
export function describeMiddleware(framework: FrameworkUnderTest): void {
  const running: RunningApp[] = [];
  const start = async (limits: Limits, options?: AnyOptions): Promise<string> => {
    const app = await framework.start(limits, options);
    running.push(app);
    return app.url;
  };
  afterEach(async () => {
    for (const app of running.splice(0)) await app.close();
  });
  const user = framework.header("x-user") as (request: unknown) => string | undefined;
  const as = (name: string): { headers: Record<string, string> } => ({ headers: { "x-user": name } });
  const soon = { timeout: 10_000, interval: 20 };

  describe(`${framework.name}: refusing`, () => {
    it("lets in what a limit in one line allows, by client address, and refuses the rest", async () => {
      const url = await start("2/h");
      expect((await ask(`${url}/hello`)).text).toBe("hello");
      expect((await ask(`${url}/hello`)).status).toBe(200);
      const refused = await ask(`${url}/hello`);
      expect(refused.status).toBe(429);
      expect(refused.headers["content-type"]).toBe("application/problem+json");
      expect(refused.headers["cache-control"]).toBe("no-store");
      expect(Number(refused.headers["retry-after"])).toBeGreaterThanOrEqual(1);
      expect(refused.headers).toMatchObject({ "x-ratelimit-policy": "limit", "x-ratelimit-scope": "ip" });
      expect(JSON.parse(refused.text)).toMatchObject({
        type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
        title: "Too Many Requests",
        status: 429,
        reason: "over_limit",
        limit: 2,
        remaining: 0,
        "violated-policies": ["limit/ip"],
      });
      expect((await ask(`${url}/hello`, { from: "127.0.0.2" })).status).toBe(200);
    });

    it("refuses a HEAD request without a body", async () => {
      const url = await start("1/h");
      await ask(`${url}/hello`);
      const refused = await ask(`${url}/hello`, { method: "HEAD" });
      expect(refused).toMatchObject({ status: 429, text: "" });
      expect(refused.headers["retry-after"]).toBeDefined();
    });

    it("refuses an upload without reading it to its end", async () => {
      const url = await start("1/h");
      await ask(`${url}/hello`);
      const status = await new Promise<string>((resolve, reject) => {
        const socket = connect(Number(new URL(url).port), "127.0.0.1");
        socket.on("error", reject);
        socket.on("data", (data) => {
          resolve(data.toString().split("\r\n", 1)[0]!);
          socket.destroy();
        });
        // A body of which the end never comes.
        socket.write(
          "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 1000000\r\n\r\nbegin",
        );
      });
      expect(status).toBe("HTTP/1.1 429 Too Many Requests");
    });

    it("answers with the app's own body if there is one", async () => {
      const url = await start("1/h", { refuse: ({ status }) => ({ status: status + 1, body: { slow: "down" } }) });
      await ask(`${url}/hello`);
      const refused = await ask(`${url}/hello`);
      expect(refused).toMatchObject({ status: 430, text: '{"slow":"down"}' });
      expect(refused.headers["content-type"]).toMatch(/^application\/json/);
      expect(refused.headers["retry-after"]).toBeDefined();
    });

    it("answers with a status that has no body, as beacons want it", async () => {
      const url = await start("1/h", { refuse: () => ({ status: 204 }) });
      await ask(`${url}/hello`);
      const refused = await ask(`${url}/hello`);
      expect(refused).toMatchObject({ status: 204, text: "" });
      expect(refused.headers["retry-after"]).toBeDefined();
    });

    it("takes several limits all or nothing", async () => {
      const limits = [
        { name: "all", windows: ["4/h"] },
        { name: "each", by: ["user"], windows: ["2/h"] },
      ];
      const url = await start(
        { policies: { policies: [{ id: "api", limits, on_failure: "open" }] } },
        { dimensions: { user } },
      );
      const asked = ["ada", "ada", "ada", "ada", "bob", "bob", "eve"];
      const statuses: number[] = [];
      for (const name of asked) statuses.push((await ask(`${url}/hello`, as(name))).status);
      expect(statuses).toEqual([200, 200, 429, 429, 200, 200, 429]);
    });
  });

  describe(`${framework.name}: headers`, () => {
    it("are on every answer, whatever the app did with the request", async () => {
      const url = await start("5/h");
      const paths = ["/hello", "/nowhere", "/broken"];
      const statuses: number[] = [];
      for (const [i, path] of paths.entries()) {
        const { status, headers } = await ask(url + path);
        statuses.push(status);
        expect(headers).toMatchObject({
          "x-ratelimit-limit": "5",
          "x-ratelimit-remaining": String(4 - i),
          "ratelimit-policy": '"limit/ip";q=5;w=3600',
        });
        expect(headers.ratelimit).toMatch(new RegExp(`^"limit/ip";r=${4 - i};t=\\d+$`));
        expect(Number(headers["x-ratelimit-reset"])).toBeGreaterThan(Date.now() / 1000 - 60);
      }
      expect(statuses).toEqual([200, 404, 500]);
    });

    it("come in the generations that were asked for, or not at all", async () => {
      const old = await start("1/h", { headers: ["draft6"] });
      const { headers } = await ask(`${old}/hello`);
      expect(headers).toMatchObject({ "ratelimit-limit": "1", "ratelimit-remaining": "0" });
      expect(headers["x-ratelimit-limit"]).toBeUndefined();
      const quiet = await start("1/h", { headers: [] });
      expect(Object.keys((await ask(`${quiet}/hello`)).headers).filter((name) => /ratelimit/.test(name))).toEqual([]);
      expect((await ask(`${quiet}/hello`)).headers["retry-after"]).toBeDefined();
    });
  });

  describe(`${framework.name}: whom it counts`, () => {
    it("counts by the app's own dimensions, known at once or later", async () => {
      const atOnce = await start(limit("1/h").by("user"), { dimensions: { user } });
      const later = await start(limit("1/h").by("user"), { dimensions: { user: async (request) => user(request) } });
      for (const url of [atOnce, later]) {
        expect((await ask(`${url}/hello`, as("ada"))).status).toBe(200);
        expect((await ask(`${url}/hello`, as("bob"))).status).toBe(200);
        expect((await ask(`${url}/hello`, as("ada"))).status).toBe(429);
        // Requests without the dimension share one counter.
        expect((await ask(`${url}/hello`)).status).toBe(200);
        expect((await ask(`${url}/hello`)).status).toBe(429);
      }
    });

    it("waits for whatever is like a promise, and takes nothing else for a text", async () => {
      // As a query builder answers: not a promise, but to be waited for.
      // biome-ignore lint/suspicious/noThenProperty: that is what it is about.
      const like = <Value>(value: Value) => ({ then: (go: (value: Value) => unknown) => void go(value) });
      const url = await start(limit("1/h").by("user"), {
        dimensions: { user: (request) => like(user(request)) as never },
        skip: (request) => like(user(request) === "ops") as never,
      });
      const statuses: number[] = [];
      for (const name of ["ada", "bob", "ada", "ops", "ops"])
        statuses.push((await ask(`${url}/hello`, as(name))).status);
      expect(statuses).toEqual([200, 200, 429, 200, 200]);
      const wrong = await start(limit("1/h").by("user"), { dimensions: { user: () => ({ id: 7 }) as never } });
      expect((await ask(`${wrong}/hello`)).status).toBe(500);
    });

    it("trusts no client that claims another address", async () => {
      const url = await start("1/h");
      const asking = [1, 2, 3].map((i) =>
        ask(`${url}/hello`, {
          headers: { "x-forwarded-for": `192.0.2.${i}`, forwarded: `for=192.0.2.${i}`, "x-real-ip": `192.0.2.${i}` },
        }),
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
      // Addresses further left were written by the client.
      expect(await forwarded("198.51.100.7, 192.0.2.1")).toBe(429);
      // An IPv4 address inside an IPv6 one is the same client.
      expect(await forwarded("::ffff:192.0.2.2")).toBe(429);
      // A customer has a whole /64 of IPv6.
      expect(await forwarded("2001:db8::1")).toBe(200);
      expect(await forwarded("2001:db8::ffff:2")).toBe(429);
      expect(await forwarded("2001:db8:0:1::1")).toBe(200);
      // Junk is no address: it ends at the proxy itself.
      expect(await forwarded("<script>")).toBe(200);
      expect(await forwarded("' or 1=1")).toBe(429);
    });

    it("takes the address that the app finds itself, and an invalid one as unknown", async () => {
      const url = await start("1/h", { ip: framework.header("x-user") as (request: unknown) => string | undefined });
      expect((await ask(`${url}/hello`, as("192.0.2.1"))).status).toBe(200);
      expect((await ask(`${url}/hello`, as("192.0.2.2"))).status).toBe(200);
      expect((await ask(`${url}/hello`, as("::ffff:192.0.2.1"))).status).toBe(429);
      expect((await ask(`${url}/hello`, as("nonsense"))).status).toBe(200);
      expect((await ask(`${url}/hello`, as("more nonsense"))).status).toBe(429);
    });

    it("takes an address with a port for the address", async () => {
      const url = await start("1/h", { ip: framework.header("x-user") as (request: unknown) => string | undefined });
      // As Azure's gateways write it into X-Forwarded-For, from where frameworks hand it on.
      expect((await ask(`${url}/hello`, as("192.0.2.1:50001"))).status).toBe(200);
      expect((await ask(`${url}/hello`, as("192.0.2.2:50001"))).status).toBe(200);
      expect((await ask(`${url}/hello`, as("192.0.2.1:50002"))).status).toBe(429);
      expect((await ask(`${url}/hello`, as("[2001:db8::1]:50001"))).status).toBe(200);
      expect((await ask(`${url}/hello`, as("2001:db8::2"))).status).toBe(429);
    });

    it(
      framework.knowsRoutes ? "takes the route's pattern for the endpoint" : "takes the path for the endpoint",
      async () => {
        const url = await start(limit("1/h").by("endpoint"));
        expect((await ask(`${url}/items/1?a=1`)).text).toBe("1");
        expect((await ask(`${url}/items/1?a=2`)).status).toBe(429);
        expect((await ask(`${url}/items/2`)).status).toBe(framework.knowsRoutes ? 429 : 200);
        expect((await ask(`${url}/hello`)).status).toBe(200);
      },
    );

    it("does not mind how long a query is", async () => {
      const url = await start(limit("1/h").by("endpoint"), { endpoint: "path" });
      const query = `q=${"x".repeat(5000)}`;
      expect((await ask(`${url}/items/1?${query}`)).text).toBe("1");
      expect((await ask(`${url}/items/1?a&${query}`)).status).toBe(429);
    });

    it("uses the path if configured, however it is spelled", async () => {
      const url = await start(limit("1/h").by("endpoint"), { endpoint: "path" });
      expect((await ask(`${url}/items/a`)).text).toBe("a");
      expect((await ask(`${url}/items/b`)).text).toBe("b");
      expect((await ask(`${url}/items/%61`)).status).toBe(429);
      // A framework may send the client to the usual way of writing it, and counts it there.
      const untidy = await ask(`${url}//items/./a?x`);
      const { location } = untidy.headers;
      expect((location === undefined ? untidy : await ask(new URL(location, url).href)).status).toBe(429);
    });

    it("finds policies by endpoint and method", async () => {
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
      const url = await start({ policies });
      expect((await ask(`${url}/items/1`)).headers["ratelimit-policy"]).toMatch(/^"items\//);
      expect((await ask(`${url}/items/2`)).status).toBe(429);
      const free = await ask(`${url}/hello`);
      expect(free.status).toBe(200);
      expect(free.headers["ratelimit-policy"]).toBeUndefined();
    });
  });

  describe(`${framework.name}: how much it takes`, () => {
    it("skips what the app says, decided at once or later", async () => {
      const isOps = (request: unknown): boolean => user(request) === "ops";
      for (const skip of [isOps, async (request: unknown) => isOps(request)]) {
        const url = await start("1/h", { skip });
        for (let i = 0; i < 3; i++) {
          const answer = await ask(`${url}/hello`, as("ops"));
          expect(answer.status).toBe(200);
          expect(answer.headers["x-ratelimit-limit"]).toBeUndefined();
        }
        expect((await ask(`${url}/hello`)).status).toBe(200);
        expect((await ask(`${url}/hello`)).status).toBe(429);
      }
    });

    it("takes the cost that the app says, and nothing for a cost of 0", async () => {
      const cost = framework.header("x-cost") as (request: unknown) => string | undefined;
      const url = await start("10/h", { cost: (request) => Number(cost(request) ?? 1) });
      const left = async (costs: string): Promise<unknown> =>
        (await ask(`${url}/hello`, { headers: { "x-cost": costs } })).headers["x-ratelimit-remaining"];
      expect(await left("4")).toBe("6");
      expect(await left("0")).toBe("6");
      expect(await left("6")).toBe("0");
      const bad = await ask(`${url}/hello`, { headers: { "x-cost": "100001" } });
      expect(bad.status).toBe(400);
      expect(bad.headers["content-type"]).toBe("application/problem+json");
      expect(JSON.parse(bad.text)).toMatchObject({ code: "invalid_request", problems: [{ field: "cost" }] });
    });

    it("charges a streamed answer by its bytes, once it is out", async () => {
      const url = await start("10000/h", { charge: (_request, { bytes, status }) => (status === 200 ? bytes : 0) });
      const streamed = await ask(`${url}/stream`);
      expect(streamed.text).toHaveLength(3000);
      expect(streamed.headers["x-ratelimit-remaining"]).toBe("9999");
      // 10 000 minus two requests, minus the streamed bytes. An hour's limit refills only a little meanwhile.
      const left = async (): Promise<number> =>
        Number((await ask(`${url}/hello`, { method: "HEAD" })).headers["x-ratelimit-remaining"]);
      await expect.poll(left, soon).toBeLessThan(7050);
      expect(await left()).toBeGreaterThan(6800);
    });

    it("holds an amount until the answer is out, and gives back what was not used", async () => {
      const charge = (_request: unknown, { bytes, status }: Sent): number => (status === 200 ? bytes : 0);
      const url = await start("10000/h", { hold: 4000, charge });
      expect((await ask(`${url}/stream`)).headers["x-ratelimit-remaining"]).toBe("6000");
      // Three thousand were used, and four are held for the request that asks.
      const left = async (): Promise<number> =>
        Number((await ask(`${url}/hello`, { method: "HEAD" })).headers["x-ratelimit-remaining"]);
      await expect.poll(left, soon).toBeGreaterThan(2800);
      expect(await left()).toBeLessThan(3050);
    });

    it("gives back what the app says, once the answer is known", async () => {
      const url = await start("3/h", { giveBack: (_request, { status }) => status === 200 });
      const left = async (path: string): Promise<string> =>
        String((await ask(url + path)).headers["x-ratelimit-remaining"]);
      expect(await left("/broken")).toBe("2");
      for (let i = 0; i < 4; i++) await expect.poll(() => left("/hello"), soon).toBe("1");
      await expect.poll(() => left("/broken"), soon).toBe("1");
    });

    it("lets a handler charge more by the request's ticket", async () => {
      const url = await start("20/h");
      expect((await ask(`${url}/charged`)).text).toBe("19");
      expect((await ask(`${url}/hello`)).headers["x-ratelimit-remaining"]).toBe("13");
    });

    it("passes bodies through as they are, both ways", async () => {
      const url = await start("10/h", { charge: () => 1 });
      const body = "0123456789".repeat(100_000);
      const echoed = await ask(`${url}/echo`, { method: "POST", body, headers: { "content-type": "text/plain" } });
      expect(echoed.status).toBe(200);
      expect(echoed.text === body).toBe(true);
    });

    it("shows every decision to a listener", async () => {
      const seen: Decision[] = [];
      const url = await start("1/h", { onDecision: (decision) => seen.push(decision) });
      await ask(`${url}/hello`);
      await ask(`${url}/hello`);
      expect(seen.map(({ allowed }) => allowed)).toEqual([true, false]);
    });
  });

  describe(`${framework.name}: when something is broken`, () => {
    it("lets requests pass when the limiter fails, and reports it to the listener", async () => {
      const errors: unknown[] = [];
      const broken = new Error("broken in an unexpected way");
      const limiter = createLimiter();
      const breaks = (): never => {
        throw broken;
      };
      for (const check of [() => Promise.reject(broken), breaks]) {
        const asked = { check, checkSync: breaks, charge: limiter.charge, give: limiter.give };
        const url = await start(asked, { onError: (error) => errors.push(error) });
        expect((await ask(`${url}/hello`)).text).toBe("hello");
      }
      expect(errors).toEqual([broken, broken]);
    });

    it("lets requests pass when a remote limiter no longer knows our token, and reports it to the listener", async () => {
      const errors: unknown[] = [];
      const revoked = new SluiceError("unauthenticated", "the token is not known");
      const { charge, give } = createLimiter();
      const check = (): Promise<never> => Promise.reject(revoked);
      const url = await start({ check, charge, give }, { onError: (error) => errors.push(error) });
      expect((await ask(`${url}/hello`)).text).toBe("hello");
      expect(errors).toEqual([revoked]);
    });

    it("hands errors of the app's own functions to the app", async () => {
      const fails = (): never => {
        throw new Error("the app's own");
      };
      const failsLater = async (): Promise<never> => fails();
      // The compiler refuses an asynchronous address; as an unknown address, all clients would share a counter.
      const later = { ip: async () => "192.0.2.1" } as never;
      for (const options of [{ skip: fails }, { cost: failsLater }, { dimensions: { user: failsLater } }, later]) {
        const url = await start("1/h", options);
        expect((await ask(`${url}/hello`)).status).toBe(500);
      }
    });

    it("leaves no rejection behind when several of the app's own functions fail", async () => {
      const rejections: unknown[] = [];
      const hear = (error: unknown): void => void rejections.push(error);
      process.on("unhandledRejection", hear);
      try {
        const fails = (): never => {
          throw new Error("at once");
        };
        const failsLater = async (): Promise<never> => {
          throw new Error("later");
        };
        const url = await start("1/h", { dimensions: { user: failsLater, tenant: fails } });
        expect((await ask(`${url}/hello`)).status).toBe(500);
        expect(rejections).toEqual([]);
      } finally {
        process.off("unhandledRejection", hear);
      }
    });

    it("hands an answer of the app's own that cannot be sent to the app, decided at once or later", async () => {
      for (const skip of [() => false, async () => false]) {
        const url = await start("1/h", { skip, refuse: () => ({ status: 99 }) });
        expect((await ask(`${url}/hello`)).status).toBe(200);
        expect((await ask(`${url}/hello`)).status).toBe(500);
      }
    });

    it("survives listeners that fail later", async () => {
      const errors: unknown[] = [];
      const onDecision = async (): Promise<never> => {
        throw new Error("could not be logged");
      };
      const url = await start("1/h", { onDecision, onError: (error) => errors.push(error) });
      expect((await ask(`${url}/hello`)).status).toBe(200);
      expect((await ask(`${url}/hello`)).status).toBe(429);
      expect(errors).toMatchObject([{ message: "could not be logged" }, { message: "could not be logged" }]);
      const onError = async (): Promise<never> => {
        throw new Error("onError failed too");
      };
      const failing = await start("1/h", { charge: () => -1, onDecision, onError });
      expect((await ask(`${failing}/hello`)).status).toBe(200);
      expect((await ask(`${failing}/hello`)).status).toBe(429);
    });

    it("survives a handler's answer that cannot be charged", async () => {
      const errors: unknown[] = [];
      const url = await start("9/h", { charge: () => -1, onError: (error) => errors.push(error) });
      expect((await ask(`${url}/hello`)).status).toBe(200);
      await expect.poll(() => errors, soon).toMatchObject([{ code: "invalid_request" }]);
      expect((await ask(`${url}/hello`)).status).toBe(200);
    });

    it("reports mistakes in its setup at once", async () => {
      await expect(start("ten per second")).rejects.toThrow(/windows/);
      await expect(start("1/s", { trustedProxies: ["10.0.0.0/33"] })).rejects.toThrow(/10\.0\.0\.0\/33/);
      await expect(start("1/s", { trustedProxies: -1 })).rejects.toThrow(/trustedProxies/);
      await expect(start(limit("1/s").by("ip"), { name: "x" })).rejects.toThrow(/name applies to one-line limits only/);
      // What no compiler would let pass.
      const wrong = {
        ip: "192.0.2.1",
        cost: 1.5,
        dimensions: { user: "ada" },
        endpoint: "url",
        headers: "legacy",
        proxyHeader: "via",
      };
      for (const [name, value] of Object.entries({ ...wrong, trustedProxies: true, skip: true, charge: 5 }))
        await expect(start("1/s", { [name]: value } as never)).rejects.toThrow(new RegExp(`^${name}.* must be `));
    });
  });

  describe(`${framework.name}: on a real server`, () => {
    let server: TestServer;
    beforeAll(async () => {
      server = await startServer({ flavor: "valkey" });
    });
    afterAll(() => server.close());
    const stores: RedisCounters[] = [];
    const open = async (): Promise<RedisCounters> => {
      const counters = new RedisCounters({ servers: server.url, deadlineMs: 2000 });
      stores.push(counters);
      await counters.connected();
      return counters;
    };
    afterEach(async () => {
      for (const store of stores.splice(0)) await store.close();
    });

    it("two apps let in together exactly what the limit allows", async () => {
      const name = `shared-${framework.name.replace(/\W+/g, "-")}`;
      const urls = [
        await start("20/h", { name, counters: await open() }),
        await start("20/h", { name, counters: await open() }),
      ];
      const statuses = await readStatuses(Array.from({ length: 50 }, (_, i) => ask(`${urls[i % 2]}/hello`)));
      expect(statuses.filter((status) => status === 200)).toHaveLength(20);
      expect(statuses.filter((status) => status === 429)).toHaveLength(30);
    });

    it("charges and gives back there as well", async () => {
      const url = await start("1000/d", {
        name: `later-${framework.name.replace(/\W+/g, "-")}`,
        counters: await open(),
        charge: (_request, { status }) => (status === 200 ? 99 : 0),
        giveBack: (_request, { status }) => status === 500,
      });
      expect((await ask(`${url}/hello`)).headers["x-ratelimit-remaining"]).toBe("999");
      const left = async (): Promise<unknown> => (await ask(`${url}/broken`)).headers["x-ratelimit-remaining"];
      for (let i = 0; i < 3; i++) await expect.poll(left, soon).toBe("899");
    });

    it("answers without its counters as the policy says: passes, or 503 and never 429", async () => {
      const gone = await startServer({ flavor: "valkey" });
      const counters = new RedisCounters({ servers: gone.url, deadlineMs: 200 });
      stores.push(counters);
      await counters.connected();
      const open = await start("1/h", { name: "open", counters });
      const closed = await start("1/h", { name: "closed", counters, onFailure: "closed" });
      await gone.close();
      for (let i = 0; i < 2; i++) {
        const passed = await ask(`${open}/hello`);
        expect(passed.status).toBe(200);
        expect(passed.headers["x-ratelimit-degraded"]).toBe("true");
        const refused = await ask(`${closed}/hello`);
        expect(refused.status).toBe(503);
        expect(Number(refused.headers["retry-after"])).toBeGreaterThanOrEqual(1);
        expect(JSON.parse(refused.text)).toMatchObject({ title: "Service Unavailable", reason: "degraded" });
      }
    });
  });
}
