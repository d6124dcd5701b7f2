import type { CapacityInput, Layout } from "./capacity-input.ts";
import { transportFigures } from "./default-figures.ts";
import { monthSeconds, planCapacity } from "./plan-capacity.ts";

/** A line of an estimate, by its own words, by its own inputs, and by the figures of `planCapacity`. */
export interface EstimateRow {
  readonly design: "gateway" | "sidecar" | "service";
  readonly quantity: string;
  readonly unit: string;
  /** What the design says. */
  readonly said: number;
  /** What its own inputs give. */
  readonly computed: number;
  /** What Sluice takes. Undefined: it has nothing like it. */
  readonly here: number | undefined;
  readonly because: string;
}

/** What the gateway design is built from. */
const gateway = {
  requestsPerSecond: 1e6,
  peakFactor: 2,
  limitsPerRequest: 3,
  windows: 5,
  users: 10e6 * 0.3,
  tenants: 100e3,
  addresses: 5e6,
  keyBytes: 100,
  replicas: 2,
  headroom: 1.3,
  takesPerShard: 30e3,
  takesPerShardAtTarget: 15e3,
  local: 0.8,
  checkBytes: 300,
  zones: 10,
  pods: 2000,
  whalePerSecond: 100e3,
  leaseTokens: 5,
  requestsPerPod: 50e3,
  monthly: 33e3,
  gatewayUp: 0.9999,
  limiterUp: 0.999,
  allowed: 0.97,
} as const;

/** The gateway design as Sluice would be sized for it, with the figures, prices and machines of `input`. */
export function gatewayDesign(input: CapacityInput): CapacityInput {
  const layout: Layout = {
    ...input.layout,
    transport: "library",
    ...{ regions: 1, zones: gateway.zones, pods: gateway.pods, cores_per_pod: 1, replicas: gateway.replicas },
  };
  return {
    ...input,
    layout,
    figures: { ...input.figures, ...transportFigures.library },
    demand: {
      checks_per_second: gateway.requestsPerSecond,
      peak_factor: gateway.peakFactor,
      limits_per_check: gateway.limitsPerRequest,
      windows_per_limit: gateway.windows,
      subjects: gateway.users + gateway.tenants + gateway.addresses,
      lease_share: gateway.local,
      decisions_per_lease: gateway.leaseTokens,
      allowed_share: gateway.allowed,
    },
    whale: {
      ...input.whale,
      ...{ checks_per_second: gateway.whalePerSecond, limit: gateway.whalePerSecond },
      // As much as its leases may be beyond the limit.
      max_overshoot: (gateway.pods * gateway.leaseTokens) / gateway.whalePerSecond,
    },
    uptimes: { gateway: gateway.gatewayUp, limiter: gateway.limiterUp },
  };
}

/** Estimates that designs of rate limiters make, next to what follows from what they assume. */
export function compareEstimates(input: CapacityInput): readonly EstimateRow[] {
  return [
    ...compareGatewaySizes(input),
    ...compareGatewayPromises(input),
    ...compareSidecar(input),
    ...compareService(input),
  ];
}

type MakeRow = (
  quantity: string,
  unit: string,
  said: number,
  computed: number,
  here: number | undefined,
  because: string,
) => EstimateRow;

function rowOf(design: EstimateRow["design"]): MakeRow {
  return (quantity, unit, said, computed, here, because) => ({
    ...{ design, quantity, unit, said, computed, here, because },
  });
}

/** How many machines. */
function compareGatewaySizes(input: CapacityInput): readonly EstimateRow[] {
  const design = gatewayDesign(input);
  const plan = planCapacity(design);
  const withoutLeases = planCapacity({ ...design, demand: { ...design.demand, lease_share: 0 } });
  const central = planCapacity({
    ...design,
    layout: { ...design.layout, transport: "grpc", pods: 0 },
    figures: { ...design.figures, ...transportFigures.grpc },
  });
  const g = gateway;
  const operations = g.requestsPerSecond * g.peakFactor * g.limitsPerRequest;
  const keys = (g.users + g.tenants + g.addresses) * g.windows;
  const refills = (operations * g.local) / g.leaseTokens;
  const atStore = operations * (1 - g.local);
  const row = rowOf("gateway");
  return [
    row(
      "keys",
      "",
      40.5e6,
      keys,
      plan.store.counters,
      "right: (3 M users + 0.1 M tenants + 5 M addresses) × 5 windows",
    ),
    row(
      "memory of all copies",
      "GB",
      16,
      (keys * g.keyBytes * (1 + g.replicas) * g.headroom) / 1e9,
      plan.store.memory_bytes / 1e9,
      "right, for three copies; a node holds one. A key with its name takes 129 bytes, not 100, and half as much again is safer than 30 %",
    ),
    row(
      "shards without leases",
      "",
      400,
      operations / g.takesPerShardAtTarget,
      withoutLeases.store.shards,
      "right. Yet a key for each of 5 windows makes 5 updates of each limit, where it counts one",
    ),
    row("shards with 80 % local", "", 100, atStore / g.takesPerShardAtTarget, plan.store.shards, "20 % of 400 is 80"),
    row(
      "the same, with the calls that refill leases",
      "",
      100,
      (atStore + refills) / g.takesPerShardAtTarget,
      plan.store.shards,
      "4.8 M/s from leases of 5 tokens is 960 k/s more calls, which it leaves out",
    ),
    row(
      "operations lost with a shard",
      "/s",
      60e3,
      atStore / 100,
      plan.peak.takes_per_second / plan.store.shards,
      "60 k is more than the 30 k that a shard can do; leases had already taken 80 % of it",
    ),
    row(
      "pods of a central service",
      "",
      240,
      (operations / g.limitsPerRequest / g.requestsPerPod) * 2,
      central.servers.pods,
      "50 k requests a pod, but 6 M counter operations are 2 M requests",
    ),
  ];
}

/** What it costs, and what it promises. */
function compareGatewayPromises(input: CapacityInput): readonly EstimateRow[] {
  const plan = planCapacity(gatewayDesign(input));
  const g = gateway;
  const operations = g.requestsPerSecond * g.peakFactor * g.limitsPerRequest;
  const whaleCalls = g.whalePerSecond / g.leaseTokens;
  const passed = (whenDown: number): number => g.gatewayUp * (g.limiterUp * g.allowed + (1 - g.limiterUp) * whenDown);
  const row = rowOf("gateway");
  return [
    row(
      "traffic to the store",
      "Gbit/s",
      14,
      (operations * g.checkBytes * 8) / 1e9,
      (plan.network.store_bits_per_second + plan.network.replication_bits_per_second) / 1e9,
      "right without leases; replication comes on top, and 9 of 10 bytes leave their zone, which is billed",
    ),
    row(
      "price of a million checks",
      "",
      0.002,
      g.monthly / ((g.requestsPerSecond * monthSeconds) / 1e6),
      plan.money.per_million_checks,
      "33 000 ÷ 15.6 T, as if each request were 3 checks and the peak never ended; requests are 2.6 T a month, and traffic between zones is left out",
    ),
    row(
      "lease calls for a whale, of a shard at its target",
      "%",
      1.5,
      (100 * whaleCalls) / g.takesPerShardAtTarget,
      100 * plan.whale.shard_share,
      "2 000 pods × 50 ÷ 5 = 20 k calls/s: 133 % of 15 k, 67 % of 30 k",
    ),
    row(
      "over-admission for a whale",
      "tokens",
      10e3,
      g.pods * g.leaseTokens,
      plan.whale.overshoot,
      "right: 10 % of the limit, and more with every pod. Here it is max_overshoot with any number of pods, the same 10 % in this row",
    ),
    row(
      "passed while failing open",
      "%",
      97.02,
      100 * passed(1),
      100 * plan.availability.open.passed,
      "0.999 × 0.97 + 0.001 = 0.97003",
    ),
    row(
      "passed while failing closed",
      "%",
      96.93,
      100 * passed(0),
      100 * plan.availability.closed.passed,
      "0.999 × 0.97 = 0.96903; the difference of 1 000 ppm is right",
    ),
  ];
}

/** 1 000 rules for each of a million users, 32 bytes each; a table of rules. */
function compareSidecar(input: CapacityInput): readonly EstimateRow[] {
  const users = 1e6;
  const rules = 1000;
  const row = rowOf("sidecar");
  return [
    row(
      "counters",
      "GB",
      32,
      (users * rules * 32) / 1e9,
      (users * rules * input.figures.counter_bytes) / 1e9,
      "right for 32 bytes, which no key of a store fits into; and no user is counted by all rules at once",
    ),
    row(
      "rules, in all",
      "MB",
      0.256,
      (rules * 256) / 1e6,
      undefined,
      "256 kB is all 1 000 rules; “per user” would be 256 GB for a million users",
    ),
  ];
}

/** 10 M buckets of 150 bytes on one server. */
function compareService(input: CapacityInput): readonly EstimateRow[] {
  const buckets = 10e6;
  const { store_us_per_take, store_us_per_call } = input.figures;
  const row = rowOf("service");
  return [
    row(
      "10 M buckets",
      "GB",
      1.5,
      (buckets * 150) / 1e9,
      (buckets * input.figures.counter_bytes) / 1e9,
      "right, though it adds up a hash of two fields and stores one packed text",
    ),
    row(
      "takes of one server",
      "/s",
      100e3,
      100e3,
      1e6 / (store_us_per_take + store_us_per_call),
      "of plain commands. Here one take in each call; 64 in a call need a seventh of that",
    ),
  ];
}
