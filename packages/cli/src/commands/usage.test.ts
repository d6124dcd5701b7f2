import { EventEmitter } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { type Daemon, parseSettings, startDaemon } from "@sluice/server";
import { openPolicyStore, type UsageSum } from "@sluice/sql";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runProgram } from "../program.ts";

let folder: string;
let daemon: Daemon;
let token: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-usage-"));
  const config = join(folder, "policies.yaml");
  await writeFile(config, "policies: [{ id: api, limits: [{ name: calls, by: [tenant], windows: [2/d] }] }]\n");
  const store = `sqlite:${join(folder, "store.db")}`;
  const reading = parseSettings({}, { httpPort: "0", grpcPort: "off", adminPort: "0", store, config });
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  daemon = await startDaemon({ settings: reading.settings, log: { debug() {}, info() {}, warn() {}, error() {} } });
  token = daemon.firstToken!.token;
});

afterEach(async () => {
  await daemon.close();
  await rm(folder, { recursive: true, force: true });
});

/** Runs a command line, with its output in a terminal of this width if there is one. */
async function run(line: string, columns?: number): Promise<{ code: number; out: string; err: string }> {
  let out = "";
  let err = "";
  const stdout = { write: (text: string) => (out += text), ...(columns !== undefined && { isTTY: true, columns }) };
  const code = await runProgram({
    args: line.split(" "),
    env: { SLUICE_ADMIN_URL: daemon.addresses.admin[0], SLUICE_TOKEN: token },
    terminal: { stdout, stderr: { write: (text: string) => (err += text) } },
    signals: new EventEmitter(),
  });
  return { code, out, err };
}

/** Stores usage of a tenant, and the totals, as a server does, minutes ago. */
async function storeUsage(tenant: string, minutesAgo: number, allowed: number, denied: number): Promise<void> {
  const store = await openPolicyStore({ url: `sqlite:${join(folder, "store.db")}` });
  const startMs = Math.floor(Date.now() / 60_000 - minutesAgo) * 60_000;
  const denials = denied === 0 ? [] : [{ reason: "over_limit", window: "2/d", denied }];
  const counts = { decided: allowed + denied, allowed, denied, cost: allowed, degraded: 0, shadowDenied: 0, denials };
  const sums: UsageSum[] = [
    { policy: "api", limit: "calls", dimension: "", subject: "", startMs, ...counts },
    { policy: "api", limit: "calls", dimension: "tenant", subject: tenant, startMs, ...counts },
  ];
  await store.note((note) => note.addUsage({ node: "n", boot: tenant, sequence: 1_000 - minutesAgo, sums }));
  await store.note((note) => note.planUsage());
  while (await store.upkeep((note) => note.rollUpUsage()));
  await store.close();
}

async function check(tenant: string, times: number): Promise<void> {
  const checks = Array.from({ length: times }, () => ({ dimensions: { tenant, endpoint: "/v1/orders" } }));
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${daemon.url}/v1/check`, { method: "POST", headers, body: JSON.stringify({ checks }) });
  expect(response.status).toBe(200);
  await response.text();
}

describe("sluice usage", () => {
  it("plots what was allowed and denied, with a total, in lines as wide as the terminal", async () => {
    await storeUsage("acme", 5, 30, 10);
    await storeUsage("acme", 3, 5, 0);
    await storeUsage("globex", 4, 100, 0);
    const { code, out } = await run("usage tenant=acme --since 10m");
    expect(code).toBe(0);
    expect(out).toMatch(/^Usage of tenant=acme from .* to .* UTC, by minute:\n\n/);
    expect(out).toMatch(/\d\d-\d\d \d\d:\d\d {2}#{10,}x{3,} {2}30 10 denied\n/);
    expect(out).toMatch(/\d\d-\d\d \d\d:\d\d {2}#+ +5\n/);
    expect(out).toContain("\n# allowed, x denied\n");
    expect(out).toContain(
      "\nTotal: 45 decided, 35 allowed, 10 denied (22.2 %), cost 35. Denied: 10 over_limit of 2/d.\n",
    );
    expect(out).toMatch(/^[ -~\n]*$/);
    const narrow = await run("usage tenant=acme --since 10m", 60);
    expect(narrow.out).toContain("\u001b[32m█");
    const plain = stripVTControlCharacters(narrow.out).split("\n\n")[1]!;
    expect(Math.max(...plain.split("\n").map((line) => line.length))).toBeLessThanOrEqual(60);
  });

  it("adds up days of a month, and lists by policy, limit and subject", async () => {
    // Now, because five minutes ago it may have been another month.
    await storeUsage("acme", 0, 30, 10);
    await storeUsage("globex", 0, 100, 0);
    expect((await run("usage tenant=acme --month")).out).toMatch(/by day:\n\n\d{4}-\d\d-\d\d .*Total: 40 decided/s);
    const tenants = await run("usage tenant --since 1h");
    expect(tenants.out).toMatch(/subject +decided +allowed +denied +cost\nglobex +100 +100 +0 +0\.0 % +100\nacme +40 /);
    const policies = await run("usage --since 1h --group-by policy,limit --policy api");
    expect(policies.out).toMatch(/\napi +calls +140 +130 +10 +7\.1 % +130\n/);
  });

  it("prints JSON with totals, and CSV", async () => {
    await storeUsage("acme", 5, 30, 10);
    const { out } = await run("usage tenant=acme --since 1h --json");
    expect(JSON.parse(out)).toMatchObject({ step: "minute", totals: { decided: 40 }, periods: [{ allowed: 30 }] });
    const csv = await run("usage tenant --since 1h --csv");
    expect(csv.out).toMatch(/^start,policy,.*\r\n\S+Z,,,acme,40,30,10,30,0,0,over_limit 2\/d: 10\r\n$/);
  });

  it("says what may be wrong if there is none", async () => {
    const none = await run("usage tenant=acme");
    expect([none.code, none.out]).toEqual([0, expect.stringMatching(/^No usage of tenant=acme from .* UTC\.\n$/)]);
    expect(none.err).toContain("No server has stored any usage of this time");
    await storeUsage("acme", 5, 30, 10);
    expect((await run("usage tenant=Acme --since 1h")).err).toMatch(
      /40 decisions.*\nIs Acme written like that.*acme\.\n/,
    );
    expect((await run("usage user=u1 --since 1h")).err).toMatch(/None is stored by user: .*--usage-by/);
  });

  it.each([
    ["usage --group-by subject", /--group-by subject needs a dimension/],
    ["usage --group-by user", /--group-by is "user"/],
    ["usage --step week", /--step is "week"/],
    ["usage --json --csv", /--json and --csv/],
    ["usage --since yesterday", /--since is "yesterday"/],
    ["denials acme", /"acme" is not a subject/],
    ["denials --limit none", /--limit/],
  ])("refuses %s", async (line, message) => {
    const { code, err } = await run(line);
    expect([code, err]).toEqual([2, expect.stringMatching(message)]);
  });
});

describe("sluice denials", () => {
  it("lists who was denied by what, and says what was sampled", async () => {
    await check("acme", 3);
    await check("loud", 40);
    const acme = await run("denials tenant=acme --since 1h");
    expect(acme.code).toBe(0);
    expect(acme.out).toMatch(
      /^when +times +subject +policy \/ limit +window +reason +cost +left +retry after +request\n/,
    );
    expect(acme.out).toMatch(/ tenant=acme +api v\d+ \/ calls +2\/d +over_limit +1 +0 +\d+h.* \/v1\/orders\n$/);
    expect(acme.err).toBe("");
    const all = await run("denials --policy api");
    expect(all.out).toMatch(/ 34 x +tenant=loud /);
    expect(all.err).toBe("6 records of 39 denials, sampled.\n");
    expect((await run("denials --limit 1")).err).toContain("--limit shows more");
  });

  it("prints JSON and CSV", async () => {
    await check("acme", 3);
    const { out } = await run("denials tenant=acme --json");
    expect(JSON.parse(out)).toMatchObject({ denials: 1, mixed: 0, records: [{ policy: "api", reason: "over_limit" }] });
    expect((await run("denials --csv")).out).toMatch(/^at,since,denials,.*\r\n.*,tenant=acme,api,.*\r\n$/);
  });

  it("says what to try next if there are none", async () => {
    const none = await run("denials tenant=acme --since 1h");
    expect([none.code, none.out]).toEqual([0, expect.stringMatching(/^No denials of tenant=acme from .* UTC\.\n$/)]);
    expect(none.err).toContain("sluice subject tenant=acme");
    await storeUsage("acme", 5, 30, 0);
    expect((await run("denials tenant=acme --since 1h")).err).toContain("All 30 requests of this time were allowed");
    await storeUsage("acme", 3, 1, 7);
    expect((await run("denials --since 1h")).err).toMatch(/Usage counts 7 denials.*--denial-retention.*sluice top/s);
  });

  it("is refused without a token, with the exit code of that", async () => {
    token = "";
    expect((await run("denials tenant=acme")).code).toBe(3);
  });
});
