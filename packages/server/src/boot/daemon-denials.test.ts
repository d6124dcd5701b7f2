import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DenialBody, DenialPageBody } from "@sluice/protocol/admin";
import { startPostgres, type TestPostgres } from "@sluice/test-servers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseSettings } from "../settings/parse-settings.ts";
import { silentLog } from "../testing/test-service.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

let folder: string;
let postgres: TestPostgres;
let daemons: Daemon[];
let token: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-denials-"));
  postgres = await startPostgres();
  daemons = [];
}, 60_000);

afterEach(async () => {
  for (const daemon of daemons) await daemon.close();
  await postgres.close();
  await rm(folder, { recursive: true, force: true });
});

const policies = `policies:
  - id: api
    limits: [{ name: calls, by: [tenant], windows: [2/h] }]
  - id: trial
    mode: shadow
    limits: [{ by: [user], windows: [1/h] }]
`;

async function start(name: string): Promise<Daemon> {
  const config = join(folder, "policies.yaml");
  await writeFile(config, policies);
  const reading = parseSettings(
    {
      ...{ RATE_LIMIT_CONFIG: config, SLUICE_STORE_URL: postgres.url, SLUICE_DEADLINE: "10s", SLUICE_NODE_NAME: name },
      SLUICE_ADMIN_TOKEN_FILE: join(folder, "token"),
    },
    { httpPort: "0", grpcPort: "off", adminPort: "0" },
  );
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  const daemon = await startDaemon({ settings: reading.settings, log: silentLog });
  daemons.push(daemon);
  token = daemon.firstToken?.token ?? token;
  return daemon;
}

async function check({ url }: Daemon, dimensions: Readonly<Record<string, string>>, times: number): Promise<void> {
  const checks = Array.from({ length: times }, (_, i) => ({ dimensions, id: `${dimensions.tenant}-${i}` }));
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${url}/v1/check`, { method: "POST", headers, body: JSON.stringify({ checks }) });
  expect(response.status).toBe(200);
  await response.text();
}

async function ask({ addresses }: Daemon, query: string, accept = "application/json"): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, accept };
  const response = await fetch(`${addresses.admin[0]}/api/v1/denials?${query}`, { headers });
  expect(response.status).toBe(200);
  return response;
}

const list = async (daemon: Daemon, query: string): Promise<DenialPageBody> =>
  (await (await ask(daemon, query)).json()) as DenialPageBody;

const brief = ({ node, policy, denials, request_id: id }: DenialBody) => [node, policy, denials, id];

describe("two servers on one policy store", () => {
  it("show each other's denials, and their own at once", async () => {
    const [a, b] = [await start("a"), await start("b")];
    await check(a, { tenant: "acme", user: "u1" }, 4);
    const acme = "dimension=tenant&subject=acme";
    const own = await list(a, acme);
    expect(own.items.filter(({ shadow }) => !shadow).map(brief)).toEqual([
      ["a", "api", 1, "acme-3"],
      ["a", "api", 1, "acme-2"],
    ]);
    expect(own.items[0]).toMatchObject({ dimensions: { tenant: "acme", user: "u1" } });

    // A flood of another subject, on both, hides none of them.
    for (let i = 0; i < 20; i++) for (const daemon of [a, b]) await check(daemon, { tenant: "loud", user: "u2" }, 50);
    await check(b, { tenant: "acme", user: "u3" }, 3);
    await Promise.all(daemons.splice(0).map((daemon) => daemon.close()));
    const c = await start("c");
    const all = await list(c, `${acme}&policy=api`);
    expect(all.items.map(brief)).toEqual([
      ["b", "api", 1, "acme-2"],
      ["a", "api", 1, "acme-3"],
      ["a", "api", 1, "acme-2"],
    ]);
    expect(all.items[0]).toMatchObject({
      ...{ limit: "calls", by: ["tenant"], window: "2/h", reason: "over_limit", version: 1, cost: 1, capacity: 2 },
      ...{ remaining: 0, shadow: false, mixed: false },
    });
    const loud = await list(c, "dimension=tenant&subject=loud&policy=api");
    // The two that were allowed are allowed again when their ids come back.
    expect(loud.denials).toBe(2 * 20 * 48);
    expect(loud.items.length).toBeLessThanOrEqual(100);
    const shadow = await list(c, "policy=trial&dimension=user&subject=u1");
    expect(shadow.items.every((item) => item.shadow && item.policy === "trial")).toBe(true);
    // The first of four fits the limit in shadow mode.
    expect(shadow.denials).toBe(3);

    const csv = await ask(c, `${acme}&policy=api&limit=1`, "text/csv");
    expect(csv.headers.get("content-type")).toBe("text/csv; charset=utf-8; header=present");
    expect(csv.headers.get("link")).toMatch(
      /^<\/api\/v1\/denials\?dimension=tenant&subject=acme&policy=api&limit=1&after=.*>; rel="next"$/,
    );
    expect(await csv.text()).toMatch(/^at,since,denials,.*\r\n.*tenant=acme.*\r\n$/s);
  }, 60_000);
});
