import type { RedisCountersStats } from "@sluice/redis";
import { expect, it } from "vitest";
import { LoadReports } from "./load-reports.ts";

type Shard = RedisCountersStats["shards"][number];

const fine = {
  ...{ name: "a:1", cell: undefined, connected: true, breaker: "closed", clockAheadMs: 10, roundTripMs: 1 },
  load: { cpu: 0.5, operationsPerSecond: 9, evictedKeys: 7, memoryBytes: 1, maxMemoryBytes: 0, replicas: [] },
} as unknown as Shard;
const hot = { policy: "login", scope: "user", subject: "ann", perSecond: 812.4, deniedPerSecond: 0, errorPerSecond: 0 };

function observe(): { reports: LoadReports; logged: unknown[]; advance(ms: number): void } {
  const logged: unknown[] = [];
  let nowMs = 0;
  const log = { warn: (event: string, fields?: object) => logged.push([event, fields]) };
  const reports = new LoadReports(log, { top: () => [hot] }, () => nowMs);
  return { reports, logged, advance: (ms) => (nowMs += ms) };
}

it("says nothing of servers that are well, and of evictions from before the start", () => {
  const { reports, logged } = observe();
  reports.look([fine, { ...fine, name: "b:1", load: undefined, clockAheadMs: undefined }]);
  expect(logged).toEqual([]);
});

it("reports a saturated server with the hottest limits and no subject, every ten minutes while it lasts", () => {
  const { reports, logged, advance } = observe();
  const busy = { ...fine, load: { ...fine.load!, cpu: 0.9149 } };
  for (let minute = 0; minute <= 10; minute++) {
    reports.look([busy]);
    advance(60_000);
  }
  const entry = ["redis.saturated", { shard: "a:1", cell: undefined, cpu: 0.91, hottest: ["login by user: 812/s"] }];
  expect(logged).toEqual([entry, entry]);
});

it("reports evictions, and a clock that is off by more than a second either way, for each server", () => {
  const { reports, logged } = observe();
  reports.look([fine]);
  const replicas = ["10.0.0.2:6379"];
  const off = { ...fine, clockAheadMs: -1_500.4, load: { ...fine.load!, evictedKeys: 12, replicas } };
  reports.look([off, { ...fine, cell: "acme", clockAheadMs: 1_001 }, { ...fine, name: "c:1", clockAheadMs: 999 }]);
  expect(logged).toEqual([
    ["redis.evicting", { shard: "a:1", cell: undefined, evicted: 5 }],
    ["redis.clock_off", { shard: "a:1", cell: undefined, aheadMs: -1_500, replicas }],
    ["redis.clock_off", { shard: "a:1", cell: "acme", aheadMs: 1_001 }],
  ]);
});
