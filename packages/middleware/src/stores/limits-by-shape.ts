import { createHash } from "node:crypto";
import {
  type Algorithm,
  type CounterStore,
  createLimiter,
  type Decision,
  type FailMode,
  type Limiter,
  MemoryCounters,
  maxBlockMs,
  maxCost,
  type Receipt,
  SluiceError,
  StoreUnavailable,
  type StoreUnavailableReason,
} from "sluice";
import { warnOfProcess } from "../warn-of-process.ts";
import { subjectOfKey } from "./subject-of-key.ts";

/** What every drop-in store can be told. */
export interface StoreOptions {
  /** Where counters live. Absent: in this process's memory. */
  readonly counters?: CounterStore | undefined;
  /** Keeps these counters apart from all others. Must be given where counters are shared, with Redis say. */
  readonly prefix?: string | undefined;
  /** Absent: `fixed_window`, whose windows begin at whole multiples of their length since 1970. */
  readonly algorithm?: Algorithm | undefined;
  /** What happens when counters cannot be asked. Absent: `open`, everything passes. `closed` rejects with an error. */
  readonly onFailure?: FailMode | undefined;
  /** Hears of each hit that was decided without the counters; must not throw. Absent: a warning of the process, once a minute at most, unless the counters report outages themselves. */
  readonly onDegraded?: ((reason: StoreUnavailableReason) => void) | undefined;
}

/**
 * `error` is for libraries that have an option for failing stores: the store rejects with a plain error, and the library does what
 * its option says. `closed` is the same with the status 503.
 */
export interface LimitsOptions extends Omit<StoreOptions, "onFailure"> {
  readonly onFailure?: FailMode | "error" | undefined;
}

/** One limit, as libraries hand it to their stores with every hit. */
export interface LimitShape {
  /** How long a window lasts. Infinity: what is used never comes back. */
  readonly windowMs: number;
  /** Infinity counts only. */
  readonly limit: number;
  /** After a denial the key is denied for this long. Absent or 0: not at all. */
  readonly blockForMs?: number | undefined;
  /** Whether keys are blocked by hand, too. */
  readonly blockable?: boolean | undefined;
}

export interface Hit {
  /** Absent: 1. */
  readonly cost?: number | undefined;
  readonly receipt?: boolean | undefined;
}

/** What a library calls a window's length and a block's, for messages. */
export interface ShapeNames {
  readonly windowMs: string;
  readonly blockForMs: string;
}

const ownNames: ShapeNames = { windowMs: "windowMs", blockForMs: "blockForMs" };
const defaultAlgorithm: Algorithm = "fixed_window";
const maxShapes = 100;
const maxClaims = 1000;
/** Which policies over which counters have a store in this process already. */
const claims = new WeakMap<CounterStore, Set<string>>();
/** The bounds that policies have; what lies beyond is never reached. */
const maxPerMs = 10_000;
const maxLimit = 1e12;
const dayMs = 24 * 60 * 60 * 1000;
const maxWindowDays = 3_653;
const maxBlockForDays = 366;
export const maxBlockForMs: number = maxBlockForDays * dayMs;
/** `empty` gives back this often at most: 6 400 000 in all. */
const maxGiveBacks = 64;

/**
 * Limiters for libraries that name window and limit with every hit instead of beforehand: one for each shape, the hundred used
 * last, all over the same counters. A counter belongs to prefix, window length and key, not to the limit, so that a key
 * whose limit changes keeps what it has used; a limiter that is forgotten takes no counter with it.
 */
export class LimitsByShape {
  readonly counters: CounterStore;
  readonly #policy: string;
  readonly #options: LimitsOptions;
  readonly #names: ShapeNames;
  readonly #limiters = new Map<string, Limiter>();

  /** `family` is the library whose store this is: the same prefix in two families is not the same. */
  constructor(family: string, options: LimitsOptions, names: ShapeNames = ownNames) {
    this.counters = options.counters ?? new MemoryCounters();
    if (!this.counters.local && options.prefix === undefined) {
      throw wrongOption(
        "prefix",
        "must be given where counters are shared, so that no other store counts in the same ones",
      );
    }
    this.#policy = policyId(family, options.prefix ?? "");
    this.#options = options;
    this.#names = names;
  }

  /**
   * Takes, in one atomic call, at once where counters are in this process. A denial is a value, and takes nothing. Where
   * counters cannot be asked, `onFailure` answers; by `closed` and `error` it throws (or rejects with) `StoreUnavailable`.
   */
  hit(key: string, shape: LimitShape, { cost, receipt }: Hit = {}): Decision | Promise<Decision> {
    const limiter = this.limiterFor(shape);
    const request = { dimensions: this.dimensionsOf(key), cost, receipt };
    if (this.counters.local) return this.#checked(limiter.checkSync(request));
    return limiter.check(request).then((decision) => this.#checked(decision));
  }

  /** How a key stands to a cost; nothing is taken. */
  async peek(key: string, shape: LimitShape, cost = 0): Promise<Decision> {
    return this.#checked(await this.limiterFor(shape).peek({ dimensions: this.dimensionsOf(key), cost }));
  }

  /** Takes unconditionally; gives back where the cost is below 0. False where counters could not be asked. */
  charge(key: string, shape: LimitShape, cost: number): Promise<boolean> {
    return this.#attempt(this.limiterFor(shape).charge({ dimensions: this.dimensionsOf(key), cost }));
  }

  /** Gives a hit back by its receipt, once. False as well where there was nothing left to give back. */
  give(receipt: Receipt, shape: LimitShape): Promise<boolean> {
    return this.#attempt(this.limiterFor(shape).give(receipt));
  }

  /** False where counters could not be asked. The shape must be `blockable`, here and where it is hit. */
  block(key: string, shape: LimitShape, forMs: number): Promise<boolean> {
    const whole = Math.min(Math.max(Math.ceil(forMs), 1), maxBlockMs);
    return this.#attempt(this.limiterFor(shape).block({ dimensions: this.dimensionsOf(key) }, whole));
  }

  /**
   * Gives back everything that the key has used, of which there is `used`, and leaves its block in place. Never throws: what cannot
   * be given back stays used until its window ends. False where counters could not be asked, which is reported.
   */
  async empty(key: string, shape: LimitShape, used: number): Promise<boolean> {
    const dimensions = this.dimensionsOf(key);
    try {
      for (let left = used, i = 0; left > 0 && i < maxGiveBacks; left -= maxCost, i++) {
        await this.limiterFor(shape).charge({ dimensions, cost: -maxCost });
      }
      return true;
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      this.#report(error.reason);
      return false;
    }
  }

  /** Forgets what the key has used, and lifts its block. False where counters could not be asked. */
  reset(key: string, shape: LimitShape): Promise<boolean> {
    return this.#attempt(this.limiterFor(shape).reset({ dimensions: this.dimensionsOf(key) }));
  }

  /** Says that these counters are this store's own: who claims the same ones in this process is warned of. */
  claim(): void {
    const claimed = claims.get(this.counters) ?? new Set();
    if (claimed.has(this.#policy)) {
      const { prefix = "" } = this.#options;
      const shared = `two stores count in the same counters, those of prefix ${JSON.stringify(prefix)}`;
      warnOfProcess("SLUICE_SHARED_COUNTERS", `${shared}; give each a prefix of its own`);
    }
    if (claimed.size < maxClaims) claims.set(this.counters, claimed.add(this.#policy));
  }

  disclaim(): void {
    claims.get(this.counters)?.delete(this.#policy);
  }

  dimensionsOf(key: string): { readonly key: string } {
    return { key: subjectOfKey(key) };
  }

  limiterFor({ windowMs, limit, blockForMs = 0, blockable = false }: LimitShape): Limiter {
    const shape = `${windowMs} ${limit} ${blockForMs} ${blockable}`;
    let limiter = this.#limiters.get(shape);
    if (limiter === undefined) limiter = this.#createLimiter(windowMs, limit, blockForMs, blockable);
    else if (this.#limiters.size > 1) this.#limiters.delete(shape);
    else return limiter;
    // What was used last stands last.
    this.#limiters.set(shape, limiter);
    if (this.#limiters.size > maxShapes) {
      for (const oldest of this.#limiters.keys()) {
        this.#limiters.delete(oldest);
        break;
      }
    }
    return limiter;
  }

  #createLimiter(windowMs: number, limit: number, blockForMs: number, blockable: boolean): Limiter {
    const { algorithm = defaultAlgorithm, onFailure = "open" } = this.#options;
    const one = {
      by: ["key"],
      algorithm,
      windows: [window(this.#names.windowMs, windowMs, limit)],
      block_for: `${wholeMs(this.#names.blockForMs, blockForMs, maxBlockForDays)}ms`,
      blockable,
    };
    return createLimiter({
      counters: this.counters,
      policies: {
        policies: [{ id: this.#policy, limits: [one], on_failure: onFailure === "error" ? "closed" : onFailure }],
      },
      // Who has just taken sees it when looking.
      previewCacheMs: 0,
    });
  }

  #checked(decision: Decision): Decision {
    const { degraded, reason, allowed } = decision;
    // Nobody forces decisions of a limiter that is made here.
    if (degraded === undefined || degraded === "kill_switch") return decision;
    this.#report(degraded);
    if (reason !== "degraded" || allowed) return decision;
    // Frameworks answer with the status that an error carries, and with 500 where it carries none.
    const error = new StoreUnavailable(degraded);
    throw this.#options.onFailure === "error" ? error : Object.assign(error, { statusCode: 503 });
  }

  async #attempt(asked: Promise<unknown>): Promise<boolean> {
    try {
      return (await asked) !== false;
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      this.#report(error.reason);
      if (this.#options.onFailure === "closed" || this.#options.onFailure === "error") throw error;
      return false;
    }
  }

  #report(reason: StoreUnavailableReason): void {
    const { onDegraded } = this.#options;
    if (onDegraded !== undefined) onDegraded(reason);
    // One outage, one warning: these counters report it, with its cause and its end. A timeout need not be an outage.
    else if (this.counters.reportsOutages === true && reason === "storage_unavailable") return;
    else warnOfProcess("SLUICE_DEGRADED", `counters could not be asked (${reason}); ${this.#whatNow()}`);
  }

  #whatNow(): string {
    const { onFailure = "open" } = this.#options;
    switch (onFailure) {
      case "open":
        return "requests pass without being counted";
      case "closed":
        return "requests are refused";
      case "error":
        return "the rate limiting library gets an error";
      case "local":
        return "this process counts on its own";
    }
  }
}

/** Whether counters of this algorithm know how much was used, whatever the limit is: a limit of Infinity then only counts. */
export function countsWithoutLimit(algorithm: Algorithm = defaultAlgorithm): boolean {
  return algorithm === "fixed_window" || algorithm === "sliding_window" || algorithm === "sliding_log";
}

function window(name: string, windowMs: number, limit: number): object {
  if (Number.isNaN(limit)) throw wrongOption("limit", "must be a number");
  const ms = windowMs === Number.POSITIVE_INFINITY ? undefined : Math.max(wholeMs(name, windowMs, maxWindowDays), 1);
  const most = Math.min(maxLimit, ms === undefined ? maxLimit : ms * maxPerMs);
  return { limit: Math.min(Math.max(Math.floor(limit), 0), most), per: ms === undefined ? "never" : `${ms}ms` };
}

function wholeMs(name: string, ms: number, maxDays: number): number {
  if (!(ms >= 0)) throw wrongOption(name, `must be a number of milliseconds, not ${ms}`);
  if (ms > maxDays * dayMs) throw wrongOption(name, `must be at most ${maxDays} days, not ${ms} ms`);
  return Math.ceil(ms);
}

/** An id that no other family and prefix have: prefixes that are no ids themselves, by their hash. */
function policyId(family: string, prefix: string): string {
  if (/^[A-Za-z0-9._:/@-]{0,80}$/.test(prefix)) return `${family}:${prefix}`;
  return `${family}@${createHash("sha256").update(prefix, "utf16le").digest("hex")}`;
}

export function wrongOption(name: string, message: string): SluiceError {
  return new SluiceError("invalid_policies", `${name} ${message}`, [{ path: [name], message }]);
}
