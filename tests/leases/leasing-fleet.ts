import { setTimeout as sleep } from "node:timers/promises";
import { RedisCounters, type RedisCountersOptions } from "@sluice/redis";
import { LeasedCounters } from "sluice";
import type { CompiledLimit } from "sluice/store";
import { leaseAllowance } from "sluice/store";
import { resolvedLimit } from "sluice/testing";
import { type Admission, type Course, type JudgedKind, judgeOvershoot, type Overshoot } from "./judge-overshoot.ts";

/** A line of traffic: a limit, and a subject. */
export interface Line {
  readonly limit: CompiledLimit;
  readonly subject: string;
}

/** An admission, with its node and source. */
export interface FleetAdmission extends Admission {
  readonly line: Line;
  readonly node: LeasingNode;
  /** By units in hand. */
  readonly local: boolean;
}

/** The interval in which a centre lost the data of these lines. */
export interface Loss {
  readonly lines: readonly Line[];
  readonly fromMs: number;
  readonly toMs: number;
}

const leaseTimes = { leaseMs: 5000, staleMs: 30_000, refreshMs: 5000, maxDenialMs: 50 };
const tickMs = 10;
/** The largest difference between the deciding clock and the recorded one, with the time of reading them. */
const clockMs = 2;
/** This many denials on every node since the last admission mean that nothing is left. */
const enoughDenials = 200;
const patienceMs = 30_000;

export class LeasingNode {
  readonly centre: RedisCounters;
  readonly counters: LeasedCounters;
  /** Requested, and denied, so far. */
  denied = 0;

  constructor(options: RedisCountersOptions) {
    // The fleet is patient with a busy machine.
    this.centre = new RedisCounters({ deadlineMs: 5000, breaker: { probeEveryMs: 100 }, ...options });
    this.counters = new LeasedCounters(this.centre, leaseTimes);
  }
}

/** Nodes of one process, each with its own connections and leases, and all their admissions. */
export class LeasingFleet {
  readonly nodes: readonly LeasingNode[];
  readonly lines: readonly Line[];
  readonly admissions: FleetAdmission[] = [];
  readonly losses: Loss[] = [];
  /** How many requests were made. */
  asked = 0;
  readonly #pending = new Set<Promise<void>>();
  readonly #originMs = Date.now() - performance.now();

  constructor(nodes: number, lines: readonly Line[], options: RedisCountersOptions) {
    this.lines = lines;
    this.nodes = Array.from({ length: nodes }, () => new LeasingNode(options));
  }

  static async open(nodes: number, lines: readonly Line[], options: RedisCountersOptions): Promise<LeasingFleet> {
    const fleet = new LeasingFleet(nodes, lines, options);
    await Promise.all(fleet.nodes.map(({ centre }) => centre.connected(patienceMs)));
    return fleet;
  }

  /** One request on one node. Returns whether it was admitted locally. */
  ask(node: LeasingNode, line: Line): boolean {
    this.asked += 1;
    const fromMs = performance.now() - clockMs;
    const note = (isTaken: boolean, local: boolean): void => {
      if (!isTaken) node.denied += 1;
      else this.admissions.push({ line, node, local, cost: 1, fromMs, toMs: performance.now() + clockMs });
    };
    const answer = node.counters.take([resolvedLimit(line.limit, line.subject)]);
    if (answer instanceof Promise) {
      const noted: Promise<void> = answer
        .then(({ taken }) => note(taken, false))
        .catch(() => {})
        .finally(() => this.#pending.delete(noted));
      this.#pending.add(noted);
      return false;
    }
    note(answer.taken, true);
    return answer.taken;
  }

  /** Sends this many requests everywhere each tick, until the condition holds and everything is answered. */
  async drive(
    what: string,
    perTick: number,
    isSo: () => boolean,
    lines: readonly Line[] = this.lines,
    nodes: readonly LeasingNode[] = this.nodes,
  ): Promise<void> {
    const untilMs = performance.now() + patienceMs;
    while (!isSo()) {
      if (performance.now() > untilMs) throw new Error(`not within ${patienceMs} ms: ${what}`);
      for (const node of nodes) {
        for (const line of lines) for (let i = 0; i < perTick; i++) this.ask(node, line);
      }
      await sleep(tickMs);
    }
    await this.settled();
  }

  /** Continues light traffic during an action. */
  async during(happening: () => Promise<unknown>, lines: readonly Line[] = this.lines): Promise<void> {
    let isOver = false;
    const over = happening().finally(() => {
      isOver = true;
    });
    const driving = (async (): Promise<void> => {
      while (!isOver) {
        for (const node of this.nodes) for (const line of lines) this.ask(node, line);
        await sleep(tickMs);
      }
    })();
    await Promise.all([over, driving]);
    await this.settled();
  }

  /** Until every node has renewed each line this often, has decided it locally, and half of the allowance is out. */
  async hold(fetches = 2, lines: readonly Line[] = this.lines): Promise<void> {
    const from = this.admissions.length;
    const before = this.nodes.map(({ counters }) => counters.stats.fetches);
    const half = lines.reduce((sum, { limit }) => sum + leaseAllowance({ limit, windows: limit.windows }), 0) / 2;
    const isHeld = (): boolean => {
      const stats = this.nodes.map(({ counters }) => counters.stats);
      if (stats.some((one, i) => one.fetches < before[i]! + fetches * lines.length || one.tokens === 0)) return false;
      if (stats.reduce((sum, { tokens }) => sum + tokens, 0) < half) return false;
      const here = this.admissions.slice(from).filter(({ local }) => local);
      return this.nodes.every((node) =>
        lines.every((line) => here.some((one) => one.node === node && one.line === line)),
      );
    };
    await this.drive("every node leases every line", 1, isHeld, lines);
  }

  /** Requests all that is left of lines that do not refill, until every node is denied. */
  async useUp(lines: readonly Line[]): Promise<void> {
    let admitted = -1;
    let denied: number[] = [];
    const isUsedUp = (): boolean => {
      if (this.admissions.length > admitted) denied = this.nodes.map((node) => node.denied);
      admitted = this.admissions.length;
      return this.nodes.every((node, i) => node.denied >= denied[i]! + enoughDenials);
    };
    await this.drive("everything is used up", 20, isUsedUp, lines);
  }

  /** Runs an action that makes a centre lose data, and records when. */
  async losing(happening: () => Promise<unknown>, lines: readonly Line[] = this.lines): Promise<Loss> {
    const fromMs = performance.now() - clockMs;
    await happening();
    const loss = { lines, fromMs, toMs: performance.now() + clockMs };
    this.losses.push(loss);
    return loss;
  }

  async settled(): Promise<void> {
    await Promise.all(this.#pending);
  }

  admitted(line: Line): number {
    return this.admissions.filter((one) => one.line === line).length;
  }

  /** Admissions certainly after that. */
  admittedAfter(line: Line, { fromMs, toMs }: Loss): number {
    return this.admissions.filter((one) => one.line === line && one.fromMs > (one.local ? fromMs : toMs)).length;
  }

  /**
   * The interval with the largest excess, given that the counter and its ledger are new after each loss. Decisions on
   * either side of a loss are assumed to be at any time during it, so that no interval begins or ends within one.
   */
  judge(line: Line): Overshoot {
    const { limit } = line;
    const [window] = limit.windows;
    const { source, kind, perMs } = window!;
    const losses = this.losses.filter(({ lines }) => lines.includes(line));
    const lostMs = losses.map(({ fromMs, toMs }) => (fromMs + toMs) / 2);
    const allowance = leaseAllowance({ limit, windows: limit.windows });
    const course: Course = {
      kind: kind as JudgedKind,
      perMs,
      originMs: this.#originMs,
      eras: [{ sinceMs: 0, limit: source.limit, burst: source.burst, allowance }],
      emptiedMs: lostMs,
      lostMs,
    };
    const widened = this.admissions
      .filter((one) => one.line === line)
      .map(({ fromMs, toMs, cost }): Admission => {
        const met = losses.filter((loss) => fromMs < loss.toMs && toMs > loss.fromMs);
        return {
          fromMs: Math.min(fromMs, ...met.map((loss) => loss.fromMs)),
          toMs: Math.max(toMs, ...met.map((loss) => loss.toMs)),
          cost,
        };
      });
    return judgeOvershoot(widened, course);
  }

  /** Stops leasing, and gives back the units in hand. Returns how many were lost unspent. */
  async drain(): Promise<number> {
    await this.settled();
    await Promise.all(this.nodes.map(({ counters }) => counters.drain(patienceMs)));
    return this.nodes.reduce((sum, { counters }) => sum + counters.stats.lost, 0);
  }

  async close(): Promise<void> {
    await Promise.all(this.nodes.map(({ centre }) => centre.close()));
  }
}

/** The charges to a line's only window at the centre, if it does not refill. */
export async function readCharged(centre: RedisCounters, { limit, subject }: Line): Promise<number> {
  const [reading] = await centre.read(resolvedLimit(limit, subject));
  return limit.windows[0]!.source.limit - reading!.remaining;
}

/** The ledger of a line. */
export async function readUnspent(centre: RedisCounters, { limit, subject }: Line): Promise<number> {
  return (await centre.lease([resolvedLimit(limit, subject)], { want: 0, holdMs: 1 })).unspent;
}
