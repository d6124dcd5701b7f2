import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { startPostgres, type TestPostgres } from "@sluice/test-servers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createFleet, createPolicyDocument, type Fleet } from "./fleet.ts";

let postgres: TestPostgres;
let fleet: Fleet;

beforeAll(async () => {
  postgres = await startPostgres();
  fleet = await createFleet({ SLUICE_STORE_URL: postgres.url, SLUICE_LOG_LEVEL: "debug" });
}, 120_000);
afterAll(async () => {
  await fleet?.close();
  await postgres?.close();
});

interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

it("no log and no answer contains a token, its digest or the password of the store", async () => {
  const node = await fleet.start("only");
  const first = (await readFile(join(fleet.folder, "admin-token"), "utf8")).trim();
  const answers: { readonly asked: string; readonly told: string }[] = [];

  async function ask(url: string, method: string, token: string, body?: unknown): Promise<string> {
    const response = await fetch(url, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    const text = isStream ? await readBeginning(response) : await response.text();
    const told = `${[...response.headers].join("\n")}\n${text}`;
    answers.push({ asked: `${method} ${url}`, told });
    return told;
  }

  const made = await ask(`${node.admin}/api/v1/tokens`, "POST", first, { name: "spare", role: "viewer" });
  const spare = /sluice_[\w-]+/.exec(made)?.[0] ?? "";
  // The only answer that contains it.
  expect(spare).not.toBe("");
  answers.length = 0;
  const stranger = "sluice_nobody-ever-made-this-one";
  const tokens = [first, spare, stranger];
  const { password } = new URL(postgres.url);
  expect(password.length).toBeGreaterThan(6);
  const secrets = [...tokens, ...tokens.map((token) => createHash("sha256").update(token).digest("hex")), password];

  /** Every route, as every actor, with tokens even where they do not belong, except in fields that are echoed. */
  async function askEverything(): Promise<void> {
    const { paths } = (await (await fetch(`${node.admin}/openapi.json`)).json()) as Description;
    for (const [path, methods] of Object.entries(paths)) {
      const url = node.admin + path.replace("{kind}", "user").replaceAll(/\{\w+\}/g, "p");
      for (const method of Object.keys(methods).map((one) => one.toUpperCase())) {
        const body = method === "GET" || method === "DELETE" ? undefined : { token: spare, sha256: secrets[3] };
        for (const token of tokens) await ask(`${url}?access_token=${token}`, method, token, body);
        await ask(`${url}?dry_run=true`.replace(method === "GET" ? "?dry_run=true" : "", ""), method, first, body);
      }
    }
    for (const path of ["/metrics", "/v1/status", "/v1/policies", "/livez", "/readyz", "/openapi.json"])
      for (const token of tokens) await ask(node.http + path, "GET", token);
    for (const path of ["/v1/check", "/v1/reset"])
      for (const token of tokens) await ask(node.http + path, "POST", token, { dimensions: { user: "u" } });
  }

  await ask(`${node.admin}/api/v1/policies`, "POST", first, createPolicyDocument("p", 5));
  await ask(`${node.admin}/api/v1/subjects/user/p/tier`, "PUT", first, { tier: "gold" });
  await askEverything();
  for (const list of ["tokens", "audit?limit=1000", "nodes", "export"])
    await ask(`${node.admin}/api/v1/${list}`, "GET", first);
  await postgres.stop("SIGKILL");
  await askEverything();
  expect(answers.length).toBeGreaterThan(300);
  expect(node.log).toContain("policy store");
  for (const secret of secrets) {
    expect(node.log.includes(secret), `${secret} in the log`).toBe(false);
    expect(answers.filter(({ told }) => told.includes(secret)).map(({ asked }) => asked)).toEqual([]);
  }
  expect(await node.stop()).toBe(0);
  for (const secret of secrets) expect(node.log).not.toContain(secret);
}, 180_000);

/** What a stream without an end sends within a second or two. */
async function readBeginning({ body }: Response): Promise<string> {
  const reader = body!.getReader();
  const decoder = new TextDecoder();
  const timer = setTimeout(() => void reader.cancel(), 1_500);
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  clearTimeout(timer);
  return text;
}
