import { connect } from "node:net";
import { type CheckRequest, createLimiter, StoreUnavailable } from "sluice";
import { failingCounters } from "sluice/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createMetrics } from "../../../observe/telemetry/metrics.ts";
import { createTestService, type ListeningTransport, listenForTest } from "../../../testing/test-service.ts";
import { wholeHttpServer } from "../../../testing/whole-servers.ts";
import type { PolicyStatus } from "../../policy-files/policy-reloader.ts";
import { createDecide } from "../../service/create-decide.ts";
import type { HttpContext } from "./exchange.ts";
import type { HttpServerOptions } from "./server.ts";

const policies = {
  policies: [
    {
      id: "orders",
      match: { endpoint: "/v1/orders/**" },
      limits: [
        { by: ["user"], windows: ["3/h"] },
        { name: "everybody", windows: ["1000/h"] },
      ],
      on_failure: "open",
    },
    { id: "strict", match: { endpoint: "/strict" }, limits: [{ by: ["user"], windows: ["1/h"] }], on_failure: "open" },
    { id: "by-ip", match: { endpoint: "/ip" }, limits: [{ by: ["ip"], windows: ["1/h"] }], on_failure: "open" },
    {
      id: "shadowed",
      match: { endpoint: "/shadowed" },
      mode: "shadow",
      limits: [{ by: ["user"], windows: ["1/h"] }],
      on_failure: "open",
    },
  ],
  default: "none",
};

/** What went wrong unforeseen, as it was logged. */
const logged: unknown[] = [];
let status: PolicyStatus = { state: "current", problems: [] };
let accepting = true;
let context: HttpContext;
let server: ListeningTransport;
let url: string;
let users = 0;
let user: string;

async function listen(served: HttpContext, options: HttpServerOptions = {}): Promise<ListeningTransport> {
  return listenForTest("http", await wholeHttpServer(served, options));
}

beforeAll(async () => {
  const limiter = createLimiter({ policies });
  const metrics = createMetrics({
    version: "1.2.3",
    sources: {
      counters: () => ({
        counters: 0,
        bytes: 0,
        evictedLive: 0,
        refused: 0,
        clockAnomalies: 0,
        idsCutShort: 0,
        ids: 0,
        maxCounters: 9,
      }),
      generation: () => limiter.snapshot.generation,
    },
  });
  const decide = createDecide({ limiter, metrics });
  context = {
    ...createTestService(limiter, {
      decide: {
        ...decide,
        one(request) {
          if (request.domain === "broken") throw new Error("secret: hunter2");
          return decide.one(request);
        },
      },
      metrics,
      log: { debug() {}, info() {}, warn() {}, error: (_event, fields) => logged.push(fields) },
      accepting: () => accepting,
      policyStatus: () => status,
      version: "1.2.3",
    }),
    idempotencyHeader: false,
    random: undefined,
  };
  server = await listen(context);
  url = `http://${server.address}`;
});

afterAll(() => server.close());

beforeEach(() => {
  user = `user-${++users}`;
  logged.length = 0;
});

type Json = Record<string, unknown>;

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Json;
}

async function post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Reply> {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Json };
}

const orders = (): Json => ({ dimensions: { user, endpoint: "/v1/orders/7" } });

/** Sends bytes as they are and gives back all that is answered until the server hangs up. */
function sendRaw(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(server.port, "127.0.0.1", () => socket.write(text));
    let answer = "";
    socket.setEncoding("utf8").on("data", (chunk) => {
      answer += chunk;
    });
    socket.on("end", () => resolve(answer)).on("error", reject);
  });
}

describe("POST /v1/check", () => {
  it("answers 200 with the decision and headers while there is room", async () => {
    const { status, headers, body } = await post("/v1/check", orders());
    expect(status).toBe(200);
    expect(body).toMatchObject({
      allowed: true,
      reason: "within_limits",
      policy: "orders",
      scope: "user",
      window: { limit: 3, per: "1h", burst: 3 },
      limit: 3,
      remaining: 2,
      used: 1,
      cost: 1,
      state: "normal",
      preview: false,
      replayed: false,
    });
    expect(body.retry_after_ms).toBeUndefined();
    expect(headers.get("content-type")).toMatch(/^application\/json/);
    expect(headers.get("x-ratelimit-limit")).toBe("3");
    expect(headers.get("x-ratelimit-remaining")).toBe("2");
    expect(Number(headers.get("x-ratelimit-reset"))).toBeGreaterThan(Date.now() / 1000);
    expect(headers.get("ratelimit")).toContain("r=2");
    expect(headers.get("retry-after")).toBeNull();
  });

  it("answers 429 with a problem body that holds the decision, and Retry-After", async () => {
    for (let i = 0; i < 3; i++) expect((await post("/v1/check", orders())).status).toBe(200);
    const { status, headers, body } = await post("/v1/check", orders());
    expect(status).toBe(429);
    expect(headers.get("content-type")).toMatch(/^application\/problem\+json/);
    expect(body).toMatchObject({ status: 429, title: "Too Many Requests", allowed: false, reason: "over_limit" });
    expect(body).toMatchObject({ policy: "orders", remaining: 0, deny_count: 1, state: "throttled" });
    expect(body["violated-policies"]).toEqual(["orders/user"]);
    expect(Number(headers.get("retry-after"))).toBe(Math.ceil(Number(body.retry_after_ms) / 1000));
    expect(JSON.stringify(body)).not.toContain(user);
  });

  it("says that a cost larger than the limit never fits, without a Retry-After", async () => {
    const { status, headers, body } = await post("/v1/check", { ...orders(), cost: 4 });
    expect(status).toBe(429);
    expect(body).toMatchObject({ reason: "never_fits", cost: 4 });
    expect(body.retry_after_ms).toBeUndefined();
    expect(headers.get("retry-after")).toBeNull();
  });

  it("takes nothing in a preview", async () => {
    for (let i = 0; i < 5; i++) {
      const { body } = await post("/v1/check", { dimensions: { user, endpoint: "/strict" }, preview: true });
      expect(body).toMatchObject({ allowed: true, preview: true, remaining: 1 });
    }
  });

  it("answers for every limit if details are asked for", async () => {
    const { body } = await post("/v1/check", { ...orders(), details: true });
    expect(body.limits).toMatchObject([
      { policy: "orders", scope: "user", subject: user, limit: 3, remaining: 2, allowed: true, algorithm: "gcra" },
      { policy: "orders", scope: "everybody", limit: 1000, allowed: true },
    ]);
  });

  it("reports what a policy in shadow mode would have denied, and allows it", async () => {
    const request = { dimensions: { user, endpoint: "/shadowed" } };
    await post("/v1/check", request);
    const { status, body } = await post("/v1/check", request);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      allowed: true,
      shadow: [{ policy: "shadowed", scope: "user", reason: "over_limit" }],
    });
  });

  it("allows requests that no policy limits", async () => {
    const { status, headers, body } = await post("/v1/check", { dimensions: { user, endpoint: "/elsewhere" } });
    expect(status).toBe(200);
    expect(body).toMatchObject({ allowed: true, reason: "unlimited" });
    expect(headers.get("x-ratelimit-limit")).toBeNull();
  });

  it("charges an id once, and refuses it for another check with 422", async () => {
    const id = `id-${user}`;
    expect((await post("/v1/check", { ...orders(), id })).body).toMatchObject({ remaining: 2, replayed: false });
    expect((await post("/v1/check", { ...orders(), id })).body).toMatchObject({ remaining: 2, replayed: true });
    const { status, body } = await post("/v1/check", { ...orders(), id, cost: 2 });
    expect(status).toBe(422);
    expect(body.code).toBe("idempotency_conflict");
  });

  it("asks policies by id, and answers 400 policy_not_found for an unknown one", async () => {
    expect((await post("/v1/check", { dimensions: { user }, policies: ["strict"] })).body.policy).toBe("strict");
    const { status, body } = await post("/v1/check", { dimensions: { user }, policies: ["strict", "strikt"] });
    expect(status).toBe(400);
    expect(body.code).toBe("policy_not_found");
    expect(body.problems).toMatchObject([{ field: "policies[1]" }]);
  });
});

describe("a batch", () => {
  it("answers in order, each check for itself", async () => {
    const strict = { dimensions: { user, endpoint: "/strict" } };
    const { status, body } = await post("/v1/check", {
      checks: [strict, strict, { cost: "two" }, { policies: ["nowhere"] }, { domain: "broken" }, orders()],
    });
    expect(status).toBe(200);
    expect(body.answers).toMatchObject([
      { status: 200, decision: { allowed: true, policy: "strict" } },
      { status: 429, decision: { allowed: false, policy: "strict" } },
      { status: 400, error: { code: "invalid_request", problems: [{ field: "cost" }] } },
      { status: 400, error: { code: "policy_not_found" } },
      { status: 500, error: { code: "internal" } },
      { status: 200, decision: { allowed: true, policy: "orders" } },
    ]);
    expect(JSON.stringify(body)).not.toContain("hunter2");
    expect(logged).toHaveLength(1);
  });

  it("holds up to 1 000 checks", async () => {
    const checks = Array.from({ length: 1000 }, () => ({ dimensions: { user, endpoint: "/elsewhere" } }));
    const { status, body } = await post("/v1/check", { checks });
    expect(status).toBe(200);
    expect(body.answers).toHaveLength(1000);
  });

  it.each([
    ["more than 1 000", Array.from({ length: 1001 }, () => ({}))],
    ["none", []],
    ["no list", "all"],
  ])("is refused with %s", async (_what, checks) => {
    const { status, body } = await post("/v1/check", { checks });
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: "invalid_request", problems: [{ field: "checks" }] });
  });
});

describe("answers to bad input", () => {
  const unknownKeys = (count: number): Json =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 1]));

  it("list twenty problems, and then how many more there are", async () => {
    const { body } = await post("/v1/check", unknownKeys(50));
    const problems = body.problems as { field: string; message: string }[];
    expect(problems).toHaveLength(21);
    expect(problems[20]).toEqual({ field: "(more)", message: "and 30 more" });
  });

  it("are not much longer than a batch of it", async () => {
    const request = JSON.stringify({ checks: Array.from({ length: 1000 }, () => unknownKeys(100)) });
    const { status, body } = await post("/v1/check", request);
    expect(status).toBe(200);
    const answers = body.answers as { error: { detail: string; problems?: unknown[] } }[];
    expect(answers).toHaveLength(1000);
    expect(answers.flatMap(({ error }) => error.problems ?? []).length).toBeLessThanOrEqual(210);
    expect(answers[999]?.error.detail).toBe("100 problems in the check:");
    expect(JSON.stringify(body).length).toBeLessThan(request.length);
  });

  it("do not repeat a long key at length", async () => {
    const { body } = await post("/v1/check", { checks: [{ ["k".repeat(500_000)]: 1 }] });
    expect(JSON.stringify(body).length).toBeLessThan(5_000);
  });
});

describe("bad input", () => {
  it("is answered with 400 and every field that is wrong", async () => {
    const { status, headers, body } = await post("/v1/check", {
      dimensions: { user: 7, tenant: null },
      cost: -1,
      preview: "yes",
      polices: ["orders"],
      id: "",
    });
    expect(status).toBe(400);
    expect(headers.get("content-type")).toMatch(/^application\/problem\+json/);
    expect(body).toMatchObject({ status: 400, code: "invalid_request" });
    const fields = (body.problems as { field: string }[]).map((one) => one.field).sort();
    expect(fields).toEqual(["cost", "dimensions.tenant", "dimensions.user", "id", "polices", "preview"]);
    expect(JSON.stringify(body.problems)).toContain("did you mean policies");
  });

  it.each([
    ["cost", { cost: 0 }],
    ["cost", { cost: 100_001 }],
    ["cost", { cost: 1.5 }],
    ["cost", { cost: "1" }],
    ["policies", { policies: [] }],
    ["domain", { domain: "" }],
    ["id", { id: "x".repeat(257) }],
    ["dimensions", { dimensions: Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`d${i}`, "x"])) }],
    ["dimensions.user", { dimensions: { user: "x".repeat(4097) } }],
    ["dimensions.ip", { dimensions: { ip: "not an address", endpoint: "/ip" } }],
    ["dimensions.ip", { dimensions: { ip: "203.0.113.7:80", endpoint: "/elsewhere" } }],
  ])("is named by its field: %s", async (field, request) => {
    const { status, body } = await post("/v1/check", request);
    expect(status).toBe(400);
    expect(body.problems).toMatchObject([{ field }]);
  });

  it("names an invalid address together with all else", async () => {
    const { body } = await post("/v1/check", { dimensions: { ip: "junk", user: 7 }, cost: -1 });
    const fields = (body.problems as { field: string }[]).map((one) => one.field).sort();
    expect(fields).toEqual(["cost", "dimensions.ip", "dimensions.user"]);
  });

  it("says that null is null", async () => {
    expect((await post("/v1/check", "null")).body.detail).toBe("the body is null; it should be a JSON object");
  });

  it("leaves the connection open if the body was read", async () => {
    const answers = await sendRaw(
      "POST /v1/check HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 1\r\n\r\n{" +
        "GET /livez HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
    );
    expect(answers).toMatch(/^HTTP\/1\.1 400 [\s\S]*HTTP\/1\.1 200 /);
  });

  it("is refused without Host, and with an unknown Expect, in a problem body", async () => {
    const without = await sendRaw("GET /livez HTTP/1.1\r\nconnection: close\r\n\r\n");
    expect(without).toMatch(/^HTTP\/1\.1 400 [\s\S]*application\/problem\+json[\s\S]*"invalid_request"[\s\S]*Host/);
    expect(await sendRaw("GET /livez HTTP/1.0\r\n\r\n")).toMatch(/^HTTP\/1\.1 200 /);
    const expecting = await sendRaw("GET /livez HTTP/1.1\r\nhost: a\r\nexpect: miracles\r\n\r\n");
    expect(expecting).toMatch(/^HTTP\/1\.1 417 [\s\S]*application\/problem\+json[\s\S]*100-continue/);
  });

  it.each(["{", "nonsense", '{"cost":1}}', "[]", "null", "7", '"text"', ""])(
    "answers 400 to the body %j",
    async (text) => {
      const { status, body } = await post("/v1/check", text);
      expect(status).toBe(400);
      expect(body.code).toBe("invalid_request");
    },
  );

  it("refuses names that would reach into objects", async () => {
    const { status } = await post("/v1/check", '{"dimensions":{"__proto__":"x"}}');
    expect(status).toBe(400);
    const { body } = await post("/v1/check", '{"__proto__":{"cost":9},"dimensions":{"constructor":"x"}}');
    expect(body.problems).toMatchObject([{ field: "__proto__" }]);
  });

  it("lets no client bring its own limits along", async () => {
    const limits = [{ name: "mine", by: ["user"], window: { limit: 1e9, per: { kind: "ms", ms: 1_000 }, burst: 1e9 } }];
    const { status, body } = await post("/v1/check", JSON.stringify({ dimensions: { user: "u" }, limits }));
    expect([status, body.problems]).toMatchObject([400, [{ field: "limits" }]]);
  });

  it("answers 400 to a body that is not UTF-8", async () => {
    const response = await fetch(`${url}/v1/check`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]),
    });
    expect(response.status).toBe(400);
  });

  it.each(["text/plain", "application/x-www-form-urlencoded", "application/xml"])("answers 415 to %s", async (type) => {
    const { status, body } = await post("/v1/check", orders(), { "content-type": type });
    expect(status).toBe(415);
    expect(body.detail).toContain("application/json");
    expect(body.code).toBe("invalid_request");
  });

  it("takes application/json with a charset", async () => {
    expect((await post("/v1/check", orders(), { "content-type": "application/json; charset=utf-8" })).status).toBe(200);
  });

  it("answers 413 to a single check over 64 KiB, to a batch over 1 MiB, and not to smaller ones", async () => {
    const padding = (bytes: number): string => " ".repeat(bytes);
    const large = await post("/v1/check", `${JSON.stringify(orders())}${padding(65_536)}`);
    expect(large.status).toBe(413);
    expect(large.body).toMatchObject({ code: "body_too_large" });
    expect((await post("/v1/check", `{"checks":[{}]}${padding(65_536)}`)).status).toBe(200);
    expect((await post("/v1/check", `{"checks":[{}]}${padding(1_048_576)}`)).status).toBe(413);
    expect((await post("/shouldAllow", padding(65_537))).status).toBe(413);
  });

  it("answers 404 to unknown paths, whatever their body", async () => {
    const { status, body } = await post("/v1/chek", "junk", { "content-type": "text/plain" });
    expect(status).toBe(404);
    expect((await fetch(`${url}/v1/%zz`)).status).toBe(400);
    expect((await fetch(`${url}/v1/check/`)).status).toBe(404);
    expect(body.code).toBe("not_found");
    expect(String(body.detail)).toContain("/v1/check");
  });

  it("answers 405 with Allow to the wrong method", async () => {
    const response = await fetch(`${url}/v1/check`);
    expect(response.status).toBe(405);
    expect(response.headers.get("allow")).toBe("POST");
    const other = await fetch(`${url}/livez`, { method: "DELETE" });
    expect(other.status).toBe(405);
    expect(other.headers.get("allow")).toBe("GET, HEAD");
  });

  it("answers 500 without particulars, which go to the log", async () => {
    const { status, body } = await post("/v1/check", { domain: "broken" });
    expect(status).toBe(500);
    expect(body).toMatchObject({ code: "internal", title: "Internal Server Error" });
    expect(JSON.stringify(body)).not.toContain("hunter2");
    expect(logged).toMatchObject([{ err: { message: "secret: hunter2" }, route: "/v1/check" }]);
  });

  it("answers what is not HTTP, and headers that are too large, with a problem body", async () => {
    expect(await sendRaw("HELO there\r\n\r\n")).toMatch(/^HTTP\/1\.1 400 .*application\/problem\+json/s);
    const header = `x-long: ${"x".repeat(20_000)}`;
    expect(await sendRaw(`GET /livez HTTP/1.1\r\nhost: a\r\n${header}\r\n\r\n`)).toMatch(/^HTTP\/1\.1 431 .*16 KiB/s);
    const headers = Array.from({ length: 150 }, (_, index) => `h${index}: x\r\n`).join("");
    expect(await sendRaw(`GET /livez HTTP/1.1\r\nhost: a\r\n${headers}\r\n`)).toMatch(/^HTTP\/1\.1 431 .*100 headers/s);
    expect(await sendRaw(`GET /${"x".repeat(20_000)} HTTP/1.1\r\nhost: a\r\n\r\n`)).toMatch(/^HTTP\/1\.1 431 /);
  });
});

describe("connections", () => {
  it("are cut off if the answer is not read", async () => {
    const impatient = await listen(context, { unreadMs: 50 });
    const socket = connect(impatient.port, "127.0.0.1").on("error", () => {});
    socket.pause();
    // More than the buffers of both ends hold.
    socket.write("GET /openapi.json HTTP/1.1\r\nhost: a\r\n\r\n".repeat(2_000));
    // Who does not read learns by writing that the other end is gone.
    const isCutOff = (): boolean => {
      if (!socket.destroyed) socket.write("\r\n");
      return socket.destroyed;
    };
    await expect.poll(isCutOff, { timeout: 30_000, interval: 20 }).toBe(true);
    await impatient.close();
  });
});

describe("the X-Idempotency-Key header", () => {
  it("is ignored unless configured", async () => {
    for (const remaining of [2, 1]) {
      const { body } = await post("/v1/check", orders(), { "x-idempotency-key": `key-${user}` });
      expect(body).toMatchObject({ remaining, replayed: false });
    }
  });

  it("gives the id if that is configured, for five minutes, and the body's id wins", async () => {
    const asked: CheckRequest[] = [];
    const decide: HttpContext["decide"] = {
      ...context.decide,
      one(request) {
        asked.push(request);
        return context.decide.one(request);
      },
    };
    const configured = await listen({ ...context, decide, idempotencyHeader: true });
    const plain = url;
    url = `http://${configured.address}`;
    try {
      const headers = { "x-idempotency-key": `key-${user}` };
      expect((await post("/v1/check", orders(), headers)).body).toMatchObject({ remaining: 2, replayed: false });
      expect((await post("/v1/check", orders(), headers)).body).toMatchObject({ remaining: 2, replayed: true });
      const other = { ...orders(), id: `other-${user}` };
      expect((await post("/v1/check", other, headers)).body).toMatchObject({ remaining: 1, replayed: false });
      expect(asked.map((request) => request.idTtlMs)).toEqual([300_000, 300_000, undefined]);
    } finally {
      url = plain;
      await configured.close();
    }
  });
});

describe("POST /v1/explain", () => {
  it("explains how the answer comes about, and takes nothing", async () => {
    for (let i = 0; i < 2; i++) {
      const { status, body } = await post("/v1/explain", { dimensions: { user, endpoint: "//strict/" } });
      expect(status).toBe(200);
      expect(body).toMatchObject({
        domain: "default",
        endpoint: "/strict",
        decision: { allowed: true, preview: true, remaining: 1 },
      });
      expect(body.policies).toMatchObject([{ policy: "strict", applies: true }]);
      const [limit] = body.limits as { windows: { window: Json; arithmetic: string[] }[] }[];
      expect(limit).toMatchObject({ subject: user, counted: "exactly, in memory", allowance: 0 });
      expect(limit?.windows[0]?.window).toEqual({ limit: 1, per: "1h", burst: 1 });
      expect(limit?.windows[0]?.arithmetic.length).toBeGreaterThan(0);
    }
  });

  it("explains it in prose if text is asked for", async () => {
    const response = await fetch(`${url}/v1/explain`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/plain" },
      body: JSON.stringify(orders()),
    });
    expect(response.headers.get("content-type")).toMatch(/^text\/plain/);
    expect(await response.text()).toContain("orders");
  });
});

describe("health, policies and metrics", () => {
  it("lists the policies in force in the words of a policy file", async () => {
    const body = (await (await fetch(`${url}/v1/policies`)).json()) as Json;
    expect(body).toMatchObject({ generation: 1, default: "none" });
    expect((body.policies as Json[]).map((one) => one.id)).toEqual(["orders", "strict", "by-ip", "shadowed"]);
  });

  it("is live, and ready while it accepts", async () => {
    expect(await (await fetch(`${url}/livez`)).json()).toEqual({ status: "live" });
    expect((await fetch(`${url}/livez`, { method: "HEAD" })).status).toBe(200);
    const ready = await fetch(`${url}/readyz`);
    expect(ready.status).toBe(200);
    expect(await ready.json()).toEqual({ status: "ready", config: "current", generation: 1, policies: 4 });
    accepting = false;
    const stopping = await fetch(`${url}/readyz`);
    accepting = true;
    expect(stopping.status).toBe(503);
    expect(await stopping.json()).toMatchObject({ status: "stopping", code: "not_ready" });
  });

  it("stays ready on the last good policies, and says what is wrong with the others", async () => {
    const place = { file: "p.yaml", line: 3, column: 5 };
    status = { state: "stale", problems: [{ path: ["policies", 0, "id"], message: "is missing", place }] };
    const response = await fetch(`${url}/readyz`);
    status = { state: "current", problems: [] };
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({
      status: "ready",
      config: "stale",
      problem_count: 1,
      problems: ["p.yaml:3:5 policies[0].id: is missing"],
    });
  });

  it("counts checks, errors and requests under bounded labels", async () => {
    await post("/v1/check", { dimensions: { user, endpoint: "/strict" } });
    await post("/v1/check", { dimensions: { user, endpoint: "/strict" } });
    await post("/v1/check", { policies: ["nowhere"] });
    await fetch(`${url}/who/typed/this`);
    const response = await fetch(`${url}/metrics`);
    const text = await response.text();
    expect(response.headers.get("content-type")).toMatch(/^text\/plain/);
    expect(text).toMatch(/^sluice_checks_total\{policy="strict",.*allowed="true".*\} [1-9]/m);
    expect(text).toMatch(/^sluice_checks_total\{policy="strict",.*allowed="false".*\} [1-9]/m);
    expect(text).toMatch(/^sluice_check_errors_total\{code="policy_not_found"\} [1-9]/m);
    expect(text).toMatch(/^sluice_http_requests_total\{method="POST",route="\/v1\/check",status="429"\} [1-9]/m);
    expect(text).toMatch(/^sluice_http_requests_total\{method="GET",route="unmatched",status="404"\} [1-9]/m);
    expect(text).toMatch(/^sluice_check_duration_seconds_count(\{.*\})? [1-9]/m);
    expect(text).toMatch(/^sluice_config_generation 1$/m);
    expect(text).toMatch(/^sluice_build_info\{version="1\.2\.3".*\} 1$/m);
    expect(text).not.toContain("/who/typed");
    expect(text).not.toContain(user);
  });
});

describe("unavailable counters", () => {
  /** Stands for any remote store in an outage. */
  const counters = failingCounters(() => error);
  const fetchLimits = (id: string): Json => ({
    id,
    match: { endpoint: `/${id}` },
    on_failure: id,
    limits: [{ by: ["user"], windows: ["4/h"] }],
  });
  let random = 0;
  let error: Error;
  let outage: ListeningTransport;
  let outageUrl: string;

  beforeAll(async () => {
    const limiter = createLimiter({
      policies: { policies: ["open", "closed", "local"].map(fetchLimits), default: "none" },
      counters,
    });
    const { metrics } = context;
    outage = await listen({ ...context, ...createTestService(limiter, { metrics }), random: () => random });
    outageUrl = `http://${outage.address}`;
  });

  afterAll(() => outage.close());

  beforeEach(() => {
    error = new StoreUnavailable("storage_timeout", "redis://sluice:hunter2@10.1.2.3 did not answer");
    random = 0;
  });

  async function ask(path: string, body: unknown): Promise<Reply> {
    const response = await fetch(outageUrl + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: response.status, headers: response.headers, body: (await response.json()) as Json };
  }

  const check = (mode: string, more: Json = {}): Promise<Reply> =>
    ask("/v1/check", { dimensions: { user, endpoint: `/${mode}` }, ...more });

  it("answer 503 under a policy that fails closed, never 429, and name the outage", async () => {
    const { status, headers, body } = await check("closed");
    expect(status).toBe(503);
    expect(headers.get("content-type")).toMatch(/^application\/problem\+json/);
    expect(headers.get("x-ratelimit-degraded")).toBe("true");
    expect(headers.get("x-ratelimit-degraded-reason")).toBe("storage_timeout");
    expect(body).toMatchObject({
      type: "about:blank",
      title: "Service Unavailable",
      status: 503,
      allowed: false,
      reason: "degraded",
      degraded: "storage_timeout",
      policy: "closed",
    });
    expect(body.detail).toContain("counters do not answer in time, and without them requests are refused");
    expect(body["violated-policies"]).toBeUndefined();
  });

  it("ask clients to come back after 1 to 5 seconds, not all at once", async () => {
    const waits = [];
    for (random of [0, 0.25, 0.5, 0.999_999]) waits.push((await check("closed")).headers.get("retry-after"));
    expect(waits).toEqual(["1", "2", "3", "5"]);
  });

  it("answer 200 under a policy that fails open, and say so", async () => {
    const { status, headers, body } = await check("open");
    expect(status).toBe(200);
    expect(headers.get("x-ratelimit-degraded")).toBe("true");
    expect(headers.get("x-ratelimit-degraded-reason")).toBe("storage_timeout");
    expect(headers.get("retry-after")).toBeNull();
    expect(body).toMatchObject({ allowed: true, reason: "degraded", degraded: "storage_timeout" });
  });

  it("answer 429 for a real denial by this node's own counters, which says why it is stricter", async () => {
    expect((await check("local", { cost: 2 })).status).toBe(200);
    const { status, headers, body } = await check("local");
    expect(status).toBe(429);
    expect(headers.get("x-ratelimit-degraded")).toBe("true");
    expect(body).toMatchObject({ reason: "over_limit", degraded: "storage_timeout", limit: 2, remaining: 0 });
    expect(body.detail).toContain("so this node counts on its own");
  });

  it("have the same statuses in a batch and in other dialects", async () => {
    const checks = ["open", "closed"].map((mode) => ({ dimensions: { user, endpoint: `/${mode}` } }));
    const { body } = await ask("/v1/check", { checks });
    expect((body.answers as Json[]).map((one) => one.status)).toEqual([200, 503]);
    const asked = { scope: "user", scope_value: user, api: "/closed" };
    const { status, headers } = await ask("/shouldAllow", asked);
    expect([status, headers.get("x-ratelimit-degraded")]).toEqual([503, "true"]);
    expect(Number(headers.get("retry-after"))).toBeLessThanOrEqual(5);
  });

  it("refuse to explain with 503 and a wait, without giving anything away", async () => {
    const request = { dimensions: { user, endpoint: "/open" } };
    const { status, headers, body } = await ask("/v1/explain", request);
    expect(status).toBe(503);
    expect(headers.get("content-type")).toMatch(/^application\/problem\+json/);
    expect(headers.get("retry-after")).toBe("5");
    expect(body).toEqual({
      type: "about:blank",
      title: "Service Unavailable",
      status: 503,
      code: "store_unavailable",
      detail: expect.stringMatching(/^the counters did not answer in time; the request may have been carried out/),
    });
    error = new Error("connect ECONNREFUSED redis://sluice:hunter2@10.1.2.3");
    expect((await ask("/v1/explain", request)).body).toMatchObject({
      status: 503,
      code: "store_unavailable",
      detail: "the counters cannot be reached; nothing is wrong with the request, so repeat it in a few seconds",
    });
    expect((await check("closed")).body).toMatchObject({ degraded: "storage_unavailable" });
  });
});
