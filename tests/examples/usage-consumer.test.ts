import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { startServer, type TestServer } from "@sluice/test-servers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Sluice, startSluice } from "../restart/start-sluice.ts";
import { type RunningExample, runExample } from "./run-example.ts";

const stream = "usage.events";
const policies = `
policies:
  - { id: billed, limits: [{ by: [tenant], windows: [600/d] }], on_failure: open, events: each }
`;

let folder: string;
let file: string;
let server: TestServer;
let sluice: Sluice | undefined;
let ledger: DatabaseSync;
const running: RunningExample[] = [];
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-ledger-"));
  file = path.join(folder, "ledger.db");
  // What the server has answered is on disk, so a crash loses nothing.
  server = await startServer({ flavor: "valkey", args: ["--appendonly", "yes", "--appendfsync", "always"] });
  ledger = new DatabaseSync(file, { timeout: 30_000 });
});
afterEach(async () => {
  for (const consumer of running.splice(0)) await consumer.kill();
  await sluice?.kill();
  sluice = undefined;
  await server.close();
  ledger.close();
  await rm(folder, { recursive: true, force: true });
});

async function consume(name: string): Promise<RunningExample> {
  const environment = { REDIS_URL: server.url, LEDGER_FILE: file, CONSUMER: name, CLAIM_AFTER_MS: "100" };
  const consumer = runExample("usage-consumer", environment);
  running.push(consumer);
  await consumer.printed(/^reading usage\.events$/m);
  return consumer;
}

/** What callers were told, by request id. */
type Sent = Map<string, { readonly subject: string; readonly allowed: boolean; readonly cost: number }>;

/** Asks a server about this many requests of three tenants, with ids and different costs. */
async function check({ http }: Sluice, sent: Sent, count: number): Promise<void> {
  const checks = Array.from({ length: count }, (_, i) => {
    const number = sent.size + i;
    return { id: `order-${number}`, cost: 1 + (number % 7), dimensions: { tenant: `tenant-${number % 3}` } };
  });
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${http}/v1/check`, { method: "POST", headers, body: JSON.stringify({ checks }) });
  const { answers } = (await response.json()) as { answers: { decision: { allowed: boolean } }[] };
  for (const [i, { id, cost, dimensions }] of checks.entries()) {
    sent.set(id, { subject: dimensions.tenant, allowed: answers[i]!.decision.allowed, cost });
  }
}

/** Adds entries again that are in the stream, as a server does that got no answer. */
async function sendAgain(count: number): Promise<void> {
  const entries = (await server.command("XRANGE", stream, "-", "+", "COUNT", count)) as [string, string[]][];
  expect(entries).toHaveLength(count);
  for (const [, fields] of entries) await server.command("XADD", stream, "*", ...fields);
}

async function countPending(): Promise<number> {
  const [count] = (await server.command("XPENDING", stream, "ledger")) as [number];
  return count;
}

const countAdded = (): number => Number(ledger.prepare("select count(*) as count from events").get()!.count);

/** Waits until a consumer has added and acknowledged everything. */
async function settle(sent: Sent): Promise<void> {
  await expect.poll(countAdded).toBe(sent.size);
  await expect.poll(countPending).toBe(0);
}

function sumBySubject(sent: Sent): readonly unknown[] {
  const subjects = [...new Set([...sent.values()].map(({ subject }) => subject))].sort();
  return subjects.map((subject) => {
    const all = [...sent.values()].filter((one) => one.subject === subject);
    const allowed = all.filter((one) => one.allowed);
    const cost = allowed.reduce((sum, one) => sum + one.cost, 0);
    return { subject, requests: all.length, denied: all.length - allowed.length, cost };
  });
}

/** The same from a table of the ledger. */
function readSums(table: "events" | "usage_by_day"): readonly unknown[] {
  const sums = "sum(requests) as requests, sum(denied) as denied, sum(cost) as cost";
  const rows = ledger.prepare(`select subject, ${sums} from ${table} group by subject order by subject`).all();
  return rows.map((row) => ({ ...row }));
}

describe("the consumer of usage events", { timeout: 120_000 }, () => {
  it("counts each event once, whenever it or the server is killed", async () => {
    const config = path.join(folder, "policies.yaml");
    await writeFile(config, policies);
    sluice = await startSluice({ RATE_LIMIT_CONFIG: config, SLUICE_USAGE_EVENTS: server.url });
    const sent: Sent = new Map();
    let consumer = await consume("first");
    await check(sluice, sent, 250);
    await settle(sent);

    // Killed with a batch that is not in the ledger: its transaction waits for this one.
    ledger.exec("begin immediate");
    await check(sluice, sent, 120);
    await expect.poll(countPending).toBeGreaterThan(0);
    await consumer.kill();
    ledger.exec("rollback");
    expect(countAdded()).toBe(250);
    consumer = await consume("first");
    await settle(sent);

    // Killed with a batch that is in the ledger, and not acknowledged because the server was killed before.
    ledger.exec("begin immediate");
    await check(sluice, sent, 120);
    await expect.poll(countPending).toBeGreaterThan(0);
    await server.kill();
    ledger.exec("rollback");
    await expect.poll(countAdded).toBeGreaterThan(370);
    await consumer.kill();
    await check(sluice, sent, 50);
    await server.restart();
    expect(await countPending()).toBeGreaterThan(0);
    await sendAgain(100);

    // Another one gets what the first left, and lives through a restart of the server.
    consumer = await consume("second");
    await settle(sent);
    await check(sluice, sent, 100);
    await server.restart();
    await settle(sent);

    // Two at once, of which one is killed again and again.
    await consume("third");
    for (let round = 0; round < 3; round += 1) {
      const before = countAdded();
      await check(sluice, sent, 200);
      await expect.poll(countAdded).toBeGreaterThan(before);
      await consumer.kill();
      await sendAgain(50);
      consumer = await consume("second");
    }
    await settle(sent);

    const ids = ledger.prepare("select id from events where denied = 0").all();
    const charged = [...sent].flatMap(([id, { allowed }]) => (allowed ? [id] : []));
    expect(ids.map(({ id }) => id).sort()).toEqual(charged.sort());
    const expected = sumBySubject(sent);
    expect(readSums("usage_by_day")).toEqual(expected);
    expect(readSums("events")).toEqual(expected);
    expect(expected).toEqual(Array(3).fill(expect.objectContaining({ denied: expect.toSatisfy((n) => n > 0) })));
    expect(ledger.prepare("select * from rejects").all()).toEqual([]);
    await consumer.stop();
    expect(await consumer.ended).toBe(0);
  });

  it("sets aside what is not a usage event, and goes on", async () => {
    const data = { kind: "each", cost: 2, allowed: true, ts: 1_795_017_600_000, requests: 1, policy: "billed" };
    const event = { type: "io.sluice.usage.v1", source: "/sluice", id: "good", subject: "acme", data };
    const bad = [
      "not JSON",
      "null",
      JSON.stringify({ ...event, type: "other" }),
      JSON.stringify({ ...event, id: 7 }),
      JSON.stringify({ ...event, data: undefined }),
      JSON.stringify({ ...event, data: { ...data, cost: -1 } }),
      JSON.stringify({ ...event, data: { ...data, requests: "1" } }),
      JSON.stringify({ ...event, data: { ...data, allowed: "yes" } }),
      JSON.stringify({ ...event, data: { ...data, ts: 1e300 } }),
    ];
    for (const text of bad) await server.command("XADD", stream, "*", "event", text);
    await server.command("XADD", stream, "*", "other", "field");
    // A consumer died with this one, and then the stream was trimmed.
    await server.command("XGROUP", "CREATE", stream, "ledger", "0");
    const lost = (await server.command("XADD", stream, "*", "event", JSON.stringify(event))) as string;
    await server.command("XREADGROUP", "GROUP", "ledger", "dead", "STREAMS", stream, ">");
    await server.command("XDEL", stream, lost);
    await server.command("XADD", stream, "*", "event", JSON.stringify(event));
    const consumer = await consume("first");
    await expect.poll(countPending).toBe(0);
    await expect.poll(countAdded).toBe(1);
    expect(readSums("usage_by_day")).toEqual([{ subject: "acme", requests: 1, denied: 0, cost: 2 }]);
    const rejects = ledger.prepare("select entry, reason, event from rejects order by rowid").all();
    expect(rejects.map((row) => row.event)).toEqual([...bad, null, null]);
    expect(rejects.at(-1)!.entry).toBe(lost);
    for (const { entry, reason } of rejects) expect(consumer.output()).toContain(`set aside ${entry}: ${reason}`);
  });
});
