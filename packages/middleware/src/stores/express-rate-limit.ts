import { AsyncLocalStorage } from "node:async_hooks";
import type { Request, RequestHandler, Response } from "express";
import {
  type ClientRateLimitInfo,
  type Options,
  type RateLimitRequestHandler,
  type Store,
  rateLimit as theirRateLimit,
} from "express-rate-limit";
import type { Algorithm, Decision } from "sluice";
import { warnOncePerMinute } from "../warn-once-per-minute.ts";
import {
  countsWithoutLimit,
  type LimitShape,
  LimitsByShape,
  type StoreOptions,
  wrongOption,
} from "./limits-by-shape.ts";

export * from "express-rate-limit";
export type { StoreOptions } from "./limits-by-shape.ts";
export { rateLimit as default };

/** What `rateLimit` and its store know of one request. */
class RequestInHand {
  readonly store: SluiceStore;
  /** Whether the hit may have to be given back. */
  readonly givesBack: boolean;
  /** Set if it depends on the request. */
  limit: number | undefined;
  #give: (() => Promise<unknown>) | undefined;
  #isOver = false;

  constructor(store: SluiceStore, givesBack: boolean) {
    this.store = store;
    this.givesBack = givesBack;
  }

  /** The hit was charged, and `give` undoes that. The answer may end before the hit does. */
  charged(give: () => Promise<unknown>): void {
    this.#give = give;
    if (this.#isOver) this.giveBack();
  }

  giveBack(): void {
    const give = this.#give;
    this.#isOver = true;
    this.#give = undefined;
    give?.().catch(reportGiveBack);
  }
}

const inHand = new AsyncLocalStorage<RequestInHand>();

/**
 * A store for express-rate-limit 7 and 8, in memory or in `counters`. Each hit is one atomic call; hits beyond the limit
 * are not charged, and `totalHits` is then the limit plus how many this process has refused the key in a row. Windows are
 * exact to the millisecond, counters expire, and in memory they are bounded.
 *
 * express-rate-limit does not pass its stores a limit that is a function, and takes hits back without saying which
 * (`skipFailedRequests`, `skipSuccessfulRequests`). `rateLimit` of this module does. With express-rate-limit's own
 * `rateLimit`, the store then counts every hit, as other stores do, by `fixed_window`, `sliding_window` or `sliding_log`.
 *
 * It does not pass on `passOnStoreError` either. `rateLimit` of this module does: the store then rejects while counters are
 * unavailable, and express-rate-limit applies its option. With express-rate-limit's own `rateLimit`, give the store
 * `onFailure` instead.
 */
export class SluiceStore implements Store {
  readonly localKeys: boolean;
  readonly prefix: string;
  /** Absent if counters are shared: they cannot all be found. */
  readonly resetAll?: () => void;
  readonly #options: StoreOptions;
  readonly #algorithm: Algorithm | undefined;
  #failsAsErrors = false;
  #refusal: unknown;
  #limits: LimitsByShape;
  #windowMs: number | undefined;
  /** Undefined if not known beforehand. */
  #limit: number | undefined;

  constructor(options: StoreOptions = {}) {
    this.#options = options;
    this.#limits = this.#open();
    if (options.counters === undefined) {
      this.resetAll = () => {
        this.#limits = this.#open();
      };
    }
    this.#limits.claim();
    this.localKeys = this.#limits.counters.local;
    this.prefix = options.prefix ?? "";
    this.#algorithm = options.algorithm;
  }

  init(options: Options): void {
    try {
      this.#init(options);
    } catch (error) {
      this.#refusal = error;
      throw error;
    }
  }

  /** Throws the error that `init` threw: newer versions of express-rate-limit only log it. */
  confirm(): void {
    if (this.#refusal !== undefined) throw this.#refusal;
  }

  /**
   * `passOnStoreError` was given: failures become errors for express-rate-limit, which ignores them or passes them on.
   * `rateLimit` of this module calls this before the first hit.
   */
  obeyPassOnStoreError(passes: boolean): void {
    const { onFailure } = this.#options;
    if (onFailure === (passes ? "closed" : "open")) {
      throw wrongOption("passOnStoreError", `${passes} contradicts onFailure ${onFailure} of the store: leave one out`);
    }
    if (onFailure !== undefined) return;
    this.#failsAsErrors = true;
    this.#limits = this.#open();
  }

  get(key: string): Promise<ClientRateLimitInfo | undefined> {
    return this.#limits
      .peek(key, this.#outsideOfRequests("get"))
      .then(({ used = 0, resetAfterMs = 0 }) =>
        used === 0 ? undefined : { totalHits: used, resetTime: fromNow(resetAfterMs) },
      );
  }

  increment(key: string): ClientRateLimitInfo | Promise<ClientRateLimitInfo> {
    const request = this.#isInHand() ? inHand.getStore() : undefined;
    const shape = this.#shape(request?.limit ?? this.#limit ?? Number.POSITIVE_INFINITY);
    // A hit is given back to the counters it was taken from, even if everything was reset meanwhile.
    const limits = this.#limits;
    const counted = (decision: Decision): ClientRateLimitInfo => {
      const { receipt } = decision;
      if (receipt !== undefined) request?.charged(() => limits.give(receipt, shape));
      return infoFromDecision(decision, shape, request?.givesBack ?? false);
    };
    const decision = limits.hit(key, shape, { receipt: request?.givesBack });
    return decision instanceof Promise ? decision.then(counted) : counted(decision);
  }

  async decrement(key: string): Promise<void> {
    await this.#limits.charge(key, this.#outsideOfRequests("decrement"), -1);
  }

  async resetKey(key: string): Promise<void> {
    await this.#limits.reset(key, this.#shape(1));
  }

  /** Closes nothing: the code that opened `counters` closes them. */
  shutdown(): void {
    this.#limits.disclaim();
  }

  #init({ windowMs, limit, skipFailedRequests, skipSuccessfulRequests }: Options): void {
    const takesBack = skipFailedRequests || skipSuccessfulRequests;
    const known = typeof limit === "number" && !takesBack ? limit : undefined;
    if (known === undefined && !this.#isInHand() && !countsWithoutLimit(this.#algorithm)) {
      const why = takesBack ? "hits that are taken back" : "a limit that is a function";
      throw wrongOption(
        "algorithm",
        `${this.#algorithm} and ${why} need rateLimit from @sluice/middleware/express-rate-limit`,
      );
    }
    this.#windowMs = windowMs;
    this.#limit = known;
    // Refuses impossible windows now, not at the first request.
    this.#limits.limiterFor(this.#shape(known ?? 1));
  }

  #open(): LimitsByShape {
    const options = this.#failsAsErrors ? ({ ...this.#options, onFailure: "error" } as const) : this.#options;
    return new LimitsByShape("express-rate-limit", options);
  }

  #isInHand(): boolean {
    return inHand.getStore()?.store === this;
  }

  #shape(limit: number): LimitShape {
    this.confirm();
    if (this.#windowMs === undefined)
      throw wrongOption("store", "is not used by any rateLimit yet; give it to rateLimit({ store })");
    return { windowMs: this.#windowMs, limit };
  }

  #outsideOfRequests(method: string): LimitShape {
    if (this.#limit === undefined && !countsWithoutLimit(this.#algorithm)) {
      throw wrongOption("limit", `must be a number for ${method} if algorithm is ${this.#algorithm}`);
    }
    return this.#shape(this.#limit ?? Number.POSITIVE_INFINITY);
  }
}

/**
 * express-rate-limit's `rateLimit`, with a `SluiceStore` in memory if no store is given. With such a store, limits that are
 * functions and hits that are taken back (`skipFailedRequests`, `skipSuccessfulRequests`) are as exact as others: a refused
 * hit is never charged, and never taken back.
 */
export function rateLimit(options: Partial<Options> = {}): RateLimitRequestHandler {
  const { store = new SluiceStore(), limit = options.max } = options;
  if (!(store instanceof SluiceStore)) return theirRateLimit(options);
  if (options.passOnStoreError !== undefined) store.obeyPassOnStoreError(Boolean(options.passOnStoreError));
  const { skipFailedRequests = false, skipSuccessfulRequests = false } = options;
  const givesBack = skipFailedRequests || skipSuccessfulRequests;
  if (typeof limit !== "function" && !givesBack) {
    const handler = theirRateLimit({ ...options, store });
    store.confirm();
    return handler;
  }

  const ours: Partial<Options> = { ...options, store, skipFailedRequests: false, skipSuccessfulRequests: false };
  if (typeof limit === "function") {
    // The limit function runs before the hit instead of after it, once, and not for skipped requests.
    const { skip = () => false } = options;
    ours.skip = async (request, response) => {
      if (await skip(request, response)) return true;
      inHand.getStore()!.limit = await limit(request, response);
      return false;
    };
    ours.limit = () => inHand.getStore()!.limit!;
  }
  const theirs = inHand.run(new RequestInHand(store, givesBack), () => theirRateLimit(ours));
  store.confirm();
  const handler: RequestHandler = (request, response, next) => {
    const one = new RequestInHand(store, givesBack);
    if (givesBack) watch(request, response, one, options);
    return inHand.run(one, () => theirs(request, response, next));
  };
  return Object.assign(handler, { resetKey: theirs.resetKey, getKey: theirs.getKey });
}

/** Gives back a hit that turns out not to count, once the answer is sent or its connection closed. */
function watch(request: Request, response: Response, one: RequestInHand, options: Partial<Options>): void {
  const { skipFailedRequests = false, skipSuccessfulRequests = false, requestWasSuccessful = hasGoodStatus } = options;
  const finished = async (): Promise<void> => {
    const counts = (await requestWasSuccessful(request, response)) ? !skipSuccessfulRequests : !skipFailedRequests;
    if (!counts) one.giveBack();
  };
  response.once("finish", () => void finished().catch(reportGiveBack));
  if (!skipFailedRequests) return;
  response.once("error", () => one.giveBack());
  response.once("close", () => {
    if (!response.writableEnded) one.giveBack();
  });
}

function infoFromDecision(
  decision: Decision,
  { windowMs, limit }: LimitShape,
  givesBack: boolean,
): ClientRateLimitInfo {
  const { allowed, used = 1, denyCount, retryAfterMs, resetAfterMs } = decision;
  // A hit that could not be counted is still a hit.
  if (allowed) return { totalHits: Math.max(used, 1), resetTime: fromNow(resetAfterMs ?? windowMs) };
  // Handlers that look for the first hit beyond the limit find one. express-rate-limit takes refused hits back as failures.
  const refused = givesBack ? 1 : Math.max(denyCount, 1);
  return { totalHits: Math.max(Math.floor(limit), 0) + refused, resetTime: fromNow(retryAfterMs ?? windowMs) };
}

function hasGoodStatus(_request: Request, response: Response): boolean {
  return response.statusCode < 400;
}

function reportGiveBack(error: unknown): void {
  warnOncePerMinute("SLUICE_LIMITER_FAILED", `a request could not be given back: ${String(error)}`);
}

function fromNow(ms: number): Date {
  return new Date(Date.now() + ms);
}
