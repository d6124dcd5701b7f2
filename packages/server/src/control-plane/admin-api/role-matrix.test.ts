import { ManualClock } from "sluice";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { adminRoutes as routes } from "../../boot/api-tables.ts";
import { type Role, rolePermissions, roles } from "../../data-plane/access/roles.ts";
import type { AdminRoute } from "./route.ts";
import { readText } from "./testing/read-text.ts";
import { exampleKey, prepareExamples, type RouteExamples, renderExampleUrl } from "./testing/route-examples.ts";
import { expiredToken, type StartedAdmin, startAdmin, tokenForRole } from "./testing/start-admin.ts";

const strangers: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "without a token": {},
  "with an unknown token": { authorization: "Bearer sluice_0000" },
  "with a token that has expired": { authorization: `Bearer ${expiredToken}` },
  "with a name and a password": { authorization: "Basic YWRtaW46YWRtaW4=" },
};

const clock = new ManualClock(1_000_000);
let admin: StartedAdmin;
let examples: RouteExamples;

beforeAll(async () => {
  admin = await startAdmin({ clock });
  examples = await prepareExamples(admin);
});

afterAll(() => admin.close());

/** Sends the example of a route, writes as dry runs, so that each meets the same store. */
async function ask(route: AdminRoute, who: Readonly<Record<string, string>>): Promise<Response> {
  const example = examples[exampleKey(route)];
  if (example === undefined)
    throw new Error("there is no example of this route; write one in testing/route-examples.ts");
  const { body, headers } = example;
  // The API's own limits do not matter here.
  clock.advance(60_000);
  return admin.ask("nobody", route.method, renderExampleUrl(example, route.access === "write"), {
    body,
    headers: { ...headers, ...who },
  });
}

const may = (role: Role, { needs }: AdminRoute): boolean =>
  needs === "nothing" || rolePermissions[role].includes(needs);

describe.each(routes.map((route) => [exampleKey(route), route] as const))("%s", (_key, route) => {
  it.each(roles)("is served to %s, or refused, as the table says", async (role) => {
    const response = await ask(route, { authorization: `Bearer ${tokenForRole(role)}` });
    const text = await readText(response);
    if (may(role, route)) expect(Object.keys(route.answers), text).toContain(String(response.status));
    else {
      expect(response.status, text).toBe(403);
      expect(JSON.parse(text)).toMatchObject({ code: "permission_denied" });
    }
  });

  it.each(Object.entries(strangers))("is refused %s, unless it needs no token", async (_who, headers) => {
    const response = await ask(route, headers);
    const text = await readText(response);
    if (route.needs === "nothing") expect(Object.keys(route.answers), text).toContain(String(response.status));
    else {
      expect(response.status, text).toBe(401);
      expect(response.headers.get("www-authenticate")).toBe('Bearer realm="sluice"');
      expect(JSON.parse(text)).toMatchObject({ code: "unauthenticated" });
      expect(text).not.toMatch(/sluice_0000|token-of|YWRt/);
    }
  });
});
