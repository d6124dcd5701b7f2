import { createLimiter, SluiceError } from "sluice";
import { describe, expect, it } from "vitest";
import { httpApi, httpRoutes as routes } from "../../../boot/api-tables.ts";
import type { Access } from "../../access/access.ts";
import { renderOpenApi } from "./render-open-api.ts";
import { startHttp } from "./testing/start-http.ts";

const document = JSON.parse(JSON.stringify(renderOpenApi(routes, "1.2.3", httpApi)));

/** Every `$ref` anywhere in a value. */
function referencesIn(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, part]) => (key === "$ref" ? [String(part)] : referencesIn(part)));
}

function follow(reference: string): unknown {
  return reference
    .replace(/^#\//, "")
    .split("/")
    .reduce<Record<string, never> | undefined>((part, step) => part?.[step], document);
}

describe("the OpenAPI document", () => {
  it("describes every route, and no other", () => {
    const described = Object.entries(document.paths as Record<string, object>).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(described.sort()).toEqual(routes.map(({ method, path }) => `${method} ${path}`).sort());
    expect(document).toMatchObject({ openapi: "3.1.0", info: { version: "1.2.3" } });
  });

  it("says where it is served", () => {
    expect(document.servers[0].url).toBe("/");
    const { url, variables } = document.servers[1];
    const filled = url.replace(/\{(\w+)\}/g, (_: string, name: string) => variables[name].default);
    expect(new URL(filled).href).toBe("http://127.0.0.1:8080/");
  });

  it("says truly which operations need a token, on servers with tokens and without", async () => {
    const limiter = createLimiter();
    const strict: Access = {
      identify: () => {
        throw new SluiceError("unauthenticated", "this needs a token");
      },
    };
    const [open, closed] = await Promise.all([startHttp(limiter), startHttp(limiter, { access: strict })]);
    try {
      expect(document.components.securitySchemes).toMatchObject({ token: { type: "http", scheme: "bearer" } });
      for (const { method, path } of routes) {
        const { security } = document.paths[path][method.toLowerCase()];
        const ask = async ({ url }: { url: string }): Promise<boolean> => {
          const body = method === "POST" ? { body: "{}", headers: { "content-type": "application/json" } } : {};
          const response = await fetch(url + path, { method, ...body });
          await response.text();
          return response.status !== 401 && response.status !== 403;
        };
        const needsNone = security.length === 0;
        const withoutToken = { open: await ask(open), closed: await ask(closed) };
        const isOptional = security.some((one: object) => Object.keys(one).length === 0);
        expect(withoutToken, path).toEqual({ open: needsNone || isOptional, closed: needsNone });
        for (const one of security)
          for (const name of Object.keys(one)) expect(document.components.securitySchemes[name], path).toBeDefined();
      }
    } finally {
      await Promise.all([open.close(), closed.close()]);
    }
  });

  it("refers only to what it defines", () => {
    const references = referencesIn(document);
    expect(references.length).toBeGreaterThan(10);
    for (const reference of references) expect(follow(reference), reference).toBeDefined();
  });

  it("gives every operation an id and a body if one is read", () => {
    const ids = new Set<string>();
    for (const route of routes) {
      const operation = document.paths[route.path][route.method.toLowerCase()];
      ids.add(operation.operationId);
      expect(operation.requestBody !== undefined, route.path).toBe(route.method === "POST");
    }
    expect(ids.size).toBe(routes.length);
  });

  it("takes the bounds of a check from the shape that reads it", () => {
    const [single, batch] = document.paths["/v1/check"].post.requestBody.content["application/json"].schema.oneOf;
    expect(single.properties.cost).toMatchObject({ type: "integer", minimum: 0, maximum: 100_000 });
    expect(single.additionalProperties).toBe(false);
    expect(batch.properties.checks).toMatchObject({ minItems: 1, maxItems: 1000, items: { type: "object" } });
  });
});
