import {
  type CentralCounters,
  type CheckRequest,
  type CircuitBreakerOptions,
  type CompiledLimit,
  type CompiledWindow,
  type LeaseAnswer,
  type LeaseAsk,
  type OneAsker,
  type PeekOptions,
  type Receipt,
  type ResolvedLimit,
  SluiceError,
  StoreUnavailable,
  type TakeAnswer,
  type TakeOptions,
  type WindowReading,
} from "sluice";
import {
  aFunction,
  anObject,
  aText,
  checkLeaseAsk,
  checkOptions,
  isRecorded,
  mostExcusedMs,
  numberFrom,
  type OptionForms,
  outcomesOf,
  Stalls,
  trueOrFalse,
  wholeAnswer,
  whyLate,
} from "sluice/store";
import { outcomesBefore, readingsOf, recordsOf } from "./ask/decode-reply.ts";
import { blockKey, type Call, encodeGiveBack, mostPerCall, recordKey } from "./ask/encode-call.ts";
import type { AskCounts, ScriptTuning } from "./ask/lane.ts";
import { newName } from "./ask/new-name.ts";
import {
  type Answer,
  ArrivalQuestion,
  ArrivalsQuestion,
  GeneralQuestion,
  type Held,
  type Question,
} from "./ask/question.ts";
import { RunDelay } from "./ask/run-delay.ts";
import { callScript } from "./ask/script-calls.ts";
import { codeOf, kindNumber } from "./ask/window-code.ts";
import { type RedisServers, renderServers, serversFrom } from "./connect/redis-servers.ts";
import { openTopology } from "./open-topology.ts";
import { OutageWarnings } from "./outage-warnings.ts";
import type { Cell } from "./place/cells.ts";
import { cellOf } from "./place/cells.ts";
import { scripts } from "./scripts.generated.ts";
import { type PlacedLane, type RedisEvent, type ShardStatus, Site } from "./site.ts";
import { LastDeniers, type Part, partsOf, takeAcross } from "./take-across.ts";
import type { Shard } from "./topology/topology.ts";
import { within } from "./topology/within.ts";

export interface RedisCountersOptions {
  /** Where the servers are: an address such as `redis://127.0.0.1:6379`, or everything there is to say. */
  readonly servers: string | RedisServers;
  /** What every key begins with. Absent: `s`. Deployments that share a server choose different ones. */
  readonly prefix?: string | undefined;
  /** How long a check may wait for its answer where its policies say nothing. Absent: 25 ms. */
  readonly deadlineMs?: number | undefined;
  /** In a cluster, over how many hash tags counters are spread. Absent: 32. Changing it begins counters anew. */
  readonly lanes?: number | undefined;
  /** Tenants or tiers whose counters live on servers of their own. */
  readonly cells?: readonly Cell[] | undefined;
  readonly breaker?: CircuitBreakerOptions | undefined;
  /** How many checks travel in one call at most, 1 … 127. Absent: 64, some 100 µs of the server's time. */
  readonly maxBatch?: number | undefined;
  /** How many calls per lane are on their way at most. Absent: 4. */
  readonly maxInFlight?: number | undefined;
  /** How many checks per lane wait at most; further ones are answered as their policies say for an outage. Absent: 10 000. */
  readonly maxWaiting?: number | undefined;
  /** How old a connection gets at most before another takes its place; at most 24 h. Absent: an hour. */
  readonly maxConnectionAgeMs?: number | undefined;
  /** Hears what happens to the servers, for logs and metrics. Must not throw. */
  readonly onEvent?: ((event: RedisEvent) => void) | undefined;
  /** Whether the process warns when an outage begins and when it ends (`SluiceWarning`). Absent: where there is no `onEvent`. */
  readonly warn?: boolean | undefined;
}

/** Numbers are checked one by one, below. */
export const optionForms: OptionForms<RedisCountersOptions> = {
  servers: undefined,
  prefix: undefined,
  deadlineMs: undefined,
  lanes: undefined,
  cells: { holds: Array.isArray, wanted: "a list of cells" },
  breaker: anObject,
  maxBatch: undefined,
  maxInFlight: undefined,
  maxWaiting: undefined,
  maxConnectionAgeMs: undefined,
  onEvent: aFunction,
  warn: trueOrFalse,
};

const breakerForms: OptionForms<CircuitBreakerOptions> = {
  failuresInARow: numberFrom(1),
  failureShare: numberFrom(0, 1),
  minCalls: numberFrom(0),
  overMs: numberFrom(1),
  probeEveryMs: numberFrom(1),
  onChange: aFunction,
};

const cellForms: OptionForms<Cell> = { name: aText, servers: undefined, values: anObject, tiers: undefined };

/** Where counters are: the servers of all, and those of some. */
interface Sites {
  readonly main: Site;
  readonly cells: readonly { readonly cell: Cell; readonly site: Site }[];
}

export interface RedisCountersStats extends Readonly<AskCounts> {
  /** How long this process did not run although a question was to be sent or given up, as far as that was noticed. */
  readonly stalledMs: number;
  /** Questions that wait for their turn, and calls on their way. */
  readonly waiting: number;
  readonly inFlight: number;
  readonly shards: readonly (ShardStatus & { readonly cell: string | undefined })[];
}

/** For tests: scripts on a clock of the test's own. */
export interface RedisTestOptions {
  readonly tune?: ScriptTuning;
}

const defaultPrefix = "s";
const defaultDeadlineMs = 25;
const defaultConnectionAgeMs = 60 * 60 * 1000;
const defaultIdTtlMs = 10 * 60 * 1000;
/** For everything that is not a check: giving back, charging, blocking, resetting, reading. */
const patienceMs = 1000;
/** Servers that were replaced finish what they were asked within this. */
const drainMs = 30_000;
/** A receipt has one part for each place that a request was counted in. */
const mostParts = 100;
/** How much longer than a request may take its own receipts are kept. */
const momentMs = 5000;
const reachWithinMs = 5000;

/**
 * Counters in Valkey or Redis, shared by every process that uses the same servers and prefix. Each request is one atomic
 * script call; requests that come together travel together. Nothing is opened until the first question, or until `open` or
 * `connected` ask for it. See docs/redis.md.
 */
export class RedisCounters implements CentralCounters {
  readonly local = false;
  readonly reportsOutages = true;
  #options: RedisCountersOptions & RedisTestOptions;
  readonly #counts: AskCounts = {
    calls: 0,
    questions: 0,
    failedCalls: 0,
    timeouts: 0,
    starved: 0,
    retries: 0,
    loads: 0,
    foreign: 0,
    healed: 0,
    moves: 0,
  };
  readonly #stalls = new Stalls();
  readonly #runDelay = new RunDelay();
  readonly #deniers = new LastDeniers();
  readonly #draining = new Set<Site>();
  readonly #servers: RedisServers;
  readonly #cellServers: readonly { readonly cell: Cell; readonly servers: RedisServers }[];
  readonly #warnings: OutageWarnings | undefined;
  /** Undefined until there is something to ask. */
  #opened: Sites | undefined;
  #swaps = 0;
  #closed = false;

  constructor(options: RedisCountersOptions & RedisTestOptions) {
    const { tune: _, ...given } = { ...options };
    checkOptions(given, optionForms, { name: "RedisCounters", code: "invalid_request" });
    const { breaker = {}, cells = [] } = options;
    checkOptions(breaker, breakerForms, { name: "breaker", code: "invalid_request" });
    for (const cell of cells) checkOptions(cell, cellForms, { name: "a cell", code: "invalid_request" });
    this.#options = options;
    checkPrefix(options.prefix ?? defaultPrefix);
    checkWhole("maxBatch", options.maxBatch, mostPerCall);
    checkWhole("maxInFlight", options.maxInFlight, 1000);
    checkWhole("maxWaiting", options.maxWaiting, 1_000_000);
    checkWhole("lanes", options.lanes, 1024);
    checkWhole("deadlineMs", options.deadlineMs, 60_000);
    checkWhole("maxConnectionAgeMs", options.maxConnectionAgeMs, 24 * 60 * 60 * 1000);
    // Every address is read before anything is opened: a wrong one leaves no connection behind.
    this.#servers = serversFrom(options.servers);
    this.#cellServers = cells.map((cell) => ({ cell, servers: serversFrom(cell.servers) }));
    const warns = options.warn ?? options.onEvent === undefined;
    this.#warnings = warns ? this.#createWarnings() : undefined;
  }

  get stats(): RedisCountersStats {
    const { main, cells } = this.#opened ?? { main: undefined, cells: [] };
    const shards = (main?.shards ?? []).map((shard) => ({ ...shard, cell: undefined }));
    const ofCells = cells.flatMap(({ cell, site }) => site.shards.map((shard) => ({ ...shard, cell: cell.name })));
    const queues = [main, ...cells.map(({ site }) => site)].map((site) => site?.queue ?? { waiting: 0, inFlight: 0 });
    return {
      ...this.#counts,
      stalledMs: this.#stalls.totalMs,
      waiting: queues.reduce((sum, queue) => sum + queue.waiting, 0),
      inFlight: queues.reduce((sum, queue) => sum + queue.inFlight, 0),
      shards: [...shards, ...ofCells],
    };
  }

  /** Whether there is a server for every counter, connected, and its breaker closed. False until the first question. */
  get ready(): boolean {
    if (this.#closed || this.#opened === undefined) return false;
    return this.#opened.main.ready && this.#opened.cells.every(({ site }) => site.ready);
  }

  /**
   * Asks every connected server for its time, so that `stats` tell how quick it is and how far its clock is ahead, also
   * where nobody asks anything else.
   */
  measure(): void {
    if (this.#closed || this.#options.tune !== undefined) return;
    this.#opened?.main.measure();
    for (const { site } of this.#opened?.cells ?? []) site.measure();
  }

  /** Connects now, rather than with the first question. */
  open(): void {
    this.#sites();
  }

  /**
   * Connects, and resolves when the servers are connected or rejects when that takes too long. Checks need not wait for it;
   * but the first of them waits for a connection as well, within its own deadline.
   */
  async connected(withinMs: number = reachWithinMs): Promise<void> {
    const { main, cells } = this.#sites();
    await reached([main, ...cells.map(({ site }) => site)], withinMs);
  }

  /**
   * Goes over to other servers: connects to them, then asks only them, while the old ones finish what they were asked.
   * Rejects, and stays with the old ones, when the new ones cannot be reached.
   */
  async useServers(servers: string | RedisServers, withinMs: number = reachWithinMs): Promise<void> {
    const next = this.#openSite(serversFrom(servers));
    this.#swaps += 1;
    const swap = this.#swaps;
    try {
      await reached([next], withinMs);
      if (swap !== this.#swaps)
        throw new StoreUnavailable("storage_unavailable", "it was told to go over to yet other servers meanwhile");
      if (this.#closed) throw new StoreUnavailable("storage_unavailable", "the counters were closed meanwhile");
    } catch (error) {
      next.close();
      throw error;
    }
    const before = this.#opened;
    this.#opened = { main: next, cells: before?.cells ?? this.#openCells() };
    if (before !== undefined) this.#drain(before.main);
    this.#warnings?.look();
  }

  /**
   * Goes by another deadline, and by other failures in a row and time between probes of its breakers, from now on: without another
   * connection, and without failing a check.
   */
  useTimes({ deadlineMs, breaker }: Pick<RedisCountersOptions, "deadlineMs" | "breaker">): void {
    checkWhole("deadlineMs", deadlineMs, 60_000);
    this.#options = { ...this.#options, deadlineMs, breaker };
    this.#opened?.main.useBreaker(breaker ?? {});
    for (const { site } of this.#opened?.cells ?? []) site.useBreaker(breaker ?? {});
  }

  takeOne<T>(
    limit: CompiledLimit,
    windows: readonly CompiledWindow[],
    subject: string,
    cost: number,
    request: CheckRequest,
    asker: OneAsker<T>,
  ): Promise<T> {
    const question = new ArrivalQuestion(limit, windows, subject, cost, request, asker as OneAsker<unknown>);
    if (!isOneArrival(question)) {
      const { deadlineMs } = request;
      return this.take([question], deadlineMs === undefined ? undefined : { deadlineMs }).then(
        ({ outcomes, atMs }) => asker.decide(limit, subject, cost, { ...outcomes[0]!, atMs }),
        (error: unknown) => asker.fail(request, error),
      );
    }
    const budgetMs = limit.policy.deadlineMs ?? this.#options.deadlineMs ?? defaultDeadlineMs;
    const waitMs = Math.min(budgetMs, request.deadlineMs ?? budgetMs);
    // What it brings is what the asker makes of it.
    return this.#laneOf(question).lane.askArrival(question, budgetMs, waitMs) as Promise<T>;
  }

  take(limits: readonly ResolvedLimit[], options?: TakeOptions): Promise<TakeAnswer> {
    if (this.#closed && this.#opened === undefined) return Promise.reject(closedError());
    const only = limits.length === 1 && options?.id === undefined && options?.receipt !== true ? limits[0] : undefined;
    const record = options?.record;
    if (only !== undefined && only.group === 0 && isOneArrival(only) && !isRecorded(only, record)) {
      const { limit, windows, subject, cost } = only;
      return this.takeOne(limit, windows, subject, cost, { deadlineMs: options?.deadlineMs }, wholeAnswer);
    }
    const lane = this.#onlyLane(limits);
    const receipt = options?.receipt === true ? newName() : undefined;
    const budgetMs = this.#deadlineOf(limits);
    const waitMs = waitOf(budgetMs, options);
    if (lane === undefined) return this.#takeAcross(limits, options, budgetMs, waitMs);
    if (options?.id === undefined && receipt === undefined && record !== true && areArrivals(limits))
      return lane.lane.ask(new ArrivalsQuestion(limits), budgetMs, waitMs);
    const answer = lane.lane.ask(question("take", limits, options, receipt), budgetMs, waitMs);
    return receipt === undefined && options?.id === undefined
      ? answer
      : answer.then((one) => ({ ...one, receipt: this.#wholeReceipt(lane, one.receipt) }));
  }

  async peek(limits: readonly ResolvedLimit[], options?: PeekOptions): Promise<TakeAnswer> {
    const budgetMs = this.#deadlineOf(limits);
    const waitMs = waitOf(budgetMs, options);
    const lane = this.#onlyLane(limits);
    if (lane !== undefined) return lane.lane.ask(question("peek", limits, options), budgetMs, waitMs);
    const parts = this.#laneParts(limits);
    const answers = await Promise.all(
      parts.map((part) => part.lane.lane.ask(question("peek", part.limits, options), budgetMs, waitMs)),
    );
    const outcomes: TakeAnswer["outcomes"][number][] = [];
    const records: NonNullable<TakeAnswer["records"]>[number][] = limits.map(() => undefined);
    parts.forEach(({ indexes }, i) => {
      indexes.forEach((index, at) => {
        outcomes[index] = answers[i]!.outcomes[at]!;
        records[index] = answers[i]!.records?.[at];
      });
    });
    const atMs = Math.max(...answers.map((answer) => answer.atMs));
    const told = answers.some((answer) => answer.records !== undefined) ? records : undefined;
    return { taken: false, atMs, outcomes, receipt: undefined, replayed: false, records: told };
  }

  async give(receipt: Receipt): Promise<boolean> {
    const parts = receipt.split("+");
    if (parts.length > mostParts) return false;
    const given = await Promise.all(parts.map((one) => this.#giveOne(one)));
    return given.includes(true);
  }

  async charge(limits: readonly ResolvedLimit[]): Promise<void> {
    const parts = this.#laneParts(limits);
    await Promise.all(parts.map(({ lane, limits: own }) => lane.lane.ask(question("charge", own), patienceMs)));
  }

  async block(limits: readonly ResolvedLimit[], forMs: number): Promise<void> {
    const parts = this.#laneParts(limits.filter(({ limit }) => limit.blockable));
    await Promise.all(
      parts.map(({ lane, limits: own }) => lane.lane.ask({ ...question("block", own), forMs }, patienceMs)),
    );
  }

  async reset(limits: readonly ResolvedLimit[]): Promise<void> {
    await Promise.all(
      this.#laneParts(limits).map(({ lane, limits: own }) => {
        const keys = own.flatMap(({ limit, windows, subject }) => [
          ...windows.flatMap((window) => {
            const { code } = codeOf(window);
            return [lane.names.counter(code, subject), lane.names.mark(code, subject)];
          }),
          blockKey(lane.names, limit, subject),
          recordKey(lane.names, limit, subject),
        ]);
        return lane.site.send(lane.slot, patienceMs, (shard) => shard.send(lane.slot, ["UNLINK", ...keys]));
      }),
    );
  }

  async read(limit: ResolvedLimit): Promise<readonly WindowReading[]> {
    const { lane } = this.#laneOf(limit);
    return readingsOf(limit, await lane.ask(question("peek", [limit]), patienceMs));
  }

  /** Limits that do not all live in one place are not leased: nothing is asked of anybody. */
  async lease(limits: readonly ResolvedLimit[], ask: LeaseAsk): Promise<LeaseAnswer> {
    checkLeaseAsk(ask);
    const lane = this.#onlyLane(limits);
    if (lane === undefined || limits.length === 0) {
      return { granted: 0, epoch: 0, atMs: Date.now(), outcomes: [], unspent: 0, forgotten: 0 };
    }
    const budgetMs = this.#deadlineOf(limits);
    const asked = { ...question("lease", limits), ask };
    // Nobody waits for it, and what is granted by an answer that is not heard is lost until the ledger forgets it.
    const { atMs, outcomes, grant } = await lane.lane.ask(asked, budgetMs, Math.max(budgetMs, patienceMs));
    return { ...grant!, atMs, outcomes };
  }

  async close(): Promise<void> {
    this.#closed = true;
    const { main, cells } = this.#opened ?? { main: undefined, cells: [] };
    main?.close();
    for (const site of [...cells.map((one) => one.site), ...this.#draining]) site.close();
    this.#draining.clear();
  }

  #sites(): Sites {
    if (this.#opened !== undefined) return this.#opened;
    if (this.#closed) throw closedError();
    const main = this.#openSite(this.#servers);
    this.#opened = { main, cells: this.#openCells() };
    return this.#opened;
  }

  #createWarnings(): OutageWarnings {
    const all = [this.#servers, ...this.#cellServers.map(({ servers }) => servers)];
    return new OutageWarnings({
      servers: all.map(renderServers).join(" and "),
      secrets: all.flatMap(({ password = "", sentinelPassword = "" }) => [password, sentinelPassword]),
      ready: () => this.ready,
      nowMs: () => performance.now(),
      warn: (message) => process.emitWarning(message, { type: "SluiceWarning", code: "SLUICE_OUTAGE" }),
    });
  }

  #openCells(): Sites["cells"] {
    return this.#cellServers.map(({ cell, servers }) => ({ cell, site: this.#openSite(servers) }));
  }

  #openSite(servers: RedisServers): Site {
    const {
      prefix = defaultPrefix,
      lanes = 32,
      breaker = {},
      maxBatch = 64,
      maxInFlight = 4,
      maxWaiting = 10_000,
      maxConnectionAgeMs = defaultConnectionAgeMs,
    } = this.#options;
    return new Site({
      openTopology: (listener) => openTopology(servers, listener, maxConnectionAgeMs),
      prefix,
      lanes,
      breaker,
      maxCallWeight: maxBatch,
      maxInFlight,
      maxWaiting,
      counts: this.#counts,
      stalls: this.#stalls,
      runDelay: this.#runDelay,
      nowMs: () => performance.now(),
      onEvent: (event) => {
        this.#options.onEvent?.(event);
        if (!this.#closed) this.#warnings?.onEvent(event);
      },
      tune: this.#options.tune,
    });
  }

  #siteOf(limit: ResolvedLimit): Site {
    const { main, cells } = this.#sites();
    return cells.length === 0 ? main : (cellOf(limit, cells)?.site ?? main);
  }

  #laneOf(limit: ResolvedLimit): PlacedLane {
    return this.#siteOf(limit).laneOf(limit);
  }

  /** The one lane that holds all of a request, if there is one. */
  #onlyLane(limits: readonly ResolvedLimit[]): PlacedLane | undefined {
    const { main, cells } = this.#sites();
    if (limits.length === 0 || (cells.length === 0 && main.lanes.length === 1)) return main.lanes[0]!;
    const first = this.#laneOf(limits[0]!);
    return limits.every((limit) => this.#laneOf(limit) === first) ? first : undefined;
  }

  /** A request by lanes, whatever its groups. */
  #laneParts(limits: readonly ResolvedLimit[]): readonly Pick<Part, "lane" | "limits" | "indexes">[] {
    return partsOf(
      limits.map((limit) => ({ ...limit, group: 0 })),
      (limit) => this.#laneOf(limit),
    );
  }

  #deadlineOf(limits: readonly ResolvedLimit[]): number {
    let shortest: number | undefined;
    for (const { limit, group } of limits) {
      const { deadlineMs } = limit.policy;
      // Shadow changes nothing.
      if (group !== 0) continue;
      if (deadlineMs !== undefined && (shortest === undefined || deadlineMs < shortest)) shortest = deadlineMs;
    }
    return shortest ?? this.#options.deadlineMs ?? defaultDeadlineMs;
  }

  async #takeAcross(
    limits: readonly ResolvedLimit[],
    options: TakeOptions | undefined,
    budgetMs: number,
    waitMs: number,
  ): Promise<TakeAnswer> {
    const startMs = performance.now();
    const stalledBeforeMs = this.#stalls.totalMs;
    // Time during which this process did not run moves the deadline of the whole as it does that of a part.
    const excusedMs = (): number => Math.min(this.#stalls.totalMs - stalledBeforeMs, mostExcusedMs);
    const expiresMs = (): number => startMs + waitMs + excusedMs();
    const wantsReceipt = options?.receipt === true;
    const ask = (part: Part, asked: Question): Promise<Answer> => {
      const leftMs = expiresMs() - performance.now();
      if (leftMs <= 0) throw new StoreUnavailable(whyLate({ excusedMs: excusedMs(), patienceMs: waitMs }));
      return part.lane.lane.ask(asked, leftMs + budgetMs - waitMs, leftMs);
    };
    const { answer, held } = await takeAcross(
      partsOf(limits, (limit) => this.#laneOf(limit)),
      {
        take: async (part, isLast) => {
          // Whether the rest fits is known in a moment; a receipt of the caller's own is good for longer.
          const heldMs = budgetMs + momentMs;
          if (options?.id === undefined && !wantsReceipt && options?.record !== true && areArrivals(part.limits))
            return ask(part, new ArrivalsQuestion(part.limits, isLast ? 0 : heldMs));
          const receipt = isLast && !wantsReceipt ? undefined : newName();
          const asked = question("take", part.limits, options, receipt);
          const place = this.#sites().cells.findIndex(({ site }) => site === part.lane.site) + 1;
          const idScope = place === 0 && part.group === 0 ? "" : `${place}.${part.group}`;
          return ask(part, { ...asked, idScope, receiptLifeMs: wantsReceipt ? undefined : heldMs });
        },
        peek: async (part) => ask(part, question("peek", part.limits, options)),
        recordsBefore: ({ limits: own }, { numbers, atMs }) =>
          options?.record === true
            ? recordsOf(question("take", own, options), numbers, 0, atMs, () => false)
            : undefined,
        before: ({ limits: own }, { held, plan }) =>
          held === undefined ? outcomesOf(own, plan!, false) : outcomesBefore(own, held),
        give: async (part, { receipt, replayed, held }) => {
          const whole = this.#wholeReceipt(part.lane, receipt);
          // What an earlier attempt was allowed stays allowed.
          if ((whole === undefined && held === undefined) || replayed) return;
          // A part that cannot be given back stays charged; the request was denied or failed all the same. It is gone on with
          // beyond the deadline, and its caller answered at it.
          const giving = (held === undefined ? this.#giveOne(whole!) : this.#giveHeld(part, held)).catch(() => false);
          const leftMs = Math.max(expiresMs() - performance.now(), 1);
          await within(giving, leftMs).catch(() => false);
        },
      },
      this.#deniers,
    );
    if (!wantsReceipt || held.size === 0) return answer;
    const receipts = [...held].map(([{ lane }, one]) => this.#wholeReceipt(lane, one.receipt));
    return { ...answer, receipt: receipts.join("+") };
  }

  /** A receipt says where it is good: cell, lane and name. */
  #wholeReceipt({ site, index }: PlacedLane, name: string | undefined): Receipt | undefined {
    if (name === undefined) return undefined;
    const cell = this.#sites().cells.findIndex((one) => one.site === site);
    return `r${cell + 1}.${index}.${name}`;
  }

  async #giveOne(receipt: string): Promise<boolean> {
    const [, cell, index, name] = /^r(\d+)\.(\d+)\.([\w-]+)$/.exec(receipt) ?? [];
    const { main, cells } = this.#sites();
    const site = Number(cell) === 0 ? main : cells[Number(cell) - 1]?.site;
    const lane = site?.lanes[Number(index)];
    if (site === undefined || lane === undefined || name === undefined) return false;
    return this.#callGive(site, lane.slot, "give", { keys: [lane.names.receipt(name)], args: [] });
  }

  /** Asks only who took it, as long as that remembers it. */
  async #giveHeld({ lane, limits }: Part, held: Held): Promise<boolean> {
    const call = encodeGiveBack(limits, held, lane.names);
    const untilMs = performance.now() + patienceMs;
    for (;;) {
      try {
        return await this.#callGive(lane.site, lane.slot, "giveArrivals", call, (shard) => isHeldBy(held, shard));
      } catch (error) {
        if (!isMoving(error) || performance.now() > untilMs) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  /** Whether anything could still be given back. */
  async #callGive(
    site: Site,
    slot: number,
    name: "give" | "giveArrivals",
    { keys, args }: Call,
    isAsked: (shard: Shard) => boolean = () => true,
  ): Promise<boolean> {
    const { tune } = this.#options;
    const script = (tune?.scripts ?? scripts)[name];
    const whole = tune === undefined ? args : [...args, ...tune.extraArguments()];
    const onLoad = (): void => {
      this.#counts.loads += 1;
    };
    const reply = await site.send(slot, patienceMs, async (shard) =>
      isAsked(shard) ? callScript(shard, slot, script, keys, whole, onLoad) : undefined,
    );
    return Array.isArray(reply) && reply[2] === 1;
  }

  #drain(site: Site): void {
    this.#draining.add(site);
    const untilMs = performance.now() + drainMs;
    const look = (): void => {
      if (!this.#draining.has(site)) return;
      if (!site.idle && performance.now() < untilMs) {
        setTimeout(look, 50);
        return;
      }
      this.#draining.delete(site);
      site.close();
    };
    look();
  }
}

/** Whether it is the server that took it, on the same connection. */
function isHeldBy({ shard: guard, connections }: Held, shard: Shard): boolean {
  return guard.shard === shard && guard.connections === connections;
}

/** Keys of one call are on two servers, because their slot is on the move. Nothing was done. */
function isMoving(error: unknown): boolean {
  return error instanceof Error && error.cause instanceof Error && error.cause.message.startsWith("TRYAGAIN");
}

function closedError(): StoreUnavailable {
  return new StoreUnavailable("storage_unavailable", "the counters were closed");
}

/** Braces would decide in which slot of a cluster keys live. */
function checkPrefix(prefix: string): void {
  if (/^[\w.:-]{1,64}$/.test(prefix)) return;
  const message = `must be 1 to 64 letters, digits, dots, colons, hyphens or underscores, not ${JSON.stringify(prefix)}`;
  throw new SluiceError("invalid_request", `prefix ${message}`, [{ path: ["prefix"], message }]);
}

function checkWhole(name: string, value: number | undefined, most: number): void {
  if (value === undefined || (Number.isInteger(value) && value >= 1 && value <= most)) return;
  const message = `must be a whole number from 1 to ${most}, not ${value}`;
  throw new SluiceError("invalid_request", `${name} ${message}`, [{ path: [name], message }]);
}

/** How long the caller waits: no longer than the server has. */
function waitOf(budgetMs: number, options: PeekOptions | undefined): number {
  return Math.min(budgetMs, options?.deadlineMs ?? budgetMs);
}

function question(
  operation: Question["operation"],
  limits: readonly ResolvedLimit[],
  options?: TakeOptions,
  receipt?: string,
): Question {
  return new GeneralQuestion(
    operation,
    limits,
    options?.id,
    options?.fingerprint ?? "",
    options?.idTtlMs ?? defaultIdTtlMs,
    receipt,
    options?.record === true,
  );
}

/** Whether one window is what the script of arrivals takes. */
function isOneArrival({ windows, limit }: Pick<ResolvedLimit, "windows" | "limit">): boolean {
  return windows.length === 1 && !limit.blockable && isArrival(windows[0]!);
}

function isArrival(window: CompiledWindow): boolean {
  return window.charges && codeOf(window).kind === kindNumber.arrival;
}

/** So many windows of one request go by the script of arrivals at most. */
const mostWindows = 16;

/** Whether all windows of several limits are what the script of arrivals takes, and no two of them share a counter. */
function areArrivals(limits: readonly ResolvedLimit[]): boolean {
  let count = 0;
  for (let i = 0; i < limits.length; i++) {
    const { limit, windows, subject, group } = limits[i]!;
    count += windows.length;
    if (group !== 0 || limit.blockable || limit.policy.countDenials || count > mostWindows) return false;
    for (let w = 0; w < windows.length; w++) {
      const window = windows[w]!;
      if (!isArrival(window)) return false;
      for (let other = 0; other < w; other++) if (windows[other]!.identity === window.identity) return false;
      for (let other = 0; other < i; other++) if (isOf(limits[other]!, window, subject)) return false;
    }
  }
  // A request of no limits at all has no key to be asked about.
  return count > 0;
}

/** Whether a limit is counted in the counter of this window and subject. */
function isOf(limit: ResolvedLimit, window: CompiledWindow, subject: string): boolean {
  return limit.subject === subject && limit.windows.some(({ identity }) => identity === window.identity);
}

async function reached(sites: readonly Site[], withinMs: number): Promise<void> {
  const untilMs = performance.now() + withinMs;
  while (!sites.every((site) => site.ready)) {
    if (performance.now() > untilMs) {
      const cause = sites.find((site) => !site.ready)?.lastError;
      throw new StoreUnavailable("storage_unavailable", `the servers could not be reached within ${withinMs} ms`, {
        cause,
      });
    }
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
