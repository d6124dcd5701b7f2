import { fileURLToPath } from "node:url";
import {
  createFaultyProxy,
  type FaultyProxy,
  startServer,
  type TestGateway,
  type TestServer,
} from "@sluice/test-servers";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  type Addresses,
  askFrom,
  type Reply,
  startApp,
  startSluice,
  type TestApp,
  type TestSluice,
} from "./gateway-under-test.ts";

export interface GatewayUnderTest {
  readonly name: string;
  /** Starts it with the configuration that is shipped. */
  start(addressesFor: (port: number) => Addresses): Promise<TestGateway>;
  /** The client's answer while Sluice does not answer. */
  readonly statusesWhileAway: readonly number[];
  /** Who gets the rate limit headers of a request that passed. */
  readonly headersTo: "client" | "app";
}

const policies = fileURLToPath(new URL("policies.yaml", import.meta.url));

/** What every gateway does with the configuration that is shipped for it, in front of an app, by a real Sluice. */
export function describeGateway(under: GatewayUnderTest): void {
  describe(`${under.name} in front of an app`, () => {
    let app: TestApp;
    let sluice: TestSluice;
    let line: FaultyProxy;
    let gateway: TestGateway;
    let clients = 0;
    let client: string;

    beforeAll(async () => {
      app = await startApp();
      sluice = await startSluice(policies);
      line = await createFaultyProxy({ host: "127.0.0.1", port: Number(sluice.address.split(":")[1]) });
      gateway = await under.start((port) => ({
        sluice: `127.0.0.1:${line.port}`,
        app: app.address,
        gateway: `127.0.0.1:${port}`,
      }));
    });

    afterAll(async () => {
      await gateway.close();
      await line.close();
      await sluice.close();
      await app.close();
    });

    beforeEach(() => {
      clients += 1;
      client = `127.0.1.${clients}`;
    });

    type Sent = Parameters<typeof askFrom>[3];
    const ask = (path: string, sent?: Sent): Promise<Reply> => askFrom(client, gateway, path, sent);
    const login = (headers: Record<string, string> = {}, path = "/login"): Promise<Reply> =>
      ask(path, { method: "POST", headers, body: "name=x" });

    function expectDenied({ status, headers, text }: Reply): void {
      expect(status).toBe(429);
      expect(Number(headers["retry-after"])).toBeGreaterThan(0);
      expect(headers["content-type"]).toMatch(/^application\/problem\+json/);
      expect(JSON.parse(text)).toMatchObject({ status: 429, title: "Too Many Requests" });
      expect(headers["x-ratelimit-remaining"]).toBe("0");
      expect(headers.ratelimit).toMatch(/r=0/);
      expect(headers["x-app"]).toBeUndefined();
    }

    it("passes allowed requests on to the app, whole, and its answers back", async () => {
      const before = app.seen.length;
      const { status, headers, text } = await login(
        { "x-own": "kept", "x-ratelimit-remaining": "99" },
        "/login?next=%2Fhome",
      );
      expect([status, text, headers["x-app"]]).toEqual([200, "app answered 200", "yes"]);
      const seen = under.headersTo === "client" ? headers : app.seen.at(-1)!.headers;
      expect(seen["x-ratelimit-limit"]).toBe("2");
      expect(seen["x-ratelimit-remaining"]).toBe("1");
      expect(seen.ratelimit).toMatch(/^"login\/ip";r=1;t=/);
      expect(app.seen.slice(before)).toMatchObject([
        { method: "POST", url: "/login?next=%2Fhome", headers: { "x-own": "kept", "content-length": "6" } },
      ]);
    });

    it("answers denied requests with 429, Retry-After and a problem body, and the app does not see them", async () => {
      for (let times = 0; times < 2; times++) expect((await login()).status).toBe(200);
      const before = app.seen.length;
      expectDenied(await login());
      expect(app.seen.length).toBe(before);
    });

    it("asks by path, method and address: another one of each is not denied", async () => {
      for (let times = 0; times < 2; times++) expect((await login()).status).toBe(200);
      expectDenied(await login());
      expect((await ask("/login")).status).toBe(200);
      expect((await ask("/elsewhere", { method: "POST" })).status).toBe(200);
      expect((await askFrom("127.0.9.9", gateway, "/login", { method: "POST" })).status).toBe(200);
    });

    it.each([401, 403, 404, 429, 500, 503])("leaves an answer %i of the app as it is", async (status) => {
      const { status: seen, text, headers } = await ask(`/status/${status}`);
      expect([seen, text, headers["x-app"]]).toEqual([status, `app answered ${status}`, "yes"]);
    });

    it("believes no header that a client wrote", async () => {
      const forged = [
        { "x-real-ip": "203.0.113.1" },
        { "x-forwarded-for": "203.0.113.2" },
        { "x-original-uri": "/free" },
        { "x-forwarded-uri": "/free" },
        { "x-original-method": "GET" },
        { "x-forwarded-method": "GET" },
        { "x-user-id": "somebody-else" },
        { authorization: "Bearer made-up" },
        { "content-type": "application/json", "x-idempotency-key": "again" },
      ];
      for (let times = 0; times < 2; times++) expect((await login()).status).toBe(200);
      for (const headers of forged) expectDenied(await login(headers));
      expectDenied(await login(Object.assign({}, ...forged)));
    });

    it("accepts no unauthenticated user, whatever name a client gives", async () => {
      const named = (name: string): Sent => ({
        headers: { authorization: `Basic ${Buffer.from(`${name}:x`).toString("base64")}` },
      });
      // Denied without a user, and open to every user.
      expect((await ask("/account")).status).toBe(429);
      expect((await ask("/account", named("ada"))).status).toBe(429);
      // Denied to a user of this name.
      expect((await ask("/dear", named("mallory"))).status).toBe(200);
    });

    it("takes no parameter from a client", async () => {
      expect((await ask("/dear?policy=upload&cost=1")).status).toBe(200);
      for (const query of ["?policy=upload", "?policy=upload&cost=1", "?domain=other", "?cost=1&deny=403", "?x=1"])
        expectDenied(await ask(`/dear${query}`));
    });

    it("finds the path by every spelling", async () => {
      expect((await ask("/dear")).status).toBe(200);
      for (const path of ["//dear", "/x/../dear", "/%64ear", "/DEAR/", "/dear;x=1"]) expectDenied(await ask(path));
    });

    it("lets no path pass for being too long to be looked at", async () => {
      const before = app.seen.length;
      const { status } = await ask(`/${"x".repeat(5_000)}/../dear`);
      expect(status).toBe(400);
      expect(app.seen.length).toBe(before);
      expect((await ask(`/elsewhere?${"x".repeat(5_000)}`)).status).toBe(200);
    });

    it("keeps its connections to Sluice", async () => {
      for (let times = 0; times < 20; times++) expect((await ask("/elsewhere")).status).toBe(200);
      expect(line.connections).toBeGreaterThanOrEqual(1);
      expect(line.connections).toBeLessThanOrEqual(4);
    });

    it("passes large bodies on, of which Sluice sees nothing", async () => {
      const before = line.bytesToServer;
      const body = "x".repeat(500_000);
      expect((await ask("/upload", { method: "POST", body })).status).toBe(200);
      expect(app.seen.at(-1)).toMatchObject({ url: "/upload", headers: { "content-length": String(body.length) } });
      expect(line.bytesToServer - before).toBeLessThan(5_000);
    });

    it.each([
      ["refuses connections", () => line.refuse()],
      ["does not answer", () => line.blackhole()],
    ])("refuses while Sluice %s, and goes on when it is back", async (_how, fail) => {
      fail();
      line.resetAll();
      const before = app.seen.length;
      try {
        const { status } = await ask("/elsewhere");
        expect(under.statusesWhileAway).toContain(status);
        expect(app.seen.length).toBe(before);
      } finally {
        line.heal();
        line.resetAll();
      }
      await expect.poll(async () => (await ask("/elsewhere")).status, { timeout: 15_000 }).toBe(200);
    });
  });

  describe(`${under.name} while the counters are unavailable`, () => {
    let app: TestApp;
    let store: TestServer;
    let sluice: TestSluice;
    let gateway: TestGateway;
    let client = "127.0.1.1";
    const ask = (path: string): Promise<Reply> => askFrom(client, gateway, path);

    beforeAll(async () => {
      app = await startApp();
      store = await startServer({ flavor: "valkey" });
      sluice = await startSluice(policies, 0, { redis: store.url, deadline: "5s" });
      const addresses = { sluice: sluice.address, app: app.address };
      gateway = await under.start((port) => ({ ...addresses, gateway: `127.0.0.1:${port}` }));
      for (let times = 0; times < 2; times++) expect((await ask("/vault")).status).toBe(200);
      expect((await ask("/vault")).status).toBe(429);
      await store.close();
      // A denial that is known to last is remembered, and is one during an outage as well.
      client = "127.0.1.2";
    });

    afterAll(async () => {
      await gateway.close();
      await sluice.close();
      await app.close();
    });

    it("answers 503 and a short wait, not 429, if a policy fails closed", async () => {
      const before = app.seen.length;
      const { status, headers, text } = await ask("/vault");
      expect(status).toBe(503);
      expect(headers["content-type"]).toMatch(/^application\/problem\+json/);
      expect(JSON.parse(text)).toMatchObject({ status: 503 });
      expect(Number(headers["retry-after"])).toBeGreaterThanOrEqual(1);
      expect(Number(headers["retry-after"])).toBeLessThanOrEqual(5);
      expect(headers["x-ratelimit-degraded"]).toBe("true");
      expect(headers["x-ratelimit-degraded-reason"]).toMatch(/^storage_/);
      expect(headers["x-ratelimit-remaining"]).toBeUndefined();
      expect(app.seen.length).toBe(before);
    });

    it("passes requests on if a policy fails open, and reports that nothing was counted", async () => {
      for (let times = 0; times < 3; times++) {
        const { status, headers } = await ask("/lobby");
        expect(status).toBe(200);
        const seen = under.headersTo === "client" ? headers : app.seen.at(-1)!.headers;
        expect(seen["x-ratelimit-degraded"]).toBe("true");
        expect(seen["x-ratelimit-degraded-reason"]).toMatch(/^storage_/);
      }
    });
  });
}
