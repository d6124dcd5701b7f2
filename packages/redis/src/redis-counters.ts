import type { CheckRequest } from "sluice";
import { defaultDeadlineMs, Stalls } from "sluice/internal";
import type {
  CentralCounters,
  CompiledLimit,
  CompiledWindow,
  LeaseAnswer,
  LeaseAsk,
  LimitOfSubject,
  PeekOptions,
  Receipt,
  ResolvedLimit,
  TakeAnswer,
  TakeOptions,
  WindowReading,
} from "sluice/store";
import { checkLeaseAsk, isRecorded, type SingleTakes, type TakeCallback, wholeAnswer } from "sluice/store";
import { decodeReadings } from "./ask/decode-reply.ts";
import { blockKey, recordKey } from "./ask/encode-call.ts";
import type { AskCounts } from "./ask/lane.ts";
import { newName } from "./ask/new-name.ts";
import { ArrivalQuestion, ArrivalsQuestion, CountsQuestion, createQuestion } from "./ask/question.ts";
import { RunDelay } from "./ask/run-delay.ts";
import { findCode } from "./ask/window-code.ts";
import { type RedisServers, renderServers, serversFrom } from "./connect/redis-servers.ts";
import { RedisHolds } from "./holds.ts";
import { openTopology } from "./open-topology.ts";
import { OutageWarnings } from "./outage-warnings.ts";
import { PartTakes } from "./part-takes.ts";
import { Receipts } from "./receipts.ts";
import {
  checkDeadline,
  checkRedisOptions,
  defaultPrefix,
  type RedisCountersOptions,
  type RedisTestOptions,
} from "./redis-counters-options.ts";
import { type PlacedLane, type ShardStatus, Site } from "./site.ts";
import { closedError, Sites } from "./sites.ts";
import { AcrossTake, LastDeniers } from "./take-across.ts";
import { findTakeScript, isOneArrival } from "./which-script.ts";

export interface RedisCountersStats extends Readonly<AskCounts> {
  /** How long this process was noticed not to run while a question was due to be sent or given up. */
  readonly stalledMs: number;
  /** Questions that wait for their turn, and calls in flight. */
  readonly waiting: number;
  readonly inFlight: number;
  readonly shards: readonly (ShardStatus & { readonly cell: string | undefined })[];
}

const defaultConnectionAgeMs = 60 * 60 * 1000;
/** For everything but checks: giving back, charging, blocking, resetting, reading. */
const patienceMs = 1000;
const reachWithinMs = 5000;

/**
 * Counters in Valkey or Redis, shared by every process that uses the same servers and prefix. Each request is one
 * atomic script call; requests that arrive together travel together. Nothing is opened until the first question, or a
 * call of `open` or `connected`. See docs/redis.md.
 */
export class RedisCounters implements CentralCounters, SingleTakes {
  readonly local = false;
  readonly reportsOutages = true;
  readonly distinct = true;
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
  readonly #sites: Sites;
  readonly #receipts: Receipts;
  readonly holds: RedisHolds;
  readonly #warnings: OutageWarnings | undefined;

  constructor(options: RedisCountersOptions & RedisTestOptions) {
    checkRedisOptions(options);
    this.#options = options;
    // Every address is parsed before anything is opened: a wrong one leaves no connection behind.
    const servers = serversFrom(options.servers);
    const cells = (options.cells ?? []).map((cell) => ({ cell, servers: serversFrom(cell.servers) }));
    this.#sites = new Sites({ servers, cells, openSite: (one) => this.#openSite(one) });
    this.#receipts = new Receipts({ sites: this.#sites, counts: this.#counts, patienceMs, tune: options.tune });
    this.holds = new RedisHolds({ sites: this.#sites, counts: this.#counts, patienceMs, tune: options.tune });
    const warns = options.warn ?? options.onEvent === undefined;
    this.#warnings = warns ? this.#createWarnings([servers, ...cells.map((one) => one.servers)]) : undefined;
  }

  get stats(): RedisCountersStats {
    const queues = this.#sites.all.map((site) => site.queue);
    return {
      ...this.#counts,
      stalledMs: this.#stalls.totalMs,
      waiting: queues.reduce((sum, queue) => sum + queue.waiting, 0),
      inFlight: queues.reduce((sum, queue) => sum + queue.inFlight, 0),
      shards: this.#sites.shards,
    };
  }

  /** Whether every counter has a connected server with its breaker closed. False until the first question. */
  get ready(): boolean {
    return this.#sites.ready;
  }

  /**
   * Asks every connected server for its time, so that `stats` show its latency and clock even without other traffic.
   */
  measure(): void {
    if (this.#options.tune === undefined) this.#sites.measure();
  }

  /** Asks every connected server about its load, so that `stats` show it. One that does not answer is asked no more. */
  sampleLoad(): void {
    this.#sites.sampleLoad();
  }

  /** The server that holds a counter, as `stats.shards` names it; undefined while that is not known. */
  findShard(asked: LimitOfSubject): { readonly name: string; readonly cell: string | undefined } | undefined {
    return this.#sites.findShard(asked);
  }

  /** Connects now, rather than with the first question. */
  open(): void {
    this.#sites.open();
  }

  /**
   * Connects, and resolves when the servers are connected or rejects when that takes too long. Checks need not wait for
   * it, but the first of them waits for a connection as well, within its own deadline.
   */
  connected(withinMs: number = reachWithinMs): Promise<void> {
    return this.#sites.connected(withinMs);
  }

  /**
   * Switches to other servers: connects to them, then asks only them, while the old ones finish their pending
   * questions. Rejects, and stays with the old ones, if the new ones cannot be reached.
   */
  async useServers(servers: string | RedisServers, withinMs: number = reachWithinMs): Promise<void> {
    await this.#sites.replace(serversFrom(servers), withinMs);
    this.#warnings?.look();
  }

  /**
   * Changes the deadline, and the breakers' failures in a row and time between probes, without reconnecting or failing
   * a check.
   */
  useTimes({ deadlineMs, breaker }: Pick<RedisCountersOptions, "deadlineMs" | "breaker">): void {
    checkDeadline(deadlineMs);
    this.#options = { ...this.#options, deadlineMs, breaker };
    this.#sites.useBreaker(breaker ?? {});
  }

  takeOne<T>(
    limit: CompiledLimit,
    windows: readonly CompiledWindow[],
    subject: string,
    cost: number,
    request: CheckRequest,
    callback: TakeCallback<T>,
  ): Promise<T> {
    const question = new ArrivalQuestion(limit, windows, subject, cost, request, callback as TakeCallback<unknown>);
    if (isOneArrival(question)) return this.#takeArrival(question);
    const { deadlineMs } = request;
    return this.#takeAny([question], deadlineMs === undefined ? undefined : { deadlineMs }).then(
      ({ outcomes, atMs, order = 0 }) => callback.decide(limit, subject, cost, { ...outcomes[0]!, atMs, order }),
      (error: unknown) => callback.fail(request, error),
    );
  }

  take(limits: readonly ResolvedLimit[], options?: TakeOptions): Promise<TakeAnswer> {
    if (this.#sites.neverOpened) return Promise.reject(closedError());
    const only = limits.length === 1 && options?.id === undefined && options?.receipt !== true ? limits[0] : undefined;
    if (only === undefined || only.group !== 0 || !isOneArrival(only) || isRecorded(only, options?.record))
      return this.#takeAny(limits, options);
    const { limit, windows, subject, cost } = only;
    const request = { deadlineMs: options?.deadlineMs };
    return this.#takeArrival(new ArrivalQuestion(limit, windows, subject, cost, request, wholeAnswer));
  }

  /** From one window of arrival times. Its promise resolves with what the question's callback makes of the answer. */
  #takeArrival<T>(question: ArrivalQuestion): Promise<T> {
    const budgetMs = question.limit.policy.deadlineMs ?? this.#options.deadlineMs ?? defaultDeadlineMs;
    const waitMs = Math.min(budgetMs, question.request.deadlineMs ?? budgetMs);
    return this.#sites.findLane(question).lane.askArrival(question, budgetMs, waitMs) as Promise<T>;
  }

  /** From any windows, by the script that can do it. */
  #takeAny(limits: readonly ResolvedLimit[], options: TakeOptions | undefined): Promise<TakeAnswer> {
    if (this.#sites.neverOpened) return Promise.reject(closedError());
    const lane = this.#sites.findOnlyLane(limits);
    const receipt = options?.receipt === true ? newName() : undefined;
    const budgetMs = this.#findDeadline(limits);
    const waitMs = waitWithin(budgetMs, options);
    if (lane === undefined) return this.#takeAcross(limits, options, budgetMs, waitMs);
    const isPlain = options?.id === undefined && receipt === undefined && options?.record !== true;
    const script = isPlain ? findTakeScript(limits) : undefined;
    if (script === "takeArrivals") return lane.lane.ask(new ArrivalsQuestion(limits), budgetMs, waitMs);
    if (script === "takeCounts") return lane.lane.ask(new CountsQuestion(limits), budgetMs, waitMs);
    const answer = lane.lane.ask(createQuestion("take", limits, options, receipt), budgetMs, waitMs);
    return receipt === undefined && options?.id === undefined
      ? answer
      : answer.then((one) => ({ ...one, receipt: this.#renderReceipt(lane, one.receipt, options) }));
  }

  #takeAcross(
    limits: readonly ResolvedLimit[],
    options: TakeOptions | undefined,
    budgetMs: number,
    waitMs: number,
  ): Promise<TakeAnswer> {
    const receipts = this.#receipts;
    const { holds } = this;
    const asker = new PartTakes({
      sites: this.#sites,
      receipts,
      holds,
      stalls: this.#stalls,
      options,
      budgetMs,
      waitMs,
    });
    const across = new AcrossTake(this.#sites.parts(limits), asker, this.#deniers);
    if (options?.receipt !== true) return across.run();
    return across.run().then((answer) => {
      const { held } = across;
      if (held.length === 0) return answer;
      const receipt = receipts.join(
        held.map(({ part, answer: one }) => this.#renderReceipt(part.lane, one.receipt, options)),
      );
      return { ...answer, receipt };
    });
  }

  #renderReceipt(lane: PlacedLane, name: string | undefined, options: TakeOptions | undefined): Receipt | undefined {
    if (options?.holdMs === undefined) return this.#receipts.render(lane, name);
    if (name !== undefined) this.holds.note(lane, options.holdMs);
    return this.#receipts.render(lane, name, "h");
  }

  async peek(limits: readonly ResolvedLimit[], options?: PeekOptions): Promise<TakeAnswer> {
    const budgetMs = this.#findDeadline(limits);
    const waitMs = waitWithin(budgetMs, options);
    const lane = this.#sites.findOnlyLane(limits);
    if (lane !== undefined) return lane.lane.ask(createQuestion("peek", limits, options), budgetMs, waitMs);
    const parts = this.#sites.laneParts(limits);
    const answers = await Promise.all(
      parts.map((part) => part.lane.lane.ask(createQuestion("peek", part.limits, options), budgetMs, waitMs)),
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
    const kept = answers.some((answer) => answer.records !== undefined) ? records : undefined;
    return { taken: false, atMs, outcomes, receipt: undefined, replayed: false, records: kept };
  }

  give(receipt: Receipt): Promise<boolean> {
    return this.#receipts.give(receipt);
  }

  async charge(limits: readonly ResolvedLimit[]): Promise<void> {
    const parts = this.#sites.laneParts(limits);
    await Promise.all(parts.map(({ lane, limits: own }) => lane.lane.ask(createQuestion("charge", own), patienceMs)));
  }

  async block(limits: readonly ResolvedLimit[], forMs: number): Promise<void> {
    const parts = this.#sites.laneParts(limits.filter(({ limit }) => limit.blockable));
    await Promise.all(
      parts.map(({ lane, limits: own }) => lane.lane.ask({ ...createQuestion("block", own), forMs }, patienceMs)),
    );
  }

  async reset(limits: readonly ResolvedLimit[]): Promise<void> {
    await Promise.all(
      this.#sites.laneParts(limits).map(({ lane, limits: own }) => {
        const keys = own.flatMap(({ limit, windows, subject }) => [
          ...windows.flatMap((window) => {
            const { code } = findCode(window);
            const { names } = lane;
            if (window.kind === "distinct") return [names.counter(code, subject), names.values(code, subject)];
            return [names.counter(code, subject), names.mark(code, subject), names.held(code, subject)];
          }),
          blockKey(lane.names, limit, subject),
          recordKey(lane.names, limit, subject),
        ]);
        return lane.site.send(lane.slot, patienceMs, (shard) => shard.send(lane.slot, ["UNLINK", ...keys]));
      }),
    );
  }

  async read(limit: ResolvedLimit): Promise<readonly WindowReading[]> {
    const { lane } = this.#sites.findLane(limit);
    return decodeReadings(limit, await lane.ask(createQuestion("peek", [limit]), patienceMs));
  }

  /** Limits that do not all live in one place are not leased: no server is asked. */
  async lease(limits: readonly ResolvedLimit[], ask: LeaseAsk): Promise<LeaseAnswer> {
    checkLeaseAsk(ask);
    const lane = this.#sites.findOnlyLane(limits);
    if (lane === undefined || limits.length === 0) {
      return { granted: 0, epoch: 0, atMs: Date.now(), outcomes: [], unspent: 0, forgotten: 0 };
    }
    const budgetMs = this.#findDeadline(limits);
    const asked = { ...createQuestion("lease", limits), ask };
    // No request waits for it, and units granted by a lost answer are lost until the ledger forgets them.
    const { atMs, outcomes, grant } = await lane.lane.ask(asked, budgetMs, Math.max(budgetMs, patienceMs));
    return { ...grant!, atMs, outcomes };
  }

  async close(): Promise<void> {
    this.holds.close();
    this.#sites.close();
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
        if (!this.#sites.closed) this.#warnings?.onEvent(event);
      },
      tune: this.#options.tune,
    });
  }

  #createWarnings(all: readonly RedisServers[]): OutageWarnings {
    return new OutageWarnings({
      servers: all.map(renderServers).join(" and "),
      secrets: all.flatMap(({ password = "", sentinelPassword = "" }) => [password, sentinelPassword]),
      ready: () => this.ready,
      nowMs: () => performance.now(),
      warn: (message) => process.emitWarning(message, { type: "SluiceWarning", code: "SLUICE_OUTAGE" }),
    });
  }

  #findDeadline(limits: readonly ResolvedLimit[]): number {
    let shortest: number | undefined;
    for (const { limit, group } of limits) {
      const { deadlineMs } = limit.policy;
      // Shadow changes nothing.
      if (group !== 0) continue;
      if (deadlineMs !== undefined && (shortest === undefined || deadlineMs < shortest)) shortest = deadlineMs;
    }
    return shortest ?? this.#options.deadlineMs ?? defaultDeadlineMs;
  }
}

/** How long the caller waits: no longer than the server has. */
function waitWithin(budgetMs: number, options: PeekOptions | undefined): number {
  return Math.min(budgetMs, options?.deadlineMs ?? budgetMs);
}
