import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { LeaseStats } from "./lease-metrics.ts";
import { createMetrics } from "./metrics.ts";
import type { RedisStats } from "./redis-metrics.ts";
import { noDenials, noUsage, StoreMetrics } from "./store-metrics.ts";
import type { StrongStats } from "./strong-metrics.ts";

const root = fileURLToPath(new URL("../../../../..", import.meta.url));
const page = await readFile(`${root}docs/metrics.md`, "utf8");

const redis: RedisStats = {
  ...{
    calls: 0,
    questions: 0,
    failedCalls: 0,
    timeouts: 0,
    starved: 0,
    stalledMs: 0,
    retries: 0,
    loads: 0,
    foreign: 0,
    healed: 0,
    moves: 0,
  },
  ...{ waiting: 0, inFlight: 0, shards: [], ready: true },
};
const leases: LeaseStats = {
  ...{ leases: 0, stale: 0, tokens: 0, local: 0, denials: 0, central: 0, fetches: 0, refused: 0, failed: 0 },
  ...{ granted: 0, spent: 0, returned: 0, lost: 0 },
};
const strong: StrongStats = {
  ...{ actions: 0, transactions: 0, conflicts: 0, recovered: 0, unknown: 0, failures: 0, totalMs: 0 },
  ...{ state: "closed", waiting: 0, swept: 0 },
};
const memoryStats = {
  counters: 0,
  bytes: 0,
  evictedLive: 0,
  refused: 0,
  clockAnomalies: 0,
  idsCutShort: 0,
  ids: 0,
  maxCounters: 0,
};

const noHotKeys = { keys: [], totals: { perSecond: 0, deniedPerSecond: 0 } };

/** Everything that any server exports. */
const { families } = createMetrics({
  version: "1",
  sources: {
    generation: () => 1,
    counters: () => memoryStats,
    redis: () => redis,
    leases: () => leases,
    strong: () => strong,
    hotKeys: { count: 1, read: () => noHotKeys, show: (subject) => subject },
    pending: () => 0,
    connections: () => ({ http: 0, grpc: 0, resp: 0, admin: 0 }),
    usageEvents: {
      read: () => ({ sinks: [], spill: { bytes: 0, unkept: 0, replayed: 0 } }),
      stats: () => ({ untracked: 0, failed: 0 }),
    },
    recording: () => ({ active: false, requests: 0, dropped: 0, leftOut: 0, failed: 0 }),
    spans: () => ({ exported: 0, dropped: 0 }),
    snapshot: () => ({ inUse: false, writtenMs: undefined }),
    store: new StoreMetrics(() => ({
      ...{ state: "current", newest: 0, generation: 0, pushed: false, killSwitch: undefined },
      ...{ problems: 0, disabled: 0, blocked: 0, overridden: 0, usage: noUsage, denials: noDenials },
    })),
  },
});

/** Names with a histogram's own endings taken off. */
const base = (name: string): string => name.replace(/_(bucket|sum|count)$/, "");
const mentioned = (text: string): readonly string[] =>
  [...text.matchAll(/(?<![@$\w])sluice_[a-z][a-z_]*[a-z]\b/g)].map(([name]) => name);

async function findPages(): Promise<[name: string, file: string][]> {
  const docs = (await readdir(`${root}docs`)).filter((name) => name.endsWith(".md"));
  const examples = await readdir(`${root}examples/prometheus`);
  return [
    ...docs.map((name): [string, string] => [`docs/${name}`, `${root}docs/${name}`]),
    ...examples.map((name): [string, string] => [`examples/prometheus/${name}`, `${root}examples/prometheus/${name}`]),
  ];
}

const pages = await findPages();

describe("docs/metrics.md", () => {
  const rows = [...page.matchAll(/^\| `(sluice_\w+)(?:\{([\w,]+)\})?` \| (counter|gauge|histogram) \| /gm)].map(
    ([, name, labels = "", type]) => ({ name, labels: labels === "" ? [] : labels.split(","), type }),
  );

  it("lists every metric with its labels and its type, and no others", () => {
    const known = families.map(({ name, labels, type }) => ({ name, labels, type }));
    const byName = (a: { name: string | undefined }, b: { name: string | undefined }): number =>
      a.name! < b.name! ? -1 : 1;
    expect(rows.toSorted(byName)).toEqual(known.toSorted(byName));
    expect(known.length).toBeGreaterThan(50);
  });

  it("names the alerts that are shipped, and no others", async () => {
    const alerts = await readFile(`${root}examples/prometheus/alerts.yaml`, "utf8");
    const shipped = [...alerts.matchAll(/^ +- alert: (\w+)$/gm)].map(([, name]) => name!);
    const told = [...page.matchAll(/`(Sluice[A-Z]\w+)`/g)].map(([, name]) => name!);
    expect(told.toSorted()).toEqual(shipped.toSorted());
    const operations = await readFile(`${root}docs/operations.md`, "utf8");
    const headings = new Set([...operations.matchAll(/^### (.*)$/gm)].map(([, heading]) => heading!.toLowerCase()));
    for (const [, runbook] of alerts.matchAll(/runbook: "(.*)"/g)) expect([...headings]).toContain(runbook);
  });

  it.each(pages)("is agreed with by %s, which names no metric that there is not", async (_name, file) => {
    const names = new Set(families.map(({ name }) => name));
    const strange = mentioned(await readFile(file, "utf8")).filter(
      (name) => !names.has(name) && !names.has(base(name)),
    );
    expect(strange).toEqual([]);
  });
});
