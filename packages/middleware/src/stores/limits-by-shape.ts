import { createHash } from "node:crypto";
import {
  type Algorithm,
  type CounterStore,
  createLimiter,
  type Decision,
  type Limiter,
  MemoryCounters,
  SluiceError,
  StoreUnavailable,
} from "sluice";
import { type FailMode, maxBlockMs, maxCost } from "sluice/internal";
import type { Receipt, StoreUnavailableReason } from "sluice/store";
import { warnOncePerMinute } from "../warn-once-per-minute.ts";
import { subjectFromKey } from "./subject-from-key.ts";

/** The options of every drop-in store. */
export interface StoreOptions {
  /** Where counters live. Default: in this process's memory. */
  readonly counters?: CounterStore | undefined;
  /** Keeps these counters separate from all others. Required if counters are shared, such as in Redis. */
  readonly prefix?: string | undefined;
  /** Default: `fixed_window`, whose windows begin at whole multiples of their length since 1970. */
  readonly algorithm?: Algorithm | undefined;
  /** What happens while counters are unavailable. Default: `open`, everything passes. `closed` rejects with an error. */
  readonly onFailure?: FailMode | undefined;
  /**
   * Called for each hit that was decided without the counters; must not throw. Default: a process warning, at most once a
   * minute, unless the counters report outages themselves.
   */
  readonly onDegraded?: ((reason: StoreUnavailableReason) => void) | undefined;
}

/**
 * `error` is for libraries that have an option for failing stores: the store rejects with a plain error, and the library
 * applies its option. `closed` is the same with the status 503.
 */
export interface LimitsOptions extends Omit<StoreOptions, "onFailure"> {
  readonly onFailure?: FailMode | "error" | undefined;
}

/** One limit, as libraries pass it to their stores with every hit. */
export interface LimitShape {
  /** How long a window lasts. Infinity: used cost never comes back. */
  readonly windowMs: number;
  /** Infinity: counts, and never denies. */
  readonly limit: number;
  /** After a denial the key is blocked for this long. Absent or 0: no block. */
  readonly blockForMs?: number | undefined;
  /** Whether keys can also be blocked by `block`. */
  readonly blockable?: boolean | undefined;
}

export interface Hit {
  /** Default: 1. */
  readonly cost?: number | undefined;
  readonly receipt?: boolean | undefined;
}

/** The library's option names for a window's length and a block's, for error messages. */
export interface ShapeNames {
  readonly windowMs: string;
  readonly blockForMs: string;
}

const ownNames: ShapeNames = { windowMs: "windowMs", blockForMs: "blockForMs" };
const defaultAlgorithm: Algorithm = "fixed_window";
const maxShapes = 100;
const maxClaims = 1000;
/** The policies that have a store in this process already, by counters. */
const claims = new WeakMap<CounterStore, Set<string>>();
/** The bounds that policies have; higher limits are never reached. */
const maxPerMs = 10_000;
const maxLimit = 1e12;
const dayMs = 24 * 60 * 60 * 1000;
const maxWindowDays = 3_653;
const maxBlockForDays = 366;
export const maxBlockForMs: number = maxBlockForDays * dayMs;
/** `empty` gives back at most this often: 6 400 000 in all. */
const maxGiveBacks = 64;

/**
 * Limiters for libraries that pass window and limit with every hit instead of beforehand: one per shape, the hundred used
 * last, all over the same counters. A counter belongs to prefix, window length and key, not to the limit, so a key whose
 * limit changes keeps its usage. Dropping a limiter drops no counter.
 */
export class LimitsByShape {
  readonly counters: CounterStore;
  readonly #policy: string;
  readonly #options: LimitsOptions;
  readonly #names: ShapeNames;
  readonly #limiters = new Map<string, Limiter>();

  /** `library` is the library whose store this is: equal prefixes of two libraries stay separate. */
  constructor(library: string, options: LimitsOptions, names: ShapeNames = ownNames) {
    this.counters = options.counters ?? new MemoryCounters();
    if (!this.counters.local && options.prefix === undefined) {
      throw wrongOption("prefix", "is required if counters are shared, so that no other store counts in the same ones");
    }
    this.#policy = policyId(library, options.prefix ?? "");
    this.#options = options;
    this.#names = names;
  }

  /**
   * Takes in one atomic call, synchronously if counters are in this process. A denial is a value, and takes nothing. If
   * counters are unavailable, `onFailure` decides; `closed` and `error` throw (or reject with) `StoreUnavailable`.
   */
  hit(key: string, shape: LimitShape, { cost, receipt }: Hit = {}): Decision | Promise<Decision> {
    const limiter = this.limiterFor(shape);
    const request = { dimensions: this.dimensionsFor(key), cost, receipt };
    if (this.counters.local) return this.#checked(limiter.checkSync(request));
    return limiter.check(request).then((decision) => this.#checked(decision));
  }

  /** Decides about a cost without taking it. */
  async peek(key: string, shape: LimitShape, cost = 0): Promise<Decision> {
    return this.#checked(await this.limiterFor(shape).peek({ dimensions: this.dimensionsFor(key), cost }));
  }

  /** Takes unconditionally; gives back if the cost is negative. False if counters were unavailable. */
  charge(key: string, shape: LimitShape, cost: number): Promise<boolean> {
    return this.#attempt(this.limiterFor(shape).charge({ dimensions: this.dimensionsFor(key), cost }));
  }

  /** Gives a hit back by its receipt, once. False also if there was nothing left to give back. */
  give(receipt: Receipt, shape: LimitShape): Promise<boolean> {
    return this.#attempt(this.limiterFor(shape).give(receipt));
  }

  /** False if counters were unavailable. The shape must be `blockable`, here and in `hit`. */
  block(key: string, shape: LimitShape, forMs: number): Promise<boolean> {
    const whole = Math.min(Math.max(Math.ceil(forMs), 1), maxBlockMs);
    return this.#attempt(this.limiterFor(shape).block({ dimensions: this.dimensionsFor(key) }, whole));
  }

  /**
   * Gives back all that the key has used, `used` in total, and leaves its block in place. Never throws: usage that cannot be
   * given back stays until its window ends. False if counters were unavailable, which is reported.
   */
  async empty(key: string, shape: LimitShape, used: number): Promise<boolean> {
    const dimensions = this.dimensionsFor(key);
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

  /** Forgets the key's usage, and lifts its block. False if counters were unavailable. */
  reset(key: string, shape: LimitShape): Promise<boolean> {
    return this.#attempt(this.limiterFor(shape).reset({ dimensions: this.dimensionsFor(key) }));
  }

  /** Claims these counters for this store. A second store in this process that claims the same ones causes a warning. */
  claim(): void {
    const claimed = claims.get(this.counters) ?? new Set();
    if (claimed.has(this.#policy)) {
      const { prefix = "" } = this.#options;
      const shared = `two stores share the counters of prefix ${JSON.stringify(prefix)}`;
      warnOncePerMinute("SLUICE_SHARED_COUNTERS", `${shared}; give each a different prefix`);
    }
    if (claimed.size < maxClaims) claims.set(this.counters, claimed.add(this.#policy));
  }

  disclaim(): void {
    claims.get(this.counters)?.delete(this.#policy);
  }

  dimensionsFor(key: string): { readonly key: string } {
    return { key: subjectFromKey(key) };
  }

  limiterFor({ windowMs, limit, blockForMs = 0, blockable = false }: LimitShape): Limiter {
    const shape = `${windowMs} ${limit} ${blockForMs} ${blockable}`;
    let limiter = this.#limiters.get(shape);
    if (limiter === undefined) limiter = this.#createLimiter(windowMs, limit, blockForMs, blockable);
    else if (this.#limiters.size > 1) this.#limiters.delete(shape);
    else return limiter;
    // Recently used limiters are last.
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
      // A read right after a take sees that take.
      previewCacheMs: 0,
    });
  }

  #checked(decision: Decision): Decision {
    const { degraded, reason, allowed } = decision;
    // Decisions of a limiter created here are never forced.
    if (degraded === undefined || degraded === "kill_switch") return decision;
    this.#report(degraded);
    if (reason !== "degraded" || allowed) return decision;
    // Frameworks answer with the status that an error carries, or with 500.
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
    else warnOncePerMinute("SLUICE_DEGRADED", `counters are unavailable (${reason}); ${this.#whatNow()}`);
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

/** Whether counters of this algorithm record usage independently of the limit, so that a limit of Infinity only counts. */
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

/** An id unique to library and prefix. A prefix that is not a valid id is replaced by its hash. */
function policyId(library: string, prefix: string): string {
  if (/^[A-Za-z0-9._:/@-]{0,80}$/.test(prefix)) return `${library}:${prefix}`;
  return `${library}@${createHash("sha256").update(prefix, "utf16le").digest("hex")}`;
}

export function wrongOption(name: string, message: string): SluiceError {
  return new SluiceError("invalid_policies", `${name} ${message}`, [{ path: [name], message }]);
}
