// npm run bench -- engine [--json]: how fast the limiter decides in memory, and how much memory a counter takes.
import { UsageSums } from "@sluice/server/internal";
import { MemoryStore } from "express-rate-limit";
import { RateLimiterMemory } from "rate-limiter-flexible";
import { createLimiter, type Limiter, MemoryCounters, parsePolicies } from "sluice";
import { compileTestLimit, testWindow } from "sluice/testing";
import { createRandom, createZipf, keysInOrder, shuffledKeys } from "./measure/draw-keys.ts";
import { type Contestant, interleave, median, perSecond, type Rounds, ratio } from "./measure/interleave.ts";

const minuteMs = 60_000;
const sizes = { "1k": 1000, "100k": 100_000, "1m": 1_000_000 } as const;

/** A limit that no run reaches, and that keeps every counter alive: 60 million a minute over all keys. */
const limitFor = (keys: number): number => (60_000_000 / keys) | 0;

/** The same, if some keys are checked far more often than others. */
const deepWindow = "6/m burst 10M";

/**
 * The order in which keys are checked, after they were created one after the other:
 *
 * - `shuffled`: each once per lap, in an order unrelated to that of their creation, as with many users of equal weight;
 * - `zipf`: some far more often than others, as with users of unequal weight;
 * - `as made`: each once per lap, in the order of their creation. No real traffic does so; it is the best case for stores
 *   of objects, which lie in memory in that order, so that the processor prefetches each one.
 */
type Traffic = "shuffled" | "zipf" | "as made";

/** The key of every check, computed beforehand so that it is not measured. */
class Order {
  readonly #keys: number;
  readonly #laps: Int32Array;

  constructor(keys: number, traffic: Traffic = "shuffled") {
    this.#keys = keys;
    this.#laps = layOut(keys, traffic);
  }

  /** The first lap creates them. */
  at(i: number): number {
    return i < this.#keys ? i : this.#laps[i % this.#laps.length]!;
  }
}

function layOut(keys: number, traffic: Traffic): Int32Array {
  if (traffic === "as made") return keysInOrder(keys);
  const random = createRandom(1);
  const shuffled = shuffledKeys(keys, random);
  if (traffic === "shuffled") return shuffled;
  // Frequent keys were not created first.
  const drawOne = createZipf(keys, random);
  return Int32Array.from({ length: 10 * keys }, () => shuffled[drawOne()]!);
}

function createPolicies(count: number, windows: string): Record<string, unknown> {
  return {
    policies: Array.from({ length: count }, (_, i) => ({
      id: `resource-${i}`,
      match: { endpoint: `/v1/resource-${i}/**`, method: "GET" },
      limits: [{ by: ["user"], windows }],
      on_failure: "open",
    })),
  };
}

/** The full path: a fresh request with a fresh key, resolved, decided, the complete decision. */
function checkSync(name: string, limiter: Limiter, keys: number): Contestant {
  const order = new Order(keys);
  return {
    name,
    run(from, count) {
      for (let i = from; i < from + count; i++) {
        const user = `user:${order.at(i)}`;
        const decision = limiter.checkSync({ dimensions: { user, endpoint: "/v1/resource-5/17", method: "GET" } });
        if (!decision.allowed) throw new Error("the benchmark ran into its limit");
      }
    },
  };
}

function checkAwaited(name: string, limiter: Limiter, keys: number, traffic: Traffic = "shuffled"): Contestant {
  const order = new Order(keys, traffic);
  return {
    name,
    async run(from, count) {
      for (let i = from; i < from + count; i++) {
        const user = `user:${order.at(i)}`;
        const decision = await limiter.check({ dimensions: { user, endpoint: "/v1/resource-5/17", method: "GET" } });
        if (!decision.allowed) throw new Error("the benchmark ran into its limit");
      }
    },
  };
}

function counterAlone(name: string, keys: number): Contestant {
  const counters = new MemoryCounters();
  const order = new Order(keys);
  const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(limitFor(keys), minuteMs)] });
  return {
    name,
    run(from, count) {
      for (let i = from; i < from + count; i++) {
        if (counters.takeOne(limit, limit.windows, `user:${order.at(i)}`, 1).fits !== "now")
          throw new Error("ran into the limit");
      }
    },
  };
}

function rateLimiterFlexible(name: string, keys: number): Contestant {
  const order = new Order(keys);
  const theirs = new RateLimiterMemory({ points: limitFor(keys), duration: minuteMs / 1000 });
  return {
    name,
    async run(from, count) {
      for (let i = from; i < from + count; i++) await theirs.consume(`user:${order.at(i)}`);
    },
  };
}

function expressRateLimit(name: string, keys: number, traffic: Traffic = "shuffled"): Contestant {
  const order = new Order(keys, traffic);
  const theirs = new MemoryStore();
  theirs.init({ windowMs: minuteMs } as Parameters<MemoryStore["init"]>[0]);
  return {
    name,
    async run(from, count) {
      for (let i = from; i < from + count; i++) await theirs.increment(`user:${order.at(i)}`);
    },
  };
}

/** The same request of four dimensions, whatever the limits. */
function severalDimensions(name: string, keys: number, limits: readonly object[]): Contestant {
  const order = new Order(keys);
  const limiter = createLimiter({
    policies: { policies: [{ id: "api", match: { endpoint: "/v1/**" }, limits, on_failure: "open" }] },
  });
  return {
    name,
    run(from, count) {
      for (let i = from; i < from + count; i++) {
        const n = order.at(i);
        const dimensions = {
          tenant: `tenant-${n % 100}`,
          user: `user:${n}`,
          ip: `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`,
          endpoint: "/v1/resource-5/17",
        };
        if (!limiter.checkSync({ dimensions }).allowed) throw new Error("the benchmark ran into its limit");
      }
    },
  };
}

function threeLimits(name: string, keys: number, more: object = {}): Contestant {
  const windows = [`${limitFor(keys)}/m`];
  return severalDimensions(name, keys, [
    { by: ["tenant"], windows: ["500M/m"], ...more },
    { by: ["tenant", "user"], windows, ...more },
    { by: ["ip"], windows, ...more },
  ]);
}

function oneOfThree(name: string, keys: number): Contestant {
  return severalDimensions(name, keys, [{ by: ["user"], windows: [`${limitFor(keys)}/m`] }]);
}

/**
 * A check, and its usage as in a server: of a thousand tenants, or of invented ones, after 50 000 others took all places. Sums are
 * taken after each round; a server does so every ten seconds.
 */
function checkTenants(name: string, keys: number, tenants: "known" | "invented", isCounted: boolean): Contestant {
  const order = new Order(keys);
  const limiter = createLimiter({ policies: createPolicies(100, `${limitFor(keys)}/m`) });
  const usage = new UsageSums({ dimensions: ["tenant"] });
  const taken = limiter.checkSync({ dimensions: { user: "u", endpoint: "/v1/resource-5/17", method: "GET" } });
  if (tenants === "invented")
    for (let i = 0; i < 50_000; i++) usage.count({ dimensions: { tenant: `first-${i}` } }, taken);
  return {
    name,
    run(from, count) {
      for (let i = from; i < from + count; i++) {
        const user = `user:${order.at(i)}`;
        // Short enough to be one piece, as a parser makes it.
        const tenant = tenants === "invented" ? `t${i}` : `t${i % 1000}`;
        const request = { dimensions: { user, tenant, endpoint: "/v1/resource-5/17", method: "GET" } };
        const decision = limiter.checkSync(request);
        if (!decision.allowed) throw new Error("the benchmark ran into its limit");
        if (isCounted) usage.count(request, decision);
      }
      usage.take();
    },
  };
}

/** How many nanoseconds more than `than` each operation takes: the median of the differences of their rounds. */
function extraNs(rounds: Rounds, name: string, than: string): number {
  const theirs = rounds.get(than)!;
  return Math.round(median(rounds.get(name)!.map((ns, i) => ns - theirs[i]!)));
}

const collectGarbage = (globalThis as { gc?: () => void }).gc ?? (() => {});

function memoryInUse(): number {
  collectGarbage();
  // External memory includes array buffers.
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Bytes of the whole process per counter at a million counters, and the longest single check on the way there. */
function weigh(): { bytesPerKey: number; longestCheckMs: number } {
  const keys = sizes["1m"];
  const limiter = createLimiter({ policies: createPolicies(100, "100/h") });
  const before = memoryInUse();
  let longestCheckMs = 0;
  for (let i = 0; i < keys; i++) {
    const dimensions = { user: `user:${i}`, endpoint: "/v1/resource-5/17", method: "GET" };
    const started = performance.now();
    limiter.checkSync({ dimensions });
    longestCheckMs = Math.max(longestCheckMs, performance.now() - started);
  }
  const bytesPerKey = (memoryInUse() - before) / keys;
  const { stats } = limiter.counters as MemoryCounters;
  if (stats.counters !== keys) throw new Error(`${stats.counters} counters instead of ${keys}`);
  return { bytesPerKey: Math.round(bytesPerKey * 10) / 10, longestCheckMs: Math.round(longestCheckMs * 100) / 100 };
}

function print(title: string, rounds: Rounds): void {
  console.log(title);
  for (const name of rounds.keys())
    console.log(`  ${name.padEnd(32)} ${perSecond(rounds, name).toLocaleString("en")} /s`);
}

async function main(): Promise<void> {
  const { bytesPerKey, longestCheckMs } = weigh();

  const limiterFor = (count: number, keys: number, windows = `${limitFor(keys)}/m`): Limiter =>
    createLimiter({ policies: parsePolicies(createPolicies(count, windows)) });

  const keys = sizes["100k"];
  const us = "check, sync";
  const awaited = "check, awaited";
  const three = "three limits, sync";
  const [flexible, express] = ["rate-limiter-flexible consume", "express-rate-limit increment"];
  const peers = await interleave([
    checkSync(us, limiterFor(100, keys), keys),
    checkAwaited(awaited, limiterFor(100, keys), keys),
    counterAlone("counter alone", keys),
    rateLimiterFlexible(flexible, keys),
    expressRateLimit(express, keys),
    threeLimits(three, keys),
  ]);

  const oneAlike = "one limit, the same request";
  const several = await interleave([
    oneOfThree(oneAlike, keys),
    threeLimits(three, keys),
    threeLimits("three fixed windows, sync", keys, { algorithm: "fixed_window" }),
  ]);

  const versusExpress = (traffic: Traffic): Promise<Rounds> =>
    interleave([
      checkAwaited(awaited, limiterFor(100, keys, deepWindow), keys, traffic),
      expressRateLimit(express, keys, traffic),
    ]);
  const zipf = await versusExpress("zipf");
  const asMade = await versusExpress("as made");

  const bySize = await interleave(
    [
      checkSync("1k", limiterFor(100, sizes["1k"]), sizes["1k"]),
      checkSync("100k", limiterFor(100, sizes["100k"]), sizes["100k"]),
      checkSync("1m", limiterFor(100, sizes["1m"]), sizes["1m"]),
    ],
    { rounds: 7, warmup: 5 },
  );

  const byPolicies = await interleave([
    checkSync("10 policies", limiterFor(10, keys), keys),
    checkSync("10 000 policies", limiterFor(10_000, keys), keys),
  ]);

  // Each kind of tenants has its own base: to make up names takes time as well.
  const [known, invented] = ["1 000 tenants", "invented tenants"];
  const usage = await interleave(
    [
      checkTenants(known, keys, "known", false),
      checkTenants(`${known}, usage counted`, keys, "known", true),
      checkTenants(invented, keys, "invented", false),
      checkTenants(`${invented}, usage counted`, keys, "invented", true),
    ],
    { rounds: 25 },
  );

  const result = {
    suite: "engine",
    checks_per_s: {
      "1k": perSecond(bySize, "1k"),
      "100k": perSecond(bySize, "100k"),
      "1m": perSecond(bySize, "1m"),
    },
    three_limits_per_s: { "100k": perSecond(peers, three) },
    three_limits_vs_one: ratio(several, three, oneAlike),
    three_fixed_windows_per_s: { "100k": perSecond(several, "three fixed windows, sync") },
    counter_per_s: { "100k": perSecond(peers, "counter alone") },
    policies_10k_vs_10: ratio(byPolicies, "10 000 policies", "10 policies"),
    usage_ns: {
      known: extraNs(usage, `${known}, usage counted`, known),
      invented: extraNs(usage, `${invented}, usage counted`, invented),
    },
    bytes_per_key: bytesPerKey,
    longest_check_ms: longestCheckMs,
    ratio: {
      sync_vs_rate_limiter_flexible: ratio(peers, us, flexible),
      awaited_vs_rate_limiter_flexible: ratio(peers, awaited, flexible),
      awaited_vs_express_rate_limit: ratio(peers, awaited, express),
      counter_vs_rate_limiter_flexible: ratio(peers, "counter alone", flexible),
    },
    awaited_vs_express_rate_limit_by_traffic: {
      shuffled: ratio(peers, awaited, express),
      zipf: ratio(zipf, awaited, express),
      as_made: ratio(asMade, awaited, express),
    },
  };

  print("at 100 000 keys, in turns", peers);
  print("requests of four dimensions at 100 000 keys, by their limits", several);
  print("the same, distributed by Zipf's law", zipf);
  print("the same, in every lap in the order in which the keys were created", asMade);
  print("full checks against 100 policies, by number of keys", bySize);
  print("full checks at 100 000 keys, by number of policies", byPolicies);
  print("full checks at 100 000 keys, with and without usage", usage);
  console.log(
    `  usage takes ${result.usage_ns.known} ns a decision, of invented tenants ${result.usage_ns.invented} ns`,
  );
  console.log(
    `a counter takes ${bytesPerKey} bytes at a million; the longest check on the way there took ${longestCheckMs} ms`,
  );
  for (const [name, value] of Object.entries(result.ratio)) console.log(`  ${name.padEnd(36)} ${value}`);
  if (process.argv.includes("--json")) console.log(JSON.stringify(result));
}

await main();
process.exit(0);
