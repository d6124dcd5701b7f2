import type { CapacityInput } from "./capacity-input.ts";
import type {
  AvailabilityPlan,
  CapacityPlan,
  MoneyPlan,
  NetworkPlan,
  Outcomes,
  PeakLoad,
  ServerPlan,
  StorePlan,
  WhalePlan,
} from "./capacity-plan.ts";

/** A script call holds this many takes at most, and this many calls of a lane are in flight. */
const mostTakesPerCall = 64;
const callsInFlight = 4;
/** Fewer servers do not survive the loss of one during the restart of another. */
const fewestPods = 3;
/** Fewer primaries cannot agree that one of them is lost. */
const smallestCluster = 3;
const mostLanes = 1024;
/** Growth, fragmentation and buffers need half as much memory again as counters. */
const memoryHeadroom = 1.5;
/** A limit that may be exceeded by less than this is not leased automatically. */
export const leastAllowance: number = 10;
export const monthSeconds: number = 30 * 86_400;

/** What a fleet needs for this traffic. Throws a RangeError if a cluster cannot be large enough. */
export function planCapacity(input: CapacityInput): CapacityPlan {
  const peak = findPeak(input);
  const servers = planServers(input, peak);
  const store = planStore(input, peak, servers);
  return {
    peak,
    servers,
    store,
    network: planNetwork(input, peak),
    money: planMoney(input, servers, store),
    whale: planWhale(input, servers, store),
    availability: planAvailability(input),
  };
}

function findPeak({ demand }: CapacityInput): PeakLoad {
  const checks = demand.checks_per_second * demand.peak_factor;
  const limits = checks * demand.limits_per_check;
  const leased = limits * demand.lease_share;
  const leaseCalls = leased / demand.decisions_per_lease;
  return {
    checks_per_second: checks,
    limits_per_second: limits,
    leased_limits_per_second: leased,
    lease_calls_per_second: leaseCalls,
    takes_per_second: limits - leased + leaseCalls,
  };
}

function planServers({ demand, layout, figures }: CapacityInput, peak: PeakLoad): ServerPlan {
  const takesPerCheck = peak.takes_per_second / peak.checks_per_second;
  const cpuUs =
    figures.server_us_per_check +
    figures.server_us_per_limit * (demand.limits_per_check - 1) +
    figures.server_us_per_take * takesPerCheck;
  const cores = (cpuUs * peak.checks_per_second) / 1e6;
  const pods = layout.pods > 0 ? layout.pods : countPods(cores, layout);
  const share = cores / (pods * layout.cores_per_pod);
  return {
    cpu_us_per_check: cpuUs,
    cores,
    pods,
    // In an application, only what decides is paid for.
    paid_cores: inApplication(layout) ? cores / layout.target_cpu : pods * layout.cores_per_pod,
    cpu_share: share,
    cpu_share_without_a_zone: layout.zones === 1 ? share : (share * layout.zones) / (layout.zones - 1),
    memory_bytes: inApplication(layout) ? 0 : pods * layout.cores_per_pod * figures.server_memory_bytes,
  };
}

function inApplication({ transport }: CapacityInput["layout"]): boolean {
  return transport === "library";
}

/** In each region, the zones that are left carry the peak when one is lost. */
function countPods(cores: number, { regions, zones, target_cpu, cores_per_pod }: CapacityInput["layout"]): number {
  const needed = cores / regions / target_cpu / cores_per_pod;
  const ofRegion = zones === 1 ? Math.ceil(needed) : Math.ceil(needed / (zones - 1)) * zones;
  return Math.max(fewestPods, ofRegion) * regions;
}

/** How many takes wait for each other: those that arrive while the calls in flight of their lane are answered. */
function countTakesPerCall({ layout }: CapacityInput, peak: PeakLoad, pods: number, lanes: number): number {
  const processes = pods * layout.cores_per_pod;
  const ofLane = peak.takes_per_second / processes / lanes;
  return Math.min(mostTakesPerCall, Math.max(1, (ofLane * layout.round_trip_seconds) / callsInFlight));
}

function takeCpuUs({ demand, figures }: CapacityInput, takesPerCall: number): number {
  return figures.store_us_per_take * demand.windows_per_limit + figures.store_us_per_call / takesPerCall;
}

/** More shards than this for each one needed, because lanes do not divide equally: more lanes are better. */
const mostUneven = 1.25;

/** Each region has one server, or a cluster: with the first number of lanes that shards share well, else the fewest shards. */
function planStore(input: CapacityInput, peak: PeakLoad, { pods }: ServerPlan): StorePlan {
  let best: StorePlan | undefined;
  for (const lanes of listLanes(input.layout.lanes)) {
    const { plan, needed } = planStoreOnLanes(input, peak, pods, lanes);
    if (plan === undefined) continue;
    if (best === undefined || plan.shards < best.shards) best = plan;
    if (lanes === 1 || plan.shards <= Math.max(smallestCluster, needed * mostUneven) * input.layout.regions) break;
  }
  if (best !== undefined) return best;
  throw new RangeError(
    `a region would need more shards than a cluster has lanes (${mostLanes}): use more regions or cells, or larger shards`,
  );
}

/** A server without a cluster has one; a cluster has as many as are set, or twice as often as many as are enough. */
function listLanes(usual: number): readonly number[] {
  const lanes = [1];
  for (let one = usual; one <= mostLanes; one *= 2) lanes.push(one);
  return lanes;
}

function planStoreOnLanes(
  input: CapacityInput,
  peak: PeakLoad,
  pods: number,
  lanes: number,
): { readonly plan: StorePlan | undefined; readonly needed: number } {
  const { demand, layout, figures } = input;
  const { regions, replicas } = layout;
  const counters = demand.subjects * demand.windows_per_limit;
  const memory = counters * figures.counter_bytes * memoryHeadroom;
  const takesPerCall = countTakesPerCall(input, peak, pods, lanes);
  const cpuUs = takeCpuUs(input, takesPerCall);
  const cores = (cpuUs * peak.takes_per_second) / 1e6;
  const need = { cpu: cores / regions / layout.target_cpu, memory: memory / regions / layout.shard_memory_bytes };
  const needed = Math.max(need.cpu, need.memory);
  const found = findShards(need, lanes);
  if (found === undefined) return { plan: undefined, needed };
  const plan: StorePlan = {
    takes_per_call: takesPerCall,
    cpu_us_per_take: cpuUs,
    cores,
    shards: found.shards * regions,
    bound_by: found.boundBy,
    lanes,
    busiest_shard_cpu_share: (cores / regions) * found.busiest,
    busiest_shard_memory_bytes: (memory / regions) * found.busiest,
    nodes: found.shards * (1 + replicas) * regions,
    counters,
    memory_bytes: memory * (1 + replicas),
  };
  return { plan, needed };
}

interface Need {
  /** How many shards would be exactly enough. */
  readonly cpu: number;
  readonly memory: number;
}

/** The smallest number of shards whose busiest is not too busy. Lanes are whole, so shards do not share them equally. */
function findShards(
  need: Need,
  lanes: number,
): { shards: number; busiest: number; boundBy: StorePlan["bound_by"] } | undefined {
  const most = Math.max(need.cpu, need.memory);
  if (lanes === 1) return most <= 1 ? { shards: 1, busiest: 1, boundBy: findBound(need) } : undefined;
  for (let shards = smallestCluster; shards <= lanes; shards++) {
    const busiest = Math.ceil(lanes / shards) / lanes;
    if (most * busiest > 1) continue;
    const boundBy = shards === smallestCluster && most * busiest < 0.5 ? "the smallest cluster" : findBound(need);
    return { shards, busiest, boundBy };
  }
  return undefined;
}

function findBound({ cpu, memory }: Need): "cpu" | "memory" {
  return cpu >= memory ? "cpu" : "memory";
}

function planNetwork({ layout, figures }: CapacityInput, peak: PeakLoad): NetworkPlan {
  const ofClients = inApplication(layout) ? 0 : peak.checks_per_second * figures.client_bytes_per_check * 8;
  const ofStore = peak.takes_per_second * figures.store_bytes_per_take * 8;
  const ofReplication = peak.takes_per_second * figures.replication_bytes_per_take * layout.replicas * 8;
  // A client finds a server, and a server a shard, in its own zone as often as in any other. Replicas are in other zones.
  const elsewhere = (layout.zones - 1) / layout.zones;
  return {
    client_bits_per_second: ofClients,
    store_bits_per_second: ofStore,
    replication_bits_per_second: ofReplication,
    between_zones_bits_per_second: (ofClients + ofStore) * elsewhere + (layout.zones === 1 ? 0 : ofReplication),
  };
}

function planMoney(input: CapacityInput, servers: ServerPlan, store: StorePlan): MoneyPlan {
  const { demand, layout, prices } = input;
  const gib = 1024 ** 3;
  const ofServers = servers.paid_cores * prices.core_month + (servers.memory_bytes / gib) * prices.gib_month;
  const ofNode = layout.cores_per_shard * prices.core_month + (layout.shard_memory_bytes / gib) * prices.gib_month;
  const average = planNetwork(input, findPeak({ ...input, demand: { ...demand, peak_factor: 1 } }));
  const gigabytes = (average.between_zones_bits_per_second / 8 / 1e9) * monthSeconds;
  const month = ofServers + ofNode * store.nodes + gigabytes * prices.zone_gb + prices.fixed_month;
  return {
    servers_month: ofServers,
    store_month: ofNode * store.nodes,
    network_month: gigabytes * prices.zone_gb,
    fixed_month: prices.fixed_month,
    month,
    per_million_checks: month / ((demand.checks_per_second * monthSeconds) / 1e6),
  };
}

/** A whale lives in one region, asked about by every process there, and each of its counters on one shard. */
function planWhale(input: CapacityInput, { pods }: ServerPlan, store: StorePlan): WhalePlan {
  const { whale, layout } = input;
  const processes = (pods * layout.cores_per_pod) / layout.regions;
  const overshoot = Math.floor(whale.limit * whale.max_overshoot);
  // A grant is at most half of what the allowance leaves: g = (allowance − (processes − 1) × g) / 2.
  const affordable = overshoot < leastAllowance ? 0 : overshoot / (processes + 1);
  const wanted = (whale.checks_per_second / processes) * whale.lease_seconds;
  const grant = Math.min(affordable, wanted);
  const calls = whale.checks_per_second / Math.max(1, grant);
  const cpuUs = takeCpuUs(input, store.takes_per_call);
  return {
    overshoot,
    grant,
    calls_per_second: calls,
    shard_share: (calls * cpuUs) / 1e6 / layout.target_cpu,
  };
}

function planAvailability({ demand, uptimes }: CapacityInput): AvailabilityPlan {
  const { gateway, limiter } = uptimes;
  const within = demand.allowed_share;
  const decided = gateway * limiter;
  const undecided = gateway * (1 - limiter);
  const outcomes = (letThrough: number): Outcomes => ({
    passed: decided * within + undecided * letThrough,
    failed: (1 - gateway) * within + undecided * (1 - letThrough) * within,
    unlimited: undecided * letThrough * (1 - within),
  });
  return { open: outcomes(1), closed: outcomes(0) };
}
