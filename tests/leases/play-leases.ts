import * as fc from "fast-check";
import type { Algorithm, LeasedCountersOptions } from "sluice";
import type { CompiledLimit, ResolvedLimit } from "sluice/store";
import { resolvedLimit, testWindow } from "sluice/testing";
import { judgeOvershoot, renderOvershoot } from "./judge-overshoot.ts";
import { type Fate, LeaseWorld, type NodeClock, type WorldNode } from "./lease-world.ts";
import { leasedLimit } from "./leased-limit.ts";

/** The numbers of a limit that an edit changes. */
interface Numbers {
  readonly limit: number;
  readonly burst: number;
  readonly maxOvershoot: number;
}

interface PlayedLimit {
  readonly algorithm: Algorithm;
  readonly perMs: number;
  /** A second window: this many times as long, with a share of that many times the limit. */
  readonly second: { readonly times: number; readonly share: number } | undefined;
  readonly numbers: Numbers;
}

/** The fate of calls to the centre from now on, as shares. */
interface Weather {
  readonly losesRequests: number;
  readonly losesReplies: number;
  /** Calls that take longer than any node waits. */
  readonly straggles: number;
  readonly delayMs: number;
}

export type Step =
  | {
      readonly does: "take";
      /** Undefined: on every node. */
      readonly node: number | undefined;
      readonly of: number;
      readonly cost: number;
      readonly times: number;
      readonly everyMs: number;
    }
  | { readonly does: "wait"; readonly ms: number }
  | { readonly does: "pause" | "crash" | "drain"; readonly node: number }
  /** Sends this many requests before it notices anything. */
  | { readonly does: "resume"; readonly node: number; readonly of: number; readonly times: number }
  /** Is paused for this long, and then does the same. */
  | { readonly does: "sleep"; readonly node: number; readonly of: number; readonly times: number; readonly ms: number }
  | { readonly does: "weather"; readonly weather: Weather }
  | { readonly does: "away" | "back" | "lose" }
  | { readonly does: "edit"; readonly limit: number; readonly numbers: Numbers }
  | { readonly does: "reset"; readonly node: number; readonly of: number }
  | { readonly does: "charge"; readonly node: number; readonly of: number; readonly cost: number };

/** A world, and everything that happens in it. */
export interface Play {
  readonly limits: readonly PlayedLimit[];
  readonly nodes: readonly NodeClock[];
  readonly leases: LeasedCountersOptions;
  readonly steps: readonly Step[];
  /** In the beginning. */
  readonly weather: Weather;
  /** The seed for random choices. */
  readonly seed: number;
}

const leasable = ["gcra", "token_bucket", "leaky_bucket", "fixed_window", "sliding_window"] as const;
const subjects = ["ada", "bob"];

const numbers: fc.Arbitrary<Numbers> = fc.record({
  limit: fc.integer({ min: 5, max: 120 }),
  burst: fc.integer({ min: 1, max: 150 }),
  maxOvershoot: fc.constantFrom(0.01, 0.05, 0.2, 0.5, 1),
});

const monthMs = 30 * 24 * 60 * 60 * 1000;

/** For a limit that does not refill during a play, its count is all admissions. */
const longLimit: fc.Arbitrary<PlayedLimit> = fc.record({
  algorithm: fc.constant("fixed_window"),
  perMs: fc.constant(monthMs),
  second: fc.constant(undefined),
  numbers: fc.record({
    limit: fc.integer({ min: 100, max: 2000 }),
    burst: fc.constant(1),
    maxOvershoot: fc.constantFrom(0.01, 0.05, 0.2, 1),
  }),
});

const playedLimit: fc.Arbitrary<PlayedLimit> = fc.record({
  algorithm: fc.constantFrom(...leasable),
  perMs: fc.constantFrom(300, 1000, 5000, 20_000, 3_600_000),
  second: fc.option(fc.record({ times: fc.constantFrom(3, 10), share: fc.constantFrom(0.3, 0.6) }), { nil: undefined }),
  numbers,
});

const nodeClock: fc.Arbitrary<NodeClock> = fc.record({
  offsetMs: fc.integer({ min: 0, max: 1_000_000 }),
  rate: fc.constantFrom(1, 1, 0.99, 1.01),
  wallOffsetMs: fc.integer({ min: -100_000, max: 100_000 }),
});

const calm: Weather = { losesRequests: 0, losesReplies: 0, straggles: 0, delayMs: 1 };

const weather: fc.Arbitrary<Weather> = fc.oneof(
  fc.constant(calm),
  fc.record({
    losesRequests: fc.constantFrom(0, 0.1, 0.5),
    losesReplies: fc.constantFrom(0, 0.2, 0.7, 1),
    straggles: fc.constantFrom(0, 0.3),
    delayMs: fc.constantFrom(0, 1, 20, 300),
  }),
);

const node = fc.nat(7);
/** The targets: mostly one limit for one subject, so that leases collide. */
const of = fc.oneof({ weight: 2, arbitrary: fc.constantFrom(0, 2) }, { weight: 1, arbitrary: fc.nat(7) });

const take = fc.record({
  does: fc.constant("take"),
  node: fc.option(node, { nil: undefined, freq: 2 }),
  of,
  cost: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 12 }) }),
  times: fc.integer({ min: 1, max: 25 }),
  everyMs: fc.constantFrom(0, 0, 1, 4, 30),
});
const wait = fc.record({
  does: fc.constant("wait"),
  ms: fc.oneof(
    fc.nat(40).map((eighths) => eighths / 8),
    fc.integer({ min: 1, max: 1000 }),
    fc.integer({ min: 1, max: 9000 }),
    fc.integer({ min: 10_000, max: 100_000 }),
  ),
});

function arbitraryStep(faults: boolean): fc.Arbitrary<Step> {
  const orderly = [
    { weight: 12, arbitrary: take },
    { weight: 9, arbitrary: wait },
    { weight: 1, arbitrary: fc.record({ does: fc.constant("drain"), node }) },
  ] as const;
  if (!faults) return fc.oneof(...orderly);
  return fc.oneof(
    ...orderly,
    { weight: 2, arbitrary: fc.record({ does: fc.constant("weather"), weather }) },
    { weight: 2, arbitrary: fc.record({ does: fc.constantFrom("pause", "pause", "crash"), node }) },
    { weight: 1, arbitrary: fc.record({ does: fc.constant("resume"), node, of, times: fc.nat(20) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        does: fc.constant("sleep"),
        node,
        of,
        times: fc.nat(20),
        ms: fc.oneof(fc.integer({ min: 100, max: 20_000 }), fc.integer({ min: 10_000, max: 100_000 })),
      }),
    },
    { weight: 1, arbitrary: fc.record({ does: fc.constantFrom("away", "back", "back") }) },
    { weight: 1, arbitrary: fc.record({ does: fc.constantFrom("lose", "back"), node }) },
    { weight: 1, arbitrary: fc.record({ does: fc.constant("edit"), limit: fc.nat(3), numbers }) },
    { weight: 1, arbitrary: fc.record({ does: fc.constant("reset"), node, of }) },
    {
      weight: 1,
      arbitrary: fc.record({ does: fc.constant("charge"), node, of, cost: fc.constantFrom(-30, -3, 2, 20, 500) }),
    },
  );
}

/** Plays with every fault, or with none. */
export function arbitraryPlay({ faults, maxSteps }: { faults: boolean; maxSteps: number }): fc.Arbitrary<Play> {
  return fc.record({
    limits: fc.oneof(
      fc.array(playedLimit, { minLength: 1, maxLength: 2 }),
      fc.array(longLimit, { minLength: 1, maxLength: 2 }),
    ),
    nodes: fc.array(nodeClock, { minLength: 1, maxLength: 4 }),
    leases: fc.record({
      leaseMs: fc.constantFrom(300, 1000, 5000),
      // Without faults, no units expire in hand: they are given back earlier.
      staleMs: faults ? fc.constantFrom(0, 500, 10_000, 60_000) : fc.constant(60_000),
      refreshMs: fc.constantFrom(100, 500, 5000),
      coolPerSecond: faults ? fc.constantFrom(0, 5, 1000) : fc.constantFrom(5, 1000),
      maxDenialMs: fc.constantFrom(0, 1000),
    }),
    steps: fc.array(arbitraryStep(faults), { minLength: 1, maxLength: maxSteps, size: "max" }),
    weather: faults ? weather : fc.constant(calm),
    seed: fc.integer(),
  });
}

/** The world after a play, and its violations. */
export interface Played {
  readonly world: LeaseWorld;
  readonly limits: readonly CompiledLimit[];
  readonly breaches: readonly string[];
}

/** Numbers from 0 to 1, the same ones for the same seed. */
export function createDraw(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function compile({ algorithm, perMs, second }: PlayedLimit, index: number, numbers: Numbers): CompiledLimit {
  const { limit, burst, maxOvershoot } = numbers;
  const isBucket = algorithm !== "fixed_window" && algorithm !== "sliding_window";
  const windows = [testWindow(limit, perMs, isBucket ? burst : limit)];
  if (second !== undefined) {
    const longer = Math.max(Math.round(limit * second.times * second.share), 1);
    windows.push(testWindow(longer, perMs * second.times, isBucket ? Math.max(burst, longer) : longer));
  }
  return leasedLimit({ name: `limit-${index}`, algorithm, windows, maxOvershoot });
}

/** Plays it, and checks the ledgers after every step and every interval at the end; `ends` may check more. */
export async function playLeases(
  { limits: played, nodes, leases, steps, weather, seed }: Play,
  ends?: (world: LeaseWorld) => Promise<readonly string[]>,
): Promise<Played> {
  const draw = createDraw(seed);
  let current = weather;
  const drawFate = (): Fate => {
    const { losesRequests, losesReplies, straggles, delayMs } = current;
    const late = draw() < straggles ? 40_000 * draw() : 0;
    return {
      requestMs: draw() < losesRequests ? undefined : late + delayMs * draw(),
      replyMs: draw() < losesReplies ? undefined : delayMs * draw(),
    };
  };
  const world = new LeaseWorld({ leases, fateOf: drawFate });
  for (const clock of nodes) world.addNode(clock);
  const limits = played.map((one, index) => compile(one, index, one.numbers));
  const breaches: string[] = [];
  const nodeAt = (index: number): WorldNode => world.nodes[index % world.nodes.length]!;
  // One limit, the other, or both, and the subject: two bits and one.
  const createRequest = (index: number, cost: number): ResolvedLimit[] => {
    const subject = subjects[index >> 2]!;
    const chosen = limits.filter((_, place) => limits.length === 1 || (((index & 3) % 3) + 1) & (1 << place));
    return chosen.map((limit) => resolvedLimit(limit, subject, cost));
  };
  for (const [number, step] of steps.entries()) {
    switch (step.does) {
      case "take":
        for (let i = 0; i < step.times; i++) {
          for (const one of step.node === undefined ? world.nodes : [nodeAt(step.node)]) {
            if (!one.isPaused) void one.take(createRequest(step.of, step.cost));
          }
          if (step.everyMs > 0) await world.pass(step.everyMs);
        }
        break;
      case "wait":
        await world.pass(step.ms);
        break;
      case "pause":
      case "crash":
        nodeAt(step.node)[step.does]();
        break;
      case "resume":
      case "sleep": {
        const woken = nodeAt(step.node);
        if (step.does === "sleep") {
          woken.pause();
          await world.pass(step.ms);
        }
        woken.resume(() => {
          for (let i = 0; i < step.times; i++) void woken.take(createRequest(step.of, 1));
        });
        break;
      }
      case "drain":
        // Some stop in the middle of their work; without faults they finish it first.
        if (ends !== undefined) await world.pass(100);
        if (!nodeAt(step.node).isPaused) void nodeAt(step.node).restart();
        break;
      case "weather":
        current = step.weather;
        break;
      case "away":
      case "back":
        world.centreIsUp = step.does === "back";
        break;
      case "lose":
        world.loseCentre();
        break;
      case "edit": {
        const index = step.limit % limits.length;
        limits[index] = compile(played[index]!, index, step.numbers);
        break;
      }
      case "reset":
        if (!nodeAt(step.node).isPaused) ignored(nodeAt(step.node).counters.reset(createRequest(step.of, 1)));
        break;
      case "charge":
        if (!nodeAt(step.node).isPaused) ignored(nodeAt(step.node).counters.charge(createRequest(step.of, step.cost)));
        break;
    }
    await world.pass(0);
    for (const breach of ledgerBreaches(world)) breaches.push(`after step ${number + 1} (${step.does}): ${breach}`);
    if (breaches.length > 0) break;
  }
  if (ends !== undefined && breaches.length === 0) breaches.push(...(await ends(world)));
  for (const { name, course, admissions } of world.windows()) {
    const worst = judgeOvershoot(admissions, course);
    if (worst.beyond > 0) breaches.push(`${name}: ${renderOvershoot(worst)}`);
  }
  return { world, limits, breaches };
}

function ignored(done: void | Promise<void>): void {
  if (done instanceof Promise) done.catch(() => {});
}

/**
 * Nodes never hold more than ledgers say, ledgers never exceed the allowance, and units in hand are charged; apart from
 * what a centre lost.
 */
function* ledgerBreaches(world: LeaseWorld): Generator<string> {
  let known = 0;
  let lost = 0;
  let charged = 0;
  for (const { name, unspent, most, forgotten, ...ledger } of world.ledgers()) {
    if (unspent > most + forgotten + ledger.reentered)
      yield `${unspent} unspent of ${name}, and its allowance is ${most}`;
    if (ledger.charged !== undefined && ledger.admitted > ledger.charged) {
      yield `${ledger.admitted} admitted of ${name}, and ${ledger.charged} charged`;
    }
    known += unspent;
    lost += forgotten;
    charged += ledger.charged === undefined ? Number.POSITIVE_INFINITY : ledger.charged - ledger.admitted;
  }
  const inHand = world.nodes.reduce((sum, one) => sum + one.counters.stats.tokens, 0);
  if (inHand > known + lost) yield `${inHand} in hand, of which ledgers know ${known}`;
  if (inHand > charged) yield `${inHand} in hand, of which ${charged} is charged`;
}

/** When every node stopped in order, no node holds units, and charges equal admissions. */
export async function drainAll(world: LeaseWorld): Promise<readonly string[]> {
  // Units set aside for a pending request are given back when it is decided.
  await world.pass(100);
  for (const one of world.nodes) void one.restart();
  await world.pass(3000);
  const breaches: string[] = [];
  for (const { name, unspent, admitted, charged } of world.ledgers()) {
    if (unspent > 0) breaches.push(`${unspent} of ${name} was not given back`);
    if (charged !== undefined && charged !== admitted) {
      breaches.push(`${charged} of ${name} is charged, and ${admitted} was admitted`);
    }
  }
  return breaches;
}
