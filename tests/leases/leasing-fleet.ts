import { setTimeout as sleep } from "node:timers/promises";
import { RedisCounters, type RedisCountersOptions } from "@sluice/redis";
import { type CompiledLimit, LeasedCounters } from "sluice";
import { leaseAllowance } from "sluice/store";
import { resolvedLimit } from "sluice/testing";
import { type Admission, type Course, type JudgedKind, judgeOvershoot, type Overshoot } from "./judge-overshoot.ts";

/** What one of the nodes asks for: a limit, and of whom. */
export interface Line {
  readonly limit: CompiledLimit;
  readonly subject: string;
}

/** Something that was let through, where and how. */
export interface FleetAdmission extends Admission {
  readonly line: Line;
  readonly node: LeasingNode;
  /** By what was in hand. */
  readonly local: boolean;
}

/** From and to when a centre forgot what it knew of these lines. */
export interface Loss {
  readonly lines: readonly Line[];
  readonly fromMs: number;
  readonly toMs: number;
}

const leaseTimes = { leaseMs: 5000, staleMs: 30_000, refreshMs: 5000, maxDenialMs: 50 };
const tickMs = 10;
/** By how much the clock that decides and the one that is noted may be apart, and what reading them takes. */
const clockMs = 2;
/** So many denials on every node since anything was let through mean that there is no more. */
const enoughDenials = 200;
const patienceMs = 30_000;

export class LeasingNode {
  readonly centre: RedisCounters;
  readonly counters: LeasedCounters;
  /** Asked, and answered by a denial, so far. */
  denied = 0;

  constructor(options: RedisCountersOptions) {
    // Nobody is given up because the machine is busy.
    this.centre = new RedisCounters({ deadlineMs: 5000, breaker: { probeEveryMs: 100 }, ...options });
    this.counters = new LeasedCounters(this.centre, leaseTimes);
  }
}

/** Nodes of one process, each with connections and leases of its own, and all that they let through. */
export class LeasingFleet {
  readonly nodes: readonly LeasingNode[];
  readonly lines: readonly Line[];
  readonly admissions: FleetAdmission[] = [];
  readonly losses: Loss[] = [];
  /** How often it was asked for anything. */
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

  /** Asks once on one node. Whether it was let through without asking anybody. */
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

  /** Asks everywhere, so often each tick, until that is so and everything is answered. */
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

  /** Goes on asking for little while something happens. */
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

  /** Until every node has leased each line anew so often, has decided here about it, and half of what may be out is. */
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

  /** Asks for all that there is of lines that get nothing back, until every node is told that there is no more. */
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

  /** Lets something happen by which a centre forgets, and notes when. */
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

  /** What was surely let through after that. */
  admittedAfter(line: Line, { fromMs, toMs }: Loss): number {
    return this.admissions.filter((one) => one.line === line && one.fromMs > (one.local ? fromMs : toMs)).length;
  }

  /**
   * The interval that is hardest to explain, where the counter and its ledger are new after each loss. What may have been decided on
   * either side of a loss is held to be decided at any time of it, so that no interval begins or ends within one.
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

  /** Stops leasing, and gives back what is in hand. How much was lost unspent. */
  async drain(): Promise<number> {
    await this.settled();
    await Promise.all(this.nodes.map(({ counters }) => counters.drain(patienceMs)));
    return this.nodes.reduce((sum, { counters }) => sum + counters.stats.lost, 0);
  }

  async close(): Promise<void> {
    await Promise.all(this.nodes.map(({ centre }) => centre.close()));
  }
}

/** What of a line's only window is charged at the centre, where nothing comes back to it. */
export async function chargedOf(centre: RedisCounters, { limit, subject }: Line): Promise<number> {
  const [reading] = await centre.read(resolvedLimit(limit, subject));
  return limit.windows[0]!.source.limit - reading!.remaining;
}

/** What the ledger has of a line. */
export async function unspentOf(centre: RedisCounters, { limit, subject }: Line): Promise<number> {
  return (await centre.lease([resolvedLimit(limit, subject)], { want: 0, holdMs: 1 })).unspent;
}
