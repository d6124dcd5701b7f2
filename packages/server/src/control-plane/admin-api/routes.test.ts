import { describe, expect, it } from "vitest";
import { adminApi, adminRoutes as routes } from "../../boot/api-tables.ts";
import { renderOpenApi } from "../../data-plane/transports/http/render-open-api.ts";
import { minSunsetDays } from "./deprecation.ts";
import type { AdminRoute } from "./route.ts";

/** Paths without a version on purpose: health, the description, and a facade that has none. */
const unversioned = /^\/(livez|readyz|openapi\.json|rules(\/\{rule_id\})?)$/;

const dayMs = 86_400_000;

/** Deprecations that leave callers too little time, or name a missing successor. */
function findBadDeprecations(table: readonly Pick<AdminRoute, "path" | "deprecated">[]): string[] {
  const paths = new Set(table.map(({ path }) => path));
  return table.flatMap(({ path, deprecated }) => {
    if (deprecated === undefined) return [];
    const { since, sunset, successor } = deprecated;
    const days = (Date.parse(sunset) - Date.parse(since)) / dayMs;
    if (!(days >= minSunsetDays)) return [`${path} ends ${days} days after it is deprecated`];
    return paths.has(successor) ? [] : [`${path} leads to ${successor}, which does not exist`];
  });
}

describe("the table of the control plane", () => {
  it("has every method and path once", () => {
    const keys = routes.map(({ method, path }) => `${method} ${path}`);
    expect(new Set(keys).size).toBe(keys.length);
    expect(keys.length).toBeGreaterThan(40);
  });

  it("has versioned paths, except for those listed here", () => {
    const others = routes.map(({ path }) => path).filter((path) => !path.startsWith("/api/v1/"));
    expect(others.filter((path) => !unversioned.test(path))).toEqual([]);
  });

  it("gives each route its name in the audit, and each write a permission", () => {
    for (const { path, action, access, needs, method } of routes) {
      expect(action, path).toMatch(/^[a-z_]+(\.[a-z_]+)+$/);
      if (access === "write") expect(needs, path).toMatch(/^(edit|operate|administer)$/);
      if (method === "GET") expect(access, path).toBe("read");
    }
  });

  it("has a dry run for every write, and for no read", () => {
    for (const { path, access, query = {} } of routes) {
      expect(Object.hasOwn(query, "dry_run"), path).toBe(access === "write");
      expect(Object.hasOwn(query, "why"), path).toBe(access === "write");
    }
  });

  it("deprecates nothing without six months' notice and a successor", () => {
    expect(findBadDeprecations(routes)).toEqual([]);
    const successor = "/b";
    const table = [
      { path: "/a", deprecated: { since: "2027-01-01", sunset: "2027-06-30", successor } },
      { path: "/b" },
      { path: "/c", deprecated: { since: "2027-01-01", sunset: "2027-07-04", successor } },
      { path: "/d", deprecated: { since: "2027-01-01", sunset: "2027-07-04", successor: "/nowhere" } },
      { path: "/e", deprecated: { since: "2027-01-01", sunset: "soon", successor } },
    ];
    expect(findBadDeprecations(table)).toEqual([
      "/a ends 180 days after it is deprecated",
      "/d leads to /nowhere, which does not exist",
      "/e ends NaN days after it is deprecated",
    ]);
  });
});

describe("the OpenAPI document of the control plane", () => {
  const document = JSON.parse(JSON.stringify(renderOpenApi(routes, "1.2.3", adminApi)));

  function referencesIn(value: unknown): string[] {
    if (typeof value !== "object" || value === null) return [];
    return Object.entries(value).flatMap(([key, part]) => (key === "$ref" ? [String(part)] : referencesIn(part)));
  }

  it("describes exactly the routes that exist", () => {
    const described = Object.entries(document.paths as Record<string, object>).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(described.sort()).toEqual(routes.map(({ method, path }) => `${method} ${path}`).sort());
  });

  it("says where the API is served, and how to send a token", () => {
    expect(document.servers).toMatchObject([{ url: "/" }, { variables: { port: { default: "8090" } } }]);
    expect(document.components.securitySchemes).toMatchObject({ token: { type: "http", scheme: "bearer" } });
  });

  it("refers only to schemas that it defines", () => {
    for (const reference of referencesIn(document)) {
      const found = reference
        .replace(/^#\//, "")
        .split("/")
        .reduce<Record<string, never> | undefined>((part, step) => part?.[step], document);
      expect(found, reference).toBeDefined();
    }
  });

  it("says which operations need a token and which parameters a path has, and gives every operation a unique id", () => {
    const ids = new Set<string>();
    for (const { method, path, needs } of routes) {
      const { operationId, security, parameters = [] } = document.paths[path][method.toLowerCase()];
      ids.add(operationId);
      expect(security, path).toEqual(needs === "nothing" ? [] : [{ token: [] }]);
      const inPath = parameters
        .filter((one: { in: string }) => one.in === "path")
        .map((one: { name: string }) => one.name);
      expect(inPath, path).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
    }
    expect(ids.size).toBe(routes.length);
  });
});
