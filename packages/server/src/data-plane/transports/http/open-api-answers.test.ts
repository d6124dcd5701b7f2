import { Ajv2020 } from "ajv/dist/2020.js";
import { type CounterStore, createLimiter, type Decision, MemoryCounters } from "sluice";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { httpApi, httpRoutes as routes } from "../../../boot/api-tables.ts";
import { createMetrics } from "../../../observe/telemetry/metrics.ts";
import { createTestService, type ListeningTransport, listenForTest } from "../../../testing/test-service.ts";
import { wholeHttpServer } from "../../../testing/whole-servers.ts";
import type { CountersStatus } from "../../counters/running-counters.ts";
import { createDecide } from "../../service/create-decide.ts";
import type { HttpContext } from "./exchange.ts";
import { renderOpenApi } from "./render-open-api.ts";

const policies = {
  policies: [
    {
      id: "user:api",
      match: { endpoint: "/api" },
      limits: [
        { by: ["user"], windows: ["5/h"], tiers: { premium: { windows: ["9/h"] } } },
        { name: "daily", by: ["user"], windows: ["900/day in Europe/Berlin"] },
        { name: "queue", by: ["user"], algorithm: "leaky_bucket", windows: ["100/h"] },
        { name: "once", by: ["user"], windows: ["50 once"] },
      ],
      deny: { user: ["mallory"] },
    },
    { id: "watched", match: { endpoint: "/api" }, mode: "shadow", limits: [{ by: ["user"], windows: ["1/h"] }] },
    { id: "busy", match: { endpoint: "/busy" }, limits: [{ by: ["user"], windows: ["5000/h"] }] },
    { id: "free", match: { endpoint: "/free" }, unlimited: true },
  ],
  subjects: [{ user: "u9", tier: "premium" }],
};

/** A decision while counters are unavailable and a policy fails closed. */
function degraded(decision: Decision): Decision {
  return { ...decision, allowed: false, reason: "degraded", degraded: "storage_unavailable", retryAfterMs: 60_000 };
}

let server: ListeningTransport;
let url: string;
let accepting = true;
let away = false;
let status: CountersStatus | undefined;
/** The document, with nothing allowed in an answer that it does not name. */
const document = JSON.parse(JSON.stringify(renderOpenApi(routes, "1", httpApi)), (_key, part) =>
  part?.type === "object" && part.properties !== undefined ? { additionalProperties: false, ...part } : part,
);
const ajv = new Ajv2020({ strict: true, allErrors: true, formats: { "date-time": true } });
ajv.addVocabulary(["openapi", "info", "servers", "paths", "components"]);
ajv.addSchema(document, "openapi");

beforeAll(async () => {
  const counters: CounterStore = new MemoryCounters();
  const limiter = createLimiter({ policies, counters });
  const figures = {
    counters: 0,
    bytes: 0,
    evictedLive: 0,
    refused: 0,
    clockAnomalies: 0,
    ids: 0,
    idsCutShort: 0,
    maxCounters: 9,
  };
  const metrics = createMetrics({ version: "1", sources: { counters: () => figures, generation: () => 1 } });
  const decide = createDecide({ limiter, metrics });
  const context: HttpContext = {
    ...createTestService(limiter, {
      decide: {
        ...decide,
        one: (request) => (away ? degraded(decide.one(request) as Decision) : decide.one(request)),
      },
      metrics,
      accepting: () => accepting,
      countersStatus: () => status,
      policyStatus: () => ({ state: "stale", problems: [{ path: ["policies"], message: "is missing" }] }),
      version: "1",
    }),
    idempotencyHeader: true,
    authorizeDimensions: { user: "x-user-id" },
    random: undefined,
  };
  server = await listenForTest("http", await wholeHttpServer(context));
  url = `http://${server.address}`;
});

afterAll(() => server.close());

/** Headers that HTTP itself has, and that say nothing of a decision. */
const ordinary = /^(content-(type|length)|cache-control|date|connection|keep-alive|allow)$/;

/** Asks, and compares the answer with what the document declares for the path and the status. */
async function expectDeclared(
  method: string,
  target: string,
  body?: unknown,
  accept = "*/*",
  headers: Readonly<Record<string, string>> = {},
): Promise<number> {
  const response = await fetch(url + target, {
    method,
    headers: { ...headers, accept, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const path = target.replace(/\?.*/, "");
  const where = `${method} ${path} ${JSON.stringify(body)} → ${response.status} ${text}`;
  const { responses } = document.paths[path][method.toLowerCase()];
  const declared = responses[response.status] ?? responses.default;
  const type = response.headers.get("content-type")?.replace(/;.*/, "");
  expect(Object.keys(declared.content ?? {}), where).toEqual(type === undefined ? [] : expect.arrayContaining([type]));
  for (const [name] of response.headers) {
    if (ordinary.test(name)) continue;
    expect(
      Object.keys(declared.headers ?? {}).map((one) => one.toLowerCase()),
      where,
    ).toContain(name);
  }
  if (type === undefined) {
    expect(text, where).toBe("");
    return response.status;
  }
  const status = responses[response.status] === undefined ? "default" : String(response.status);
  const steps = ["paths", path, method.toLowerCase(), "responses", status, "content", type, "schema"];
  const pointer = steps.map((step) => encodeURIComponent(step.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/");
  const valid = ajv.validate(`openapi#/${pointer}`, type === "text/plain" ? text : JSON.parse(text));
  expect(ajv.errors ?? [], where).toEqual([]);
  expect(valid).toBe(true);
  return response.status;
}

const api = (user: string): object => ({ dimensions: { user, endpoint: "/api" } });

describe("answers match what is declared", () => {
  it("for GET", async () => {
    for (const { path, answers } of routes.filter((route) => route.method === "GET"))
      expect(await expectDeclared("GET", path), path).toBe(Number(Object.keys(answers)[0]));
    accepting = false;
    expect(await expectDeclared("GET", "/readyz")).toBe(503);
    accepting = true;
    const shard = { shard: "10.0.0.1:6379", cell: undefined, why: "there is no connection" };
    status = { ready: false, shards: 2, away: [shard, { ...shard, cell: "acme" }], slow: [] };
    expect(await expectDeclared("GET", "/readyz")).toBe(200);
    status = { ready: true, shards: 2, away: [], slow: [{ ...shard, why: "the last exchange took 3000 ms" }] };
    expect(await expectDeclared("GET", "/readyz")).toBe(200);
  });

  it("for /v1/check", async () => {
    for (let times = 0; times < 5; times++) expect(await expectDeclared("POST", "/v1/check", api("u1"))).toBe(200);
    expect(await expectDeclared("POST", "/v1/check", { ...api("u1"), details: true })).toBe(429);
    expect(await expectDeclared("POST", "/v1/check", { ...api("u2"), details: true })).toBe(200);
    expect(await expectDeclared("POST", "/v1/check", { ...api("u2"), cost: 9 })).toBe(429);
    expect(await expectDeclared("POST", "/v1/check", api("u9"))).toBe(200);
    expect(await expectDeclared("POST", "/v1/check", api("mallory"))).toBe(429);
    expect(await expectDeclared("POST", "/v1/check", { dimensions: { endpoint: "/free" } })).toBe(200);
    expect(await expectDeclared("POST", "/v1/check", { dimensions: { user: 7 } })).toBe(400);
    expect(await expectDeclared("POST", "/v1/check", { policies: ["nowhere"] })).toBe(400);
    expect(await expectDeclared("POST", "/v1/check", { ...api("u3"), id: "i" })).toBe(200);
    expect(await expectDeclared("POST", "/v1/check", { ...api("u4"), id: "i" })).toBe(422);
    expect(await expectDeclared("POST", "/v1/check", { checks: [api("u5"), api("mallory"), { cost: "x" }] })).toBe(200);
  });

  it("for /v1/explain, as JSON and as text", async () => {
    expect(await expectDeclared("POST", "/v1/explain", api("u1"))).toBe(200);
    expect(await expectDeclared("POST", "/v1/explain", api("u9"), "text/plain")).toBe(200);
  });

  it("for taking and giving back", async () => {
    expect(await expectDeclared("POST", "/v1/charge", api("u10"))).toBe(204);
    expect(await expectDeclared("POST", "/v1/charge", { cost: 0 })).toBe(400);
    expect(await expectDeclared("POST", "/v1/check", { ...api("u10"), receipt: true })).toBe(200);
    expect(await expectDeclared("POST", "/v1/give-back", { receipt: "m1" })).toBe(200);
    const chat = { dimensions: { user: "u12", endpoint: "/api" } };
    expect(await expectDeclared("POST", "/v1/reserve", { ...chat, amount: 3, details: true })).toBe(200);
    expect(await expectDeclared("POST", "/v1/reserve", { ...chat, amount: 3 })).toBe(429);
    expect(await expectDeclared("POST", "/v1/reserve", { dimensions: { endpoint: "/free" }, amount: 3 })).toBe(200);
    expect(await expectDeclared("POST", "/v1/reserve", { ...chat, amount: 3, estimate: 3 })).toBe(400);
    expect(await expectDeclared("POST", "/v1/commit", { id: "h1", actual: 2 })).toBe(200);
    expect(await expectDeclared("POST", "/v1/extend", { id: "h1", ttl_ms: 1000 })).toBe(200);
    expect(await expectDeclared("POST", "/v1/cancel", { id: "h1" })).toBe(200);
    const busy = { dimensions: { user: "u10", endpoint: "/busy" } };
    expect(await expectDeclared("POST", "/v1/lease", { check: busy, want: 10 })).toBe(200);
    expect(await expectDeclared("POST", "/v1/lease", { check: api("u10"), want: 10 })).toBe(409);
    expect(await expectDeclared("POST", "/v1/reset", api("u10"))).toBe(403);
  });

  it("for sub-requests of gateways", async () => {
    const asked = { "x-original-uri": "/api", "x-user-id": "u11" };
    for (let i = 0; i < 5; i++) expect(await expectDeclared("GET", "/v1/authorize", undefined, "*/*", asked)).toBe(204);
    expect(await expectDeclared("GET", "/v1/authorize", undefined, "*/*", asked)).toBe(429);
    expect(await expectDeclared("GET", "/v1/authorize?deny=403", undefined, "*/*", asked)).toBe(403);
    const wrong = { "x-real-ip": "junk" };
    expect(await expectDeclared("GET", "/v1/authorize", undefined, "*/*", wrong)).toBe(400);
    expect(await expectDeclared("GET", "/v1/authorize?deny=403", undefined, "*/*", wrong)).toBe(403);
    away = true;
    try {
      expect(await expectDeclared("GET", "/v1/authorize", undefined, "*/*", asked)).toBe(503);
    } finally {
      away = false;
    }
  });

  it("for the facades", async () => {
    const bucket = { identifier: "u6", resource: "api" };
    for (const request of [bucket, { ...bucket, limit_hierarchy: [["user", "api"]] }, { ...bucket, resource: "other" }])
      expect(await expectDeclared("POST", "/v1/rate-limit", request)).toBe(200);
    expect(await expectDeclared("POST", "/v1/rate-limit", { ...bucket, tokens: 9 })).toBe(429);
    expect(await expectDeclared("POST", "/v1/rate-limit", {})).toBe(400);
    const sidecar = { scope: "user", scope_value: "u7", api: "/api", method: "GET" };
    expect(await expectDeclared("POST", "/shouldAllow", sidecar)).toBe(200);
    expect(await expectDeclared("POST", "/shouldAllow", { ...sidecar, scope_value: "mallory" })).toBe(429);
  });

  it("while counters are unavailable", async () => {
    away = true;
    try {
      const bucket = { identifier: "u8", resource: "api", limit_hierarchy: [["user", "api"]] };
      expect(await expectDeclared("POST", "/v1/check", api("u8"))).toBe(503);
      expect(await expectDeclared("POST", "/v1/rate-limit", bucket)).toBe(503);
      expect(await expectDeclared("POST", "/shouldAllow", { scope: "user", scope_value: "u8", api: "/api" })).toBe(503);
    } finally {
      away = false;
    }
  });
});
