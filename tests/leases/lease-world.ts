import {
  type Clock,
  LeasedCounters,
  type LeasedCountersOptions,
  ManualClock,
  MemoryCounters,
  StoreUnavailable,
} from "sluice";
import type { CentralCounters, CompiledLimit, ResolvedLimit, TakeAnswer } from "sluice/store";
import { leaseAllowance, wholeAnswer } from "sluice/store";
import type { Admission, Course, Era, JudgedKind } from "./judge-overshoot.ts";

/** The fate of a call to the centre, drawn for each. Times are the world's. */
export interface Fate {
  /** The time until the centre carries it out; undefined: it never arrives. */
  readonly requestMs: number | undefined;
  /** The time until the answer is back; undefined: it is lost on the way. */
  readonly replyMs: number | undefined;
}

export interface WorldOptions {
  /** Epoch milliseconds at the beginning. */
  readonly originMs?: number;
  readonly leases?: LeasedCountersOptions;
  /** Absent: half a millisecond each way. */
  readonly fateOf?: (node: WorldNode) => Fate;
}

/** A limit and subject with admissions. */
interface Watched {
  readonly subject: string;
  limit: CompiledLimit;
  readonly admissions: Admission[];
  admitted: number;
  /** Units that a slow call reported as kept after the ledger had forgotten them: they are entered anyway. */
  reentered: number;
  readonly versions: { readonly sinceMs: number; readonly limit: CompiledLimit }[];
  readonly emptiedMs: number[];
  readonly credits: { readonly atMs: number; readonly cost: number }[];
}

/** The history of one window of one limit for one subject, ready to be judged. */
export interface WatchedWindow {
  readonly name: string;
  readonly course: Course;
  readonly admissions: readonly Admission[];
}

/** The centre's ledger of a limit and subject. */
export interface WatchedLedger {
  readonly name: string;
  readonly unspent: number;
  /** The largest allowance ever, and the units that lost ledgers may not know of. */
  readonly most: number;
  readonly forgotten: number;
  /** Units that it may count too many, because it had forgotten them. No node holds them. */
  readonly reentered: number;
  readonly admitted: number;
  /** The count of a fixed window, as long as it has not ended, and nothing was given back or lost except by leases. */
  readonly charged: number | undefined;
}

const promptly: Fate = { requestMs: 0.5, replyMs: 0.5 };
/** How long a node waits for the centre, at most. */
const patienceMs = { take: 50, other: 1000 };

interface Happening {
  readonly atMs: number;
  readonly order: number;
  readonly act: () => void;
}

/**
 * Nodes with leases around one centre in memory, with time that passes only on request. Every call to the centre takes
 * the time that its fate says, may be lost on the way there or back, and may be carried out long after its node gave
 * up.
 */
export class LeaseWorld {
  readonly nodes: WorldNode[] = [];
  readonly clock: ManualClock;
  readonly originMs: number;
  /** Violations. */
  readonly breaches: string[] = [];
  /** Cleared: the centre does not answer. */
  centreIsUp = true;
  readonly #options: WorldOptions;
  readonly #watched = new Map<string, Watched>();
  readonly #lostMs: number[] = [];
  readonly #queue: Happening[] = [];
  /** When each central answer was decided. */
  readonly #decidedMs = new WeakMap<object, number>();
  #centre: MemoryCounters;
  #order = 0;

  constructor(options: WorldOptions = {}) {
    this.#options = options;
    this.originMs = options.originMs ?? 1_700_000_000_000;
    this.clock = new ManualClock(this.originMs, 0);
    this.#centre = new MemoryCounters({ clock: this.clock });
  }

  get nowMs(): number {
    return this.clock.nowMs();
  }

  get centre(): MemoryCounters {
    return this.#centre;
  }

  addNode(clock: NodeClock = steadyClock): WorldNode {
    const node = new WorldNode(this, clock, this.#options.leases ?? {});
    this.nodes.push(node);
    return node;
  }

  /** The centre restarts, without its data. */
  loseCentre(): void {
    this.#centre = new MemoryCounters({ clock: this.clock });
    this.#lostMs.push(this.nowMs);
  }

  /** Lets time pass, with everything that is due meanwhile at its instant. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.nowMs + ms;
    await turn();
    for (let next = this.#queue[0]; next !== undefined && next.atMs <= untilMs; next = this.#queue[0]) {
      this.clock.advance(Math.max(next.atMs - this.nowMs, 0));
      while (this.#queue[0] !== undefined && this.#queue[0].atMs <= this.nowMs) this.#unqueue().act();
      await turn();
    }
    this.clock.advance(Math.max(untilMs - this.nowMs, 0));
  }

  later(inMs: number, act: () => void): void {
    const happening: Happening = { atMs: this.nowMs + inMs, order: this.#order++, act };
    const queue = this.#queue;
    let at = queue.push(happening) - 1;
    while (at > 0 && isBefore(happening, queue[(at - 1) >> 1]!)) {
      queue[at] = queue[(at - 1) >> 1]!;
      at = (at - 1) >> 1;
    }
    queue[at] = happening;
  }

  /** The outcome of a call to the centre, by its fate. */
  send<T>(node: WorldNode, limits: readonly ResolvedLimit[], patience: number, work: () => T | Promise<T>): Promise<T> {
    const { requestMs, replyMs } = this.#options.fateOf?.(node) ?? promptly;
    return new Promise((resolve, reject) => {
      const fail = (reason: "storage_timeout" | "storage_unavailable") => (): void =>
        node.hear(() => reject(new StoreUnavailable(reason)));
      this.later(patience, fail("storage_timeout"));
      if (requestMs === undefined) return;
      this.later(requestMs, () => {
        if (!this.centreIsUp) {
          this.later(0, fail("storage_unavailable"));
          return;
        }
        for (const limit of limits) this.watch(limit);
        // In memory everything is done at once.
        const answer = work() as T;
        if (typeof answer === "object" && answer !== null) this.#decidedMs.set(answer, this.nowMs);
        if (replyMs !== undefined) this.later(replyMs, () => node.hear(() => resolve(answer)));
      });
    });
  }

  /** Records that the centre is asked about this limit, as it is now. */
  watch({ limit, subject }: Pick<ResolvedLimit, "limit" | "subject">): Watched {
    const name = `${limit.identity} ${subject}`;
    let watched = this.#watched.get(name);
    if (watched === undefined) {
      watched = { subject, limit, admissions: [], admitted: 0, reentered: 0, versions: [], emptiedMs: [], credits: [] };
      this.#watched.set(name, watched);
    }
    if (watched.versions.at(-1)?.limit !== limit) watched.versions.push({ sinceMs: this.nowMs, limit });
    watched.limit = limit;
    return watched;
  }

  /** Records an admission, at its instant if that is known. */
  admit(limits: readonly ResolvedLimit[], answer: object, askedMs: number): void {
    const decidedMs = this.#decidedMs.get(answer);
    const { nowMs } = this;
    for (const { limit, subject, cost } of limits) {
      const watched = this.#watched.get(`${limit.identity} ${subject}`) ?? this.watch({ limit, subject });
      watched.admissions.push({ fromMs: decidedMs ?? askedMs, toMs: decidedMs ?? nowMs, cost });
      watched.admitted += cost;
    }
  }

  /** Records an admission by units in hand. The ledger knows of it, unless it was lost. */
  admitHere(limits: readonly ResolvedLimit[]): void {
    this.admit(limits, limits, this.nowMs);
    for (const one of limits) {
      const { unspent } = this.#centre.lease([one], { want: 0, holdMs: 1 });
      if (unspent >= one.cost || this.#lostMs.length > 0) continue;
      this.breaches.push(`at ${this.nowMs} ms ${one.cost} was spent, of which the ledger knew ${unspent}`);
    }
  }

  /** Every window with requests. */
  *windows(): Generator<WatchedWindow> {
    for (const [name, { limit, admissions, versions, emptiedMs, credits }] of this.#watched) {
      for (const [index, { kind, perMs }] of limit.windows.entries()) {
        const eras = versions.map((version): Era => eraFromLimit(version.limit, index, version.sinceMs));
        const course: Course = {
          kind: kind as JudgedKind,
          perMs,
          originMs: this.originMs,
          eras,
          emptiedMs: [...emptiedMs, ...this.#lostMs],
          lostMs: this.#lostMs,
          credits,
        };
        yield { name: `${name}, window ${index + 1}`, course, admissions };
      }
    }
  }

  *ledgers(): Generator<WatchedLedger> {
    for (const [name, { limit, subject, versions, admitted, reentered, emptiedMs, credits }] of this.#watched) {
      const asked: ResolvedLimit = { limit, windows: limit.windows, subject, cost: 1, group: 0 };
      const { unspent } = this.#centre.lease([asked], { want: 0, holdMs: 1 });
      const most = Math.max(...versions.map((version) => eraFromLimit(version.limit, 0, 0).allowance));
      const { perMs } = limit.windows[0]!;
      const isFirst = Math.floor(this.originMs / perMs) === Math.floor(this.clock.epochMs() / perMs);
      const isWhole = isFirst && emptiedMs.length + credits.length + this.#lostMs.length === 0;
      const charged = isWhole ? this.#centre.read(asked)[0]!.state.count : undefined;
      yield { name, unspent, most, forgotten: most * this.#lostMs.length, reentered, admitted, charged };
    }
  }

  #unqueue(): Happening {
    const queue = this.#queue;
    const first = queue[0]!;
    const last = queue.pop()!;
    if (queue.length === 0) return first;
    let at = 0;
    for (let child = 1; child < queue.length; child = 2 * at + 1) {
      if (child + 1 < queue.length && isBefore(queue[child + 1]!, queue[child]!)) child += 1;
      if (!isBefore(queue[child]!, last)) break;
      queue[at] = queue[child]!;
      at = child;
    }
    queue[at] = last;
    return first;
  }
}

function isBefore(one: Happening, other: Happening): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}

/** Settles all pending promises. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function eraFromLimit(limit: CompiledLimit, index: number, sinceMs: number): Era {
  const { source } = limit.windows[index]!;
  const allowance = leaseAllowance({ limit, windows: limit.windows });
  return { sinceMs, limit: source.limit, burst: source.burst, allowance };
}

/** How a node's clocks differ from the world's. */
export interface NodeClock {
  readonly offsetMs: number;
  /** 1: runs like the world's. */
  readonly rate: number;
  readonly wallOffsetMs: number;
}

const steadyClock: NodeClock = { offsetMs: 0, rate: 1, wallOffsetMs: 0 };

/** One node, with its own leases and clock. */
export class WorldNode {
  readonly #world: LeaseWorld;
  readonly #nodeClock: NodeClock;
  readonly #options: LeasedCountersOptions;
  readonly #unheard: (() => void)[] = [];
  #counters: LeasedCounters;
  #lives = 0;
  #isPaused = false;
  #draining: Promise<void> | undefined;
  /** Counters with a call to the centre in flight. */
  #asking = new Set<string>();

  constructor(world: LeaseWorld, nodeClock: NodeClock, options: LeasedCountersOptions) {
    this.#world = world;
    this.#nodeClock = nodeClock;
    this.#options = options;
    this.#counters = this.#begin();
  }

  get counters(): LeasedCounters {
    return this.#counters;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Does and receives nothing until `resume`, while its clock continues. */
  pause(): void {
    this.#isPaused = true;
  }

  /** `first` runs before it receives anything that happened meanwhile. */
  resume(first: () => void = () => {}): void {
    this.#isPaused = false;
    first();
    for (const act of this.#unheard.splice(0)) act();
  }

  /** Restarts, with nothing in hand. Messages to it are lost. */
  crash(): void {
    this.#lives += 1;
    this.#draining = undefined;
    this.#asking = new Set();
    this.#unheard.length = 0;
    this.#isPaused = false;
    this.#counters = this.#begin();
  }

  /** Stops in order, and restarts when that is done. */
  async restart(): Promise<void> {
    const life = this.#lives;
    this.#draining ??= this.#counters.drain();
    await this.#draining;
    if (life === this.#lives) this.crash();
  }

  hear(act: () => void): void {
    if (this.#isPaused) this.#unheard.push(act);
    else act();
  }

  /** Decides a request like a limiter, and records an admission. */
  take(limits: readonly ResolvedLimit[]): boolean | Promise<boolean> {
    const askedMs = this.#world.nowMs;
    const [first] = limits;
    const isOne =
      limits.length === 1 && first!.limit.windows.length === 1 && first!.limit.windows[0]!.kind === "arrival";
    if (!isOne) return this.#noted(limits, this.#counters.take(limits), askedMs);
    const { limit, windows, subject, cost } = first!;
    const answer = this.#counters.takeOne(limit, windows, subject, cost, {}, wholeAnswer);
    if (answer instanceof Promise) return this.#noted(limits, answer, askedMs);
    if (answer.fits !== "now") return false;
    this.#world.admitHere(limits);
    return true;
  }

  #noted(
    limits: readonly ResolvedLimit[],
    answer: TakeAnswer | Promise<TakeAnswer>,
    askedMs: number,
  ): boolean | Promise<boolean> {
    const note = (decided: TakeAnswer): boolean => {
      if (decided.taken) this.#world.admit(limits, decided, askedMs);
      return decided.taken;
    };
    if (answer instanceof Promise) return answer.then(note, () => false);
    if (answer.taken) this.#world.admitHere(limits);
    return answer.taken;
  }

  #begin(): LeasedCounters {
    const world = this.#world;
    const { offsetMs, rate, wallOffsetMs } = this.#nodeClock;
    const life = this.#lives;
    const isAlive = (): boolean => life === this.#lives;
    const clock: Clock = {
      nowMs: () => offsetMs + world.nowMs * rate,
      epochMs: () => world.originMs + wallOffsetMs + world.nowMs * rate,
    };
    const callLater = (work: () => void, inMs: number): (() => void) => {
      let isWanted = true;
      world.later(inMs / rate, () => {
        if (isAlive()) this.hear(() => isWanted && isAlive() && work());
      });
      return () => {
        isWanted = false;
      };
    };
    return new LeasedCounters(this.#link(isAlive), { ...this.#options, clock, callLater });
  }

  /** The centre, as seen from here. */
  #link(isAlive: () => boolean): CentralCounters {
    const world = this.#world;
    const send = <T>(limits: readonly ResolvedLimit[], patience: number, work: () => T | Promise<T>): Promise<T> =>
      isAlive() ? world.send(this, limits, patience, work) : new Promise<T>(() => {});
    const { take, other } = patienceMs;
    return {
      local: false,
      take: (limits, options) => send(limits, take, () => world.centre.take(limits, options)),
      peek: (limits) => send(limits, take, () => world.centre.peek(limits)),
      give: (receipt) => send([], other, () => world.centre.give(receipt)),
      charge: (limits) =>
        send(limits, other, () => {
          for (const limit of limits) {
            if (limit.cost < 0) world.watch(limit).credits.push({ atMs: world.nowMs, cost: -limit.cost });
          }
          world.centre.charge(limits);
        }),
      block: (limits, forMs) => send(limits, other, () => world.centre.block(limits, forMs)),
      reset: (limits) =>
        send(limits, other, () => {
          for (const limit of limits) world.watch(limit).emptiedMs.push(world.nowMs);
          world.centre.reset(limits);
        }),
      read: (limit) => send([limit], other, () => world.centre.read(limit)),
      lease: (limits, ask) => {
        const answer = send(limits, other, () => {
          const { epoch = 0, kept = 0 } = ask.settled ?? {};
          if (epoch <= world.clock.epochMs()) for (const limit of limits) world.watch(limit).reentered += kept;
          return world.centre.lease(limits, ask);
        });
        return ask.want === 0 ? answer : this.#onlyOne(limits[0]!, answer);
      },
      close: () => {},
    };
  }

  /** Never more than one call for units of a counter is in flight. */
  #onlyOne<T>({ limit, subject }: ResolvedLimit, answer: Promise<T>): Promise<T> {
    const name = `${limit.identity} ${subject}`;
    const asking = this.#asking;
    if (asking.has(name)) this.#world.breaches.push(`at ${this.#world.nowMs} ms two calls for ${name} are under way`);
    asking.add(name);
    return answer.finally(() => asking.delete(name));
  }
}
