import { callBoundsMs } from "@sluice/redis";
import { type CheckRequest, createLimiter, ManualClock } from "sluice";
import { describe, expect, it } from "vitest";
import { type Family, joinExpositions, renderFamilies } from "./exposition.ts";
import { createMetrics } from "./metrics.ts";

const figures = {
  counters: 7,
  bytes: 448,
  evictedLive: 3,
  refused: 2,
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
  it("show counters and the configuration when they are scraped", async () => {
    const metrics = createMetrics({ version: "1", sources });
    const text = await metrics.render();
    for (const line of [
      "sluice_counters 7",
      "sluice_counters_max 1000",
      "sluice_counters_evicted_total 3",
      "sluice_counters_refused_total 2",
      "sluice_request_ids_cut_short_total 5",
      "sluice_config_generation 4",
      "sluice_config_last_reload_successful 1",
      "sluice_config_reload_failures_total 0",
    ])
      expect(text).toContain(`\n${line}\n`);
    expect(await metrics.render()).toContain("\nsluice_counters_evicted_total 3\n");
  });

  it("give no more policies a label than configured", async () => {
    const metrics = createMetrics({ version: "1", sources, maxPolicyLabels: 2 });
    metrics.usePolicies(limiter.snapshot.policySet);
    for (const endpoint of ["/a", "/b", "/c", "/none"])
      metrics.countDecision(limiter.checkSync({ dimensions: { endpoint } }), 0.001);
    const text = await metrics.render();
    for (const name of ["checks_total", "cost_total", "check_duration_seconds_count"]) {
      const series = text.matchAll(new RegExp(`^sluice_${name}\\{policy="([^"]*)"`, "gm"));
      expect([...series].map((match) => match[1]).sort()).toEqual(["a", "b", "none", "other"]);
    }
  });

  it("count the dimensions that checks lack, by policy, with no more labels than policies have", async () => {
    const metrics = createMetrics({ version: "1", sources, maxPolicyLabels: 2 });
    metrics.usePolicies(limiter.snapshot.policySet);
    for (const [policy, dimension] of [
      ["a", "tennant"],
      ["a", "tennant"],
      ["b", "user"],
      ["c", "x"],
      ["gone", "y"],
    ])
      metrics.countMissing(policy!, dimension!);
    const series = (await metrics.render()).matchAll(/^sluice_missing_dimensions_total(.*)$/gm);
    expect([...series].map((match) => match[1])).toEqual([
      '{policy="a",domain="default",dimension="tennant"} 2',
      '{policy="b",domain="default",dimension="user"} 1',
      '{policy="other",domain="",dimension="other"} 2',
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

  it("go on counting under a version that comes back", async () => {
    const metrics = createMetrics({ version: "1", sources });
    const [a] = limiter.snapshot.policySet.policies;
    const count = (version: number): void =>
      metrics.countDecision({ ...limiter.checkSync({ dimensions: { endpoint: "/a" } }), version }, 0.001);
    const total = async (version: number): Promise<number> => {
      const pattern = new RegExp(
        `^sluice_checks_total\\{policy="a",domain="default",version="${version}",.*\\} (\\d+)$`,
        "gm",
      );
      return [...(await metrics.render()).matchAll(pattern)].reduce((sum, match) => sum + Number(match[1]), 0);
    };
    metrics.usePolicies({ policies: [{ ...a!, version: 1 }] });
    for (let times = 0; times < 3; times++) count(1);
    metrics.usePolicies({ policies: [{ ...a!, version: 2 }] });
    count(2);
    metrics.usePolicies({ policies: [{ ...a!, version: 1 }] });
    count(1);
    expect([await total(1), await total(2)]).toEqual([4, 1]);
    // Both in force, and applied again: each is counted separately, with windows of both.
    const both = { policies: [1, 2].map((version) => ({ ...a!, version })) };
    for (let times = 0; times < 2; times++) {
      metrics.usePolicies(both);
      count(1);
      count(2);
      count(2);
    }
    expect([await total(1), await total(2)]).toEqual([6, 5]);
  });

  it("show a limit of 0 as full, in numbers", async () => {
    const nothing = createLimiter({
      policies: { policies: [{ id: "z", limits: [{ windows: ["0/s"] }] }], default: "none" },
    });
    const metrics = createMetrics({ version: "1", sources });
    metrics.usePolicies(nothing.snapshot.policySet);
    metrics.countDecision(nothing.checkSync({}), 0.001);
    const text = await metrics.render();
    expect(text).not.toContain("NaN");
    expect(text).toContain('sluice_window_used_ratio_bucket{policy="z",domain="default",le="0.95"} 0\n');
    expect(text).toContain('sluice_window_used_ratio_sum{policy="z",domain="default"} 1\n');
  });

  it("leave previews out of what shadow policies would have denied", async () => {
    const shadowed = createLimiter({
      policies: { policies: [{ id: "s", mode: "shadow", limits: [{ windows: ["1/h"] }] }], default: "none" },
    });
    const metrics = createMetrics({ version: "1", sources });
    metrics.usePolicies(shadowed.snapshot.policySet);
    for (const preview of [false, false, true]) metrics.countDecision(shadowed.checkSync({ preview }), 0.001);
    expect(await metrics.render()).toContain('sluice_shadow_denials_total{policy="s",domain="default"} 1\n');
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
      'sluice_degraded_decisions_total{policy="a",domain="default",reason="storage_unavailable",allowed="true"} 1',
      'sluice_degraded_decisions_total{policy="a",domain="default",reason="storage_timeout",allowed="true"} 2',
    ]);
    metrics.usePolicies({ policies: policySet.policies.slice(1) });
    expect(await series()).toEqual([]);
  });

  it("show counters on servers in place of counters in memory, and label at most 500 of them", async () => {
    const shards = Array.from({ length: 600 }, (_, i) => ({
      name: `s${i}:6379`,
      cell: i === 0 ? "acme" : undefined,
      connected: i !== 1,
      breaker: i === 0 ? ("open" as const) : i === 1 ? ("half_open" as const) : ("closed" as const),
      clockAheadMs: i === 0 ? undefined : 2_000,
      roundTripMs: i === 0 ? undefined : 1.5,
      load: undefined,
      figures: {
        calls: 3,
        failures: { timeout: i, starved: 0, connection: 0, access: 0, passing: 0, memory: 0, script: 1, reply: 0 },
        durations: new Float64Array(callBoundsMs.length + 1).with(3, 2),
        durationsSumMs: 1.5,
        breakerOpened: 4,
        breakerClosed: 3,
        roundTripMs: undefined,
      },
    }));
    const counts = {
      ...{
        calls: 1,
        questions: 2,
        failedCalls: 3,
        timeouts: 4,
        starved: 11,
        stalledMs: 1500,
        retries: 5,
        loads: 6,
        foreign: 7,
        healed: 8,
      },
      ...{ moves: 9, waiting: 10, inFlight: 11 },
    };
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
      "sluice_redis_starved_total 11",
      "sluice_redis_stalled_seconds_total 1.5",
      "sluice_redis_retries_total 5",
      "sluice_redis_script_loads_total 6",
      "sluice_redis_foreign_values_total 7",
      "sluice_redis_healed_keys_total 8",
      "sluice_redis_failovers_total 9",
      "sluice_redis_waiting_questions 10",
      "sluice_redis_calls_in_flight 11",
      'sluice_redis_call_failures_total{shard="s7:6379",cell="",error="timeout"} 7',
      'sluice_redis_call_failures_total{shard="s7:6379",cell="",error="script"} 1',
      'sluice_redis_call_duration_seconds_bucket{shard="s0:6379",cell="acme",le="0.0005"} 0',
      'sluice_redis_call_duration_seconds_bucket{shard="s0:6379",cell="acme",le="0.001"} 2',
      'sluice_redis_call_duration_seconds_bucket{shard="s0:6379",cell="acme",le="+Inf"} 2',
      'sluice_redis_call_duration_seconds_sum{shard="s0:6379",cell="acme"} 0.0015',
      'sluice_redis_breaker_opened_total{shard="s0:6379",cell="acme"} 4',
      'sluice_redis_breaker_closed_total{shard="s0:6379",cell="acme"} 3',
      'sluice_redis_round_trip_seconds{shard="s1:6379",cell=""} 0.0015',
      'sluice_redis_shard_connected{shard="s0:6379",cell="acme"} 1',
      'sluice_redis_shard_connected{shard="s1:6379",cell=""} 0',
      'sluice_redis_breaker_open{shard="s0:6379",cell="acme"} 1',
      'sluice_redis_breaker_open{shard="s1:6379",cell=""} 0.5',
    ])
      expect(text).toContain(`\n${line}\n`);
    expect(text).toMatch(/^sluice_redis_clock_ahead_seconds\{shard="s1:6379",cell=""\} (1\.9|2(\.0)?)/m);
    expect(text).not.toContain('clock_ahead_seconds{shard="s0');
    expect([...text.matchAll(/^sluice_redis_shard_connected\{/gm)]).toHaveLength(500);
    expect(text).not.toMatch(/^sluice_counters/m);
    known = shards.slice(2, 3);
    expect([...(await metrics.render()).matchAll(/^sluice_redis_breaker_open\{/gm)]).toHaveLength(1);
  });

  it("count unknown methods together", async () => {
    const metrics = createMetrics({ version: "1", sources });
    metrics.countHttpRequest("BREW", "unmatched", 404);
    expect(await metrics.render()).toContain(
      'sluice_http_requests_total{method="other",route="unmatched",status="404"} 1',
    );
  });

  it("count requests, calls, commands and checks by protocol, and how long they took", async () => {
    const connections = () => ({ http: 3, grpc: 2, resp: 0, admin: 0 });
    const metrics = createMetrics({ version: "1", sources: { ...sources, connections, pending: () => 6 } });
    metrics.countHttpRequest("POST", "/v1/check", 200, 0.000_2);
    metrics.countGrpcCall("sluice.v1.RateLimiter/Check", "OK", 0.000_02);
    metrics.countRespCommand("CL.THROTTLE", "answered");
    metrics.checkCount("grpc").count += 64;
    metrics.countTurnedAway("resp", "too_many");
    metrics.countShed("rate", 5);
    expect(metrics.refused.shed).toEqual({ pending: 0, rate: 5 });
    expect(metrics.refused.turnedAway("resp")).toBe(1);
    const text = await metrics.render();
    for (const line of [
      'sluice_protocol_checks_total{protocol="grpc"} 64',
      'sluice_grpc_calls_total{method="sluice.v1.RateLimiter/Check",code="OK"} 1',
      'sluice_resp_commands_total{command="CL.THROTTLE",outcome="answered"} 1',
      'sluice_request_duration_seconds_bucket{protocol="http",le="0.0001"} 0',
      'sluice_request_duration_seconds_bucket{protocol="http",le="0.00025"} 1',
      'sluice_request_duration_seconds_bucket{protocol="grpc",le="0.000025"} 1',
      'sluice_request_duration_seconds_count{protocol="http"} 1',
      'sluice_connections{protocol="http"} 3',
      'sluice_connections{protocol="resp"} 0',
      'sluice_connections_turned_away_total{protocol="resp",reason="too_many"} 1',
      'sluice_shed_checks_total{reason="rate"} 5',
      "sluice_pending_checks 6",
    ])
      expect(text).toContain(`\n${line}\n`);
    expect(text).not.toContain('sluice_request_duration_seconds_count{protocol="resp"}');
  });

  it("make a bounded number of series, whatever labels they are handed", async () => {
    const metrics = createMetrics({ version: "1", sources });
    for (let i = 0; i < 5_000; i++) metrics.countRespCommand(`C${i}`, "answered");
    const series = [...(await metrics.render()).matchAll(/^sluice_resp_commands_total\{.*\} (\d+)$/gm)];
    expect(series.length).toBeLessThanOrEqual(1_001);
    expect(series.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(5_000);
  });

  it("label every series with the worker, and join those of all workers to one page", async () => {
    const pages = await Promise.all(
      [0, 1].map((worker) => createMetrics({ version: "1", sources, worker, process: worker === 0 }).render()),
    );
    const page = joinExpositions(pages);
    expect(page).toContain('\nsluice_counters{worker="0"} 7\nsluice_counters{worker="1"} 7\n');
    expect(page.match(/^# TYPE sluice_counters gauge$/gm)).toHaveLength(1);
    expect(page).toMatch(/^process_cpu_seconds_total\{worker="0"\} /m);
    const samples = page.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    expect(samples.filter((line) => !line.includes('worker="'))).toEqual([]);
    expect(new Set(samples.map((line) => line.replace(/ \S+$/, ""))).size).toBe(samples.length);
  });

  it("join pages whatever their labels contain, even other line ends", () => {
    const pages = ["1", "2"].map((worker) => {
      const labels = [`a\u2028# HELP b`, "c\r# HELP d", "e\u2029# HELP f"];
      const family: Family = {
        ...{ name: "x", help: "One", type: "gauge", labels: ["subject"] },
        samples: () => labels.map((label) => ({ labels: [label], value: 1 })),
      };
      return renderFamilies([family], { worker });
    });
    const [head, ...samples] = pages.map((page) => page.split("\n").slice(2, -1));
    expect(joinExpositions(pages)).toBe(
      `${["# HELP x One", "# TYPE x gauge", ...head!, ...samples.flat()].join("\n")}\n`,
    );
  });

  it("write labels so that nothing in them ends them early", () => {
    const family: Family = {
      ...{ name: "x_total", help: "One\nline \\ more", labels: ["policy"] },
      type: "counter",
      samples: () => [{ labels: ['a"b\\c\nd'], value: 1e21 }],
    };
    expect(renderFamilies([family])).toBe(
      '# HELP x_total One\\nline \\\\ more\n# TYPE x_total counter\nx_total{policy="a\\"b\\\\c\\nd"} 1e+21\n',
    );
  });
});

describe("metrics of decisions", () => {
  const policy = (version: number, windows: readonly unknown[]) => ({
    policies: [{ id: "p", version, limits: [{ name: "each", by: ["user"], windows }] }],
    default: "none",
  });
  const windows = [
    { limit: 2, per: "1s", name: "per_second" },
    { limit: 3, per: "1h" },
  ];

  function started(maxPolicyLabels = 500) {
    const clock = new ManualClock();
    const limiter = createLimiter({ policies: policy(1, windows), clock });
    const metrics = createMetrics({ version: "1", sources, maxPolicyLabels });
    metrics.usePolicies(limiter.snapshot.policySet);
    return {
      clock,
      limiter,
      metrics,
      check: (request: CheckRequest = {}) =>
        metrics.countDecision(limiter.checkSync({ dimensions: { user: "u" }, ...request }), 0.000_02),
      edit(policies: Readonly<Record<string, unknown>>): void {
        metrics.usePolicies(limiter.usePolicies(policies).policySet);
      },
      lines: async (name: string) =>
        (await metrics.render()).split("\n").filter((line) => line.startsWith(`sluice_${name}`)),
    };
  }

  it("separate cost taken from cost denied, and do not charge a replay", async () => {
    const { check, lines } = started();
    check({ cost: 2, id: "once" });
    check({ cost: 2, id: "once" });
    check({ cost: 1 });
    check({ cost: 100 });
    expect(await lines("cost_total")).toEqual([
      'sluice_cost_total{policy="p",domain="default",allowed="true"} 2',
      'sluice_cost_total{policy="p",domain="default",allowed="false"} 101',
    ]);
    expect(await lines("denials_total")).toEqual([
      'sluice_denials_total{policy="p",domain="default",reason="over_limit"} 1',
      'sluice_denials_total{policy="p",domain="default",reason="never_fits"} 1',
    ]);
    expect(await lines("replays_total")).toEqual(["sluice_replays_total 1"]);
  });

  it("show which window limits, by index and name, and how full it was", async () => {
    const { clock, check, lines } = started();
    check({ cost: 2 });
    check();
    clock.advance(2_000);
    check();
    check();
    expect(await lines("limiting_window_total")).toEqual([
      'sluice_limiting_window_total{policy="p",domain="default",scope="each",window="0",name="per_second",allowed="true"} 1',
      'sluice_limiting_window_total{policy="p",domain="default",scope="each",window="0",name="per_second",allowed="false"} 1',
      'sluice_limiting_window_total{policy="p",domain="default",scope="each",window="1",name="3/h",allowed="true"} 1',
      'sluice_limiting_window_total{policy="p",domain="default",scope="each",window="1",name="3/h",allowed="false"} 1',
    ]);
    expect(await lines("window_used{")).toContain(
      'sluice_window_used{policy="p",domain="default",scope="each",window="1",name="3/h"} 3',
    );
    expect(await lines("window_remaining{")).toContain(
      'sluice_window_remaining{policy="p",domain="default",scope="each",window="1",name="3/h"} 0',
    );
    expect(await lines("window_used_ratio_bucket")).toContain(
      'sluice_window_used_ratio_bucket{policy="p",domain="default",le="0.95"} 0',
    );
    expect(await lines("window_used_ratio_count")).toEqual([
      'sluice_window_used_ratio_count{policy="p",domain="default"} 4',
    ]);
  });

  it("separate versions of a policy, keep the one before for another scrape, and sum up the rest", async () => {
    const { check, edit, lines } = started();
    check();
    edit(policy(2, windows));
    check();
    expect(await lines("checks_total")).toEqual([
      'sluice_checks_total{policy="p",domain="default",version="1",allowed="true"} 1',
      'sluice_checks_total{policy="p",domain="default",version="2",allowed="true"} 1',
    ]);
    expect(await lines("cost_total")).toEqual(['sluice_cost_total{policy="p",domain="default",allowed="true"} 2']);
    expect(await lines("check_duration_seconds_count")).toEqual([
      'sluice_check_duration_seconds_count{policy="p",domain="default"} 2',
    ]);
    edit(policy(3, windows));
    check();
    const versions = (await lines("checks_total")).map((line) => /version="(\d)"/.exec(line)?.[1]);
    expect([...new Set(versions)]).toEqual(["2", "3"]);
  });

  it("go on with a window that stays, and forget one that is gone", async () => {
    const { check, edit, lines } = started();
    check();
    edit(policy(1, [windows[0], "5/h"]));
    check();
    expect(await lines("limiting_window_total")).toEqual([
      'sluice_limiting_window_total{policy="p",domain="default",scope="each",window="0",name="per_second",allowed="true"} 2',
      'sluice_limiting_window_total{policy="p",domain="default",scope="each",window="0",name="per_second",allowed="false"} 0',
    ]);
  });

  it("count limits that requests bring along by the labels that these were given", async () => {
    const { check, lines, metrics, edit } = started();
    const window = { limit: 5, per: { kind: "ms", ms: 1_000 }, burst: 5 } as const;
    metrics.labelLimits(["labelled"]);
    check({ limits: [{ name: "labelled", by: ["user"], window }] });
    expect(await lines("checks_total")).toEqual([
      'sluice_checks_total{policy="labelled",domain="",version="",allowed="true"} 1',
    ]);
    edit({ policies: [{ id: "labelled", limits: [{ by: ["user"], windows: ["5/h"] }] }] });
    check();
    expect(await lines("check_duration_seconds_count"), "no series twice").toEqual([
      'sluice_check_duration_seconds_count{policy="labelled",domain="default"} 1',
    ]);
  });

  it("have the domain of the deciding policy, and never what a request calls its domain", async () => {
    const { check, lines, edit } = started();
    const limits = [{ by: ["user"], windows: ["1/h"] }];
    edit({ policies: [{ id: "orders", domain: "shop", limits }], default: { limits } });
    check({ domain: "shop" });
    check({ domain: "shop" });
    for (let i = 0; i < 5; i++) check({ domain: `made-up-${i}`, dimensions: { user: `u${i}` } });
    expect(await lines("checks_total")).toEqual([
      'sluice_checks_total{policy="orders",domain="shop",version="1",allowed="true"} 1',
      'sluice_checks_total{policy="orders",domain="shop",version="1",allowed="false"} 1',
      'sluice_checks_total{policy="default",domain="*",version="1",allowed="true"} 5',
    ]);
    expect(await lines("cost_total")).toContain('sluice_cost_total{policy="orders",domain="shop",allowed="false"} 1');
    expect(await lines("check_duration_seconds_count")).toContain(
      'sluice_check_duration_seconds_count{policy="orders",domain="shop"} 2',
    );
    edit({ policies: [{ id: "orders", domain: "other-shop", limits }], default: "none" });
    expect(await lines("denials_total")).toEqual([
      'sluice_denials_total{policy="orders",domain="other-shop",reason="over_limit"} 1',
    ]);
  });

  it("count limits that no policy has as other", async () => {
    const { check, lines } = started();
    const window = { limit: 5, per: { kind: "ms", ms: 1_000 }, burst: 5 } as const;
    check({ limits: [{ name: "brought along", by: ["user"], window }] });
    expect(await lines("checks_total")).toEqual([
      'sluice_checks_total{policy="other",domain="",version="",allowed="true"} 1',
    ]);
    expect(await lines("limiting_window_total{")).toContain(
      'sluice_limiting_window_total{policy="other",domain="",scope="",window="other",name="",allowed="true"} 1',
    );
  });

  it("never hold a subject", async () => {
    const { check, metrics } = started();
    for (let i = 0; i < 100; i++) check({ dimensions: { user: `subject-${i}`, endpoint: "/secret-path" } });
    expect(await metrics.render()).not.toMatch(/subject-|secret-path/);
  });

  it("count policies by domain, as many as have a label", async () => {
    const { edit, lines } = started();
    edit({
      policies: Array.from({ length: 150 }, (_, i) => ({
        id: `p${i}`,
        match: { domain: `d${i < 2 ? 0 : i}` },
        limits: [{ windows: ["1/s"] }],
      })),
      default: "none",
    });
    expect(await lines("domains")).toEqual(["sluice_domains 149"]);
    const series = await lines("policies{");
    expect(series).toHaveLength(101);
    expect(series[0]).toBe('sluice_policies{domain="d0"} 2');
    expect(series.at(-1)).toBe('sluice_policies{domain="other"} 49');
  });
});
