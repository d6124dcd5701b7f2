import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, describe, expect, it } from "vitest";
import { adminApi, adminRoutes as routes } from "../../boot/api-tables.ts";
import { renderOpenApi } from "../../data-plane/transports/http/render-open-api.ts";
import type { AdminRoute } from "./route.ts";
import { readText } from "./testing/read-text.ts";
import {
  exampleKey,
  prepareExamples,
  type RouteExample,
  type RouteExamples,
  renderExampleUrl,
} from "./testing/route-examples.ts";
import { dump, type StartedAdmin, startAdmin } from "./testing/start-admin.ts";

/** The document, with `additionalProperties: false` everywhere. */
const document = JSON.parse(JSON.stringify(renderOpenApi(routes, "1", adminApi)), (_key, part) =>
  part?.type === "object" && part.properties !== undefined ? { additionalProperties: false, ...part } : part,
);
const ajv = new Ajv2020({ strict: true, strictTypes: false, allErrors: true, formats: { "date-time": true } });
ajv.addVocabulary(["openapi", "info", "servers", "paths", "components"]);
ajv.addSchema(document, "openapi");

/** Headers that every answer has, or that HTTP itself has. */
const ordinary =
  /^(content-(type|length)|transfer-encoding|cache-control|date|connection|keep-alive|x-content-type-options|content-security-policy|referrer-policy|(x-)?ratelimit.*)$/;

/** Checks an answer against the document's declaration for its route and status. */
function expectDeclared({ method, path }: AdminRoute, response: Response, text: string): void {
  const where = `${method} ${path} → ${response.status} ${text}`;
  const { responses } = document.paths[path][method.toLowerCase()];
  const declared = responses[response.status];
  expect(declared, where).toBeDefined();
  const type = response.headers.get("content-type")?.replace(/;.*/, "");
  if (declared.content === undefined) expect(text, where).toBe("");
  else expect(Object.keys(declared.content), where).toContain(type);
  const named = Object.keys(declared.headers ?? {}).map((one) => one.toLowerCase());
  for (const [name] of response.headers) if (!ordinary.test(name)) expect(named, where).toContain(name);
  if (type !== "application/json") return;
  const steps = ["paths", path, method.toLowerCase(), "responses", String(response.status), "content", type, "schema"];
  const pointer = steps.map((step) => encodeURIComponent(step.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/");
  ajv.validate(`openapi#/${pointer}`, JSON.parse(text));
  expect(ajv.errors ?? [], where).toEqual([]);
}

async function ask(admin: StartedAdmin, route: AdminRoute, example: RouteExample, dryRun: boolean): Promise<Response> {
  const { body, headers } = example;
  return admin.ask("admin", route.method, renderExampleUrl(example, dryRun), { body, headers });
}

/** Fields that differ from one run to the next, and between a dry run and the real one. */
const fleeting = /^(dry_run|generation|token|id|bytes|.*_ms|location|.*_at)$/;

function withoutFleeting(text: string): unknown {
  return JSON.parse(text, (key, part) => (fleeting.test(key) && typeof part !== "object" ? undefined : part));
}

/** These change nothing but the audit. */
const isAudited: ReadonlySet<string> = new Set([
  "POST /api/v1/session",
  "POST /api/v1/simulations",
  "DELETE /api/v1/simulations/{id}",
]);

interface Started {
  readonly admin: StartedAdmin;
  readonly examples: RouteExamples;
}

async function start(key?: string): Promise<Started> {
  const admin = await startAdmin();
  return { admin, examples: await prepareExamples(admin, key) };
}

/** Shared by all routes that change nothing. */
let unchanged: Started | undefined;
afterAll(() => unchanged?.admin.close());

async function startFor(key: string): Promise<Started> {
  if (isAudited.has(key)) return start(key);
  unchanged ??= await start();
  return unchanged;
}

describe.each(routes.map((route) => [exampleKey(route), route] as const))("%s", (key, route) => {
  if (route.access === "write")
    it("does nothing in a dry run, and answers as for the real request", async () => {
      const admin = await startAdmin();
      try {
        const example = (await prepareExamples(admin, key))[key];
        if (example === undefined) throw new Error("there is no example; write one in testing/route-examples.ts");
        const before = await dump(admin.store);
        const tried = await ask(admin, route, example, true);
        const triedText = await tried.text();
        expectDeclared(route, tried, triedText);
        expect(JSON.parse(triedText), key).toMatchObject({ dry_run: true });
        expect(await dump(admin.store), key).toBe(before);
        const done = await ask(admin, route, example, false);
        const doneText = await done.text();
        expectDeclared(route, done, doneText);
        expect(JSON.parse(doneText), key).toMatchObject({ dry_run: false });
        expect(tried.status, triedText).toBe(done.status);
        expect(tried.headers.get("etag")).toBe(done.headers.get("etag"));
        expect(withoutFleeting(triedText)).toEqual(withoutFleeting(doneText));
        // Counters are not in the store.
        if (!key.endsWith("/reset")) expect(await dump(admin.store), key).not.toBe(before);
      } finally {
        await admin.close();
      }
    });
  else
    it("answers as declared, and changes nothing", async () => {
      const { admin, examples } = await startFor(key);
      try {
        const example = examples[key];
        if (example === undefined) throw new Error("there is no example; write one in testing/route-examples.ts");
        const before = await dump(admin.store);
        const response = await ask(admin, route, example, false);
        expectDeclared(route, response, await readText(response));
        if (!isAudited.has(key)) expect(await dump(admin.store)).toBe(before);
      } finally {
        if (isAudited.has(key)) await admin.close();
      }
    });
});
