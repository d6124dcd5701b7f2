import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { repositoryRoot } from "../repository/source-tree.ts";
import { collectPromises } from "./collect-promises.ts";
import { findBrokenPromises, type Promises } from "./find-broken-promises.ts";
import { flattenDocument, flattenOpenApi } from "./flatten-schema.ts";
import { findProtocolBreaks, writeProtocolImage } from "./protocol-image.ts";
import { readRecordedPromises } from "./recorded-promises.ts";

describe("what docs/compatibility.md promises", () => {
  const recorded = readRecordedPromises();
  let current: Promises;

  beforeAll(async () => {
    current = await collectPromises();
  });

  it("still holds", () => {
    expect(findBrokenPromises(recorded, current), "see docs/compatibility.md: what may change, and when").toEqual([]);
  });

  it("is recorded for everything that is looked at, and is not empty", () => {
    expect(Object.keys(recorded).toSorted()).toEqual(Object.keys(current).toSorted());
    for (const lines of Object.values(recorded)) expect(lines.length).toBeGreaterThan(5);
  });

  // One line of each kind, to see that what is collected is what it seems.
  it.each([
    ["exports", "sluice value createLimiter"],
    ["exports", "@sluice/middleware/express"],
    ["http", "POST /v1/check"],
    ["http", "takes POST /v1/check body.cost: integer"],
    ["http", "PUT /api/v1/policies/{id}"],
    ["policy-format", "takes .policies: array"],
    ["chart-values", "takes .drainSeconds: integer"],
    ["metrics", "sluice_degraded_decisions_total counter"],
    ["log-events", "redis.breaker_opened error"],
    ["errors", "invalid_request"],
    ["command", "sluice serve --store"],
    ["command", "variable REDIS_CLUSTER_URL"],
    ["sql-tables", "sluice_policies.id text"],
    ["redis-keys", "string s:i:request-gcra"],
  ])("is broken if %s loses “%s”", (file, line) => {
    expect(recorded[file]).toContain(line);
    const without = { ...current, [file]: current[file]!.filter((one) => one !== line) };
    expect(findBrokenPromises(recorded, without)).toEqual([`${file}: no longer “${line}”`]);
  });

  it("is broken by a migration that changes, and not by one that is added", () => {
    const [first = "", ...rest] = recorded.migrations!;
    const changed = { ...current, migrations: [first.replace(/\w+$/, "0123456789abcdef"), ...rest] };
    expect(findBrokenPromises(recorded, changed)).toEqual([`migrations: no longer “${first}”`]);
    const more = { ...current, migrations: [...current.migrations!, "9999-more.ts 0123456789abcdef"] };
    expect(findBrokenPromises(recorded, more)).toEqual([]);
  });
});

describe("a schema", () => {
  const schema = {
    type: "object",
    properties: {
      id: { type: "string" },
      limits: { type: "array", items: { $ref: "#/$defs/limit" } },
      mode: { enum: ["enforce", "shadow"] },
      match: { type: "object", additionalProperties: { type: ["string", "array"] } },
    },
    required: ["id"],
    $defs: { limit: { type: "object", properties: { by: { type: "array", items: { type: "string" } } } } },
  };
  const promised = { schema: flattenDocument(schema) };
  const breaks = (change: (copy: typeof schema) => void) => {
    const copy = structuredClone(schema);
    change(copy);
    return findBrokenPromises(promised, { schema: flattenDocument(copy) });
  };

  it("may grow", () => {
    expect(breaks((copy) => Object.assign(copy.properties, { more: { type: "string" } }))).toEqual([]);
    expect(breaks((copy) => copy.properties.mode.enum.push("off"))).toEqual([]);
    expect(breaks((copy) => copy.required.pop())).toEqual([]);
    const needy = { type: "object", properties: { a: { type: "string" } }, required: ["a"] };
    expect(breaks((copy) => Object.assign(copy.properties, { more: needy }))).toEqual([]);
  });

  it("may not lose a field, a value or a type, or need another field", () => {
    expect(breaks((copy) => Object.assign(copy.properties, { mode: {} }))).toEqual([
      'schema: no longer “takes .mode = "enforce"”',
      'schema: no longer “takes .mode = "shadow"”',
    ]);
    expect(breaks((copy) => copy.properties.match.additionalProperties.type.pop())).toEqual([
      "schema: no longer “takes .match.*: array”",
    ]);
    expect(breaks((copy) => Object.assign(copy.$defs.limit, { properties: {} }))).toEqual([
      "schema: no longer “takes #limit.by: array”",
      "schema: no longer “takes #limit.by[]: string”",
    ]);
    expect(breaks((copy) => copy.required.push("mode"))).toEqual(["schema: now needs .mode"]);
    expect(breaks((copy) => Object.assign(copy.$defs.limit, { required: ["by"] }))).toEqual([
      "schema: now needs #limit.by",
    ]);
  });
});

describe("an API", () => {
  const body = (schema: object) => ({ content: { "application/json": { schema } } });
  const check = {
    parameters: [{ name: "id", in: "query", schema: { type: "string" } }],
    requestBody: body({ type: "object", properties: { cost: { type: "integer" } } }),
    responses: { 200: body({ $ref: "#/components/schemas/Decision" }) },
  };
  const api = {
    paths: { "/check": { post: check } },
    components: {
      schemas: { Decision: { type: "object", properties: { allowed: { type: "boolean" } }, required: ["allowed"] } },
    },
  };
  const promised = { http: flattenOpenApi(api) };
  const breaks = (change: (copy: typeof api) => void) => {
    const copy = structuredClone(api);
    change(copy);
    return findBrokenPromises(promised, { http: flattenOpenApi(copy) });
  };

  it("may grow", () => {
    expect(breaks((copy) => Object.assign(copy.paths, { "/more": { get: { responses: {} } } }))).toEqual([]);
    const { Decision } = api.components.schemas;
    const more = {
      ...Decision,
      properties: { ...Decision.properties, why: { type: "string" } },
      required: ["allowed", "why"],
    };
    expect(breaks((copy) => Object.assign(copy.components.schemas, { Decision: more }))).toEqual([]);
  });

  it("may not lose a route, a status or a field, answer less, or need more", () => {
    expect(breaks((copy) => Object.assign(copy.paths, { "/check": {} }))).toContain("http: no longer “POST /check”");
    expect(breaks((copy) => Object.assign(copy.paths["/check"].post, { responses: {} }))).toContain(
      "http: no longer “answers POST /check 200”",
    );
    expect(breaks((copy) => copy.components.schemas.Decision.required.pop())).toEqual([
      "http: no longer “always #Decision.allowed”",
    ]);
    const needed = { ...check.parameters[0], required: true };
    expect(breaks((copy) => Object.assign(copy.paths["/check"].post, { parameters: [needed] }))).toEqual([
      "http: now needs POST /check query id",
    ]);
    const other = { name: "tenant", in: "header", required: true, schema: { type: "string" } };
    expect(breaks((copy) => copy.paths["/check"].post.parameters.push(other))).toEqual([
      "http: now needs POST /check header tenant",
    ]);
    const costly = body({ type: "object", properties: { cost: { type: "integer" } }, required: ["cost"] });
    expect(breaks((copy) => Object.assign(copy.paths["/check"].post, { requestBody: costly }))).toEqual([
      "http: now needs POST /check body.cost",
    ]);
  });
});

describe("the .proto files", () => {
  let folder: string;
  let proto: string;

  beforeAll(() => {
    folder = mkdtempSync(path.join(tmpdir(), "sluice-proto-"));
    proto = path.join(folder, "proto");
    cpSync(path.join(repositoryRoot, "packages/protocol/proto"), proto, { recursive: true });
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("break no client that was generated from those of the newest release", () => {
    expect(findProtocolBreaks()).toEqual([]);
  });

  it("would break one by another number or name for a field", () => {
    const image = path.join(folder, "image.binpb");
    writeProtocolImage(image);
    const file = path.join(proto, "grpc/health/v1/health.proto");
    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.replace("string service = 1;", "string service = 2;"));
    expect(findProtocolBreaks(image, proto).join("\n")).toMatch(/health\.proto.*field "1"/);
    writeFileSync(file, text.replace("string service = 1;", "string service_name = 1;"));
    expect(findProtocolBreaks(image, proto).join("\n")).toMatch(/health\.proto.*service_name/);
    writeFileSync(file, text.replace("string service = 1;", "string service = 1;\n  string more = 2;"));
    expect(findProtocolBreaks(image, proto)).toEqual([]);
  });
});
