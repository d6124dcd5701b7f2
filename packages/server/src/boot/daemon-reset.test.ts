import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServer } from "@sluice/test-servers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseSettings } from "../settings/parse-settings.ts";
import { silentLog } from "../testing/test-service.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

let folder: string;
let closing: (() => Promise<unknown>)[];
let token: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-reset-"));
  closing = [() => rm(folder, { recursive: true, force: true })];
  await writeFile(
    join(folder, "policies.yaml"),
    `policies:
  - id: login
    match: { endpoint: /login }
    limits: [{ by: [ip], windows: [{ limit: 1000, per: 30d }] }]
    counters: leased
    on_failure: closed
default: none
`,
  );
});

afterEach(async () => {
  for (const close of closing.reverse()) await close();
});

async function start(redis?: string): Promise<Daemon> {
  const reading = parseSettings(
    {},
    {
      ...{ httpPort: "0", grpcPort: "off", adminPort: "0", config: join(folder, "policies.yaml") },
      ...{ store: `sqlite:${join(folder, "store.db")}`, redis },
    },
  );
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  const daemon = await startDaemon({ settings: reading.settings, log: silentLog });
  closing.push(() => daemon.close());
  token = daemon.firstToken?.token ?? token;
  return daemon;
}

const request = { dimensions: { endpoint: "/login", ip: "203.0.113.7" } };
const soon = { timeout: 30_000, interval: 20 };

async function isAllowed({ limiter }: Daemon, cost = 1): Promise<boolean> {
  return (await limiter.check({ ...request, cost })).allowed;
}

async function reset(daemon: Daemon): Promise<void> {
  const answer = await fetch(`${daemon.addresses.admin[0]}/api/v1/subjects/ip/203.0.113.7/reset`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
  });
  expect(await answer.json()).toMatchObject({ limits: ["login/ip"], skipped: [], generation: expect.any(Number) });
}

describe("a reset of a subject", () => {
  it("reaches counters in the memory of every node, once", async () => {
    const one = await start();
    const other = await start();
    for (const node of [one, other])
      expect([await isAllowed(node, 1000), await isAllowed(node)]).toEqual([true, false]);
    await reset(one);
    expect([await isAllowed(one, 1000), await isAllowed(one)]).toEqual([true, false]);
    await expect.poll(() => isAllowed(other), soon).toBe(true);
    expect([await isAllowed(other, 999), await isAllowed(other)]).toEqual([true, false]);
    // Nothing is forgotten again when either polls the store the next time.
    await Promise.all([one.reload(), other.reload()]);
    expect([await isAllowed(one), await isAllowed(other)]).toEqual([false, false]);
  });

  it("reaches counters on a server once, and what a node leases and remembers of them", async () => {
    const server = await startServer({ flavor: "valkey" });
    closing.push(() => server.close());
    const one = await start(server.url);
    const other = await start(server.url);
    // A few at a time, so that some of it is leased by each.
    for (let asked = 0; asked < 150; asked++) await Promise.all([isAllowed(one, 5), isAllowed(other, 5)]);
    await expect.poll(() => isAllowed(one), soon).toBe(false);
    await expect.poll(() => isAllowed(other), soon).toBe(false);
    const unlinked = async (): Promise<string | undefined> =>
      /cmdstat_unlink:calls=(\d+)/.exec(String(await server.command("INFO", "commandstats")))?.[1];
    const before = Number((await unlinked()) ?? 0);
    await reset(one);
    await expect.poll(() => isAllowed(other), soon).toBe(true);
    expect(await isAllowed(one)).toBe(true);
    // By the node that was asked, and not again by the one that learns of it: that would admit as much a second time.
    await Promise.all([one.reload(), other.reload()]);
    expect(Number(await unlinked()) - before).toBe(1);
    let taken = 2;
    for (let asked = 0; asked < 400; asked++) for (const node of [one, other]) if (await isAllowed(node, 5)) taken += 5;
    expect(taken).toBeLessThanOrEqual(1_020);
    expect(taken).toBeGreaterThan(900);
  });
});
