import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  applyStored,
  createRoleActor,
  type StartedAdmin,
  startAdmin,
  team,
} from "../../control-plane/admin-api/testing/start-admin.ts";
import type { Role } from "../../data-plane/access/roles.ts";

let admin: StartedAdmin;

beforeEach(async () => {
  admin = await startAdmin();
});

afterEach(async () => {
  await admin.close();
});

interface Answered {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: bodies are looked at by what is expected of them
  readonly body: any;
  readonly headers: Headers;
}

async function ask(
  method: string,
  path: string,
  body?: unknown,
  version?: number,
  role: Role = "editor",
): Promise<Answered> {
  const headers = version === undefined ? undefined : { "if-match": `"${version}"` };
  const response = await admin.ask(role, method, path, { body, headers });
  const text = await response.text();
  return { status: response.status, body: text === "" ? undefined : JSON.parse(text), headers: response.headers };
}

/** How many of twenty requests pass, by the policies stored now. */
async function passing(dimensions: Readonly<Record<string, string>>): Promise<number> {
  await applyStored(admin);
  const asked = Array.from({ length: 20 }, () => admin.limiter.checkSync({ dimensions }));
  return asked.filter(({ allowed }) => allowed).length;
}

const orders = {
  rule_id: "orders",
  name: "Orders",
  dimension: "user",
  endpoint_pattern: "/v1/orders/**",
  limit: 3,
  window_seconds: 3_600,
  algorithm: "token_bucket",
};
const endpoint = "/v1/orders/7";

describe("/api/v1/rules", () => {
  it("creates, shows, changes and deletes a rule, which is a policy", async () => {
    const made = await ask("POST", "/api/v1/rules", orders);
    expect(made).toMatchObject({
      status: 201,
      body: { ...orders, tier: "free", identifier: "*", burst: 3, version: 1, dry_run: false },
    });
    expect(made.headers.get("location")).toBe("/api/v1/rules/orders");
    expect(made.headers.get("etag")).toBe('"1"');
    expect(made.body.generation).toBeGreaterThan(0);
    expect(await passing({ user: "a", endpoint })).toBe(3);

    const got = await ask("GET", "/api/v1/rules/orders");
    expect(got.body).toMatchObject({ ...orders, created_at: expect.stringMatching(/Z$/) });
    // The answer may be sent back, with its version.
    const changed = await ask("PUT", "/api/v1/rules/orders", { ...got.body, limit: 5, burst: 5 });
    expect(changed).toMatchObject({ status: 200, body: { limit: 5, version: 2, created_at: got.body.created_at } });
    expect(await passing({ user: "b", endpoint })).toBe(5);
    const stored = await admin.control.policies.get(createRoleActor("admin"), "orders");
    expect(stored.document).toMatchObject({ owner: team, match: { user: "*", endpoint: "/v1/orders/**" } });

    expect(await ask("DELETE", "/api/v1/rules/orders", undefined, 1)).toMatchObject({
      status: 409,
      body: { code: "version_conflict", current_version: 2 },
    });
    expect(await ask("DELETE", "/api/v1/rules/orders", undefined, 2)).toMatchObject({ status: 200 });
    expect(await ask("GET", "/api/v1/rules/orders")).toMatchObject({
      status: 404,
      body: { code: "resource_not_found" },
    });
  });

  it("has rules for tiers along with the one for subjects without a tier", async () => {
    const premium = { ...orders, rule_id: undefined, name: "Premium orders", tier: "premium", limit: 7 };
    await ask("POST", "/api/v1/rules", { ...orders, tier: "free" });
    expect(await ask("POST", "/api/v1/rules", premium)).toMatchObject({
      status: 201,
      body: { rule_id: "orders~premium", name: "Premium orders", limit: 7, tier: "premium", version: 2 },
    });
    expect(await ask("POST", "/api/v1/rules", premium)).toMatchObject({
      status: 409,
      body: { code: "already_exists", detail: expect.stringContaining("orders~premium") },
    });
    const tier = await ask("PUT", "/api/v1/users/p/tier", { tier: "premium" }, undefined, "operator");
    expect(tier).toMatchObject({ status: 200, body: { user_id: "p", tier: "premium" } });
    expect(await passing({ user: "p", endpoint })).toBe(7);
    expect(await passing({ user: "f", endpoint })).toBe(3);
    expect((await ask("GET", "/api/v1/rules")).body.items).toMatchObject([
      { rule_id: "orders", tier: "free", name: "Orders" },
      { rule_id: "orders~premium", tier: "premium", name: "Premium orders" },
    ]);

    // Shared fields cannot be changed for one rule alone.
    expect(await ask("PUT", "/api/v1/rules/orders", { ...orders, algorithm: "gcra" }, 2)).toMatchObject({
      status: 400,
      body: { problems: [{ field: "algorithm" }] },
    });
    expect(await ask("PUT", "/api/v1/rules/orders~premium", { ...premium, endpoint_pattern: "/x" }, 2)).toMatchObject({
      status: 400,
      body: { problems: [{ field: "endpoint_pattern" }] },
    });
    expect(await ask("PUT", "/api/v1/rules/orders~premium", { ...premium, limit: 9 }, 2)).toMatchObject({
      status: 200,
      body: { rule_id: "orders~premium", limit: 9, version: 3 },
    });
    expect(await ask("DELETE", "/api/v1/rules/orders~premium", undefined, 3)).toMatchObject({ status: 200 });
    expect((await ask("GET", "/api/v1/rules")).body.items).toMatchObject([{ rule_id: "orders", limit: 3 }]);
    expect(await passing({ user: "q", endpoint })).toBe(3);
  });

  it("may have only a rule for a tier, and the default policy for subjects without it", async () => {
    const premium = { ...orders, rule_id: "orders", name: "Premium orders", tier: "premium", limit: 7 };
    expect(await ask("POST", "/api/v1/rules", premium)).toMatchObject({
      status: 201,
      body: { rule_id: "orders~premium", tier: "premium", limit: 7, version: 1 },
    });
    await ask("PUT", "/api/v1/users/p/tier", { tier: "premium" }, undefined, "operator");
    expect(await passing({ user: "p", endpoint })).toBe(7);
    expect(await passing({ user: "f", endpoint })).toBe(20);
    expect(admin.limiter.checkSync({ dimensions: { user: "f", endpoint } })).toMatchObject({ policy: "default" });
    // The name it was created with works, too, as long as it is the only one.
    expect((await ask("GET", "/api/v1/rules/orders")).body).toMatchObject({ rule_id: "orders~premium", limit: 7 });
    expect((await ask("GET", "/api/v1/rules")).body.items).toMatchObject([{ rule_id: "orders~premium" }]);
    expect(await ask("PUT", "/api/v1/rules/orders", { ...premium, limit: 8 })).toMatchObject({
      status: 200,
      body: { tier: "premium", limit: 8, version: 2 },
    });

    // The rule without a tier may be added later, and deleted earlier.
    expect(await ask("POST", "/api/v1/rules", { ...orders, rule_id: undefined })).toMatchObject({
      status: 201,
      body: { rule_id: "orders", tier: "free", limit: 3, version: 3 },
    });
    expect(await passing({ user: "g", endpoint })).toBe(3);
    expect(await ask("POST", "/api/v1/rules", { ...orders, rule_id: undefined })).toMatchObject({ status: 409 });
    expect(await ask("DELETE", "/api/v1/rules/orders")).toMatchObject({ status: 200 });
    expect((await ask("GET", "/api/v1/rules")).body.items).toMatchObject([{ rule_id: "orders~premium", limit: 8 }]);
    expect(await passing({ user: "h", endpoint })).toBe(20);
    expect(await ask("DELETE", "/api/v1/rules/orders~premium")).toMatchObject({ status: 200 });
    expect((await ask("GET", "/api/v1/rules")).body.items).toEqual([]);
  });

  it("replaces and deletes any version if the caller names none", async () => {
    await ask("POST", "/api/v1/rules", orders);
    for (const limit of [4, 5]) {
      const changed = await ask("PUT", "/api/v1/rules/orders", { ...orders, limit });
      expect(changed).toMatchObject({ status: 200, body: { limit, version: limit - 2 } });
    }
    // A version is checked if given, in the body and as If-Match.
    const seen = { ...orders, limit: 6, version: 1 };
    expect(await ask("PUT", "/api/v1/rules/orders", seen)).toMatchObject({ status: 409, body: { current_version: 3 } });
    expect(await ask("DELETE", "/api/v1/rules/orders", undefined, 1)).toMatchObject({ status: 409 });
    // Concurrent changes are not lost, although neither saw the other.
    const tiers = ["a", "b", "c"];
    for (const tier of tiers) await ask("POST", "/api/v1/rules", { ...orders, rule_id: undefined, tier });
    const changes = tiers.map((tier, i) =>
      ask("PUT", `/api/v1/rules/orders~${tier}`, { ...orders, rule_id: undefined, limit: 10 + i }),
    );
    expect((await Promise.all(changes)).map(({ status }) => status)).toEqual([200, 200, 200]);
    const limits = (await ask("GET", "/api/v1/rules")).body.items.map(({ limit }: { limit: number }) => limit);
    expect(limits).toEqual([5, 10, 11, 12]);
    for (const tier of tiers) await ask("DELETE", `/api/v1/rules/orders~${tier}`);
    expect(await ask("DELETE", "/api/v1/rules/orders")).toMatchObject({ status: 200 });
    expect(await ask("DELETE", "/api/v1/rules/orders")).toMatchObject({ status: 404 });
  });

  it("lists policies that are not rules with the reason, and refuses to change them", async () => {
    const document = {
      id: "two",
      owner: team,
      limits: [{ by: ["user"], windows: ["1/s", "10/m"] }],
      deny: { user: "m" },
    };
    await admin.control.policies.put(createRoleActor("admin"), "two", document);
    const entry = { rule_id: "two", expressible: false, policy: "/api/v1/policies/two", version: 1 };
    expect((await ask("GET", "/api/v1/rules")).body.items).toMatchObject([entry]);
    expect((await ask("GET", "/rules")).body.items).toMatchObject([entry]);
    expect((await ask("GET", "/api/v1/rules/two")).body).toMatchObject({
      ...entry,
      reason: expect.stringContaining("deny"),
    });
    for (const [method, body] of [["PUT", { ...orders, rule_id: "two" }], ["DELETE"]] as const) {
      const refused = await ask(method, "/api/v1/rules/two", body, 1);
      expect(refused).toMatchObject({ status: 400, body: { code: "invalid_request" } });
      expect(refused.body.detail).toContain("/api/v1/policies/two");
    }
    const { document: kept } = await admin.control.policies.get(createRoleActor("admin"), "two");
    expect(kept).toEqual(document);
  });

  it("names problems in its own vocabulary", async () => {
    const fields = async (body: unknown): Promise<readonly string[]> => {
      const answered = await ask("POST", "/api/v1/rules", body);
      expect(answered.status).toBe(400);
      return answered.body.problems.map(({ field }: { field: string }) => field);
    };
    expect(await fields({})).toEqual(["dimension", "limit", "window_seconds"]);
    expect(await fields({ ...orders, dimension: "endpoint", tier: "?", limit: 0, window: 1 })).toEqual(
      expect.arrayContaining(["dimension", "tier", "limit"]),
    );
    expect(await fields({ ...orders, endpoint_pattern: "orders" })).toEqual(["endpoint_pattern"]);
    expect(await fields({ ...orders, algorithm: "fixed_window", burst: 5 })).toEqual(["burst"]);
    expect(await fields({ ...orders, dimension: "ip", identifier: "nowhere" })).toEqual(["identifier"]);
    expect(await fields({ ...orders, limit: 1e12, window_seconds: 1 })).toEqual(["limit"]);
    expect(await fields({ ...orders, rule_id: "orders~gold", tier: "premium" })).toEqual(["rule_id"]);
  });

  it("does nothing in a dry run, and overwrites nothing unseen", async () => {
    const path = "/api/v1/rules?dry_run=true";
    expect(await ask("POST", path, orders)).toMatchObject({ status: 201, body: { rule_id: "orders", dry_run: true } });
    expect((await ask("GET", "/api/v1/rules")).body.items).toEqual([]);
    await ask("POST", "/api/v1/rules", orders);
    expect(await ask("POST", "/api/v1/rules", orders)).toMatchObject({ status: 409 });
    expect(await ask("PUT", "/api/v1/rules/orders", orders, 7)).toMatchObject({ status: 409 });
    expect(await ask("PUT", "/api/v1/rules/nothing", { ...orders, rule_id: "nothing" }, 1)).toMatchObject({
      status: 404,
    });
  });

  it("is read by viewers and changed by editors", async () => {
    await ask("POST", "/api/v1/rules", orders);
    expect(await ask("GET", "/api/v1/rules", undefined, undefined, "viewer")).toMatchObject({ status: 200 });
    for (const role of ["check", "viewer", "operator"] as const) {
      expect(await ask("POST", "/api/v1/rules", { ...orders, rule_id: "x" }, undefined, role)).toMatchObject({
        status: 403,
      });
      expect(await ask("DELETE", "/api/v1/rules/orders", undefined, 1, role)).toMatchObject({ status: 403 });
    }
    const others = { owner: "others", match: { user: "*" }, limits: [{ by: ["user"], windows: ["1/s"] }] };
    await admin.control.policies.put(createRoleActor("admin"), "theirs", { id: "theirs", ...others });
    const theirs = { dimension: "user", limit: 2, window_seconds: 1 };
    expect(await ask("PUT", "/api/v1/rules/theirs", theirs, 1)).toMatchObject({ status: 403 });
  });

  it("applies to every request only if an admin writes it", async () => {
    for (const { path, rule } of [
      { path: "/api/v1/rules", rule: { ...orders, endpoint_pattern: "*" } },
      { path: "/api/v1/rules", rule: { ...orders, endpoint_pattern: "/**", dimension: "ip" } },
      { path: "/rules", rule: { scope: "user", api: "*", max_requests: 2, window_seconds: 60 } },
    ]) {
      const { status, body } = await ask("POST", path, rule);
      expect([status, body.code], path).toEqual([403, "permission_denied"]);
      expect(body.problems[0].message).toContain("name a path with a fixed segment");
      expect(["endpoint_pattern", "api"]).toContain(body.problems[0].field);
    }
    expect(await ask("POST", "/api/v1/rules", { ...orders, endpoint_pattern: "*" }, undefined, "admin")).toMatchObject({
      status: 201,
    });
  });

  it("returns long lists in pages", async () => {
    for (const id of ["a", "b", "c", "d", "e"])
      await ask("POST", "/api/v1/rules", {
        ...orders,
        rule_id: id,
        dimension: id < "c" ? "user" : "ip",
        endpoint_pattern: `/${id}`,
      });
    const first = await ask("GET", "/api/v1/rules?limit=2&dimension=ip");
    expect(first.body.items.map(({ rule_id: id }: { rule_id: string }) => id)).toEqual(["c", "d"]);
    const next = /<(.*)>; rel="next"/.exec(first.headers.get("link") ?? "")?.[1];
    const second = await ask("GET", next!);
    expect(second.body).toMatchObject({ items: [{ rule_id: "e" }] });
    expect(second.body.next).toBeUndefined();
  });
});

describe("/rules", () => {
  const payments = {
    scope: "user",
    scope_value: "123",
    api: "/payments",
    algorithm: "token_bucket",
    max_requests: 2,
    window_seconds: 3_600,
    burst_size: 4,
  };

  it("creates a rule with a generated id, for one value of its scope", async () => {
    const made = await ask("POST", "/rules", payments);
    expect(made).toMatchObject({ status: 201, body: { ...payments, version: 1 } });
    expect(made.body.tier).toBeUndefined();
    expect(made.body.rule_id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(await passing({ user: "123", endpoint: "/payments" })).toBe(4);
    expect(await passing({ user: "124", endpoint: "/payments" })).toBe(20);
    expect((await ask("GET", `/rules/${made.body.rule_id}`)).body).toMatchObject(payments);
    const changed = await ask("PUT", `/rules/${made.body.rule_id}`, { ...payments, burst_size: 6, version: 1 });
    expect(changed).toMatchObject({ status: 200, body: { burst_size: 6, version: 2 } });
    // The same rule, spelt differently.
    expect((await ask("GET", `/api/v1/rules/${made.body.rule_id}`)).body).toMatchObject({
      dimension: "user",
      identifier: "123",
      endpoint_pattern: "/payments",
      limit: 2,
      burst: 6,
      tier: "free",
    });
  });

  it("has one rule for each scope, value and API, and names the existing one", async () => {
    const id = "0f8fad5b-d9cb-469f-a165-70867728950e";
    expect(await ask("POST", "/rules", { ...payments, rule_id: id })).toMatchObject({
      status: 201,
      body: { rule_id: id },
    });
    const taken = await ask("POST", "/rules", { ...payments, api: "/Payments/" });
    expect(taken).toMatchObject({ status: 409, body: { code: "already_exists" } });
    expect(taken.body.detail).toContain(id);
    expect(await ask("POST", "/rules", { ...payments, scope_value: "124" })).toMatchObject({ status: 201 });
    expect(await ask("POST", "/rules", { ...payments, scope_value: undefined })).toMatchObject({
      status: 201,
      body: { scope_value: "*" },
    });
  });

  it("is listed by scope", async () => {
    await ask("POST", "/rules", payments);
    await ask("POST", "/rules", { ...payments, scope: "api_key", scope_value: "*" });
    expect((await ask("GET", "/rules?scope=api_key")).body.items).toMatchObject([{ scope: "api_key" }]);
    expect((await ask("GET", "/api/v1/rules?dimension=apikey")).body.items).toMatchObject([{ dimension: "apikey" }]);
    expect((await ask("GET", "/rules?scope=org")).body.items).toEqual([]);
    expect((await ask("GET", "/rules")).body.items).toHaveLength(2);
  });
});

describe("/api/v1/users", () => {
  beforeEach(async () => {
    await ask("POST", "/api/v1/rules", orders);
    await applyStored(admin);
  });

  it("shows a user's limits, with their sources", async () => {
    expect(await ask("GET", "/api/v1/users/u1/limits", undefined, undefined, "viewer")).toMatchObject({
      status: 200,
      body: {
        user_id: "u1",
        tier: "free",
        limits: [
          { rule_id: "orders", limit: 3, window_seconds: 3_600, source: "policy", remaining: 3 },
          // If no other policy matches the request.
          { rule_id: "default" },
        ],
      },
    });
  });

  it("gives a user an override", async () => {
    const override = { rule_id: "orders", limit: 6, window_seconds: 3_600, duration_seconds: 3_600, reason: "launch" };
    const made = await ask("POST", "/api/v1/users/u1/override", override, undefined, "operator");
    expect(made).toMatchObject({
      status: 201,
      body: {
        limits: [
          { rule_id: "orders", limit: 6, source: "override", expires_at: expect.stringMatching(/Z$/) },
          { rule_id: "default" },
        ],
      },
    });
    expect(await passing({ user: "u1", endpoint })).toBe(6);
    expect(await passing({ user: "u2", endpoint })).toBe(3);
    const { limits } = await admin.control.subjects.get(createRoleActor("admin"), "user", "u1");
    expect(limits).toMatchObject([{ reason: "launch", policy: "orders" }]);
  });

  it("replaces the earlier value, and shows it", async () => {
    const tier = (name: string, more: { version?: number; dry?: boolean } = {}) =>
      ask(
        "PUT",
        `/api/v1/users/u1/tier${more.dry === true ? "?dry_run=true" : ""}`,
        { tier: name },
        more.version,
        "operator",
      );
    const first = await tier("premium");
    expect([first.status, first.body.replaced]).toEqual([200, undefined]);
    expect((await tier("premium")).body.replaced).toBeUndefined();
    expect((await tier("gold", { dry: true })).body.replaced).toEqual({ tier: "premium" });
    const second = await tier("gold");
    expect(second).toMatchObject({ status: 200, body: { tier: "gold", replaced: { tier: "premium" } } });
    // A version is checked if given.
    expect(await tier("free", { version: first.body.version })).toMatchObject({
      status: 409,
      body: { code: "version_conflict", current_version: second.body.version, current: { tier: "gold" } },
    });
    expect(await tier("silver", { version: second.body.version })).toMatchObject({
      status: 200,
      body: { replaced: { tier: "gold" } },
    });

    const expires = new Date(Date.now() + 3_600_000).toISOString();
    const override = (limit: number, dry = false) =>
      ask(
        "POST",
        `/api/v1/users/u1/override${dry ? "?dry_run=true" : ""}`,
        { rule_id: "orders", limit, window_seconds: 3_600, expires_at: expires, reason: `for ${limit}` },
        undefined,
        "operator",
      );
    const made = await override(6);
    expect([made.status, made.body.replaced]).toEqual([201, undefined]);
    expect((await override(6)).body.replaced).toBeUndefined();
    const replaced = {
      rule_id: "orders",
      windows: ["6/h"],
      expires_at: expires,
      reason: "for 6",
      author: "operator",
    };
    expect((await override(7, true)).body.replaced).toEqual(replaced);
    const last = await override(7);
    expect(last).toMatchObject({ status: 201, body: { replaced } });
    expect(last.body.limits[0]).toMatchObject({ limit: 7, source: "override" });
  });

  it("requires an end and a user", async () => {
    const override = { rule_id: "orders", limit: 6, window_seconds: 60 };
    const endless = await ask("POST", "/api/v1/users/u1/override", override, undefined, "operator");
    expect(endless).toMatchObject({ status: 400, body: { problems: [{ field: "expires_at" }] } });
    const nowhere = { ...override, rule_id: "nothing", duration_seconds: 60 };
    expect((await ask("POST", "/api/v1/users/u1/override", nowhere, undefined, "operator")).status).toBe(400);
    const until = { ...override, expires_at: "2099-02-30T00:00:00Z" };
    expect(await ask("POST", "/api/v1/users/u1/override", until, undefined, "operator")).toMatchObject({
      status: 400,
      body: { problems: [{ field: "expires_at" }] },
    });
    const wrong = [
      ["rule_id", nowhere],
      ["duration_seconds", { ...override, duration_seconds: 367 * 86_400 }],
      ["expires_at", { ...override, expires_at: "2020-01-01" }],
      ["expires_at", { ...override, expires_at: "2199-01-01" }],
      ["limit", { ...override, limit: 1e12, duration_seconds: 60 }],
      ["burst", { ...override, burst: 1e12, window_seconds: 300_000_000, duration_seconds: 60 }],
    ] as const;
    for (const [field, body] of wrong) {
      const refused = await ask("POST", "/api/v1/users/u1/override", body, undefined, "operator");
      expect(refused, field).toMatchObject({ status: 400, body: { problems: [{ field }] } });
    }
    for (const role of ["viewer", "editor"] as const) {
      expect(await ask("POST", "/api/v1/users/u1/override", override, undefined, role)).toMatchObject({ status: 403 });
      expect(await ask("PUT", "/api/v1/users/u1/tier", { tier: "premium" }, undefined, role)).toMatchObject({
        status: 403,
      });
    }
  });
});

describe("/rules, by the names of columns", () => {
  const written = {
    scope_type: "org",
    scope_value: "o1",
    api_endpoint: "/payments",
    max_requests: 4,
    window_seconds: 60,
  };

  it("reads scope_type and api_endpoint for scope and api", async () => {
    const made = await ask("POST", "/rules", { ...written, algorithm: "sliding_window" });
    expect(made).toMatchObject({
      status: 201,
      body: { scope: "org", scope_value: "o1", api: "/payments", max_requests: 4, version: 1 },
    });
    expect(await passing({ org: "o1", endpoint: "/payments" })).toBe(4);
    const path = `/rules/${made.body.rule_id}`;
    expect(await ask("PUT", path, { ...written, algorithm: "sliding_window", max_requests: 5 })).toMatchObject({
      status: 200,
      body: { max_requests: 5, version: 2 },
    });
    expect((await ask("GET", "/rules?scope_type=org")).body.items).toHaveLength(1);
    expect((await ask("GET", "/rules?scope_type=user")).body.items).toEqual([]);
    expect(await ask("DELETE", path)).toMatchObject({ status: 200 });
  });

  it("names problems by the name that was sent, and refuses both names at once", async () => {
    const wrong = await ask("POST", "/rules", { ...written, scope_type: "endpoint" });
    expect(wrong).toMatchObject({ status: 400, body: { problems: [{ field: "scope_type" }] } });
    const both = await ask("POST", "/rules", { ...written, scope: "user" });
    expect(both).toMatchObject({ status: 400, body: { problems: [{ field: "scope_type" }] } });
  });
});
