import { type Decision, SluiceError, StoreUnavailable } from "sluice";
import { maxBlockMs, maxCost } from "sluice/internal";
import { countsWithoutLimit, type LimitShape, LimitsByShape, wrongOption } from "../limits-by-shape.ts";
import { BlockedKeys } from "./blocked-keys.ts";
import {
  defaultPrefix,
  type InsuranceLimiter,
  type Key,
  type OperationOptions,
  type RateLimiterLikeRes,
  type RateLimiterOptions,
  refuse,
  refuseCustomDuration,
  storeOptions,
} from "./rate-limiter-options.ts";
import { RateLimiterRes } from "./rate-limiter-res.ts";

/** At most this many calls for points that are taken or given unconditionally. */
const maxChange = 64 * maxCost;
const maxDurationSec = 3_653 * 24 * 60 * 60;
const maxBlockSec = maxBlockMs / 1000;
/** Counts points consumed during a block, as long as the block lasts. */
const blockedTally: LimitShape = { windowMs: Number.POSITIVE_INFINITY, limit: Number.POSITIVE_INFINITY };

/**
 * The base of all limiters of this module; see `RateLimiterMemory` and `RateLimiterRedis`.
 *
 * They count like those of rate-limiter-flexible: points that `consume` refuses are consumed too, and `blockDuration`
 * begins with the `consume` that exceeds `points`. When a block ends, the key starts fresh. The differences:
 *
 * - Windows begin at whole multiples of `duration` since 1970, not with a key's first hit; `duration` is exact to the
 *   millisecond, also in Redis. Other algorithms have no such windows. Those without a count (`gcra`, `token_bucket`,
 *   `leaky_bucket`) do not count refused points either.
 * - A counter belongs to `keyPrefix`, `duration` and key: limiters of one prefix share it only if their durations are equal.
 * - `reward` ends at nothing consumed, gives no more than `points`, and does not end a block.
 * - `set` keeps the limiter's own duration; another one is refused.
 * - `duration: 0` is forgotten 30 days after the key was last used, and `block` for 0 seconds lasts 30 days.
 * - While counters are unavailable everything passes with a warning, unless there is an `insuranceLimiter`,
 *   `rejectIfRedisNotReady` or `onFailure`. Rejections are then an Error, never a `RateLimiterRes`.
 * - One call takes at most 100 000 points (`penalty`, `reward` and `set` 6 400 000), in whole numbers.
 */
export abstract class RateLimiterAbstract {
  readonly keyPrefix: string;
  readonly insuranceLimiter: InsuranceLimiter | undefined;
  readonly blockOnConsumed: number;
  readonly #limits: LimitsByShape;
  /** Counters of points consumed during blocks. */
  readonly #blocked: LimitsByShape;
  readonly #blockedHere = new BlockedKeys();
  readonly #blockedHereOn: number;
  readonly #blockedHereMs: number;
  /** Whether counters of this algorithm can count refused points. */
  readonly #tallies: boolean;
  readonly #hasFixedWindows: boolean;
  #points = 0;
  #duration = 0;
  #blockDuration = 0;

  protected constructor(options: RateLimiterOptions) {
    refuse(
      options,
      "execEvenly",
      "is not supported; the algorithm leaky_bucket returns how long each request should wait",
    );
    this.points = options.points;
    this.duration = options.duration;
    this.blockDuration = options.blockDuration ?? 0;
    this.keyPrefix = options.keyPrefix ?? defaultPrefix;
    this.insuranceLimiter = options.insuranceLimiter;
    if (this.insuranceLimiter !== undefined) {
      if (typeof this.insuranceLimiter?.consume !== "function")
        throw wrongOption("insuranceLimiter", "must be a limiter");
      this.insuranceLimiter.blockDuration = this.blockDuration;
    }
    const store = storeOptions(options);
    this.#limits = new LimitsByShape("rate-limiter-flexible", store);
    this.#blocked = new LimitsByShape("rate-limiter-flexible-blocked", {
      ...store,
      counters: this.#limits.counters,
      algorithm: undefined,
    });
    if (options.keyPrefix === undefined) this.#limits.claim();
    this.#tallies = countsWithoutLimit(options.algorithm);
    this.#hasFixedWindows = (options.algorithm ?? "fixed_window") === "fixed_window";
    const { blockOnConsumed = 0, inMemoryBlockOnConsumed = 0, inMemoryBlockDuration = 0 } = options;
    this.blockOnConsumed = atLeastPoints("blockOnConsumed", blockOnConsumed, this.points);
    this.#blockedHereOn = atLeastPoints("inMemoryBlockOnConsumed", inMemoryBlockOnConsumed, this.points);
    if (inMemoryBlockDuration > 0 && !(inMemoryBlockOnConsumed > 0)) {
      throw wrongOption("inMemoryBlockDuration", "needs inMemoryBlockOnConsumed");
    }
    this.#blockedHereMs = inMemoryBlockDuration * 1000;
  }

  get points(): number {
    return this.#points;
  }

  set points(value: number) {
    if (!Number.isFinite(value)) throw wrongOption("points", `must be a finite number, not ${value}`);
    this.#points = value;
  }

  get duration(): number {
    return this.#duration;
  }

  set duration(value: number) {
    if (!(value >= 0 && value <= maxDurationSec)) {
      throw wrongOption(
        "duration",
        `must be a number of seconds from 0 to ${maxDurationSec} (ten years), not ${value}`,
      );
    }
    this.#duration = value;
  }

  get blockDuration(): number {
    return this.#blockDuration;
  }

  set blockDuration(value: number) {
    if (!(value >= 0 && value <= maxBlockSec)) {
      throw wrongOption(
        "blockDuration",
        `must be a number of seconds from 0 to ${maxBlockSec} (30 days), not ${value}`,
      );
    }
    this.#blockDuration = value;
  }

  get msDuration(): number {
    return Math.round(this.#duration * 1000);
  }

  get msBlockDuration(): number {
    return Math.round(this.#blockDuration * 1000);
  }

  getKey(key: Key): string {
    return this.keyPrefix === "" ? String(key) : `${this.keyPrefix}:${key}`;
  }

  parseKey(rlKey: string): string {
    return this.keyPrefix === "" ? rlKey : rlKey.slice(this.keyPrefix.length + 1);
  }

  /**
   * Rejects with a `RateLimiterRes` if there are not enough points, and with an Error if that is unknown. Refused points are
   * consumed as well.
   */
  async consume(key: Key, pointsToConsume = 1, options: OperationOptions = {}): Promise<RateLimiterRes> {
    refuseCustomDuration(options);
    checkPoints(pointsToConsume, maxCost);
    const blockedMs = this.#blockedHereOn > 0 ? this.#blockedHere.msLeft(String(key)) : 0;
    // Like the original, which does not check how much was consumed.
    if (blockedMs > 0) throw new RateLimiterRes(0, blockedMs);
    return this.#insured(
      () => this.#consume(String(key), pointsToConsume),
      async (insurance) => {
        const res = await insurance.consume(key, pointsToConsume, options).catch((denied: unknown) => {
          throw denied instanceof Error ? denied : resFrom(denied as RateLimiterLikeRes);
        });
        return resFrom(res);
      },
    );
  }

  /** Takes points unconditionally, even more than there are. */
  async penalty(key: Key, points = 1, options: OperationOptions = {}): Promise<RateLimiterRes> {
    refuseCustomDuration(options);
    checkPoints(points, maxChange);
    return this.#insured(
      async () => {
        const res = await this.#penalize(String(key), points);
        res.isFirstInDuration = res.consumedPoints === points;
        return res;
      },
      async (insurance) => resFrom(await insurance.penalty(key, points, options)),
    );
  }

  /** Gives points back, down to nothing consumed. */
  async reward(key: Key, points = 1, options: OperationOptions = {}): Promise<RateLimiterRes> {
    refuseCustomDuration(options);
    checkPoints(points, maxChange);
    return this.#insured(
      () => this.#charge(String(key), -points),
      async (insurance) => resFrom(await insurance.reward(key, points, options)),
    );
  }

  /** A key's state; null if nothing is known about it. */
  async get(key: Key, options: OperationOptions = {}): Promise<RateLimiterRes | null> {
    refuseCustomDuration(options);
    return this.#insured(
      async () => {
        const res = await this.#add(String(key), 0);
        return res.consumedPoints === 0 ? null : res;
      },
      async (insurance) => {
        const res = await insurance.get(key, options);
        return res === null ? null : resFrom(res);
      },
    );
  }

  /** Sets the number of consumed points, in two steps: a request in between is counted as well. */
  async set(key: Key, points: number, secDuration?: number, options: OperationOptions = {}): Promise<RateLimiterRes> {
    refuseCustomDuration(options);
    if (secDuration !== undefined && secDuration >= 0 && secDuration !== this.duration) {
      throw wrongOption("secDuration", `must be the limiter's own duration, ${this.duration}, not ${secDuration}`);
    }
    checkPoints(points, maxChange);
    return this.#insured(
      async () => {
        await this.#limits.reset(String(key), this.#tally());
        await inParts(points, (part) => this.#limits.charge(String(key), this.#tally(), part));
        return new RateLimiterRes(0, this.duration === 0 ? -1 : this.msDuration, points);
      },
      async (insurance) => resFrom(await insurance.set(key, points, this.duration, options)),
    );
  }

  /** Denies the key for `secDuration` seconds and replaces an existing block. 0 lasts 30 days, the longest possible block. */
  async block(key: Key, secDuration: number, options: OperationOptions = {}): Promise<RateLimiterRes> {
    refuseCustomDuration(options);
    if (!(secDuration >= 0 && secDuration <= maxBlockSec)) {
      throw wrongOption("secDuration", `must be from 0 to ${maxBlockSec} seconds (30 days), not ${secDuration}`);
    }
    const forMs = secDuration === 0 ? maxBlockMs : Math.ceil(secDuration * 1000);
    const consumed = this.blockOnConsumed > this.points ? this.blockOnConsumed : Math.floor(this.points) + 1;
    return this.#insured(
      async () => {
        const { reason, retryAfterMs = 0, used = 0 } = await this.#limits.peek(String(key), this.#tally());
        // Only a reset makes a block shorter.
        if (reason === "blocked" && retryAfterMs > forMs) await this.#limits.reset(String(key), this.#tally());
        await this.#block(String(key), consumed, forMs, used);
        return new RateLimiterRes(0, forMs, consumed);
      },
      async (insurance) => resFrom(await insurance.block(key, secDuration, options)),
    );
  }

  /** Forgets the key and lifts its block. Returns whether there was anything to forget. */
  async delete(key: Key, options: OperationOptions = {}): Promise<boolean> {
    refuseCustomDuration(options);
    this.#blockedHere.delete(String(key));
    return this.#insured(
      async () => {
        const { reason, used = 0 } = await this.#limits.peek(String(key), this.#tally());
        if (reason === "blocked") await this.#blocked.reset(String(key), blockedTally);
        return (await this.#limits.reset(String(key), this.#tally())) && (reason === "blocked" || used > 0);
      },
      (insurance) => insurance.delete(key, options),
    );
  }

  /** Lifts the denials that this process remembers (`inMemoryBlockOnConsumed`). */
  deleteInMemoryBlockedAll(): void {
    this.#blockedHere.clear();
  }

  #shape(): LimitShape {
    const windowMs = this.duration === 0 ? Number.POSITIVE_INFINITY : Math.max(this.msDuration, 1);
    return { windowMs, limit: this.points, blockable: true };
  }

  /** The same counter without its limit: it counts refused points as well. */
  #tally(): LimitShape {
    const shape = this.#shape();
    return this.#tallies ? { ...shape, limit: Number.POSITIVE_INFINITY } : shape;
  }

  /** Applies the options in the original's order. */
  async #consume(key: string, points: number): Promise<RateLimiterRes> {
    const res = await this.#add(key, points);
    const { consumedPoints } = res;
    const isRefused = consumedPoints > this.points;
    const isBlockedHere = this.#blockedHereOn > 0 && consumedPoints >= this.#blockedHereOn;
    if (isBlockedHere && this.#blockedHereMs === 0) {
      this.#blockedHere.add(key, res.msBeforeNext);
    } else if (isRefused) {
      if (this.blockDuration > 0 && this.#beginsBlock(consumedPoints, points)) {
        await this.#block(key, consumedPoints, this.msBlockDuration, consumedPoints);
        res.msBeforeNext = this.msBlockDuration;
      }
      if (isBlockedHere) {
        this.#blockedHere.add(key, this.#blockedHereMs);
        res.msBeforeNext = this.#blockedHereMs;
      }
    }
    if (isRefused) throw res;
    return res;
  }

  /** Whether these points crossed the limit: no later `consume` renews the block. */
  #beginsBlock(consumed: number, points: number): boolean {
    const before = consumed - points;
    if (this.blockOnConsumed > this.points) return consumed >= this.blockOnConsumed && before < this.blockOnConsumed;
    return before <= this.points;
  }

  /**
   * Moves the consumed points to a separate counter while the block lasts, so that the key starts fresh after it. In this
   * order nothing passes in between: until the block is set, the consumed points refuse.
   */
  async #block(key: string, consumed: number, forMs: number, used: number): Promise<void> {
    await this.#blocked.reset(key, blockedTally);
    await inParts(Math.min(consumed, maxChange), (part) => this.#blocked.charge(key, blockedTally, part));
    if (await this.#limits.block(key, this.#tally(), forMs)) await this.#limits.empty(key, this.#tally(), used);
  }

  /** Adds points to those the key has consumed, however few are left, and returns its new state. 0 only reads. */
  async #add(key: string, points: number): Promise<RateLimiterRes> {
    const asked = points === 0 ? this.#limits.peek(key, this.#tally()) : this.#count(key, points);
    const decision = asked instanceof Promise ? await asked : asked;
    const { allowed, reason, used = 0, retryAfterMs, resetAfterMs = this.msDuration } = decision;
    if (reason === "blocked") return this.#addToBlocked(key, points, retryAfterMs ?? resetAfterMs);
    // An algorithm without a count reports refused points as if they were consumed.
    const consumed = allowed || points === 0 ? used : Math.max(used + points, Math.floor(this.points) + 1);
    const remaining = Math.max(this.points - consumed, 0);
    let afterMs = this.duration === 0 ? -1 : resetAfterMs;
    if (consumed > this.points && points > 0 && !this.#hasFixedWindows && this.duration > 0) {
      const { retryAfterMs = afterMs } = await this.#limits.peek(key, this.#shape(), 1);
      afterMs = retryAfterMs;
    }
    return new RateLimiterRes(remaining, afterMs, consumed, consumed === points && points > 0);
  }

  /** One atomic call; in memory up to three within one turn. */
  #count(key: string, points: number): Decision | Promise<Decision> {
    if (!this.#limits.counters.local) return this.#limits.hit(key, this.#tally(), { cost: points });
    const decision = this.#limits.hit(key, this.#shape(), { cost: points }) as Decision;
    if (decision.allowed || decision.reason === "blocked" || !this.#tallies) return decision;
    const counted = this.#limits.hit(key, this.#tally(), { cost: points });
    // Full memory never forgets a key that its limit refuses; by the tally alone it would seem almost unused.
    void this.#limits.hit(key, this.#shape());
    return counted;
  }

  async #addToBlocked(key: string, points: number, leftMs: number): Promise<RateLimiterRes> {
    const asked =
      points === 0 ? this.#blocked.peek(key, blockedTally) : this.#blocked.hit(key, blockedTally, { cost: points });
    const { used = 0 } = await asked;
    return new RateLimiterRes(0, leftMs, Math.max(used, Math.floor(this.points) + 1));
  }

  async #penalize(key: string, points: number): Promise<RateLimiterRes> {
    if (!this.#tallies || points === 0) return this.#charge(key, points);
    let res: RateLimiterRes | undefined;
    await inParts(points, async (part) => {
      res = await this.#add(key, part);
    });
    return res!;
  }

  /** Charges points; gives them back if negative. */
  async #charge(key: string, points: number): Promise<RateLimiterRes> {
    const { reason } = await this.#limits.peek(key, this.#tally());
    await inParts(points, (part) =>
      reason === "blocked"
        ? this.#blocked.charge(key, blockedTally, part)
        : this.#limits.charge(key, this.#tally(), part),
    );
    return this.#add(key, 0);
  }

  async #insured<Result>(
    ask: () => Promise<Result>,
    orElse: (insurance: InsuranceLimiter) => Promise<Result>,
  ): Promise<Result> {
    if (this.insuranceLimiter === undefined) return ask();
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      return orElse(this.insuranceLimiter);
    }
  }
}

/** Splits points into as many calls as needed: one request has a maximum cost. */
async function inParts(points: number, call: (part: number) => Promise<unknown>): Promise<void> {
  for (let left = points; left !== 0; ) {
    const part = Math.max(Math.min(left, maxCost), -maxCost);
    await call(part);
    left -= part;
  }
}

function atLeastPoints(name: string, value: number, points: number): number {
  if (value > 0 && value < points) throw wrongOption(name, `must be at least points, ${points}`);
  return value;
}

function checkPoints(points: number, most: number): void {
  if (Number.isInteger(points) && points >= 0 && points <= most) return;
  const message = `must be a whole number from 0 to ${most}, not ${points}`;
  throw new SluiceError("invalid_request", `points ${message}`, [{ path: ["points"], message }]);
}

function resFrom({
  remainingPoints,
  msBeforeNext,
  consumedPoints,
  isFirstInDuration,
}: RateLimiterLikeRes): RateLimiterRes {
  return new RateLimiterRes(remainingPoints, msBeforeNext, consumedPoints, isFirstInDuration);
}
