import { describe, expect, it } from "vitest";
import { renderProblem, type SluiceError } from "../errors.ts";
import { defaultPolicy } from "../policy/parse-policies.ts";
import { parsePolicyText } from "./parse-policy-text.ts";

function findProblems(text: string): string[] {
  try {
    parsePolicyText(text, { file: "f" });
    return [];
  } catch (error) {
    return (error as SluiceError).problems.map(renderProblem);
  }
}

const second = { kind: "ms", ms: 1_000 };

describe("the domain/prefix JSON format", () => {
  it("loads as it is", () => {
    const text = `{
  "domains": [
    { "domain": "api.example.com", "prefix": "user", "rate": { "capacity": 100, "leak_rate_per_second": 10.0 } },
    { "domain": "api.example.com", "prefix": "admin", "rate": { "capacity": 1000, "leak_rate_per_second": 100.0 } }
  ]
}`;
    const { policySet, dialect } = parsePolicyText(text);
    expect(dialect).toBe("domains");
    expect(policySet.fallback).toBe(defaultPolicy);
    expect(policySet.policies).toMatchObject([
      {
        id: "api.example.com/user",
        match: { domain: "api.example.com", methods: [], dimensions: { prefix: ["user"] } },
        limits: [{ by: ["limit_key"], algorithm: "leaky_bucket", windows: [{ limit: 10, per: second, burst: 100 }] }],
        onFailure: "open",
      },
      { id: "api.example.com/admin", limits: [{ windows: [{ limit: 100, burst: 1000 }] }] },
    ]);
  });

  it("loads several rates of one prefix, fractional ones too", () => {
    const text = `{ "domains": [{ "domain": "d", "prefix": "p", "policies": [
      { "name": "second", "flow_rate_per_second": 10, "burst_capacity": 100 },
      { "name": "minute", "flow_rate_per_second": 16.67, "burst_capacity": 1000 },
      { "flow_rate_per_second": 2.78, "burst_capacity": 10000 }
    ] }] }`;
    expect(parsePolicyText(text).policySet.policies[0]?.limits[0]?.windows).toEqual([
      { limit: 10, per: second, burst: 100, name: "second" },
      { limit: 16.67, per: second, burst: 1_000, name: "minute" },
      { limit: 2.78, per: second, burst: 10_000 },
    ]);
  });

  it("reports its problems with their places", () => {
    const text = `{ "domains": [
  { "domain": "d", "prefix": "p", "rate": { "capacity": 0, "leak_rate_per_second": -1 } },
  { "domain": "d", "prefx": "p", "rate": { "capcity": 1, "leak_rate_per_second": 1 } },
  { "domain": "d", "prefix": "q", "rate": { "capacity": 1, "leak_rate_per_second": 1 }, "policies": [] },
  { "domain": "d", "prefix": "r" },
  { "domain": "d", "prefix": "s", "rate": { "capacity": 1, "leak_rate_per_second": 1 } },
  { "domain": "d", "prefix": "s", "rate": { "capacity": 1, "leak_rate_per_second": 1 } },
  { "domain": "d", "prefix": "not good", "rate": { "capacity": 1, "leak_rate_per_second": 2e9 } }
], "domain": 1 }`;
    expect(findProblems(text)).toEqual([
      "f:2:57 domains[0].rate.capacity: must be more than 0, but is 0",
      "f:2:84 domains[0].rate.leak_rate_per_second: must be more than 0, but is -1",
      "f:3:20 domains[1].prefx: is not a known key; did you mean prefix?",
      "f:3:44 domains[1].rate.capcity: is not a known key; did you mean capacity?",
      "f:4:3 domains[2]: must have a rate or policies, not both",
      "f:4:101 domains[2].policies: must have 1 to 16 entries, but has 0",
      "f:5:3 domains[3]: must have a rate, or policies",
      "f:7:30 domains[5].prefix: is d/s, as is domains[4].prefix; every policy has its own id",
      'f:8:3 domains[6]: must be 1 to 128 letters, digits or . _ : / @ -, but is "d/not good"',
      "f:8:91 domains[6].rate.leak_rate_per_second: must be at most 10000000 a second, but is 2.00e+9",
      "f:9:4 domain: is not a known key; did you mean domains?",
    ]);
  });

  it("has warnings placed at its entries", () => {
    const text = `{ "domains": [
  { "domain": "d", "prefix": "p", "policies": [
    { "flow_rate_per_second": 10, "burst_capacity": 100 }, { "flow_rate_per_second": 20, "burst_capacity": 100 }] }
] }`;
    expect(parsePolicyText(text, { file: "f" }).warnings.map(renderProblem)).toEqual([
      "f:2:3 domains[0]: on_failure is not chosen, so policy d/p allows everything when its counters are unavailable; write open, closed or local",
      "f:2:3 domains[0]: 20/s burst 100 never limits anything: 10/s burst 100 is always there first",
    ]);
  });
});

describe("the rate_limits YAML format", () => {
  const text = `
rate_limits:
  - name: api_standard_user
    scope: user
    resource: api.search
    capacity: 1000
    refill_rate: 10.0
    min_refill_interval_ms: 10
  - name: api_premium_user
    scope: user
    resource: api.search
    capacity: 10000
    refill_rate: 100.0
    min_refill_interval_ms: 10
  - name: ip_global_limit
    scope: ip
    resource: global
    capacity: 100
    refill_rate: 5.0
    min_refill_interval_ms: 50
  - name: global_api_limit
    scope: global
    resource: api.search
    capacity: 1000000
    refill_rate: 10000.0
  - { scope: tenant, capacity: 50, refill_rate: 0 }
runtime:
  fail_open: true
  enable_read_cache: true
  read_cache_ttl_ms: 50
  redis:
    mode: standalone
    host: redis.internal
    port: 6379
    db: 0
    connection_pool_size: 50
    socket_timeout_ms: 1000
    socket_connect_timeout_ms: 1000
  health_check:
    failure_threshold: 5
    check_interval_seconds: 5
`;

  it("loads as it is, a second entry for the same becoming a tier", () => {
    const { policySet, dialect, warnings } = parsePolicyText(text);
    expect(dialect).toBe("rate_limits");
    expect(warnings).toEqual([]);
    expect(policySet.policies).toMatchObject([
      {
        id: "user:api.search",
        description: "api_standard_user",
        match: { domain: "default", dimensions: { scope: ["user"], resource: ["api.search"] } },
        limits: [
          {
            by: ["user"],
            algorithm: "token_bucket",
            windows: [{ limit: 10, per: second, burst: 1_000 }],
            tiers: { api_premium_user: { windows: [{ limit: 100, per: second, burst: 10_000 }] } },
          },
        ],
        onFailure: "open",
        onFailureChosen: true,
      },
      { id: "ip:global", limits: [{ by: ["ip"], windows: [{ limit: 5, burst: 100 }], tiers: {} }] },
      { id: "global:api.search", limits: [{ by: [], windows: [{ limit: 10_000, burst: 1_000_000 }] }] },
      { id: "tenant:default", limits: [{ windows: [{ limit: 50, per: { kind: "never" }, burst: 50 }] }] },
    ]);
  });

  it("gives its runtime block as plain data", () => {
    expect(parsePolicyText(text).runtime).toEqual({
      failOpen: true,
      enableReadCache: true,
      readCacheTtlMs: 50,
      redis: {
        mode: "standalone",
        host: "redis.internal",
        port: 6379,
        db: 0,
        connectionPoolSize: 50,
        socketTimeoutMs: 1_000,
        socketConnectTimeoutMs: 1_000,
      },
      healthCheck: { failureThreshold: 5, checkIntervalMs: 5_000 },
    });
  });

  it("fails closed if it says so, and is asked to say", () => {
    const entry = "rate_limits: [{ scope: user, capacity: 5, refill_rate: 1 }]\n";
    const closed = parsePolicyText(`${entry}runtime: { fail_open: false }`);
    expect(closed.policySet.policies[0]).toMatchObject({ onFailure: "closed", onFailureChosen: true });
    const silent = parsePolicyText(entry);
    expect(silent.policySet.policies[0]).toMatchObject({ onFailure: "open", onFailureChosen: false });
    expect(silent.runtime).toBeUndefined();
    expect(silent.warnings.map(({ path }) => path)).toEqual([["rate_limits", 0]]);
  });

  it("reports its problems with their places", () => {
    const bad = `rate_limits:
  - { scope: user, capacity: 1, refill_rate: 1001 }
  - { scope: user, name: a, capacity: 0, refill_rate: -1 }
  - { scope: ip, name: a, capacity: 1, refill_rate: 1000 }
  - { scope: ip, name: a, capacity: 1, refill_rate: 1 }
  - { scope: ip, capacity: 1, refill_rate: 1 }
  - { scope: org, capacity: 1.5, refil_rate: 1 }
runtime:
  fail_opn: true
  redis: { port: 0 }
`;
    expect(findProblems(bad)).toEqual([
      "f:2:46 rate_limits[0].refill_rate: must be at most 1000 × the capacity, 1000, but is 1001",
      "f:3:39 rate_limits[1].capacity: must be a whole number of at least 1, but is 0",
      "f:3:55 rate_limits[1].refill_rate: must be a number of at least 0, but is -1",
      "f:5:5 rate_limits[3]: is for ip:default again; give it a name that no other entry for ip:default has, which makes it a tier",
      "f:6:5 rate_limits[4]: is for ip:default again; give it a name that no other entry for ip:default has, which makes it a tier",
      "f:7:29 rate_limits[5].capacity: must be a whole number of at least 1, but is 1.5",
      "f:7:34 rate_limits[5].refil_rate: is not a known key; did you mean refill_rate?",
      "f:9:3 runtime.fail_opn: is not a known key; did you mean fail_open?",
      "f:10:18 runtime.redis.port: must be a whole number from 1 to 65535, but is 0",
    ]);
  });
});

describe("the formats of others", () => {
  it.each([
    ["domains", "domains: [{ domain: d, prefix: p, rate: { capacity: 5, leak_rate_per_second: 1 } }]"],
    ["rate_limits", "rate_limits: [{ scope: user, capacity: 5, refill_rate: 1 }]"],
    ["envoy", "domain: d\ndescriptors: [{ key: k, rate_limit: { unit: second, requests_per_unit: 5 } }]"],
  ])("do not mention leases, and get the defaults of policies that do not either: %s", (dialect, text) => {
    const read = parsePolicyText(text);
    expect(read.dialect).toBe(dialect);
    expect(read.policySet.policies).toMatchObject([{ counters: "auto", maxOvershoot: 0.01 }]);
  });
});
