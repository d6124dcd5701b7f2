import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Role } from "../../data-plane/access/roles.ts";
import { startHttp } from "../../data-plane/transports/http/testing/start-http.ts";
import { applyStored, createRoleActor, type StartedAdmin, startAdmin } from "./testing/start-admin.ts";

let admin: StartedAdmin;

beforeEach(async () => {
  admin = await startAdmin();
});

afterEach(() => admin.close());

interface Answered {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: bodies are looked at by what is expected of them
  readonly body: any;
}

async function sendYaml(role: Role, path: string, text: string, method = "POST"): Promise<Answered> {
  const headers = { "content-type": "application/yaml" };
  const response = await admin.ask(role, method, path, { body: text, headers });
  return { status: response.status, body: await response.json() };
}

/** Bodies of at most 128 KB that would take seconds and gigabytes. */
const keys = Array.from({ length: 9_000 }, (_, i) => `k${i}: 1`).join(", ");
const bombs: Readonly<Record<string, string>> = {
  "merge keys": `m: &m { ${keys} }\na:\n${"  <<: *m\n".repeat(999)}`,
  "merge keys of many maps": `m: &m { ${keys} }\na:\n${"- <<: *m\n".repeat(999)}`,
  "merged lists": `m: &m { ${keys} }\na:\n  <<: [${"*m, ".repeat(999)}]\n`,
  "aliases of aliases": [..."abcdefghi"]
    .map(
      (one, i, all) =>
        `${one}: &${one} [${Array(9)
          .fill(i === 0 ? "x" : `*${all[i - 1]}`)
          .join(", ")}]\n`,
    )
    .join(""),
};
/** Takes about a tenth of a second to parse, in any thread. */
const longList = `id: p\nlimits:\n${"  - - a\n".repeat(14_000)}`;

describe("a body that would take long to read", () => {
  it.each(Object.entries(bombs))("is refused, with line and limit, if it multiplies by %s", async (_, text) => {
    const before = process.memoryUsage().rss;
    for (const path of ["/api/v1/policies/validate", "/api/v1/import"]) {
      const { status, body } = await sendYaml("admin", path, text);
      expect(status, path).toBe(400);
      expect(JSON.stringify(body.problems)).toContain("add more than 100000 values");
      expect(body.problems[0].line).toBeGreaterThan(1);
    }
    expect(process.memoryUsage().rss - before).toBeLessThan(500 * 2 ** 20);
  });

  it("does not delay checks on another connection", async () => {
    const http = await startHttp(admin.limiter);
    const check = async (): Promise<number> => {
      const body = JSON.stringify({ dimensions: { user: "u1" } });
      const headers = { "content-type": "application/json" };
      return (await fetch(`${http.url}/v1/check`, { method: "POST", headers, body })).status;
    };
    // The thread and the connections exist by now.
    await sendYaml("viewer", "/api/v1/policies/validate", longList);
    await check();
    const countAnswered = async (): Promise<number> => {
      let answered = 0;
      let isOver = false;
      const validated = sendYaml("viewer", "/api/v1/policies/validate", longList).finally(() => {
        isOver = true;
      });
      while (!isOver) {
        expect(await check()).toBe(200);
        answered += 1;
      }
      expect(await validated).toMatchObject({ status: 200, body: { valid: false } });
      return answered;
    };
    // On the deciding thread, only checks that arrive before the body would be answered, every time. On a busy machine few may be,
    // once.
    await expect.poll(countAnswered).toBeGreaterThan(10);
    await http.close();
  });

  it("is read or refused as overloaded, however many arrive at once, and is read again afterwards", async () => {
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => sendYaml("viewer", "/api/v1/policies/validate", longList)),
    );
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused.length).toBeLessThan(answers.length);
    for (const { status, body } of refused) expect([status, body.code]).toEqual([503, "overloaded"]);
    expect((await sendYaml("viewer", "/api/v1/policies/validate", longList)).status).toBe(200);
  });

  it("is reported by line and stored like a short one", async () => {
    const comment = `# ${"x".repeat(4_096)}\n`;
    const wrong = "limits:\n  - windows: [5 apples]\n";
    const [short, long] = await Promise.all(
      [wrong, wrong + comment].map((text) => sendYaml("editor", "/api/v1/policies/p", text, "PUT")),
    );
    expect(short).toMatchObject({ status: 400, body: { problems: [{ line: 2 }] } });
    expect(long?.body.problems).toEqual(short?.body.problems);
    const good = "match: { endpoint: /p }\nlimits: [&l { windows: [5/s] }]\non_failure: open\n";
    expect(await sendYaml("editor", "/api/v1/policies/p", good + comment, "PUT")).toMatchObject({ status: 201 });
    await applyStored(admin);
    expect(admin.limiter.snapshot.policySet.policies.map(({ id }) => id)).toEqual(["p"]);
  });

  it("is refused if it is too long with its aliases expanded", async () => {
    const text = `a: &a ${"x".repeat(60_000)}\nb: [${Array(30).fill("*a").join(", ")}]\n`;
    expect(await sendYaml("viewer", "/api/v1/policies/validate", text)).toMatchObject({
      status: 413,
      body: { code: "body_too_large" },
    });
  });

  it("is checked if it is JSON, too, and up to a thousand problems are reported", async () => {
    const document = Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`limts${i}`, 1]));
    const answer = await admin.ask("viewer", "POST", "/api/v1/policies/validate", { body: { id: "p", ...document } });
    expect(await answer.json()).toMatchObject({ valid: false });
    const deny = { user: Array.from({ length: 10_000 }, (_, i) => `user-${i}`) };
    const body = { match: { endpoint: "/p" }, deny };
    expect((await admin.ask("editor", "PUT", "/api/v1/policies/p", { body })).status).toBe(201);
    const { changes } = await admin.control.policies.diff(createRoleActor("viewer"), "p", 0, 1);
    expect(changes.map(({ path }) => path)).toContain("deny");
  });
});

describe("a list of long policies", () => {
  it("comes in pages of bounded size, which lead to the end", async () => {
    const deny = { user: Array.from({ length: 9_000 }, (_, i) => `${i}-${"x".repeat(80)}`) };
    const ids = ["a", "b", "c", "d", "e"];
    for (const id of ids)
      await admin.control.policies.put(createRoleActor("admin"), id, { match: { endpoint: `/${id}` }, deny });
    const seen: string[] = [];
    const parts: number[] = [];
    for (let after: string | undefined; ; ) {
      const page = await admin.control.policies.list(createRoleActor("viewer"), { after, limit: 1_000 });
      seen.push(...page.items.map(({ id }) => id));
      parts.push(page.items.length);
      if (page.next === undefined) break;
      after = page.next;
    }
    expect(seen).toEqual(ids);
    expect(parts).toEqual([3, 2]);
  });
});
