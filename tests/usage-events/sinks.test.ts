import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { flavors, startServer, type TestServer } from "@sluice/test-servers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Sluice, startSluice } from "../restart/start-sluice.ts";
import { Collector } from "./start-collector.ts";

let folder: string;
let running: Sluice[];
let collector: Collector;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-usage-events-"));
  running = [];
  collector = await Collector.create(join(folder, "received"));
});
afterEach(async () => {
  for (const sluice of running) await sluice.kill();
  await collector.kill();
  await rm(folder, { recursive: true, force: true });
});

const policies = `
policies:
  - { id: billed, match: { endpoint: /paid }, limits: [{ by: [user], windows: [1000000/h] }], on_failure: open, events: each }
  - { id: other, match: { endpoint: /free }, limits: [{ by: [user], windows: [5/h] }], on_failure: open }
`;

async function start(sinks: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Sluice> {
  const config = join(folder, "policies.yaml");
  await writeFile(config, policies);
  const sluice = await startSluice({ RATE_LIMIT_CONFIG: config, SLUICE_USAGE_EVENTS: sinks.join(","), ...env });
  running.push(sluice);
  return sluice;
}

/** Asks about this many requests, each with its id, and returns the ids. */
async function check({ http }: Sluice, name: string, count: number, endpoint = "/paid"): Promise<readonly string[]> {
  const ids = Array.from({ length: count }, (_, i) => `${name}-${i}`);
  for (let i = 0; i < count; i += 50) {
    const checks = ids.slice(i, i + 50).map((id) => ({ id, dimensions: { tenant: "acme", user: "u1", endpoint } }));
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${http}/v1/check`, { method: "POST", headers, body: JSON.stringify({ checks }) });
    expect(response.status).toBe(200);
    await response.text();
  }
  return ids;
}

/** A metric's values, by the labels as they are written. */
async function metric({ http }: Sluice, name: string): Promise<ReadonlyMap<string, number>> {
  const page = await (await fetch(`${http}/metrics`)).text();
  const lines = page.split("\n").flatMap((line) => {
    const [, found, labels = "", value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    return found === name ? [[labels, Number(value)] as const] : [];
  });
  return new Map(lines);
}

async function total(sluice: Sluice, name: string): Promise<number> {
  return [...(await metric(sluice, name)).values()].reduce((sum, value) => sum + value, 0);
}

/** How often each event was logged. */
function countLogged({ log }: Sluice, event: string): number {
  return log.split(`"event":"${event}"`).length - 1;
}

describe("usage events over HTTP", () => {
  it("all arrive at a collector that dies and returns, and its token is in no log", async () => {
    await collector.start();
    const token = "very-secret-token";
    const sluice = await start([collector.url], { SLUICE_USAGE_EVENTS_TOKEN: token });
    const before = await check(sluice, "before", 130);
    await expect.poll(() => collector.ids()).toEqual(new Set(before));
    await collector.kill();
    const during = await check(sluice, "during", 250);
    await expect.poll(() => countLogged(sluice, "usage_events.failed")).toBe(1);
    await collector.start();
    await expect.poll(() => collector.ids()).toEqual(new Set([...before, ...during]));
    await expect.poll(() => countLogged(sluice, "usage_events.recovered")).toBe(1);
    const after = await check(sluice, "after", 1);
    expect(await sluice.stop()).toBe(0);
    expect(await collector.ids()).toEqual(new Set([...before, ...during, ...after]));
    const received = await collector.received();
    for (const { authorization, type, batch } of received) {
      expect([authorization, type]).toEqual([`Bearer ${token}`, "application/cloudevents-batch+json"]);
      expect(batch).toBeLessThanOrEqual(100);
    }
    expect(received[0]!.event).toMatchObject({
      subject: "acme",
      data: { key: "u1", cost: 1, allowed: true, policy: "billed" },
    });
    expect(countLogged(sluice, "usage_events.failed")).toBe(1);
    expect(sluice.log).not.toContain(token);
  });
});

describe.each(flavors)("usage events in a stream on %s", (flavor) => {
  let server: TestServer;
  beforeEach(async () => {
    server = await startServer({ flavor });
  });
  afterEach(() => server.close());

  async function readStream(): Promise<readonly string[]> {
    const entries = (await server.command("XRANGE", "usage.events", "-", "+")) as [string, string[]][];
    return entries.map(([, fields]) => {
      const [idName, id, eventName, event] = fields;
      expect([idName, eventName]).toEqual(["id", "event"]);
      expect(JSON.parse(event!)).toMatchObject({ id, type: "io.sluice.usage.v1" });
      return id!;
    });
  }

  it("all arrive, although it restarts in between", async () => {
    const sluice = await start([server.url]);
    const before = await check(sluice, "before", 130);
    await expect.poll(async () => new Set(await readStream())).toEqual(new Set(before));
    await server.kill();
    const during = await check(sluice, "during", 250);
    await expect.poll(() => countLogged(sluice, "usage_events.failed")).toBe(1);
    await server.restart();
    // Without persistence the stream begins anew.
    await expect.poll(async () => new Set(await readStream())).toEqual(new Set(during));
    await expect.poll(() => countLogged(sluice, "usage_events.recovered")).toBe(1);
  });

  it("are beside the counters, and bounded in number", async () => {
    const sluice = await start(["redis:?max_length=100"], { SLUICE_REDIS_URL: server.url });
    await check(sluice, "many", 1_500);
    await expect.poll(() => total(sluice, "sluice_usage_events_sent_total")).toBe(1_500);
    // Servers remove whole nodes of a stream, of a hundred entries.
    expect(Number(await server.command("XLEN", "usage.events"))).toBeLessThanOrEqual(300);
  });
});

describe("several sinks", () => {
  it("do not wait for one that is dead, and what it lacks is reported at the end", async () => {
    const [one, other] = [join(folder, "one.jsonl"), join(folder, "other.jsonl")];
    const sluice = await start([`file:${one}`, collector.url, `file:${other}`]);
    const ids = await check(sluice, "each", 150);
    await expect.poll(() => readIds(one)).toEqual(ids);
    await expect.poll(() => readIds(other)).toEqual(ids);
    const waiting = await metric(sluice, "sluice_usage_events_waiting");
    expect(waiting.get(`sink="http ${collector.url}"`)).toBeGreaterThanOrEqual(150);
    expect(waiting.get(`sink="file ${one}"`)).toBe(0);
    await check(sluice, "summed-up", 7, "/free");
    expect(await sluice.stop()).toBe(0);
    // The summaries of decisions until the stop: five allowed, two denied.
    const events = await readEvents(one);
    expect(events.slice(150).map(({ data }) => [data.kind, data.allowed, data.requests])).toEqual([
      ["summary", true, 5],
      ["summary", false, 2],
    ]);
    expect(await readEvents(other)).toEqual(events);
    expect(countLogged(sluice, "usage_events.left")).toBe(1);
    expect(sluice.log).toContain('"left":152');
  });

  it("hold no more events than their queues may, however long all of them are down", async () => {
    // Nothing listens at port 1, and a write to this file fails as on a full disk.
    const sinks = [collector.url, "redis://127.0.0.1:1", "kafka:", "file:/dev/full"];
    const sluice = await start(sinks, { SLUICE_USAGE_EVENTS_QUEUE: "1000", SLUICE_KAFKA: "127.0.0.1:1" });
    for (let round = 1; round <= 4; round++) {
      await check(sluice, `round-${round}`, 700);
      expect([...(await metric(sluice, "sluice_usage_events_waiting")).values()]).toEqual(
        sinks.map(() => Math.min(round * 700, 1_000)),
      );
      for (const bytes of (await metric(sluice, "sluice_usage_events_waiting_bytes")).values())
        expect(bytes).toBeLessThanOrEqual(1_000 * 1_024);
    }
    const dropped = await metric(sluice, "sluice_usage_events_dropped_total");
    expect([...dropped].flatMap(([labels, value]) => (labels.includes('reason="full"') ? [value] : []))).toEqual(
      sinks.map(() => 1_800),
    );
    expect(await total(sluice, "sluice_usage_events_errors_total")).toBe(0);
  });
});

async function readEvents(file: string): Promise<readonly { id: string; data: Record<string, unknown> }[]> {
  const text = await readFile(file, "utf8").catch(() => "");
  return text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
}

async function readIds(file: string): Promise<readonly string[]> {
  return (await readEvents(file)).map(({ id }) => id);
}

describe("the spill file", () => {
  it("keeps events of single decisions across a crash of the server, until the sink has them", async () => {
    const env = { SLUICE_USAGE_EVENTS_SPILL: join(folder, "spill") };
    const first = await start([collector.url], env);
    const ids = await check(first, "crashed", 250);
    // An event waits for the sink once it is on disk.
    await expect.poll(() => total(first, "sluice_usage_events_waiting")).toBe(250);
    await first.kill();
    const second = await start([collector.url], env);
    const more = await check(second, "later", 3);
    await collector.start();
    await expect.poll(() => collector.ids()).toEqual(new Set([...ids, ...more]));
    expect(await total(second, "sluice_usage_events_replayed_total")).toBe(250);
    await expect.poll(() => total(second, "sluice_usage_events_spill_bytes")).toBe(0);
    expect(await second.stop()).toBe(0);
    expect((await readdir(folder)).filter((name) => name.startsWith("spill"))).toEqual([]);
  });

  it("keeps what was left when the server stopped", async () => {
    const env = { SLUICE_USAGE_EVENTS_SPILL: join(folder, "spill") };
    const first = await start([collector.url], env);
    const ids = await check(first, "left", 120);
    expect(await first.stop()).toBe(0);
    expect(countLogged(first, "usage_events.left")).toBe(1);
    await collector.start();
    await start([collector.url], env);
    await expect.poll(() => collector.ids()).toEqual(new Set(ids));
  });
});
