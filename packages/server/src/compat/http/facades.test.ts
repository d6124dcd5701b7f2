import { createLimiter } from "sluice";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createTestService, type ListeningTransport, listenForTest } from "../../testing/test-service.ts";
import { wholeHttpServer } from "../../testing/whole-servers.ts";

const policies = {
  policies: [
    { id: "payments", match: { endpoint: "/payments" }, limits: [{ by: ["user"], windows: ["2/h"] }] },
    {
      id: "user:api.search",
      match: { scope: "user", resource: "api.search" },
      limits: [{ by: ["user"], windows: ["10/h"] }],
    },
    { id: "ip:global", match: { scope: "ip", resource: "global" }, limits: [{ by: ["ip"], windows: ["4/h"] }] },
    { id: "global:api.search", match: { scope: "global" }, limits: [{ windows: ["1000000/h"] }] },
    { id: "user:trickle", match: { resource: "trickle" }, limits: [{ by: ["user"], windows: ["4/s burst 1"] }] },
    { id: "written", match: { endpoint: "/written", method: "POST" }, limits: [{ by: ["user"], windows: ["1/h"] }] },
    { id: "user:once", match: { resource: "once" }, limits: [{ by: ["user"], windows: ["1 once"] }] },
  ],
};

let server: ListeningTransport;
let url: string;
let count = 0;
let user: string;

beforeAll(async () => {
  const service = createTestService(createLimiter({ policies }));
  server = await listenForTest(
    "http",
    await wholeHttpServer({ ...service, idempotencyHeader: false, random: undefined }),
  );
  url = `http://${server.address}`;
});

afterAll(() => server.close());

beforeEach(() => {
  user = `user-${++count}`;
});

type Json = Record<string, unknown>;

async function post(path: string, body: Json): Promise<{ status: number; headers: Headers; body: Json }> {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Json };
}

describe("POST /shouldAllow", () => {
  it("answers allowed, remaining and reset_time in epoch seconds, then 429", async () => {
    const request = { scope: "user", scope_value: user, api: "/payments" };
    const first = await post("/shouldAllow", request);
    expect(first.status).toBe(200);
    expect(Object.keys(first.body)).toEqual(["allowed", "remaining", "reset_time"]);
    expect(first.body).toMatchObject({ allowed: true, remaining: 1 });
    const inSeconds = Number(first.body.reset_time) - Date.now() / 1000;
    expect(inSeconds).toBeGreaterThan(0);
    expect(inSeconds).toBeLessThanOrEqual(1801);
    await post("/shouldAllow", request);
    const third = await post("/shouldAllow", request);
    expect(third.status).toBe(429);
    expect(third.body).toMatchObject({ allowed: false, remaining: 0 });
    expect(Number(third.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(third.headers.get("x-ratelimit-limit")).toBe("2");
  });

  it("falls back to the default policy if none is for the API", async () => {
    const { status, body } = await post("/shouldAllow", { scope: "org", scope_value: user, api: "/other" });
    expect(status).toBe(200);
    expect(body).toMatchObject({ allowed: true, remaining: 999 });
  });

  it("names every invalid field", async () => {
    const { status, body } = await post("/shouldAllow", { scope: "", scope_value: 7, path: "/x" });
    expect(status).toBe(400);
    const fields = (body.problems as { field: string }[]).map((one) => one.field).sort();
    expect(fields).toEqual(["api", "path", "scope", "scope_value"]);
  });
});

describe("POST /shouldAllow, of scopes and methods", () => {
  it("accepts a method, for policies that match by method", async () => {
    const request = { scope: "user", scope_value: user, api: "/written" };
    expect((await post("/shouldAllow", { ...request, method: "POST" })).body).toMatchObject({ remaining: 0 });
    expect((await post("/shouldAllow", request)).body).toMatchObject({ remaining: 999 });
  });

  it.each(["endpoint", "method", "tier", "scope", "resource", "__proto__"])(
    "refuses the scope %s, which is not a subject",
    async (scope) => {
      const { status, body } = await post("/shouldAllow", { scope, scope_value: "x", api: "/payments" });
      expect(status).toBe(400);
      expect(body.problems).toMatchObject([{ field: "scope" }]);
    },
  );

  it("refuses an invalid address, by the caller's field", async () => {
    const { status, body } = await post("/shouldAllow", { scope: "ip", scope_value: "junk", api: "/x" });
    expect(status).toBe(400);
    expect(body.problems).toMatchObject([{ field: "scope_value" }]);
    expect(JSON.stringify(body)).not.toContain("dimensions");
  });
});

describe("POST /v1/rate-limit", () => {
  it.each([
    ["identifier", { scope: "ip", identifier: "junk" }],
    ["metadata.ip_address", { metadata: { ip_address: "junk" }, limit_hierarchy: [["ip", "global"]] }],
    ["metadata.ip", { metadata: { ip: "junk" }, limit_hierarchy: [["ip", "global"]] }],
    ["metadata.tier", { metadata: { tier: "x".repeat(5000) } }],
    ["scope", { scope: "tier" }],
    [
      "limit_hierarchy[1][0]",
      {
        limit_hierarchy: [
          ["user", "api.search"],
          ["__proto__", "x"],
        ],
      },
    ],
  ])("names problems by the caller's field: %s", async (field, wrong) => {
    const { status, body } = await post("/v1/rate-limit", { identifier: user, resource: "api.search", ...wrong });
    expect(status).toBe(400);
    expect(body.problems).toMatchObject([{ field }]);
    expect(JSON.stringify(body)).not.toContain("dimensions");
  });

  it("takes tokens from the policy of the scope and the resource", async () => {
    const { status, headers, body } = await post("/v1/rate-limit", {
      identifier: user,
      resource: "api.search",
      tokens: 3,
      metadata: { anything: { goes: ["here"] } },
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      allowed: true,
      tokens_remaining: 7,
      tokens_capacity: 10,
      retry_after_seconds: null,
      degraded: false,
      degraded_reason: null,
    });
    expect(new Date(String(body.reset_at)).getTime()).toBeGreaterThan(Date.now());
    expect(headers.get("x-ratelimit-policy")).toBe("user:api.search");
  });

  it("answers a denial with its own fields along with the limit's state", async () => {
    const request = { identifier: user, resource: "api.search", tokens: 10 };
    await post("/v1/rate-limit", request);
    const { status, body } = await post("/v1/rate-limit", request);
    expect(status).toBe(429);
    expect(body).toMatchObject({
      error: "rate_limit_exceeded",
      blocking_limit: "user:api.search",
      allowed: false,
      tokens_remaining: 0,
    });
    expect(body.retry_after).toBe(body.retry_after_seconds);
    expect(Number(body.retry_after)).toBeGreaterThan(3500);
  });

  it("does not round a wait of a quarter of a second down to none", async () => {
    const request = { identifier: user, resource: "trickle" };
    await post("/v1/rate-limit", request);
    const { status, headers, body } = await post("/v1/rate-limit", request);
    expect(status).toBe(429);
    expect(Number(body.retry_after)).toBeGreaterThan(0);
    expect(Number(body.retry_after)).toBeLessThanOrEqual(0.25);
    expect(headers.get("retry-after")).toBe("1");
  });

  it("gives no wait for a quota that never refills", async () => {
    const request = { identifier: user, resource: "once" };
    expect((await post("/v1/rate-limit", request)).status).toBe(200);
    const { status, headers, body } = await post("/v1/rate-limit", request);
    expect(status).toBe(429);
    expect(body).toMatchObject({ retry_after: null, retry_after_seconds: null });
    expect(headers.get("retry-after")).toBeNull();
  });

  it("takes nothing if consume is false", async () => {
    const request = { identifier: user, resource: "api.search", tokens: 10, consume: false };
    await post("/v1/rate-limit", request);
    expect((await post("/v1/rate-limit", request)).body).toMatchObject({ allowed: true, tokens_remaining: 10 });
  });

  it("falls back to the default of 1 000 at once if no policy is for the resource", async () => {
    const { body } = await post("/v1/rate-limit", { identifier: user, resource: "unheard.of" });
    expect(body).toMatchObject({ allowed: true, tokens_capacity: 1000, tokens_remaining: 999 });
  });

  it("names every invalid field", async () => {
    const { status, body } = await post("/v1/rate-limit", {
      tokens: 0,
      resource: 7,
      limit_hierarchy: [["user"], ["user", 3]],
    });
    expect(status).toBe(400);
    const fields = (body.problems as { field: string }[]).map((one) => one.field).sort();
    expect(fields).toEqual(["identifier", "limit_hierarchy[0]", "limit_hierarchy[1][1]", "resource", "tokens"]);
  });
});

describe("a hierarchy of limits", () => {
  const request = (address: string): Json => ({
    identifier: user,
    resource: "api.search",
    metadata: { ip_address: address },
    limit_hierarchy: [
      ["user", "api.search"],
      ["ip", "global"],
      ["global", "api.search"],
    ],
  });

  it("answers for every level and for the most restrictive one", async () => {
    const { status, body } = await post("/v1/rate-limit", request("203.0.113.1"));
    expect(status).toBe(200);
    expect(body).toMatchObject({
      allowed: true,
      blocking_limit: null,
      tokens_capacity: 4,
      tokens_remaining: 3,
      limit_results: {
        "user:api.search": { allowed: true, tokens_remaining: 9, tokens_capacity: 10 },
        "ip:global": { allowed: true, tokens_remaining: 3, tokens_capacity: 4, degraded: false, degraded_reason: null },
        "global:api.search": { allowed: true, tokens_capacity: 1_000_000 },
      },
      most_restrictive_limit: { tokens_remaining: 3, tokens_capacity: 4, degraded: false, degraded_reason: null },
    });
  });

  it("charges no level when one refuses", async () => {
    for (let i = 0; i < 4; i++) await post("/v1/rate-limit", request("203.0.113.2"));
    for (let i = 0; i < 3; i++) {
      const { status, body } = await post("/v1/rate-limit", request("203.0.113.2"));
      expect(status).toBe(429);
      expect(body).toMatchObject({
        error: "rate_limit_exceeded",
        blocking_limit: "ip:global",
        limit_results: { "user:api.search": { allowed: true, tokens_remaining: 6 }, "ip:global": { allowed: false } },
      });
    }
    const elsewhere = await post("/v1/rate-limit", request("203.0.113.3"));
    expect(elsewhere.body).toMatchObject({ limit_results: { "user:api.search": { tokens_remaining: 5 } } });
  });

  const partly = (levels: readonly (readonly [string, string])[], tokens = 1): Json => ({
    identifier: user,
    resource: "api.search",
    tokens,
    metadata: { ip: "203.0.113.9" },
    limit_hierarchy: levels,
  });

  it("decides a level without a policy by the default policy, and names it", async () => {
    const request = partly([
      ["user", "api.search"],
      ["user", "nothing"],
      ["global", "nothing"],
    ]);
    const { status, headers, body } = await post("/v1/rate-limit", request);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      allowed: true,
      blocking_limit: null,
      tokens_remaining: 9,
      limit_results: {
        "user:api.search": { policy: "user:api.search", tokens_remaining: 9 },
        "user:nothing": { policy: "default", allowed: true, tokens_remaining: 999, tokens_capacity: 1000 },
        "global:nothing": { policy: "default" },
      },
    });
    expect(headers.get("x-ratelimit-remaining")).toBe("9");
  });

  it("counts a level by the default policy in the same counter as a request for that level alone", async () => {
    await post("/v1/rate-limit", partly([["user", "nothing"]], 100));
    const alone = await post("/v1/rate-limit", { identifier: user, resource: "nothing", tokens: 100 });
    expect(alone.body).toMatchObject({ tokens_remaining: 800 });
  });

  it("charges no level when the default policy refuses one, and says which", async () => {
    const levels = [
      ["user", "api.search"],
      ["user", "exhausted"],
    ] as const;
    await post("/v1/rate-limit", { identifier: user, resource: "exhausted", tokens: 999 });
    const { status, body } = await post("/v1/rate-limit", partly(levels, 10));
    expect(status).toBe(429);
    expect(body).toMatchObject({
      blocking_limit: "user:exhausted",
      limit_results: {
        "user:api.search": { allowed: true, tokens_remaining: 10 },
        "user:exhausted": { allowed: false },
      },
    });
    const spared = await post("/v1/rate-limit", { identifier: user, resource: "api.search", tokens: 10 });
    expect(spared.status).toBe(200);
  });

  it("counts a level whose subject the metadata lacks by the identifier, and does not affect others", async () => {
    const request = { identifier: user, resource: "x", limit_hierarchy: [["ip", "unheard"]], tokens: 1000 };
    expect((await post("/v1/rate-limit", request)).status).toBe(200);
    expect((await post("/v1/rate-limit", request)).status).toBe(429);
    expect((await post("/v1/rate-limit", { ...request, identifier: `${user}-other` })).status).toBe(200);
  });
});

describe("the default policy", () => {
  const all = { tokens: 1000 };

  it("counts every resource separately", async () => {
    expect((await post("/v1/rate-limit", { identifier: user, resource: "one", ...all })).status).toBe(200);
    expect((await post("/v1/rate-limit", { identifier: user, resource: "one" })).status).toBe(429);
    expect((await post("/v1/rate-limit", { identifier: user, resource: "two", ...all })).status).toBe(200);
  });

  it("counts every API separately, however its path is spelt", async () => {
    const check = (api: string): Promise<{ body: Json }> =>
      post("/shouldAllow", { scope: "user", scope_value: user, api });
    expect((await check("/one")).body).toMatchObject({ remaining: 999 });
    expect((await check("/ONE/?x=1")).body).toMatchObject({ remaining: 998 });
    expect((await check("/two")).body).toMatchObject({ remaining: 999 });
  });

  it("counts the paths of other requests together, so that new ones do not evade it", async () => {
    const check = (endpoint: string): Promise<{ body: Json }> =>
      post("/v1/check", { dimensions: { user, endpoint }, cost: 100 });
    await check("/x1");
    expect((await check("/x2")).body).toMatchObject({ remaining: 800 });
  });

  it("counts each scope separately, and an address in canonical form", async () => {
    const ask = (scope: string, identifier: string): Promise<{ body: Json }> =>
      post("/v1/rate-limit", { identifier, scope, resource: user, tokens: 100 });
    await ask("ip", "2001:db8::1");
    expect((await ask("ip", "2001:DB8:0::1")).body).toMatchObject({ tokens_remaining: 800 });
    expect((await ask("device", "2001:db8::1")).body).toMatchObject({ tokens_remaining: 900 });
    expect((await ask("session", "2001:db8::1")).body).toMatchObject({ tokens_remaining: 900 });
  });

  it("refuses levels without a policy if there is no default, and an unknown policy always", async () => {
    const service = createTestService(createLimiter({ policies: { ...policies, default: "none" } }));
    const http = await wholeHttpServer({ ...service, idempotencyHeader: false, random: undefined });
    const other = await listenForTest("http", http);
    try {
      const ask = async (path: string, body: Json): Promise<Json> => {
        const headers = { "content-type": "application/json" };
        const options = { method: "POST", headers, body: JSON.stringify(body) };
        return (await (await fetch(`http://${other.address}${path}`, options)).json()) as Json;
      };
      const limit_hierarchy = [
        ["user", "api.search"],
        ["user", "nothing"],
      ];
      expect(await ask("/v1/rate-limit", { identifier: user, resource: "x", limit_hierarchy })).toMatchObject({
        code: "policy_not_found",
        problems: [{ field: "limit_hierarchy[1]" }],
      });
    } finally {
      await other.close();
    }
    const { status, body } = await post("/v1/check", { dimensions: { user }, policies: ["nothing"] });
    expect(status).toBe(400);
    expect(body.code).toBe("policy_not_found");
  });
});

describe("X-Idempotency-Key", () => {
  it.each([
    ["/v1/rate-limit", (): Json => ({ identifier: user, resource: "api.search", tokens: 4 }), "tokens_remaining", 6],
    [
      "/v1/rate-limit",
      (): Json => ({
        identifier: user,
        resource: "x",
        tokens: 4,
        limit_hierarchy: [
          ["user", "x"],
          ["user", "api.search"],
        ],
      }),
      "tokens_remaining",
      6,
    ],
    ["/shouldAllow", (): Json => ({ scope: "user", scope_value: user, api: "/payments" }), "remaining", 1],
  ])(
    "charges a request to %s once if the header is trusted, and otherwise each time",
    async (path, body, field, left) => {
      for (const idempotencyHeader of [true, false]) {
        const service = createTestService(createLimiter({ policies }));
        const http = await wholeHttpServer({ ...service, idempotencyHeader, random: undefined });
        const other = await listenForTest("http", http);
        try {
          const headers = { "content-type": "application/json", "x-idempotency-key": "5f0c7a0e" };
          const asked = { method: "POST", headers, body: JSON.stringify(body()) };
          const remaining: unknown[] = [];
          for (let times = 0; times < 2; times++) {
            const answer = (await (await fetch(`http://${other.address}${path}`, asked)).json()) as Json;
            remaining.push(answer[field]);
          }
          expect(remaining[0]).toBe(left);
          if (idempotencyHeader) expect(remaining[1]).toBe(left);
          else expect(remaining[1]).toBeLessThan(left);
        } finally {
          await other.close();
        }
      }
    },
  );
});
