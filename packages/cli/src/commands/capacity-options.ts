import {
  parseBytes,
  parseQuantity,
  parseShare,
  parseWholeQuantity,
  type QuantityBounds,
} from "../arguments/parse-quantity.ts";
import { type CapacityInput, type Figures, type Transport, transports } from "../capacity/capacity-input.ts";
import { defaultFigures, transportFigures } from "../capacity/default-figures.ts";
import { CommandError } from "../terminal/terminal.ts";

type Parse = (flag: string, text: string) => number;

/** An option that is a number. */
export interface NumberOption {
  readonly form: string;
  /** Undefined: it depends on others, and the help says on which. */
  readonly usual: string | undefined;
  readonly help: string;
  readonly section: string;
  readonly parse: Parse;
}

const number =
  (least: number, most: number): Parse =>
  (flag, text) =>
    parseQuantity(flag, text, { least, most });
const whole =
  (least: number, most: number): Parse =>
  (flag, text) =>
    parseWholeQuantity(flag, text, { least, most });
const share =
  (bounds?: QuantityBounds): Parse =>
  (flag, text) =>
    parseShare(flag, text, bounds);
const bytes: Parse = (flag, text) => parseBytes(flag, text, { least: 1024 ** 2, most: 1024 ** 5 });

const row = (form: string, usual: string | undefined, parse: Parse, help: string, section: string): NumberOption => ({
  ...{ form, usual, parse, help, section },
});

const traffic = "Traffic";
const fleet = "Servers and store";
const outages = "Outages";
const prices = "Prices, in a currency of your choice";
const figures = "Figures, by default those of docs/capacity.md; --measure measures them";

/** Options in the order of the help. */
const options = {
  rate: row("--rate <checks>", "10k", number(0.001, 1e12), "checks a second, on average over a month", traffic),
  peak: row("--peak <factor>", "2", number(1, 1e6), "how many times the average the peak is", traffic),
  limits: row("--limits <number>", "1", number(1, 100), "limits that a check is counted in, on average", traffic),
  windows: row("--windows <number>", "1", number(1, 100), "windows of a limit, on average", traffic),
  subjects: row(
    "--subjects <number>",
    "1M",
    number(1, 1e15),
    "subjects of all limits, seen within the longest window",
    traffic,
  ),
  leases: row(
    "--leases <share>",
    "0%",
    share(),
    "of all limits decided, those decided from leases (sluice_lease_decisions_total)",
    traffic,
  ),
  perLease: row("--decisions-per-lease <number>", "7", number(1, 1e9), "decisions for each lease fetched", traffic),
  whale: row(
    "--whale <checks>",
    undefined,
    number(0.001, 1e12),
    "checks a second of the busiest subject (default 1% of the peak)",
    traffic,
  ),
  whaleLimit: row(
    "--whale-limit <number>",
    undefined,
    number(1, 1e15),
    "the limit of its smallest window (default: as many a second as --whale)",
    traffic,
  ),
  overshoot: row("--overshoot <share>", "1%", share({ least: 0, most: 1 }), "max_overshoot of its policy", traffic),
  leaseSeconds: row("--lease-seconds <number>", "20", number(0.5, 60), "the lease time of the servers", traffic),

  targetCpu: row(
    "--target-cpu <share>",
    "60%",
    share({ least: 0.05, most: 1 }),
    "how busy cores may be at the peak, with a zone lost",
    fleet,
  ),
  regions: row(
    "--regions <number>",
    "1",
    whole(1, 1000),
    "regions, each with an equal part of the traffic and a separate store",
    fleet,
  ),
  zones: row("--zones <number>", "3", whole(1, 100), "zones of each region; servers survive the loss of one", fleet),
  podCores: row("--pod-cores <number>", "1", whole(1, 1024), "cores of a pod, each with a process (--workers)", fleet),
  pods: row(
    "--pods <number>",
    "0",
    whole(0, 1e7),
    "pods in all, such as one beside each gateway; 0: as many as needed",
    fleet,
  ),
  shardMemory: row("--shard-memory <size>", "8GiB", bytes, "memory of a Valkey or Redis", fleet),
  shardCores: row(
    "--shard-cores <number>",
    "2",
    whole(1, 1024),
    "cores of a Valkey or Redis; one of them runs commands",
    fleet,
  ),
  replicas: row("--replicas <number>", "1", whole(0, 10), "replicas of each shard", fleet),
  lanes: row("--lanes <number>", "32", whole(1, 1024), "lanes of a cluster (sluice serve --redis-lanes)", fleet),
  roundTrip: row(
    "--round-trip-us <number>",
    "500",
    number(1, 1e6),
    "microseconds from a server to the store and back",
    fleet,
  ),

  limiterUp: row("--limiter-up <share>", "99.9%", share(), "how much of the time limits can be decided", outages),
  gatewayUp: row("--gateway-up <share>", "99.99%", share(), "how much of the time the gateway in front is up", outages),
  allowed: row("--allowed <share>", "97%", share(), "of all requests, those within their limits", outages),

  priceCore: row("--price-core <amount>", "25", number(0, 1e9), "a core for a month", prices),
  priceGib: row("--price-gib <amount>", "3", number(0, 1e9), "a GiB of memory for a month", prices),
  priceGb: row(
    "--price-zone-gb <amount>",
    "0.02",
    number(0, 1e9),
    "a GB that leaves a zone, both sides together",
    prices,
  ),
  priceFixed: row(
    "--price-fixed <amount>",
    "0",
    number(0, 1e12),
    "what does not depend on the traffic, for a month",
    prices,
  ),

  serverUs: row(
    "--server-us <number>",
    undefined,
    number(0.001, 1e6),
    "CPU time of a server for a check of one limit, by --transport",
    figures,
  ),
  limitUs: row(
    "--limit-us <number>",
    `${defaultFigures.server_us_per_limit}`,
    number(0, 1e6),
    "more for each further limit",
    figures,
  ),
  takeUs: row(
    "--take-us <number>",
    `${defaultFigures.server_us_per_take}`,
    number(0, 1e6),
    "more for each limit that the store decides",
    figures,
  ),
  storeUs: row(
    "--store-us <number>",
    `${defaultFigures.store_us_per_take}`,
    number(0, 1e6),
    "CPU time of the store for each window of a take",
    figures,
  ),
  storeCallUs: row(
    "--store-call-us <number>",
    `${defaultFigures.store_us_per_call}`,
    number(0, 1e6),
    "more for each call, which carries up to 64 takes",
    figures,
  ),
  processMemory: row("--process-memory <size>", "512MiB", bytes, "memory of a server process", figures),
  counterBytes: row(
    "--counter-bytes <number>",
    `${defaultFigures.counter_bytes}`,
    number(1, 1e6),
    "memory of the store for a window of a subject",
    figures,
  ),
  clientBytes: row(
    "--client-bytes <number>",
    undefined,
    number(0, 1e9),
    "bytes of a check and its answer, by --transport",
    figures,
  ),
  storeBytes: row(
    "--store-bytes <number>",
    `${defaultFigures.store_bytes_per_take}`,
    number(0, 1e9),
    "bytes of a take and its answer",
    figures,
  ),
  replicationBytes: row(
    "--replication-bytes <number>",
    `${defaultFigures.replication_bytes_per_take}`,
    number(0, 1e9),
    "bytes of a take to a replica",
    figures,
  ),
} satisfies Record<string, NumberOption>;

export const numberOptions: readonly NumberOption[] = Object.values(options);

type Name = keyof typeof options;

/** What was typed, by the names that commander gives options. */
export type CapacityFlags = Readonly<Partial<Record<string, string | boolean>>>;

/** What was measured, in place of the defaults. Options that are given win. */
export interface MeasuredFigures {
  readonly byTransport: Readonly<Record<Transport, Pick<Figures, "server_us_per_check" | "client_bytes_per_check">>>;
  readonly figures: Partial<Figures>;
}

export function readCapacityInput(flags: CapacityFlags, measured: MeasuredFigures | undefined): CapacityInput {
  const transport = readTransport(flags.transport);
  const given = (name: Name): number | undefined => {
    const { form, parse } = options[name];
    const flag = form.split(" ")[0]!;
    const text = flags[attributeOf(flag)];
    return typeof text === "string" ? parse(flag, text) : undefined;
  };
  const read = (name: Name): number => given(name) ?? options[name].parse(name, options[name].usual!);
  const figure = (name: Name, key: keyof Figures): number =>
    given(name) ??
    measured?.figures[key] ??
    measured?.byTransport[transport][key as "server_us_per_check"] ??
    { ...defaultFigures, ...transportFigures[transport] }[key];
  const peak = read("rate") * read("peak");
  const whale = given("whale") ?? peak / 100;
  return {
    demand: {
      checks_per_second: read("rate"),
      peak_factor: read("peak"),
      limits_per_check: read("limits"),
      windows_per_limit: read("windows"),
      subjects: read("subjects"),
      lease_share: read("leases"),
      decisions_per_lease: read("perLease"),
      allowed_share: read("allowed"),
    },
    whale: {
      checks_per_second: whale,
      limit: given("whaleLimit") ?? Math.max(1, Math.floor(whale)),
      max_overshoot: read("overshoot"),
      lease_seconds: read("leaseSeconds"),
    },
    layout: {
      transport,
      regions: read("regions"),
      zones: read("zones"),
      target_cpu: read("targetCpu"),
      cores_per_pod: read("podCores"),
      pods: read("pods"),
      shard_memory_bytes: read("shardMemory"),
      cores_per_shard: read("shardCores"),
      replicas: read("replicas"),
      lanes: read("lanes"),
      round_trip_seconds: read("roundTrip") / 1e6,
    },
    figures: {
      server_us_per_check: figure("serverUs", "server_us_per_check"),
      server_us_per_limit: figure("limitUs", "server_us_per_limit"),
      server_us_per_take: figure("takeUs", "server_us_per_take"),
      store_us_per_take: figure("storeUs", "store_us_per_take"),
      store_us_per_call: figure("storeCallUs", "store_us_per_call"),
      server_memory_bytes: read("processMemory"),
      counter_bytes: figure("counterBytes", "counter_bytes"),
      client_bytes_per_check: figure("clientBytes", "client_bytes_per_check"),
      store_bytes_per_take: figure("storeBytes", "store_bytes_per_take"),
      replication_bytes_per_take: figure("replicationBytes", "replication_bytes_per_take"),
    },
    prices: {
      core_month: read("priceCore"),
      gib_month: read("priceGib"),
      zone_gb: read("priceGb"),
      fixed_month: read("priceFixed"),
    },
    uptimes: { gateway: read("gatewayUp"), limiter: read("limiterUp") },
  };
}

/** The name that commander gives an option: `--pod-cores` is `podCores`. */
function attributeOf(flag: string): string {
  return flag.slice(2).replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function readTransport(text: unknown = "grpc"): Transport {
  const found = transports.find((one) => one === text);
  if (found !== undefined) return found;
  throw new CommandError(`--transport is ${JSON.stringify(text)}; it should be one of ${transports.join(", ")}`);
}
