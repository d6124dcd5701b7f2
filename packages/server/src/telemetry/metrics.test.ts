import { createLimiter } from "sluice";
import { describe, expect, it } from "vitest";
import { createMetrics } from "./metrics.ts";

const figures = {
  counters: 7,
  bytes: 448,
  evictedLive: 3,
  clockAnomalies: 1,
  idsCutShort: 5,
  ids: 2,
  maxCounters: 1000,
};
const sources = { counters: () => figures, generation: () => 4 };

const limiter = createLimiter({
  policies: {
    policies: ["a", "b", "c"].map((id) => ({ id, match: { endpoint: `/${id}` }, limits: [{ windows: ["1/h"] }] })),
    default: "none",
  },
});

describe("metrics", () => {
  it("tell of counters and of the configuration when they are scraped", async () => {
    const metrics = createMetrics({ version: "1", sources });
    const text = await metrics.render();
    for (const line of [
      "sluice_counters 7",
      "sluice_counters_max 1000",
      "sluice_counter_evictions_total 3",
      "sluice_request_ids_cut_short_total 5",
      "sluice_config_generation 4",
      "sluice_config_last_reload_successful 1",
      "sluice_config_reload_failures_total 0",
    ])
      expect(text).toContain(`\n${line}\n`);
    expect(await metrics.render()).toContain("\nsluice_counter_evictions_total 3\n");
  });

  it("give no more policies a label than they are told to", async () => {
    const metrics = createMetrics({ version: "1", sources, maxPolicyLabels: 2 });
    metrics.usePolicies(limiter.snapshot.policySet);
    for (const endpoint of ["/a", "/b", "/c", "/none"])
      metrics.countDecision(limiter.checkSync({ dimensions: { endpoint } }), 0.001);
    const text = await metrics.render();
    expect([...text.matchAll(/^sluice_checks_total\{policy="([^"]*)"/gm)].map((match) => match[1]).sort()).toEqual([
      "a",
      "b",
      "none",
      "other",
    ]);
  });

  it("forget policies that are gone, whose labels others then have", async () => {
    const metrics = createMetrics({ version: "1", sources, maxPolicyLabels: 2 });
    const [a, b, c] = limiter.snapshot.policySet.policies;
    const labels = async (): Promise<string[]> =>
      [...(await metrics.render()).matchAll(/^sluice_checks_total\{policy="([^"]*)"/gm)]
        .map((match) => match[1]!)
        .sort();
    const countAll = (): void => {
      for (const endpoint of ["/a", "/b", "/c"])
        metrics.countDecision(limiter.checkSync({ dimensions: { endpoint } }), 0.001);
    };
    metrics.usePolicies({ policies: [a!, b!, c!] });
    countAll();
    metrics.usePolicies({ policies: [b!, c!] });
    expect(await labels()).toEqual(["b", "other"]);
    countAll();
    expect([...new Set(await labels())]).toEqual(["b", "c", "other"]);
  });

  it("count previews apart", async () => {
    const metrics = createMetrics({ version: "1", sources });
    metrics.countDecision(limiter.checkSync({ dimensions: { endpoint: "/a" }, preview: true }), 0.001);
    const text = await metrics.render();
    expect(text).toContain("sluice_previews_total 1");
    expect(text).not.toMatch(/^sluice_checks_total\{/m);
  });

  it("remember a failed reload until one succeeds", async () => {
    const metrics = createMetrics({ version: "1", sources });
    metrics.countReload(false);
    expect(await metrics.render()).toMatch(/reload_failures_total 1\n[\s\S]*last_reload_successful 0\n/);
    metrics.countReload(true);
    expect(await metrics.render()).toMatch(/reload_failures_total 1\n[\s\S]*last_reload_successful 1\n/);
  });

  it("count decisions without counters by policy, reason and answer, and forget them with their policy", async () => {
    const metrics = createMetrics({ version: "1", sources: { generation: () => 1 } });
    const { policySet } = limiter.snapshot;
    metrics.usePolicies(policySet);
    const decision = limiter.checkSync({ dimensions: { endpoint: "/a" }, preview: true });
    for (const degraded of ["storage_timeout", "storage_timeout", "storage_unavailable"] as const)
      metrics.countDecision({ ...decision, allowed: true, preview: false, degraded }, 0.001);
    const series = async (): Promise<string[]> =>
      (await metrics.render()).split("\n").filter((line) => line.startsWith("sluice_degraded_decisions_total{"));
    expect(await series()).toEqual([
      'sluice_degraded_decisions_total{policy="a",reason="storage_timeout",allowed="true"} 2',
      'sluice_degraded_decisions_total{policy="a",reason="storage_unavailable",allowed="true"} 1',
    ]);
    metrics.usePolicies({ policies: policySet.policies.slice(1) });
    expect(await series()).toEqual([]);
  });

  it("tell of counters on servers in place of counters in memory, and label at most 500 of them", async () => {
    const shards = Array.from({ length: 600 }, (_, i) => ({
      name: `s${i}:6379`,
      cell: i === 0 ? "acme" : undefined,
      connected: i !== 1,
      breaker: i === 0 ? ("open" as const) : i === 1 ? ("half_open" as const) : ("closed" as const),
      clockAheadMs: i === 0 ? undefined : 2_000,
    }));
    const counts = { calls: 1, questions: 2, failedCalls: 3, timeouts: 4, retries: 5, loads: 6, foreign: 7, healed: 8 };
    let known = shards;
    const redis = () => ({ ...counts, ready: false, shards: known });
    const metrics = createMetrics({ version: "1", sources: { generation: () => 1, redis } });
    const text = await metrics.render();
    for (const line of [
      "sluice_redis_ready 0",
      "sluice_redis_calls_total 1",
      "sluice_redis_questions_total 2",
      "sluice_redis_failed_calls_total 3",
      "sluice_redis_timeouts_total 4",
      "sluice_redis_retries_total 5",
      "sluice_redis_script_loads_total 6",
      "sluice_redis_foreign_values_total 7",
      "sluice_redis_healed_keys_total 8",
      'sluice_redis_shard_connected{shard="s0:6379",cell="acme"} 1',
      'sluice_redis_shard_connected{shard="s1:6379",cell=""} 0',
      'sluice_redis_breaker_open{shard="s0:6379",cell="acme"} 1',
      'sluice_redis_breaker_open{shard="s1:6379",cell=""} 0.5',
    ])
      expect(text).toContain(`\n${line}\n`);
    expect(text).toMatch(/^sluice_redis_clock_ahead_seconds\{shard="s1:6379"\} (1\.9|2(\.0)?)/m);
    expect(text).not.toContain('clock_ahead_seconds{shard="s0');
    expect([...text.matchAll(/^sluice_redis_shard_connected\{/gm)]).toHaveLength(500);
    expect(text).not.toMatch(/^sluice_counters/m);
    known = shards.slice(2, 3);
    expect([...(await metrics.render()).matchAll(/^sluice_redis_breaker_open\{/gm)]).toHaveLength(1);
  });

  it("count methods that nobody knows together", async () => {
    const metrics = createMetrics({ version: "1", sources });
    metrics.countHttpRequest("BREW", "unmatched", 404);
    expect(await metrics.render()).toContain(
      'sluice_http_requests_total{method="other",route="unmatched",status="404"} 1',
    );
  });
});
