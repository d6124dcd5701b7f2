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

  it("count methods that nobody knows together", async () => {
    const metrics = createMetrics({ version: "1", sources });
    metrics.countHttpRequest("BREW", "unmatched", 404);
    expect(await metrics.render()).toContain(
      'sluice_http_requests_total{method="other",route="unmatched",status="404"} 1',
    );
  });
});
