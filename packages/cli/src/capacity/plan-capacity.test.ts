import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CapacityInput } from "./capacity-input.ts";
import { defaultFigures, transportFigures } from "./default-figures.ts";
import { planByLoad } from "./plan-by-load.ts";
import { planCapacity } from "./plan-capacity.ts";

/** Round figures, by which everything below can be computed in the head. */
const base: CapacityInput = {
  demand: {
    checks_per_second: 100_000,
    peak_factor: 2,
    limits_per_check: 3,
    windows_per_limit: 2,
    subjects: 1e6,
    lease_share: 0.5,
    decisions_per_lease: 10,
    allowed_share: 0.97,
  },
  whale: { checks_per_second: 10_000, limit: 10_000, max_overshoot: 0.01, lease_seconds: 20 },
  layout: {
    transport: "grpc",
    regions: 1,
    zones: 3,
    target_cpu: 0.5,
    cores_per_pod: 1,
    pods: 0,
    shard_memory_bytes: 8e9,
    cores_per_shard: 2,
    replicas: 1,
    lanes: 32,
    round_trip_seconds: 0.0005,
  },
  figures: {
    ...defaultFigures,
    ...transportFigures.grpc,
    server_us_per_check: 5,
    server_us_per_limit: 1,
    server_us_per_take: 2,
    store_us_per_take: 2,
    store_us_per_call: 6,
    counter_bytes: 100,
  },
  prices: { core_month: 25, gib_month: 3, zone_gb: 0.02, fixed_month: 0 },
  uptimes: { gateway: 0.9999, limiter: 0.999 },
};

type Part = { readonly [Key in keyof CapacityInput]?: Partial<CapacityInput[Key]> };

function given(change: Part): CapacityInput {
  const parts = Object.entries(base).map(([key, part]) => [key, { ...part, ...change[key as keyof CapacityInput] }]);
  return Object.fromEntries(parts);
}

const plan = (change: Part = {}): ReturnType<typeof planCapacity> => planCapacity(given(change));

describe("the load at the peak", () => {
  it("counts each limit of each check, and each lease that is fetched for those decided locally", () => {
    expect(plan().peak).toEqual({
      checks_per_second: 200_000,
      limits_per_second: 600_000,
      leased_limits_per_second: 300_000,
      lease_calls_per_second: 30_000,
      takes_per_second: 330_000,
    });
  });
});

describe("servers", () => {
  it("take the CPU time of a check, of its further limits, and of its takes", () => {
    // 5 + 2 further limits + 1.65 takes × 2
    expect(plan().servers.cpu_us_per_check).toBeCloseTo(10.3, 9);
    expect(plan().servers.cores).toBeCloseTo(2.06, 9);
  });

  it("carry the peak at the target with a zone lost", () => {
    const { servers } = plan({ demand: { checks_per_second: 1e6 } });
    // 20.6 cores ÷ 50 % = 41.2, in 2 of 3 zones: 21 in each.
    expect(servers.pods).toBe(63);
    expect(servers.cpu_share_without_a_zone).toBeLessThanOrEqual(0.5);
    expect(servers.cpu_share_without_a_zone).toBeCloseTo(20.6 / 42, 9);
  });

  it("are at least three in each region", () => {
    expect(plan({ demand: { checks_per_second: 1 } }).servers.pods).toBe(3);
    expect(plan({ demand: { checks_per_second: 1 }, layout: { regions: 4, zones: 1 } }).servers.pods).toBe(12);
  });

  it("are as many as are given, however busy that makes them", () => {
    const { servers } = plan({ layout: { pods: 2 } });
    expect([servers.pods, servers.cpu_share]).toEqual([2, expect.closeTo(1.03, 9)]);
  });

  it("cost what decides, if they are the application itself", () => {
    const { servers, network, money } = plan({ layout: { transport: "library", pods: 2000 } });
    expect(servers.paid_cores).toBeCloseTo(servers.cores / 0.5, 9);
    expect([servers.memory_bytes, network.client_bits_per_second]).toEqual([0, 0]);
    expect(money.servers_month).toBeCloseTo(servers.paid_cores * 25, 9);
  });
});

describe("the store", () => {
  it("takes CPU time for every window, and for every call", () => {
    // Takes are too rare for two to meet in one lane: 2 windows × 2 + 6.
    expect(plan().store).toMatchObject({ takes_per_call: 1, cpu_us_per_take: 10, cores: 3.3 });
  });

  it("answers takes of a process together when they come fast, 64 at most", () => {
    const few = plan({ layout: { pods: 1, round_trip_seconds: 0.01 } });
    // 330 000 ÷ 32 lanes × 10 ms ÷ 4 calls in flight
    expect(few.store.takes_per_call).toBeCloseTo(25.78, 2);
    expect(few.store.cpu_us_per_take).toBeCloseTo(4 + 6 / 25.78, 2);
    expect(plan({ layout: { pods: 1, round_trip_seconds: 1 } }).store.takes_per_call).toBe(64);
  });

  it("is one server as long as that is enough, and else a cluster of at least three", () => {
    const store = (checks_per_second: number): unknown => plan({ demand: { checks_per_second } }).store.shards;
    expect([store(10_000), store(40_000)]).toEqual([1, 3]);
  });

  it("keeps the busiest shard at the target, though lanes do not divide equally", () => {
    const { store } = plan();
    // 6.6 shards would be enough; of 32 lanes, 8 shards have 4 each, and 7 shards up to 5.
    expect(store).toMatchObject({ shards: 8, lanes: 32, busiest_shard_cpu_share: expect.closeTo(3.3 / 8, 9) });
  });

  it("takes more lanes where shards would share too few", () => {
    const { store } = plan({ demand: { checks_per_second: 1e6 } });
    expect(store.lanes).toBe(512);
    expect(store.shards).toBeLessThan(66 * 1.25);
    expect(store.busiest_shard_cpu_share).toBeLessThanOrEqual(0.5);
  });

  it("is larger where memory is what it lacks", () => {
    const { store } = plan({ demand: { checks_per_second: 100, subjects: 200e6 } });
    // 400 M counters × 100 bytes × 1.5 = 60 GB, in shards of 8.
    expect(store).toMatchObject({ bound_by: "memory", counters: 400e6, shards: 8, nodes: 16, memory_bytes: 120e9 });
  });

  it("is refused if no cluster is large enough", () => {
    expect(() => plan({ demand: { checks_per_second: 1e9 } })).toThrow(RangeError);
    expect(planByLoad(given({ demand: { checks_per_second: 2e7 } })).map((step) => step.plan === undefined)).toEqual([
      false,
      false,
      false,
      false,
      true,
      true,
      true,
      true,
    ]);
  });
});

describe("the network", () => {
  it("adds up both directions, and what leaves its zone", () => {
    const { network } = plan({
      figures: { client_bytes_per_check: 100, store_bytes_per_take: 200, replication_bytes_per_take: 50 },
    });
    expect(network).toEqual({
      client_bits_per_second: 160e6,
      store_bits_per_second: 528e6,
      replication_bits_per_second: 132e6,
      between_zones_bits_per_second: expect.closeTo((688e6 * 2) / 3 + 132e6, 3),
    });
    expect(plan({ layout: { zones: 1 } }).network.between_zones_bits_per_second).toBe(0);
  });
});

describe("money", () => {
  it("is for the fleet at the peak, the traffic on average, and the checks that were made", () => {
    const { money, servers, store } = plan({ prices: { fixed_month: 100, gib_month: 0 } });
    expect(money.servers_month).toBe(servers.pods * 25);
    expect(money.store_month).toBe(store.nodes * 50);
    const average = planCapacity(given({ demand: { peak_factor: 1 } })).network.between_zones_bits_per_second;
    expect(money.network_month).toBeCloseTo((average / 8 / 1e9) * 2_592_000 * 0.02, 6);
    expect(money.month).toBeCloseTo(money.servers_month + money.store_month + money.network_month + 100, 6);
    expect(money.per_million_checks).toBeCloseTo(money.month / (100_000 * 2.592), 9);
  });
});

describe("the busiest subject", () => {
  it("is bounded by its policy, whatever the number of processes", () => {
    for (const pods of [1, 10, 10_000]) expect(plan({ layout: { pods } }).whale.overshoot).toBe(100);
  });

  it("is leased by half of what the allowance leaves, to each process", () => {
    // g = (100 − 9 × g) ÷ 2
    const { whale } = plan({ layout: { pods: 10 } });
    expect([whale.grant, whale.calls_per_second]).toEqual([expect.closeTo(100 / 11), expect.closeTo(1_100)]);
    // One process gets half of all.
    expect(plan({ layout: { pods: 1 } }).whale.grant).toBe(50);
  });

  it("is leased for no more than a process needs in the time of a lease", () => {
    expect(plan({ layout: { pods: 1 }, whale: { checks_per_second: 1 } }).whale.grant).toBe(20);
  });

  it("is decided by the store if the allowance is too small for leases, or for so many processes", () => {
    expect(plan({ layout: { pods: 1 }, whale: { limit: 900 } }).whale).toMatchObject({
      grant: 0,
      calls_per_second: 10_000,
    });
    expect(plan({ layout: { pods: 1_000 } }).whale.calls_per_second).toBe(10_000);
  });
});

describe("availability", () => {
  it("is what passes, open and closed, while limits cannot be decided", () => {
    const { open, closed } = plan().availability;
    expect(open.passed).toBeCloseTo(0.9999 * (0.999 * 0.97 + 0.001), 12);
    expect(closed.passed).toBeCloseTo(0.9999 * 0.999 * 0.97, 12);
    expect(open.failed).toBeCloseTo(0.0001 * 0.97, 12);
    expect(closed.failed).toBeCloseTo(0.0001 * 0.97 + 0.9999 * 0.001 * 0.97, 12);
    expect([open.unlimited, closed.unlimited]).toEqual([expect.closeTo(0.9999 * 0.001 * 0.03, 12), 0]);
  });
});

describe("regions", () => {
  it("share the traffic, and each has its own store", () => {
    const [one, four] = [
      plan({ demand: { checks_per_second: 400_000 } }),
      plan({ demand: { checks_per_second: 1_600_000 }, layout: { regions: 4 } }),
    ];
    expect(four.servers.pods).toBe(4 * one.servers.pods);
    expect(four.store.shards).toBe(4 * one.store.shards);
    expect(four.store.takes_per_call).toBe(one.store.takes_per_call);
    expect(four.whale.grant).toBe(one.whale.grant);
  });
});

describe("any traffic", () => {
  const inputs = fc.record({
    checks_per_second: fc.integer({ min: 1, max: 2_000_000 }),
    lease_share: fc.double({ min: 0, max: 1, noNaN: true }),
    subjects: fc.integer({ min: 1, max: 1_000_000_000 }),
    zones: fc.integer({ min: 1, max: 5 }),
    regions: fc.integer({ min: 1, max: 5 }),
  });

  it("is carried: no core is busier than the target, and no shard fuller than it may be", () => {
    fc.assert(
      fc.property(inputs, ({ zones, regions, ...demand }) => {
        const input = given({ demand, layout: { zones, regions } });
        const { servers, store } = planCapacity(input);
        expect(servers.cpu_share_without_a_zone).toBeLessThanOrEqual(0.5 + 1e-9);
        expect(store.busiest_shard_cpu_share).toBeLessThanOrEqual(0.5 + 1e-9);
        expect(store.busiest_shard_memory_bytes).toBeLessThanOrEqual(8e9 + 1);
        expect(store.shards / regions === 1 || store.shards / regions >= 3).toBe(true);
      }),
    );
  });
});
