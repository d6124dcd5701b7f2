import { createLimiter, type Limiter, ManualClock, MemoryCounters } from "sluice";
import type { LeaseAsk } from "sluice/store";
import { beforeEach, describe, expect, it } from "vitest";
import { createMetrics, type Metrics } from "../../observe/telemetry/metrics.ts";
import type { Caller } from "../access/access.ts";
import { type AskedLease, createLease, type GrantLease, type LeasedCheck, type LeaseOptions } from "./lease.ts";

const policies = {
  policies: [
    { id: "api", limits: [{ by: ["user"], windows: ["10000/h"] }], max_overshoot: 0.1 },
    { id: "dear", domain: "dear", limits: [{ by: ["user"], windows: ["10000/h"] }], cost: { "/embed": 7 } },
    { id: "exact", domain: "exact", counters: "exact", limits: [{ by: ["user"], windows: ["10000/h"] }] },
  ],
  default: "none",
};
const check = { dimensions: { user: "ada" } };
const times = { leaseMs: 5_000, staleMs: 60_000 };

let clock: ManualClock;
let limiter: Limiter;
let metrics: Metrics;
let asks: LeaseAsk[];
let accepting: boolean;

beforeEach(() => {
  clock = new ManualClock();
  limiter = createLimiter({ policies, clock, counters: new MemoryCounters({ clock }) });
  metrics = createMetrics({ version: "1", sources: { generation: () => 1 } });
  asks = [];
  accepting = true;
});

const trusted: Caller = { name: "app", may: new Set(["check", "credit"]) };
const anonymous: Caller = { name: "anonymous", may: new Set(["check", "read"]) };

function leaseBy(
  options: Partial<LeaseOptions> = {},
): (check: LeasedCheck, asked: AskedLease, caller?: Caller) => ReturnType<GrantLease> {
  const watched: LeaseOptions["limiter"] = {
    lease(request, ask) {
      asks.push(ask);
      return limiter.lease(request, ask);
    },
    get forced() {
      return limiter.forced;
    },
  };
  const epochMs = (): number => clock.epochMs();
  const lease = createLease({ limiter: watched, metrics, accepting: () => accepting, times, epochMs, ...options });
  return (of, asked, caller = trusted) => lease(of, asked, caller);
}

async function used(): Promise<number | undefined> {
  return (await limiter.peek(check)).used;
}

async function readMetrics(): Promise<readonly string[]> {
  const page = await metrics.render();
  return page.split("\n").filter((line) => /^sluice_lease_(requests|client)/.test(line));
}

describe("a lease", () => {
  it("gives nothing back to the counters for a caller without a token that speaks of others' units", async () => {
    const lease = leaseBy();
    const { epoch, granted } = await lease(check, { want: 200 });
    const settled = { epoch, spent: 0, kept: 0, returned: granted };
    expect(await lease(check, { want: 0, settled }, anonymous)).toMatchObject({ unspent: 0 });
    expect(await used()).toBe(200);
    const trusted = await lease(check, { want: 200 });
    await lease(check, { want: 0, settled: { ...settled, epoch: trusted.epoch } });
    expect(await used()).toBe(200);
  });

  it("gives back what such a caller was granted itself, once", async () => {
    const lease = leaseBy();
    const own = await lease(check, { want: 100 }, anonymous);
    await lease(check, { want: 50 });
    const renewed = { epoch: own.epoch, spent: 40, kept: 60, returned: 0 };
    const { epoch } = await lease(check, { want: 0, settled: renewed }, anonymous);
    for (let turn = 0; turn < 3; turn++)
      await lease(check, { want: 0, settled: { epoch, spent: 0, kept: 0, returned: 60 } }, anonymous);
    expect(await used()).toBe(150 - 60);
  });

  it("is charged at once, and good for as long as the settings say", async () => {
    const given = await leaseBy()(check, { want: 200 });
    expect(given).toMatchObject({ granted: 200, unspent: 200, leaseMs: 5_000, staleMs: 60_000 });
    expect(given.decision).toMatchObject({ policy: "api", cost: 1, limit: 10_000, remaining: 9_800, preview: true });
    expect(await used()).toBe(200);
  });

  it("is half of what may be unspent at most, and at most a million is considered", async () => {
    expect(await leaseBy()(check, { want: 4_000_000_000 })).toMatchObject({ granted: 500 });
    expect(asks).toMatchObject([{ want: 1_000_000, holdMs: 65_000 }]);
  });

  it.each([
    [{ holdMs: 2_000 }, { leaseMs: 2_000, staleMs: 0 }, 2_000],
    [{ holdMs: 6_000 }, { leaseMs: 5_000, staleMs: 1_000 }, 6_000],
    [{ holdMs: 86_400_000 }, { leaseMs: 5_000, staleMs: 60_000 }, 65_000],
  ])("is held no longer than is asked for, nor than the server allows: %j", async (asked, told, holdMs) => {
    expect(await leaseBy()(check, { want: 10, ...asked })).toMatchObject(told);
    expect(asks).toMatchObject([{ holdMs }]);
  });

  it("is renewed and given back, each unit reported once", async () => {
    const lease = leaseBy();
    const first = await lease(check, { want: 100 });
    const settled = { epoch: first.epoch, spent: 60, kept: 40, returned: 0 };
    const second = await lease(check, { want: 100, settled });
    expect(second).toMatchObject({ granted: 100, unspent: 140 });
    const rest = { epoch: second.epoch, spent: 40, kept: 0, returned: 100 };
    expect(await lease(check, { want: 0, settled: rest })).toMatchObject({ granted: 0, unspent: 0 });
    expect(await used()).toBe(100);
    expect(await readMetrics()).toEqual([
      'sluice_lease_requests_total{outcome="granted"} 2',
      'sluice_lease_requests_total{outcome="settled"} 1',
      'sluice_lease_client_spent_total{policy="api"} 100',
    ]);
  });

  it("says what one check costs that has no cost of its own", async () => {
    const dear = { domain: "dear", dimensions: { user: "ada", endpoint: "/embed" } };
    expect((await leaseBy()(dear, { want: 10 })).decision.cost).toBe(7);
  });

  it("is refused if nothing is left, which is an answer", async () => {
    const lease = leaseBy();
    await limiter.charge({ ...check, cost: 10_000 });
    expect(await lease(check, { want: 10 })).toMatchObject({ granted: 0, decision: { remaining: 0 } });
    expect(await readMetrics()).toEqual(['sluice_lease_requests_total{outcome="refused"} 1']);
  });
});

describe("what is kept", () => {
  it("is remembered as long as an earlier answer said, even by a server with shorter times", async () => {
    const first = await leaseBy()(check, { want: 100 });
    const hasty = leaseBy({ times: { leaseMs: 1_000, staleMs: 1_000 } });
    clock.advance(3_000);
    const settled = { epoch: first.epoch, spent: 0, kept: 100, returned: 0 };
    const second = await hasty(check, { want: 0, settled });
    expect(second).toMatchObject({ epoch: first.epoch, leaseMs: 1_000, staleMs: 1_000 });
  });

  it("is not remembered any longer for that, however often it is renewed", async () => {
    const lease = leaseBy();
    let { epoch } = await lease(check, { want: 100 });
    for (let i = 0; i < 50; i++) {
      clock.advance(100);
      ({ epoch } = await lease(check, { want: 0, settled: { epoch, spent: 0, kept: 100, returned: 0 } }));
    }
    expect(epoch - clock.epochMs()).toBeLessThanOrEqual(65_000 + 15_000);
  });

  const hourMs = 3_600_000;

  it("is remembered for no longer than any server can have said", async () => {
    const settled = { epoch: Number.MAX_SAFE_INTEGER, spent: 0, kept: 100, returned: 0 };
    const { epoch } = await leaseBy()(check, { want: 0, settled });
    expect(asks).toMatchObject([{ holdMs: hourMs + 60_000 }]);
    expect(epoch - clock.epochMs()).toBeLessThanOrEqual(hourMs + 60_000 + 15_000);
  });

  it("is the only reason: what is only reported or given back needs no longer memory", async () => {
    const settled = { epoch: clock.epochMs() + hourMs, spent: 1, kept: 0, returned: 1 };
    await leaseBy()(check, { want: 1, settled });
    expect(asks).toMatchObject([{ holdMs: 65_000 }]);
  });

  it("is not remembered any longer by a server whose clock is behind that of the counters", async () => {
    const lease = leaseBy({ epochMs: () => clock.epochMs() - hourMs });
    let { epoch } = await lease(check, { want: 100 });
    for (let i = 0; i < 5; i++) {
      clock.advance(100);
      ({ epoch } = await lease(check, { want: 0, settled: { epoch, spent: 0, kept: 100, returned: 0 } }));
    }
    expect(epoch - clock.epochMs()).toBeLessThanOrEqual(65_000 + 15_000);
  });

  it("is remembered no less by one whose clock is ahead, and whose times are shorter", async () => {
    const first = await leaseBy()(check, { want: 100 });
    const hasty = leaseBy({
      times: { leaseMs: 1_000, staleMs: 1_000 },
      epochMs: () => clock.epochMs() + hourMs,
    });
    await hasty(check, { want: 1 });
    const settled = { epoch: first.epoch, spent: 0, kept: 100, returned: 0 };
    expect(await hasty(check, { want: 0, settled })).toMatchObject({ epoch: first.epoch });
  });
});

describe("no lease is granted", () => {
  const settled = { epoch: 1, spent: 1, kept: 0, returned: 0 };

  it("by a server that stops; what is held is taken back", async () => {
    accepting = false;
    await expect(leaseBy()(check, { want: 1 })).rejects.toMatchObject({ code: "not_ready" });
    expect(await leaseBy()(check, { want: 0, settled })).toMatchObject({ granted: 0 });
  });

  it("while the kill switch is on; what is held is taken back", async () => {
    limiter.force({ mode: "closed", untilMs: clock.epochMs() + 1_000 });
    await expect(leaseBy()(check, { want: 1 })).rejects.toMatchObject({ code: "not_leasable" });
    expect(await leaseBy()(check, { want: 0, settled })).toMatchObject({ granted: 0 });
  });

  it("by a server that grants none; what is held is taken back", async () => {
    const lease = leaseBy({ times: "off" });
    await expect(lease(check, { want: 1 })).rejects.toMatchObject({ code: "not_leasable" });
    expect(await lease(check, { want: 0, settled })).toMatchObject({ granted: 0 });
  });

  it("of what is counted exactly, and nothing is settled then", async () => {
    const exact = { ...check, domain: "exact" };
    await expect(leaseBy()(exact, { want: 1, settled })).rejects.toMatchObject({ code: "not_leasable" });
    expect(await readMetrics()).toEqual(['sluice_lease_requests_total{outcome="not_leasable"} 1']);
  });

  it("if nothing is asked for", async () => {
    await expect(leaseBy()(check, { want: 0 })).rejects.toMatchObject({
      code: "invalid_request",
      problems: [{ path: ["want"] }],
    });
    expect(await readMetrics()).toEqual(['sluice_lease_requests_total{outcome="error"} 1']);
  });
});
