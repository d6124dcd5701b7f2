import { setTimeout as sleep } from "node:timers/promises";
import { RedisCounters, type RedisCountersOptions, type RedisEvent } from "@sluice/redis";
import type { Flavor, TestServer } from "@sluice/test-servers";
import { createLimiter, type Limiter } from "sluice";
import { faultPolicies, type Line, probeLines } from "./fault-policies.ts";
import type { FaultResult } from "./fault-result.ts";
import {
  countDegraded,
  isAnswered,
  judgeAdmission,
  judgeCharges,
  judgeFailModes,
  judgeLatency,
  type Loss,
} from "./judge-traffic.ts";
import { StallMeter } from "./stall-meter.ts";
import { createRequest, Traffic } from "./traffic.ts";

export interface SceneOptions {
  readonly scenario: string;
  readonly flavor: Flavor;
  readonly servers: RedisCountersOptions["servers"];
  /** Every server that may hold a connection of ours. */
  readonly allServers: readonly TestServer[];
  readonly users?: readonly string[];
  /** Whether the servers run from the start. */
  readonly connected?: boolean;
}

/** Counters under traffic, for the length of one fault. */
export interface Scene {
  readonly counters: RedisCounters;
  readonly limiter: Limiter;
  readonly traffic: Traffic;
  readonly users: readonly string[];
  readonly events: readonly (RedisEvent & { readonly atMs: number })[];
  waitFor(what: string, withinMs: number, found: () => boolean): Promise<void>;
  /** Only these lose counters by the fault. */
  affects(users: readonly string[]): void;
  /** Runs a step that loses counters, and records when. */
  losing(kind: "all" | "latest", act: () => Promise<void>): Promise<void>;
  /** The fault is over: starts measuring how long it takes until limits are enforced. */
  heal(): void;
  /** Resolves when the tight limit of every user denies by its counters, or when that takes too long. */
  untilEnforced(): Promise<void>;
  fact(text: string): void;
  expect(holds: boolean, otherwise: string): void;
}

const enforcedWithinMs = 10_000;
const closesWithinMs = 4000;
const lastStretchMs = 300;
const steadyWithinMs = 8000;

/** Plays a fault under traffic, and returns what happened and which promises were broken. */
export async function playScene(options: SceneOptions, play: (scene: Scene) => Promise<void>): Promise<FaultResult> {
  const { scenario, flavor, users = ["ada", "bo"] } = options;
  const before = activeResources();
  const breaches: string[] = [];
  const facts: string[] = [];
  const events: (RedisEvent & { readonly atMs: number })[] = [];
  const onRejection = (error: unknown): void => void breaches.push(`unhandled rejection: ${error}`);
  process.on("unhandledRejection", onRejection);
  const counters = new RedisCounters({
    servers: options.servers,
    prefix: "f",
    onEvent: (event) => events.push({ ...event, atMs: performance.now() }),
  });
  const limiter = createLimiter({ policies: faultPolicies, counters });
  const traffic = new Traffic(limiter, users);
  const meter = new StallMeter();
  let loss: Loss = { kind: "none" };
  let affected: readonly string[] = users;
  let healedMs = 0;
  let enforcedMs = Number.POSITIVE_INFINITY;
  const findLoss = (user: string): Loss => (affected.includes(user) ? loss : { kind: "none" });
  const deniesByCounters = (user: string): boolean =>
    traffic.checks.some(
      (one) =>
        one.line === "tight/closed" &&
        one.user === user &&
        one.startedMs >= healedMs &&
        isAnswered(one) &&
        !one.decision!.allowed,
    );

  const scene: Scene = {
    counters,
    limiter,
    traffic,
    users,
    events,
    async waitFor(what, withinMs, found) {
      const untilMs = performance.now() + withinMs;
      while (!found()) {
        if (performance.now() > untilMs) throw new Error(`Not within ${withinMs} ms: ${what}.`);
        await sleep(5);
      }
    },
    affects(some) {
      affected = some;
    },
    async losing(kind, act) {
      const fromMs = performance.now();
      await act();
      loss = { kind, fromMs, toMs: performance.now() };
    },
    heal() {
      healedMs = performance.now();
    },
    async untilEnforced() {
      const untilMs = healedMs + enforcedWithinMs + 2000;
      while (performance.now() < untilMs) {
        const open = users.filter((user) => !deniesByCounters(user));
        if (open.length === 0) {
          enforcedMs = performance.now() - healedMs;
          return;
        }
        for (const user of open) for (let i = 0; i < 4; i++) void traffic.check("tight/closed", user);
        await sleep(20);
      }
    },
    fact: (text) => void facts.push(text),
    expect: (holds, otherwise) => {
      if (!holds) breaches.push(otherwise);
    },
  };

  try {
    if (options.connected !== false) {
      await counters.connected();
      traffic.start();
      await sleep(700);
      // An overloaded machine may have opened a breaker; no fault begins before that has passed.
      await scene.waitFor("checks are answered", 10_000, () => counters.ready && traffic.checks.some(isAnswered));
    } else {
      traffic.start();
    }
    await play(scene);
    scene.expect(await isSteady(traffic), "checks were still degraded long after the end of the fault");
    await traffic.stop();
    await settle(traffic);
    scene.expect(
      enforcedMs <= enforcedWithinMs,
      `limits were not enforced again within ${enforcedWithinMs / 1000} s of the end of the fault`,
    );
    const charges = await readCharges(scene, findLoss, breaches);
    const latency = judgeLatency(traffic.checks, meter);
    const admission = judgeAdmission(traffic.checks, findLoss);
    breaches.push(...latency.breaches, ...judgeFailModes(traffic.checks), ...admission.breaches);
    await counters.close();
    breaches.push(...(await findLeaks(options.allServers, before)));
    const decisions = traffic.checks.flatMap(({ decision }) => (decision === undefined ? [] : [decision]));
    return {
      scenario,
      flavor,
      checks: traffic.checks.length,
      allowed: decisions.filter(({ allowed }) => allowed).length,
      denied: decisions.filter(({ allowed }) => !allowed).length,
      degraded: countDegraded(traffic.checks),
      beyondDeadlineMs: latency.beyondMs,
      longestStallMs: meter.longestMs,
      ...charges,
      overAdmitted: admission.overAdmitted,
      enforcedAfterMs: enforcedMs,
      facts,
      breaches,
    };
  } finally {
    await traffic.stop();
    await counters.close();
    meter.close();
    process.off("unhandledRejection", onRejection);
  }
}

/**
 * Whether checks are answered by counters steadily. An overloaded machine may open a breaker, which takes some seconds
 * to pass.
 */
async function isSteady(traffic: Traffic): Promise<boolean> {
  const untilMs = performance.now() + steadyWithinMs;
  do {
    const from = traffic.checks.length;
    await sleep(lastStretchMs);
    const last = traffic.checks.slice(from).filter(({ settledMs }) => settledMs !== undefined);
    if (last.filter(isAnswered).length >= 0.9 * last.length) return true;
  } while (performance.now() < untilMs);
  return false;
}

/** Waits for outstanding answers, for as long as any may take. */
async function settle(traffic: Traffic): Promise<void> {
  const untilMs = performance.now() + 2000;
  while (traffic.checks.some(({ settledMs }) => settledMs === undefined) && performance.now() < untilMs)
    await sleep(10);
}

async function readCharges(
  { limiter, traffic, users }: Scene,
  findLoss: (user: string) => Loss,
  breaches: string[],
): Promise<Pick<FaultResult, "charged" | "counted" | "lost">> {
  const sums = { charged: 0, counted: 0, lost: 0 };
  for (const user of users) {
    for (const line of probeLines) {
      const charged = await chargedTo(limiter, line, user, breaches);
      if (charged === undefined) return sums;
      const probes = traffic.checks.filter((one) => one.user === user && one.line === line);
      const judged = judgeCharges(probes, charged, findLoss(user));
      breaches.push(...judged.breaches);
      sums.charged += charged;
      sums.counted += judged.counted;
      sums.lost += judged.lost;
    }
  }
  return sums;
}

/**
 * The charges in a probe's counters, which are charged together, so they hold the same. Undefined if they cannot be
 * read.
 */
export async function chargedTo(
  limiter: Limiter,
  line: Line,
  user: string,
  breaches: string[],
): Promise<number | undefined> {
  for (let attempt = 0; ; attempt++) {
    try {
      const { limits } = await limiter.explain(createRequest(line, user));
      const windows = limits.flatMap((limit) => limit.windows);
      const all = windows.map(({ window, remaining }) => window.capacity - remaining);
      if (new Set(all).size !== 1) breaches.push(`counters that are charged together hold ${all.join(", ")}`);
      return Math.max(...all);
    } catch (error) {
      if (attempt === 150) {
        breaches.push(`the charges to ${line} of ${user} cannot be read: ${error}`);
        return undefined;
      }
      await sleep(50);
    }
  }
}

/** Connections on either side, and timers, that remain after closing. */
async function findLeaks(
  servers: readonly TestServer[],
  before: ReadonlyMap<string, number>,
): Promise<readonly string[]> {
  const untilMs = performance.now() + closesWithinMs;
  for (;;) {
    const leaks: string[] = [];
    for (const server of servers.filter(({ state }) => state === "running")) {
      const clients = String(await server.command("CLIENT", "LIST")).split("\n");
      const ours = clients.filter((client) => client.includes("name=sluice"));
      if (ours.length > 0) leaks.push(`${ours.length} connections to ${server.flavor} stayed open after closing`);
    }
    const sockets = (activeResources().get("TCPSocketWrap") ?? 0) - (before.get("TCPSocketWrap") ?? 0);
    if (sockets > 0) leaks.push(`${sockets} sockets of this process stayed open after closing`);
    if (leaks.length === 0 || performance.now() > untilMs) return leaks;
    await sleep(50);
  }
}

function activeResources(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const name of process.getActiveResourcesInfo()) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}
