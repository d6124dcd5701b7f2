import { connect } from "node:net";
import fc from "fast-check";
import { ManualClock, SluiceError } from "sluice";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openAccess } from "../../data-plane/access/access.ts";
import { createRecordingLog, type LoggedLine } from "../../testing/recording-log.ts";
import { adminRoute } from "./route.ts";
import { limitPolicy } from "./testing/route-examples.ts";
import {
  applyStored,
  createRoleActor,
  dump,
  type StartAdminOptions,
  type StartedAdmin,
  startAdmin,
  tokenForRole,
} from "./testing/start-admin.ts";

let admin: StartedAdmin;
let logged: LoggedLine[];

async function restart(options: StartAdminOptions): Promise<void> {
  await admin.close();
  admin = await startAdmin(options);
}

beforeEach(async () => {
  logged = [];
  admin = await startAdmin({ log: createRecordingLog((line) => logged.push(line)) });
});

afterEach(() => admin.close());

const yaml = { "content-type": "application/yaml" };

async function readBody(response: Response, status: number): Promise<Record<string, never>> {
  const text = await response.text();
  expect(response.status, text).toBe(status);
  return JSON.parse(text);
}

describe("versions", () => {
  it("are returned as ETags, and required by If-Match; nothing is replaced unseen", async () => {
    const created = await admin.ask("admin", "PUT", "/api/v1/policies/orders", { body: limitPolicy("orders", 10) });
    expect(created.headers.get("etag")).toBe('"1"');
    expect(created.headers.get("location")).toBe("/api/v1/policies/orders");
    await readBody(created, 201);

    const unseen = await admin.ask("admin", "PUT", "/api/v1/policies/orders", { body: limitPolicy("orders", 20) });
    expect(await readBody(unseen, 409)).toMatchObject({ code: "version_conflict", current_version: 1 });

    const put = (version: number): Promise<Response> =>
      admin.ask("admin", "PUT", "/api/v1/policies/orders", {
        body: limitPolicy("orders", 20 + version),
        headers: { "if-match": `"${version}"` },
      });
    expect((await put(1)).headers.get("etag")).toBe('"2"');
    expect(await readBody(await put(1), 409)).toMatchObject({ current_version: 2 });
    const seen = await admin.ask("viewer", "GET", "/api/v1/policies/orders");
    expect(seen.headers.get("etag")).toBe('"2"');
    expect(await readBody(seen, 200)).toMatchObject({ document: { limits: [{ windows: ["21/m"] }] } });
    const gone = await admin.ask("admin", "DELETE", "/api/v1/policies/orders", { headers: { "if-match": '"2"' } });
    await readBody(gone, 200);
    expect(await readBody(await admin.ask("viewer", "GET", "/api/v1/policies/orders"), 404)).toMatchObject({
      code: "resource_not_found",
    });
  });

  it("let one of two editors through that saw the same version", async () => {
    await admin.ask("admin", "PUT", "/api/v1/policies/orders", { body: limitPolicy("orders", 10) });
    const answers = await Promise.all(
      [20, 30].map((perMinute) =>
        admin.ask("editor", "PUT", "/api/v1/policies/orders", {
          body: limitPolicy("orders", perMinute),
          headers: { "if-match": '"1"' },
        }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
  });

  it("of subjects keep callers from replacing or deleting values that they did not see", async () => {
    await admin.control.policies.put(createRoleActor("admin"), "orders", limitPolicy("orders", 10));
    const path = "/api/v1/subjects/user/u1";
    const untilMs = Date.now() + 3_600_000;
    const put = [
      ["PUT", "/tier", { tier: "gold" }],
      ["PUT", "/limits", { policy: "orders", windows: ["77/m"] }],
      ["PUT", "/override", { policy: "orders", windows: ["88/m"], until_ms: untilMs, why: "a sale" }],
    ] as const;
    let version = "";
    for (const again of [false, true]) {
      for (const [method, part, body] of put) {
        const answer = await admin.ask("operator", method, path + part, { body });
        const done = await readBody(answer, 200);
        expect([Object.hasOwn(done, "generation"), done.replaced], part).toEqual([!again, undefined]);
        version = answer.headers.get("etag")!;
      }
    }
    const override = { policy: "orders", windows: ["88/m"], until_ms: untilMs, reason: "a sale", author: "operator" };
    const custom = { policy: "orders", windows: ["77/m"], reason: "", author: "operator" };
    const moment = { at_ms: expect.any(Number) };
    const limits = [
      { ...custom, ...moment },
      { ...override, ...moment },
    ];
    const others = [
      ["PUT", "/tier", { tier: "silver" }, { tier: "gold", limits: [] }],
      ["PUT", "/limits", { policy: "orders", windows: ["78/m"] }, { limits: [limits[0]] }],
      ["PUT", "/override", { policy: "orders", windows: ["88/m"], for_ms: 60_000 }, { limits: [limits[1]] }],
      ["DELETE", "/tier", undefined, { tier: "gold", limits: [] }],
      ["DELETE", "/limits?policy=orders", undefined, { limits: [limits[0]] }],
      ["DELETE", "/override?policy=orders", undefined, { limits: [limits[1]] }],
      ["DELETE", "", undefined, { tier: "gold", limits }],
    ] as const;
    const before = await dump(admin.store);
    for (const [method, part, body, replaced] of others) {
      const ask = (dry: boolean, headers?: Readonly<Record<string, string>>): Promise<Response> => {
        const query = dry ? `${part.includes("?") ? "&" : "?"}dry_run=true` : "";
        return admin.ask("operator", method, path + part + query, { body, headers });
      };
      for (const dry of [false, true]) {
        for (const headers of [{}, { "if-match": '"1"' }, { "if-none-match": "*" }]) {
          const refused = await readBody(await ask(dry, headers), 409);
          expect(refused, part).toMatchObject({
            code: "version_conflict",
            current_version: Number(version.slice(1, -1)),
          });
          expect(refused.current, part).toEqual({
            dimension: "user",
            value: "u1",
            version: Number(version.slice(1, -1)),
            tier: "gold",
            limits,
          });
        }
      }
      for (const seen of [version, "*"])
        expect((await readBody(await ask(true, { "if-match": seen }), 200)).replaced, part).toEqual(replaced);
    }
    expect(await dump(admin.store)).toBe(before);
    const any = await admin.ask("operator", "DELETE", path, { headers: { "if-match": "*" } });
    expect(await readBody(any, 200)).toMatchObject({ dry_run: false, replaced: { tier: "gold", limits } });
    const none = await admin.ask("operator", "PUT", `${path}/tier`, { body: put[0][2], headers: { "if-match": "*" } });
    expect((await readBody(none, 200)).replaced).toBeUndefined();
    // Only a caller that saw the policy replaces it.
    const policy = await admin.ask("admin", "DELETE", "/api/v1/policies/orders", { headers: { "if-match": "*" } });
    expect(await readBody(policy, 400)).toMatchObject({ problems: [{ field: "If-Match" }] });
  });

  it("are refused on routes that do not use them", async () => {
    const answer = await admin.ask("operator", "PUT", "/api/v1/kill-switch", {
      body: { mode: "open", why: "a test" },
      headers: { "if-match": '"3"' },
    });
    expect(await readBody(answer, 400)).toMatchObject({ problems: [{ field: "If-Match" }] });
  });
});

describe("policies in YAML", () => {
  it("are stored like those in JSON", async () => {
    const text = "# room for orders\nmatch: { endpoint: /orders }\nlimits:\n  - by: [user]\n    windows: [5/m]\n";
    await readBody(await admin.ask("admin", "PUT", "/api/v1/policies/orders", { body: text, headers: yaml }), 201);
    const kept = await readBody(await admin.ask("viewer", "GET", "/api/v1/policies/orders"), 200);
    expect(kept).toMatchObject({ document: { match: { endpoint: "/orders" } } });
  });

  it.each([
    ["a bare policy", "match: { endpoint: /orders }\nlimits:\n  - by: [user]\n    windows: [5 apples]\n", 4],
    [
      "one with options for the change",
      "why: a test\ndocument:\n  limits:\n    - by: [user]\n      windows: [5 apples]\n",
      5,
    ],
  ])("are refused with line and column: %s", async (_what, text, line) => {
    const answer = await admin.ask("admin", "PUT", "/api/v1/policies/orders", { body: text, headers: yaml });
    const { problems } = await readBody(answer, 400);
    expect(problems).toEqual([expect.objectContaining({ line, field: expect.stringContaining("windows") })]);
  });

  it("that cannot be parsed are reported with their place", async () => {
    const answer = await admin.ask("admin", "POST", "/api/v1/policies", { body: "id: a\nlimits: [\n", headers: yaml });
    expect(await readBody(answer, 400)).toMatchObject({ code: "invalid_request", problems: [{ line: 3 }] });
  });

  it("are validated with places, and not stored", async () => {
    const body = "id: a\nlimits:\n  - by: [user]\n    windwos: [5/m]\n";
    const answer = await admin.ask("viewer", "POST", "/api/v1/policies/validate", { body, headers: yaml });
    expect(await readBody(answer, 200)).toMatchObject({
      valid: false,
      problems: expect.arrayContaining([
        expect.objectContaining({ line: 4, message: expect.stringContaining("windows") }),
      ]),
    });
    expect(await readBody(await admin.ask("viewer", "GET", "/api/v1/policies"), 200)).toEqual({ items: [] });
  });

  it("are refused on routes that accept only JSON, and so is every other type", async () => {
    const tier = await admin.ask("admin", "PUT", "/api/v1/subjects/user/u/tier", { body: "tier: a", headers: yaml });
    expect(await readBody(tier, 415)).toMatchObject({ detail: expect.stringContaining("application/json") });
    const text = await admin.ask("admin", "PUT", "/api/v1/policies/a", {
      body: "limits: []",
      headers: { "content-type": "text/plain" },
    });
    expect(await readBody(text, 415)).toMatchObject({ detail: expect.stringContaining("application/yaml") });
  });
});

describe("input", () => {
  it("has its unknown parameters and fields named", async () => {
    const query = await admin.ask("viewer", "GET", "/api/v1/policies?lmit=3");
    expect(await readBody(query, 400)).toMatchObject({
      problems: [{ field: "lmit", message: expect.stringContaining("there are owner, limit, after") }],
    });
    const body = await admin.ask("operator", "PUT", "/api/v1/kill-switch", { body: { mdoe: "open", why: "w" } });
    expect(await readBody(body, 400)).toMatchObject({
      problems: [{ field: "mdoe", message: expect.stringContaining("did you mean mode") }],
    });
    const dry = await admin.ask("admin", "DELETE", "/api/v1/kill-switch?dry_run=1");
    expect(await readBody(dry, 400)).toMatchObject({ problems: [{ field: "dry_run" }] });
  });

  it("is bounded", async () => {
    const large = { document: { description: "x".repeat(1024 * 1024) } };
    expect(await readBody(await admin.ask("admin", "PUT", "/api/v1/policies/a", { body: large }), 413)).toMatchObject({
      code: "body_too_large",
    });
    const value = "x".repeat(5_000);
    expect(await readBody(await admin.ask("viewer", "GET", `/api/v1/subjects/user/${value}`), 400)).toMatchObject({
      problems: [{ field: "id" }],
    });
  });

  it("is refused if nested too deeply, in JSON or YAML", async () => {
    const lists = "[".repeat(5_000) + "]".repeat(5_000);
    const objects = `${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`;
    const asked = [
      ["POST", "/api/v1/policies/validate", `{"id":"a","limits":${lists}}`],
      ["PUT", "/api/v1/policies/a", `{"match":${objects}}`],
      ["PUT", "/api/v1/policies/a", `{"document":{"match":${objects}}}`],
      ["POST", "/api/v1/import", `{"policies":${lists}}`],
      ["PUT", "/api/v1/subjects/user/u/limits", `{"policy":"a","windows":[${lists}]}`],
      ["POST", "/api/v1/tokens", objects],
    ] as const;
    for (const [method, path, body] of asked) {
      const told = await readBody(await admin.ask("admin", method, path, { body }), 400);
      expect(told.detail, path).toMatch(/nested (deeper than 64 levels|too deeply to be read)/);
    }
    const blocks = `limits:\n${"- ".repeat(100)}a\n`;
    for (const [method, path, body] of [
      ["PUT", "/api/v1/policies/a", blocks],
      ["PUT", "/api/v1/policies/a", `limits: ${lists}`],
      ["POST", "/api/v1/import", `policies: ${lists}`],
    ] as const)
      await readBody(await admin.ask("admin", method, path, { body, headers: yaml }), 400);
    expect(logged).toEqual([]);
  });

  it("in YAML has a lower bound, because parsing it takes long", async () => {
    const body = `id: a\n${"# x\n".repeat(40_000)}`;
    const answer = await admin.ask("viewer", "POST", "/api/v1/policies/validate", { body, headers: yaml });
    expect(await readBody(answer, 413)).toMatchObject({
      code: "body_too_large",
      detail: expect.stringContaining("send it as JSON"),
    });
  });

  it("in a body that is not read is refused, because it may contain the version that was seen", async () => {
    const operator = createRoleActor("operator");
    await admin.control.subjects.setTier(operator, "user", "u", "premium");
    const stale = { body: { expected_version: 7 } };
    const answer = await admin.ask("operator", "DELETE", "/api/v1/subjects/user/u", stale);
    expect((await readBody(answer, 400)).detail).toContain("If-Match");
    expect(await admin.control.subjects.get(operator, "user", "u")).toMatchObject({ tier: "premium" });
  });

  it("gets different answers for unknown paths and unsupported methods", async () => {
    expect(await readBody(await admin.ask("admin", "GET", "/api/v1/polices"), 404)).toMatchObject({
      code: "not_found",
      detail: expect.stringContaining("/openapi.json"),
    });
    const answer = await admin.ask("admin", "POST", "/api/v1/policies/a%2Fb", { body: {} });
    expect(answer.headers.get("allow")).toBe("GET, HEAD, PUT, DELETE");
    await readBody(answer, 405);
  });

  it("has subjects of any text in its paths", async () => {
    const route = adminRoute({
      method: "GET",
      path: "/api/v1/subjects/{kind}/{id}",
      summary: "",
      action: "subject.get",
      needs: "read",
      answers: {},
      handle: ({ params }) => ({ status: 200, body: params }),
    });
    const clock = new ManualClock(1_000_000);
    await restart({ routes: [route], clock });
    const anyText = fc.string({ unit: "binary", minLength: 1, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(anyText, async (id) => {
        // A client rewrites . and .. in paths before it sends anything.
        fc.pre(id !== "." && id !== "..");
        clock.advance(60_000);
        const answer = await admin.ask("viewer", "GET", `/api/v1/subjects/user/${encodeURIComponent(id)}`);
        expect(await readBody(answer, 200)).toEqual({ kind: "user", id });
      }),
      {
        numRuns: 200,
        examples: [["a/b"], ["%2F"], ["%"], ["a?b#c"], ["🦭"], ["\u0000"], [":id"], ["a;b"], ["a+b"], ["*"]],
      },
    );
    for (const path of ["%FF", "%", "%2", "%C3%28"]) {
      const answer = await admin.ask("viewer", "GET", `/api/v1/subjects/user/${path}`);
      expect(await readBody(answer, 400), path).toMatchObject({ code: "invalid_request" });
    }
  });
});

describe("long lists", () => {
  it("come in pages that follow each other", async () => {
    for (const id of ["a", "b", "c", "d", "e"])
      await admin.control.policies.put(createRoleActor("admin"), id, limitPolicy(id, 5), { expected: 0 });
    const ids: string[] = [];
    let path: string | undefined = "/api/v1/policies?limit=2&owner=shop";
    while (path !== undefined) {
      const answer = await admin.ask("viewer", "GET", path);
      const { items, next } = (await readBody(answer, 200)) as { items?: { id: string }[]; next?: string };
      ids.push(...items!.map(({ id }) => id));
      const link = answer.headers.get("link");
      expect(link === null).toBe(next === undefined);
      path = /^<(.*)>; rel="next"$/.exec(link ?? "")?.[1];
    }
    expect(ids).toEqual(["a", "b", "c", "d", "e"]);
  });
});

describe("answers", () => {
  it("are not cached, and their type is not guessed", async () => {
    for (const path of ["/livez", "/api/v1/policies", "/nowhere"]) {
      const { headers } = await admin.ask("viewer", "GET", path);
      expect(headers.get("cache-control"), path).toBe("no-store");
      expect(headers.get("x-content-type-options"), path).toBe("nosniff");
      expect(headers.get("access-control-allow-origin"), path).toBeNull();
    }
    const { status } = await admin.ask("admin", "OPTIONS", "/api/v1/policies", {
      headers: { origin: "https://evil.example", "access-control-request-method": "PUT" },
    });
    expect(status).toBe(405);
  });

  it("of deprecated routes name the dates of deprecation and removal and the successor, along with other links", async () => {
    const route = adminRoute({
      method: "GET",
      path: "/old",
      summary: "",
      action: "policy.list",
      needs: "read",
      answers: {},
      deprecated: { since: "2027-01-01", sunset: "2027-07-04", successor: "/api/v1/policies" },
      handle: () => ({ status: 200, headers: { link: '</old?after=b>; rel="next"' }, body: {} }),
    });
    await restart({ routes: [route] });
    const { headers } = await admin.ask("viewer", "GET", "/old");
    expect(headers.get("deprecation")).toBe("@1798761600");
    expect(headers.get("sunset")).toBe("Sun, 04 Jul 2027 00:00:00 GMT");
    expect(headers.get("link")).toBe('</old?after=b>; rel="next", </api/v1/policies>; rel="successor-version"');
    expect((await admin.ask("nobody", "GET", "/old")).headers.get("deprecation")).toBe("@1798761600");
  });

  it("to internal errors reveal nothing about them", async () => {
    const route = adminRoute({
      method: "GET",
      path: "/broken",
      summary: "",
      action: "policy.list",
      needs: "read",
      answers: {},
      handle: () => {
        throw new Error("hunter2");
      },
    });
    await restart({ routes: [route], log: createRecordingLog((line) => logged.push(line)) });
    const answer = await admin.ask("viewer", "GET", "/broken");
    expect(JSON.stringify(await readBody(answer, 500))).not.toContain("hunter2");
    expect(logged.map(({ message }) => message)).toContain("a request failed");
  });
});

describe("the API's own limits", () => {
  it("refuse a token that sends too many requests, say when to retry, and count a dry run as a write", async () => {
    await restart({ clock: new ManualClock(1_000_000) });
    const write = (): Promise<Response> => admin.ask("operator", "DELETE", "/api/v1/kill-switch?dry_run=true");
    const first = await write();
    expect(first.headers.get("x-ratelimit-remaining")).toBe("99");
    for (let times = 1; times < 100; times++) expect((await write()).status).toBe(200);
    const refused = await write();
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(refused.headers.get("ratelimit")).toMatch(/admin-writes/);
    expect(await readBody(refused, 429)).toMatchObject({ code: "rate_limited" });
    expect((await admin.ask("operator", "GET", "/api/v1/kill-switch")).status).toBe(200);
    expect((await admin.ask("admin", "DELETE", "/api/v1/kill-switch?dry_run=true")).status).toBe(200);
  });

  it("count forbidden requests as well, before they are audited", async () => {
    await restart({ clock: new ManualClock(1_000_000) });
    const write = async (): Promise<number> => (await admin.ask("viewer", "DELETE", "/api/v1/kill-switch")).status;
    for (let times = 0; times < 100; times++) expect(await write()).toBe(403);
    expect(await write()).toBe(429);
  });

  it("refuse an address after ten failed logins, until a minute has passed, but accept a valid token", async () => {
    const clock = new ManualClock(1_000_000);
    await restart({ clock });
    // The address is that of the connection, whatever headers say.
    const ask = (times: number): Promise<Response> => {
      const other = `203.0.113.${times}`;
      const headers = { "x-forwarded-for": other, forwarded: `for=${other}`, "x-real-ip": other };
      return admin.ask("nobody", "GET", "/api/v1/nodes", { headers });
    };
    for (let times = 0; times < 10; times++) expect((await ask(times)).status).toBe(401);
    expect(await readBody(await ask(11), 429)).toMatchObject({
      code: "rate_limited",
    });
    expect((await admin.ask("admin", "GET", "/api/v1/nodes")).status).toBe(200);
    expect((await admin.ask("nobody", "GET", "/livez")).status).toBe(200);
    clock.advance(60_000);
    expect((await admin.ask("nobody", "GET", "/api/v1/nodes")).status).toBe(401);
  });
});

describe("a refused request", () => {
  const refusals = async (): Promise<
    readonly { actor: string; action: string; target: string; why: string; from: string }[]
  > => (await admin.control.audit.list(createRoleActor("admin"), { outcome: "refused" })).items;

  it("is in the audit, with actor and address, and never with the token", async () => {
    const secret = "sluice_hunter2";
    await admin.ask("nobody", "PUT", "/api/v1/policies/orders", { headers: { authorization: `Bearer ${secret}` } });
    await admin.ask("viewer", "PUT", "/api/v1/subjects/user/u1/tier", { body: { tier: "a" } });
    await expect.poll(async () => (await refusals()).length, { timeout: 30_000 }).toBe(2);
    expect(await refusals()).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ actor: "anonymous", action: "policy.put", target: "orders", from: "127.0.0.1" }),
        expect.objectContaining({ actor: "viewer", action: "subject.tier", target: "user:u1", from: "127.0.0.1" }),
      ]),
    );
    expect(JSON.stringify([await refusals(), logged])).not.toContain("hunter2");
  });

  it("by a policy's owner is in the audit once", async () => {
    await admin.control.policies.put(
      createRoleActor("admin"),
      "theirs",
      { ...limitPolicy("theirs", 5), owner: "others" },
      { expected: 0 },
    );
    const answer = await admin.ask("editor", "DELETE", "/api/v1/policies/theirs", { headers: { "if-match": '"1"' } });
    expect(await readBody(answer, 403)).toMatchObject({ code: "permission_denied" });
    await expect.poll(async () => (await refusals()).length, { timeout: 30_000 }).toBe(1);
  });

  it("is one without a token, even if the other ports require none", async () => {
    await restart({ access: openAccess });
    for (const headers of [{}, { authorization: "Bearer anything" }] as Record<string, string>[]) {
      const answer = await admin.ask("nobody", "GET", "/api/v1/policies", { headers });
      expect(await readBody(answer, 401)).toMatchObject({ code: "unauthenticated" });
    }
  });

  it.each([
    ["401", ""],
    ["403", `authorization: Bearer ${tokenForRole("viewer")}\r\n`],
  ])("is refused with %s before its body is read", async (status, authorization) => {
    const socket = connect(admin.port, "127.0.0.1");
    try {
      const answered = new Promise<string>((resolve) => socket.once("data", (data) => resolve(String(data))));
      socket.write(
        `PUT /api/v1/policies/a HTTP/1.1\r\nhost: x\r\n${authorization}content-type: application/json\r\ncontent-length: 9\r\n\r\n`,
      );
      expect(await answered).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    } finally {
      socket.destroy();
    }
  });
});

describe("subjects", () => {
  beforeEach(async () => {
    await admin.control.policies.put(createRoleActor("admin"), "orders", limitPolicy("orders", 5), { expected: 0 });
    await applyStored(admin);
  });

  it("have their counters reset by a reset, and not by a dry run of it", async () => {
    const dimensions = { user: "u1", endpoint: "/orders" };
    await admin.limiter.check({ dimensions, cost: 5 });
    const used = async (): Promise<unknown> =>
      (
        (await readBody(await admin.ask("viewer", "GET", "/api/v1/subjects/user/u1/usage"), 200)) as never as {
          limits: { usage: { used: number }[] }[];
        }
      ).limits[0]?.usage[0]?.used;
    expect(await used()).toBe(5);
    await readBody(await admin.ask("operator", "POST", "/api/v1/subjects/user/u1/reset?dry_run=true"), 200);
    expect(await used()).toBe(5);
    await readBody(await admin.ask("operator", "POST", "/api/v1/subjects/user/u1/reset"), 200);
    expect(await used()).toBe(0);
  });

  it("keep their custom limit when an override is removed, and the other way round", async () => {
    const path = "/api/v1/subjects/user/u1";
    await readBody(
      await admin.ask("operator", "PUT", `${path}/limits`, { body: { policy: "orders", windows: ["9/m"] } }),
      200,
    );
    expect(await readBody(await admin.ask("operator", "DELETE", `${path}/override?policy=orders`), 404)).toMatchObject({
      code: "resource_not_found",
    });
    expect(await readBody(await admin.ask("operator", "DELETE", `${path}/limits`), 400)).toMatchObject({
      problems: [{ field: "policy" }],
    });
    const any = { headers: { "if-match": "*" } };
    const gone = await readBody(await admin.ask("operator", "DELETE", `${path}/limits?policy=orders`, any), 200);
    expect(gone).toMatchObject({ subject: { limits: [] } });
  });

  it("have overrides that end, given as a time or a duration, not both", async () => {
    const put = (body: object): Promise<Response> =>
      admin.ask("operator", "PUT", "/api/v1/subjects/user/u1/override", {
        body: { policy: "orders", windows: ["9/m"], ...body },
      });
    expect(await readBody(await put({}), 400)).toMatchObject({ problems: [{ field: "until_ms" }] });
    expect(await readBody(await put({ for_ms: 60_000, until_ms: 9e12 }), 400)).toMatchObject({
      problems: [{ field: "for_ms" }],
    });
    const before = Date.now();
    const { subject } = (await readBody(await put({ for_ms: 60_000 }), 200)) as never as {
      subject: { limits: { until_ms: number }[] };
    };
    const { until_ms: untilMs } = subject.limits[0]!;
    expect(untilMs).toBeGreaterThanOrEqual(before + 60_000);
    expect(untilMs).toBeLessThanOrEqual(Date.now() + 60_000);
  });
});

it("exports a whole configuration and imports it again", async () => {
  await admin.control.policies.put(createRoleActor("admin"), "orders", limitPolicy("orders", 5), { expected: 0 });
  const exported = await admin.ask("viewer", "GET", "/api/v1/export");
  expect(exported.headers.get("content-type")).toBe("application/yaml; charset=utf-8");
  const text = await exported.text();
  const again = await admin.ask("admin", "POST", "/api/v1/import?mode=replace", { body: text, headers: yaml });
  expect(await readBody(again, 200)).toMatchObject({ import: { created: [], changed: [], deleted: [] } });
  const bad = await admin.ask("admin", "POST", "/api/v1/import", { body: "policies:\n  - id: 5\n", headers: yaml });
  expect(await readBody(bad, 400)).toMatchObject({ problems: [{ line: 2, field: "policies[0].id" }] });
  expect(await readBody(await admin.ask("admin", "POST", "/api/v1/import"), 400)).toMatchObject({
    detail: expect.stringContaining("empty"),
  });
});

it("overwrites nothing unseen by an import, and shows in a dry run what to send", async () => {
  const actor = createRoleActor("admin");
  await admin.control.policies.put(actor, "orders", limitPolicy("orders", 5));
  await admin.control.subjects.setTier(actor, "user", "u1", "gold");
  const put = (perMinute: number, tier: string, query = "", headers: Readonly<Record<string, string>> = {}) =>
    admin.ask("admin", "POST", `/api/v1/import${query}`, {
      body: { policies: [{ id: "orders", ...limitPolicy("orders", perMinute) }], subjects: [{ user: "u1", tier }] },
      headers,
    });
  const before = await dump(admin.store);
  for (const refused of [await put(6, "gold"), await put(5, "silver"), await put(6, "gold", "", { "if-match": '"1"' })])
    expect(await readBody(refused, 409)).toMatchObject({ code: "version_conflict", current_version: 2 });
  const dry = await put(6, "silver", "?dry_run=true");
  const none = { count: 0, first: [] };
  expect(await readBody(dry, 200)).toEqual({
    dry_run: true,
    warnings: [],
    import: {
      created: [],
      changed: ["orders"],
      deleted: [],
      unchanged: 0,
      subjects: { created: none, changed: { count: 1, first: [{ dimension: "user", value: "u1" }] }, deleted: none },
      generation_before: 2,
    },
  });
  expect(await dump(admin.store)).toBe(before);
  expect(await readBody(await put(5, "gold"), 200)).not.toHaveProperty("generation");
  await readBody(await put(6, "silver", "", { "if-match": '"2"' }), 200);
  await readBody(await put(7, "silver", "", { "if-match": '"2"' }), 409);
  expect(await readBody(await put(7, "free", "", { "if-match": "*" }), 200)).toMatchObject({
    import: { changed: ["orders"], subjects: { changed: { count: 1 } } },
  });
});

it("says that the store is unavailable, and what that means", async () => {
  const route = adminRoute({
    method: "GET",
    path: "/away",
    summary: "",
    action: "policy.list",
    needs: "read",
    answers: {},
    handle: () => {
      throw new SluiceError("policy_store_unavailable", "the policy store is unavailable");
    },
  });
  await restart({ routes: [route], log: createRecordingLog((line) => logged.push(line)) });
  const answer = await admin.ask("viewer", "GET", "/away");
  expect(answer.headers.get("retry-after")).toBe("5");
  await readBody(answer, 503);
  expect(logged).toEqual([]);
});
