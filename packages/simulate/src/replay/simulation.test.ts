import fc from "fast-check";
import { createLimiter, ManualClock, type PolicySet, parsePolicies } from "sluice";
import { describe, expect, it } from "vitest";
import type { SimulatedRequest } from "./simulated-request.ts";
import { simulate } from "./simulation.ts";

const startMs = Date.UTC(2026, 0, 31, 12);
const carried = ["ip", "endpoint", "method"];

function createPolicies(...limits: readonly object[]): PolicySet {
  return parsePolicies({ policies: [{ id: "api", limits, on_failure: "open" }] });
}

const byIp = (windows: string, more: object = {}): PolicySet =>
  createPolicies({ by: ["ip"], windows: [windows], ...more });

function request(atMs: number, ip = "203.0.113.7", more: Partial<SimulatedRequest> = {}): SimulatedRequest {
  return { timeMs: startMs + atMs, wholeSecond: false, dimensions: { ip, endpoint: "/", method: "GET" }, ...more };
}

const times = (count: number, everyMs: number, ip?: string): readonly SimulatedRequest[] =>
  Array.from({ length: count }, (_, i) => request(i * everyMs, ip));

describe("a simulation", () => {
  it("counts what was allowed and denied, now and by the candidate, and every flip between them", () => {
    const report = simulate(times(10, 10), { now: byIp("8/m"), candidate: byIp("3/m"), carried });
    expect(report).toMatchObject({
      requests: 10,
      first_ms: startMs,
      last_ms: startMs + 90,
      now: { source: "policies", allowed: 8, denied: 2, denied_share: 0.2 },
      candidate: { allowed: 3, denied: 7, denied_share: 0.7 },
      flips: { allowed_allowed: 3, allowed_denied: 5, denied_allowed: 0, denied_denied: 2 },
      policies: [{ policy: "api", requests_now: 10, denied_now: 2, requests: 10, denied: 7, shadow_denied: 0 }],
      counters_lost: 0,
    });
  });

  it("names the subjects that are newly hurt, with their share of traffic", () => {
    const traffic = [...times(6, 10, "203.0.113.7"), ...times(2, 10, "203.0.113.8")].sort(
      (one, other) => one.timeMs - other.timeMs,
    );
    const { hurt } = simulate(traffic, { now: byIp("100/m"), candidate: byIp("2/m"), carried });
    expect(hurt).toEqual({
      subjects: 1,
      exact: true,
      top: [{ policy: "api", scope: "ip", subject: "203.0.113.7", requests: 6, newly_denied: 4, traffic_share: 6 / 8 }],
    });
  });

  it("compares with the recorded outcome if there are no other policies", () => {
    const traffic = times(4, 10).map((one, i) => ({ ...one, wasDenied: i === 0 }));
    const report = simulate(traffic, { candidate: byIp("2/m"), carried });
    expect(report.now).toEqual({ source: "recording", allowed: 3, denied: 1, denied_share: 0.25 });
    expect(report.flips).toEqual({ allowed_allowed: 1, allowed_denied: 2, denied_allowed: 1, denied_denied: 0 });
    expect(report.notes).toContainEqual(expect.stringContaining("taken from the recording"));
  });

  it("gives a range for whole seconds: spread evenly, and all at the start", () => {
    const traffic = times(10, 0).map((one) => ({ ...one, wholeSecond: true }));
    const { candidate, flips, whole_seconds } = simulate(traffic, { candidate: byIp("10/s burst 1"), carried });
    expect(candidate).toMatchObject({ denied: 0, range: { least_denied: 0, most_denied: 9 } });
    expect(flips.allowed_denied).toBe(0);
    expect(whole_seconds).toBe(10);
  });

  it("keeps finer times between the ones that are spread", () => {
    const whole = { wholeSecond: true };
    const traffic = [request(0, "203.0.113.7", whole), request(100, "203.0.113.8"), request(0, "203.0.113.7", whole)];
    const { candidate, requests } = simulate(traffic, { candidate: byIp("2/s burst 1"), carried });
    expect([requests, candidate.denied]).toEqual([3, 0]);
  });

  it("leaves out limits by dimensions that the log does not carry, and names them", () => {
    const candidate = createPolicies({ by: ["tenant"], windows: ["1/m"] }, { by: ["ip"], windows: ["5/m"] });
    const { left_out, candidate: side } = simulate(times(6, 10), { candidate, carried });
    expect(left_out).toEqual([
      {
        policy: "api",
        scope: "tenant",
        kind: "limit",
        missing: ["tenant"],
        message: "limit tenant of policy api is by tenant, and was left out",
      },
    ]);
    expect(side.denied).toBe(1);
  });

  it("counts by the names in a path, which every log carries", () => {
    const candidate = parsePolicies({
      policies: [
        {
          id: "tenants",
          match: { endpoint: "/t/{tenant}/**" },
          limits: [{ by: ["tenant"], windows: ["1/m"] }],
          on_failure: "open",
        },
      ],
    });
    const ask = (endpoint: string): SimulatedRequest => ({ ...request(0), dimensions: { endpoint } });
    const report = simulate([ask("/t/acme/x"), ask("/t/acme/y"), ask("/t/other/x")], { candidate, carried });
    expect(report.left_out).toEqual([]);
    expect(report.hurt.top).toMatchObject([{ subject: "acme", newly_denied: 1 }]);
  });

  it("names the subjects of a deny list", () => {
    const candidate = parsePolicies({
      policies: [
        {
          id: "bans",
          deny: { ip: ["203.0.113.0/24"] },
          limits: [{ by: ["ip"], windows: ["9/m"] }],
          on_failure: "open",
        },
      ],
    });
    const { hurt, policies } = simulate(times(2, 10), { candidate, carried });
    expect(hurt.top).toMatchObject([
      { policy: "bans", scope: "deny_list", subject: "ip:203.0.113.7", newly_denied: 2 },
    ]);
    expect(policies).toMatchObject([{ policy: "bans", requests: 2, denied: 2 }]);
  });

  it("reports what policies in shadow mode would deny, and denies nothing for them", () => {
    const candidate = parsePolicies({
      policies: [{ id: "api", mode: "shadow", limits: [{ by: ["ip"], windows: ["1/m"] }], on_failure: "open" }],
    });
    const { policies, candidate: side } = simulate(times(3, 10), { candidate, carried });
    expect(policies).toContainEqual(expect.objectContaining({ policy: "api", denied: 0, shadow_denied: 2 }));
    expect(side.denied).toBe(0);
  });

  it("leaves out requests that no limiter accepts, and says so", () => {
    const report = simulate([request(0, "unix:"), request(1)], { candidate: byIp("1/m"), carried });
    expect([report.requests, report.invalid]).toEqual([1, 1]);
    expect(report.notes).toContainEqual(expect.stringContaining('"ip":"unix:"'));
  });

  it("says so when memory is full and counters are dropped", () => {
    const traffic = Array.from({ length: 60_000 }, (_, i) =>
      request(i / 100, `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`),
    );
    const report = simulate(traffic, { candidate: byIp("10/h"), carried, maxCounterBytes: 1 << 20 });
    expect(report.counters_lost).toBeGreaterThan(0);
    expect(report.notes).toContainEqual(expect.stringContaining("Memory was full"));
  });

  it("counts subjects one by one up to a bound, and names the ones hurt most beyond it", () => {
    const many = Array.from({ length: 50 }, (_, i) => request(i, `10.0.0.${i}`));
    const traffic = [...many, ...Array.from({ length: 9 }, (_, i) => request(100 + i, "192.0.2.1"))];
    const { hurt } = simulate(traffic, { candidate: byIp("2/m"), carried, maxSubjects: 50 });
    expect(hurt).toMatchObject({ exact: false, subjects: 1, top: [{ subject: "192.0.2.1", newly_denied: 7 }] });
  });

  it("puts days into buckets of whole seconds, as many as there is room for", () => {
    const traffic = Array.from({ length: 1000 }, (_, i) => request(i * 86_400));
    const { timeline } = simulate(traffic, { candidate: byIp("1/d"), carried, maxBuckets: 64 });
    expect(timeline.bucket_ms).toBe(2_048_000);
    expect(timeline.buckets).toHaveLength(43);
    expect(timeline.buckets.reduce((sum, { requests }) => sum + requests, 0)).toBe(1000);
    expect(timeline.buckets.reduce((sum, { denied }) => sum + denied, 0)).toBe(999);
    expect(timeline.buckets.every(({ peak_per_second }) => peak_per_second === 1)).toBe(true);
  });

  it("shows the peaks of subjects, and where the limit cuts", () => {
    const traffic = [...times(10, 1, "10.0.0.1"), ...times(3, 1, "10.0.0.2"), ...times(1, 1, "10.0.0.3")].sort(
      (one, other) => one.timeMs - other.timeMs,
    );
    const [peaks] = simulate(traffic, { candidate: byIp("5/m"), carried }).peaks;
    expect(peaks).toMatchObject({ window: "5/m", limit: 5, subjects: 3, subjects_over: 1, p50: 3, p90: 10, max: 10 });
    expect(peaks?.curve).toHaveLength(101);
  });

  it("draws a line for a limit of all requests together", () => {
    const { limit_lines } = simulate([], { candidate: createPolicies({ by: [], windows: ["600/m"] }), carried });
    expect(limit_lines).toEqual([{ policy: "api", scope: "global", window: "600/m", per_second: 10 }]);
  });

  it("tries a policy at several sizes, and finds where nothing is denied", () => {
    const findLimit = { policy: "api", factors: [2, 0.5, 1] };
    const { limits } = simulate(times(8, 10), { candidate: byIp("4/m"), carried, findLimit });
    expect(limits).toMatchObject({
      policy: "api",
      none_denied: 2,
      subjects_exact: true,
      steps: [
        { factor: 0.5, windows: ["2/m"], denied: 6, denied_share: 0.75, subjects_hurt: 1 },
        { factor: 1, windows: ["4/m"], denied: 4, subjects_hurt: 1 },
        { factor: 2, windows: ["8/m"], denied: 0, subjects_hurt: 0 },
      ],
    });
    expect(() => simulate([], { candidate: byIp("4/m"), carried, findLimit: { policy: "other" } })).toThrow(
      "the candidate has no policy other; it has api",
    );
  });
});

const limits = fc.record({
  by: fc.constantFrom(["ip"], ["method"], ["ip", "endpoint"], []),
  algorithm: fc.constantFrom("gcra", "token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log"),
  windows: fc.constantFrom(["2/s"], ["5/m"], ["3/s", "10/m"], ["1/s"]),
});
const sets = fc
  .uniqueArray(limits, { minLength: 1, maxLength: 3, selector: ({ by, algorithm }) => `${by}${algorithm}` })
  .map((list) => createPolicies(...list));
/** Also with what is denied by name, and with a policy in shadow mode: there counters say one thing, and the decision another. */
const rangedSets = fc
  .tuple(fc.uniqueArray(limits, { minLength: 1, maxLength: 2 }), fc.constantFrom("enforce", "shadow"), fc.boolean())
  .map(([list, mode, isDenying]) =>
    parsePolicies({
      policies: [
        { id: "some", mode, limits: list.slice(0, 1), on_failure: "open" },
        {
          id: "all",
          limits: list.slice(-1),
          on_failure: "open",
          ...(isDenying && { deny: { ip: ["2001:db8::/32"] } }),
        },
      ],
    }),
  );
const traffics = fc.array(
  fc.record({
    gapMs: fc.nat(700),
    ip: fc.constantFrom("203.0.113.7", "203.0.113.8", "2001:db8::1"),
    endpoint: fc.constantFrom("/", "/a", "/a//b"),
    cost: fc.constantFrom(undefined, 1, 2),
  }),
  { maxLength: 60 },
);

const decideAll = (policies: PolicySet, requests: readonly SimulatedRequest[]): readonly boolean[] => {
  const clock = new ManualClock(requests[0]?.timeMs ?? startMs);
  const limiter = createLimiter({ policies, clock });
  return requests.map(({ timeMs: atMs, dimensions, cost }) => {
    clock.advance(atMs - clock.epochMs());
    return limiter.checkSync({ dimensions, cost }).allowed;
  });
};

describe("a replay", () => {
  it("decides exactly as a limiter does that was asked at those times", () => {
    fc.assert(
      fc.property(sets, sets, traffics, (now, candidate, traffic) => {
        let timeMs = startMs;
        const requests = traffic.map(({ gapMs, ip, endpoint, cost }): SimulatedRequest => {
          timeMs += gapMs;
          return { timeMs, wholeSecond: false, dimensions: { ip, endpoint, method: "GET" }, cost };
        });
        const [before, after] = [decideAll(now, requests), decideAll(candidate, requests)];
        const count = (wasAllowed: boolean, isAllowed: boolean): number =>
          before.filter((allowed, i) => allowed === wasAllowed && after[i] === isAllowed).length;
        expect(simulate(requests, { now, candidate, carried }).flips).toEqual({
          allowed_allowed: count(true, true),
          allowed_denied: count(true, false),
          denied_allowed: count(false, true),
          denied_denied: count(false, false),
        });
      }),
      { numRuns: 200 },
    );
  });

  it("of whole seconds gives the range between two limiters, asked evenly over each second and at its start", () => {
    fc.assert(
      fc.property(rangedSets, rangedSets, traffics, (now, candidate, traffic) => {
        let timeMs = startMs;
        const requests = traffic.map(({ gapMs, ip, endpoint, cost }): SimulatedRequest => {
          timeMs += gapMs > 500 ? 1_000 : 0;
          return { timeMs, wholeSecond: true, dimensions: { ip, endpoint, method: "GET" }, cost };
        });
        const spread = requests.map((one, at) => {
          const second = requests.filter((other) => other.timeMs === one.timeMs);
          return { ...one, timeMs: one.timeMs + (at - requests.indexOf(second[0]!)) * (1000 / second.length) };
        });
        const countDenied = (policies: PolicySet, list: readonly SimulatedRequest[]): number =>
          decideAll(policies, list).filter((allowed) => !allowed).length;
        const report = simulate(requests, { now, candidate, carried });
        for (const [side, policies] of [[report.now, now] as const, [report.candidate, candidate] as const]) {
          const [evenly, atStart] = [countDenied(policies, spread), countDenied(policies, requests)];
          expect(side.denied).toBe(evenly);
          expect(side.range).toEqual(
            requests.length === 0
              ? undefined
              : { least_denied: Math.min(evenly, atStart), most_denied: Math.max(evenly, atStart) },
          );
        }
      }),
      { numRuns: 200 },
    );
  });
});
