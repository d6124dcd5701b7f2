import { type Decision, maxBlockMs, maxCost, SluiceError, StoreUnavailable } from "sluice";
import { warnOfProcess } from "../../warn-of-process.ts";
import {
  countsWithoutLimit,
  type LimitShape,
  LimitsByShape,
  type StoreOptions,
  wrongOption,
} from "../limits-by-shape.ts";
import { BlockedKeys } from "./blocked-keys.ts";
import { RateLimiterRes } from "./rate-limiter-res.ts";

/** What every limiter can be told: what rate-limiter-flexible can, and where counters live. */
export interface RateLimiterOptions extends Omit<StoreOptions, "prefix"> {
  readonly points: number;
  /** Seconds, also fractions of one. 0: what was consumed never comes back. */
  readonly duration: number;
  /** After a denial the key is denied for so many seconds. */
  readonly blockDuration?: number | undefined;
  /** Keeps these counters apart from all others. Absent: `rlflx`, as ever; give one to each limiter that shares a server. */
  readonly keyPrefix?: string | undefined;
  /** Answers while counters cannot be asked; of this module, or of rate-limiter-flexible itself. */
  readonly insuranceLimiter?: InsuranceLimiter | undefined;
  /** Remember denials in this process, and do not ask again while they last. At least `points`. */
  readonly inMemoryBlockOnConsumed?: number | undefined;
  /** How many seconds such a denial lasts. Absent: until the points are back. */
  readonly inMemoryBlockDuration?: number | undefined;
  /** Not supported. The algorithm `leaky_bucket` tells how long to wait. */
  readonly execEvenly?: false | undefined;
}

export type Key = string | number;

/** What may be said of one operation. There is nothing: `customDuration` is refused. */
export type OperationOptions = Readonly<Record<string, unknown>>;

export interface InsuranceLimiter {
  blockDuration: number;
  consume(key: Key, points?: number, options?: OperationOptions): Promise<RateLimiterLikeRes>;
  penalty(key: Key, points?: number, options?: OperationOptions): Promise<RateLimiterLikeRes>;
  reward(key: Key, points?: number, options?: OperationOptions): Promise<RateLimiterLikeRes>;
  get(key: Key, options?: OperationOptions): Promise<RateLimiterLikeRes | null>;
  set(key: Key, points: number, secDuration: number, options?: OperationOptions): Promise<RateLimiterLikeRes>;
  block(key: Key, secDuration: number, options?: OperationOptions): Promise<RateLimiterLikeRes>;
  delete(key: Key, options?: OperationOptions): Promise<boolean>;
}

type RateLimiterLikeRes = Pick<
  RateLimiterRes,
  "remainingPoints" | "msBeforeNext" | "consumedPoints" | "isFirstInDuration" | "toJSON"
>;

const defaultPrefix = "rlflx";
/** Of points that are taken or given without asking: so many calls, and no more. */
const maxChange = 64 * maxCost;

/** A take that can be undone, for limiters that decide together. */
export interface Consumed {
  readonly res: RateLimiterRes;
  giveBack(): Promise<unknown>;
}

/**
 * What all limiters of this module do; see `RateLimiterMemory` and `RateLimiterRedis`.
 *
 * They are asked as those of rate-limiter-flexible are, and differ where those surprise:
 *
 * - What is denied is not charged. A denial tells as `consumedPoints` what they would have been.
 * - Windows begin at whole multiples of `duration` since 1970, not with a key's first hit; `duration` is exact to the
 *   millisecond, also in Redis. Other algorithms have no such windows.
 * - A counter belongs to `keyPrefix`, `duration` and key: limiters of one prefix share it only where their durations agree.
 * - `blockDuration` and `block` are kept apart from what was consumed: after a block that is shorter than the duration, points
 *   that are used up are still used up. A block never shortens a longer one; by hand it lasts 30 days at most, which is also
 *   what 0 means.
 * - `reward` ends at nothing consumed, and gives no more than `points`.
 * - `set` keeps the limiter's own duration; another one is refused.
 * - `duration: 0` is forgotten 30 days after the key was last used.
 * - While counters cannot be asked everything passes, and a warning says so, unless there is an `insuranceLimiter` or
 *   `onFailure` says otherwise; told to fail closed, it rejects with an Error, and never with a `RateLimiterRes`.
 * - One call takes 100 000 points at most (`penalty`, `reward` and `set` 6 400 000), and whole ones.
 */
export abstract class RateLimiterAbstract {
  readonly keyPrefix: string;
  readonly insuranceLimiter: InsuranceLimiter | undefined;
  readonly #limits: LimitsByShape;
  readonly #blockedHere: BlockedKeys | undefined;
  readonly #blockedHereMs: number;
  readonly #tallies: boolean;
  #points = 0;
  #duration = 0;
  #blockDuration = 0;

  protected constructor(options: RateLimiterOptions) {
    refuse(
      options,
      "execEvenly",
      "is not supported; the algorithm leaky_bucket tells how long each request should wait",
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
    this.#limits = new LimitsByShape("rate-limiter-flexible", storeOptions(options));
    if (options.keyPrefix === undefined) this.#limits.claim();
    this.#tallies = countsWithoutLimit(options.algorithm);
    const { inMemoryBlockOnConsumed = 0, inMemoryBlockDuration = 0 } = options;
    if (inMemoryBlockOnConsumed > 0 && inMemoryBlockOnConsumed < this.points) {
      throw wrongOption("inMemoryBlockOnConsumed", `must be at least points, ${this.points}`);
    }
    if (inMemoryBlockDuration > 0 && !(inMemoryBlockOnConsumed > 0)) {
      throw wrongOption("inMemoryBlockDuration", "needs inMemoryBlockOnConsumed");
    }
    this.#blockedHere = inMemoryBlockOnConsumed > 0 ? new BlockedKeys() : undefined;
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
    if (!(Number.isFinite(value) && value >= 0)) {
      throw wrongOption("duration", `must be a finite number of seconds, 0 or more, not ${value}`);
    }
    this.#duration = value;
  }

  get blockDuration(): number {
    return this.#blockDuration;
  }

  set blockDuration(value: number) {
    if (!(Number.isFinite(value) && value >= 0)) {
      throw wrongOption("blockDuration", `must be a finite number of seconds, 0 or more, not ${value}`);
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

  /** Rejects with a `RateLimiterRes` where the points are not there, and with an Error where that cannot be said. */
  async consume(key: Key, pointsToConsume = 1, options: OperationOptions = {}): Promise<RateLimiterRes> {
    return (await this.consumeRevocably(key, pointsToConsume, options, false)).res;
  }

  /** `consume`, for limiters that decide together: what was consumed can be given back, exactly and once. */
  async consumeRevocably(key: Key, points: number, options: OperationOptions, receipt = true): Promise<Consumed> {
    refuseCustomDuration(options);
    const blockedMs = this.#blockedHere?.msLeft(String(key)) ?? 0;
    if (blockedMs > 0) throw new RateLimiterRes(0, blockedMs, Math.floor(this.points) + points);
    return this.#insured<Consumed>(
      async () => {
        const shape = this.#shape();
        const decision =
          points === 0
            ? await this.#limits.peek(String(key), shape)
            : await this.#limits.hit(String(key), shape, { cost: checkPoints(points, maxCost), receipt });
        // Who asks for nothing is only told.
        if (!decision.allowed && (points !== 0 || decision.reason === "blocked"))
          throw this.#denied(key, decision, points);
        const { receipt: given } = decision;
        return {
          res: this.#standing(decision, points),
          giveBack: async () => given !== undefined && this.#limits.give(given, shape),
        };
      },
      async (insurance) => {
        const res = await insurance.consume(key, points, options).catch((denied: unknown) => {
          throw denied instanceof Error ? denied : resFrom(denied as RateLimiterLikeRes);
        });
        return { res: resFrom(res), giveBack: () => insurance.reward(key, points, options) };
      },
    );
  }

  /** Takes points without asking, also more than there are. */
  async penalty(key: Key, points = 1, options: OperationOptions = {}): Promise<RateLimiterRes> {
    refuseCustomDuration(options);
    return this.#insured(
      () => this.#change(key, points),
      async (insurance) => resFrom(await insurance.penalty(key, points, options)),
    );
  }

  /** Gives points back, down to nothing consumed. */
  async reward(key: Key, points = 1, options: OperationOptions = {}): Promise<RateLimiterRes> {
    refuseCustomDuration(options);
    return this.#insured(
      () => this.#change(key, -points),
      async (insurance) => resFrom(await insurance.reward(key, points, options)),
    );
  }

  /** How a key stands; null where nothing is known of it. */
  async get(key: Key, options: OperationOptions = {}): Promise<RateLimiterRes | null> {
    refuseCustomDuration(options);
    return this.#insured(
      async () => {
        const decision = await this.#limits.peek(String(key), this.#tally());
        const isNew = decision.reason !== "blocked" && (decision.used ?? 0) === 0;
        return isNew ? null : this.#standing(decision, 0);
      },
      async (insurance) => {
        const res = await insurance.get(key, options);
        return res === null ? null : resFrom(res);
      },
    );
  }

  /** Makes so many points be consumed. In two steps: a request in between is counted as well. */
  async set(key: Key, points: number, secDuration?: number, options: OperationOptions = {}): Promise<RateLimiterRes> {
    refuseCustomDuration(options);
    if (secDuration !== undefined && secDuration >= 0 && secDuration !== this.duration) {
      throw wrongOption("secDuration", `must be the limiter's own duration, ${this.duration}, not ${secDuration}`);
    }
    checkPoints(points, maxChange);
    return this.#insured(
      async () => {
        await this.#limits.reset(String(key), this.#shape());
        await this.#charge(key, points);
        return new RateLimiterRes(0, this.duration === 0 ? -1 : this.msDuration, points);
      },
      async (insurance) => resFrom(await insurance.set(key, points, this.duration, options)),
    );
  }

  /** Denies the key for so many seconds; 0 is as long as it can be, 30 days. */
  async block(key: Key, secDuration: number, options: OperationOptions = {}): Promise<RateLimiterRes> {
    refuseCustomDuration(options);
    if (!(secDuration >= 0)) throw wrongOption("secDuration", `must be 0 or more seconds, not ${secDuration}`);
    const forMs = secDuration === 0 ? maxBlockMs : Math.min(Math.ceil(secDuration * 1000), maxBlockMs);
    return this.#insured(
      async () => {
        await this.#limits.block(String(key), this.#shape(), forMs);
        return new RateLimiterRes(0, forMs, Math.floor(this.points) + 1);
      },
      async (insurance) => resFrom(await insurance.block(key, secDuration, options)),
    );
  }

  /** Forgets the key and lifts its block. Whether there was anything to forget. */
  async delete(key: Key, options: OperationOptions = {}): Promise<boolean> {
    refuseCustomDuration(options);
    this.#blockedHere?.delete(String(key));
    return this.#insured(
      async () => {
        const { reason, used = 0 } = await this.#limits.peek(String(key), this.#tally());
        return (await this.#limits.reset(String(key), this.#shape())) && (reason === "blocked" || used > 0);
      },
      (insurance) => insurance.delete(key, options),
    );
  }

  /** Lifts the denials that this process remembers by itself (`inMemoryBlockOnConsumed`). */
  deleteInMemoryBlockedAll(): void {
    this.#blockedHere?.clear();
  }

  #shape(): LimitShape {
    const { points, msDuration, msBlockDuration } = this;
    const windowMs = this.duration === 0 ? Number.POSITIVE_INFINITY : Math.max(msDuration, 1);
    return { windowMs, limit: points, blockForMs: msBlockDuration, blockable: true };
  }

  /** The same counter without its limit: what was consumed is told in full, and charged in full. */
  #tally(): LimitShape {
    const shape = this.#shape();
    return this.#tallies ? { ...shape, limit: Number.POSITIVE_INFINITY } : shape;
  }

  async #change(key: Key, points: number): Promise<RateLimiterRes> {
    await this.#charge(key, points);
    const decision = await this.#limits.peek(String(key), this.#tally());
    const res = this.#standing(decision, points);
    res.isFirstInDuration = res.consumedPoints === points;
    return res;
  }

  async #charge(key: Key, points: number): Promise<void> {
    checkPoints(Math.abs(points), maxChange);
    for (let left = points; left !== 0; ) {
      const cost = Math.max(Math.min(left, maxCost), -maxCost);
      await this.#limits.charge(String(key), this.#tally(), cost);
      left -= cost;
    }
  }

  #standing(decision: Decision, cost: number): RateLimiterRes {
    const { resetAfterMs, retryAfterMs, reason } = decision;
    // Without counters nothing was consumed, as far as anyone knows.
    const { used = reason === "degraded" ? 0 : cost } = decision;
    const blocked = reason === "blocked";
    const consumed = blocked ? Math.max(used, Math.floor(this.points) + 1) : used;
    const remaining = Math.max(this.points - consumed, 0);
    const afterMs = this.duration === 0 ? -1 : (resetAfterMs ?? this.msDuration);
    return new RateLimiterRes(
      remaining,
      blocked ? (retryAfterMs ?? afterMs) : afterMs,
      consumed,
      used === cost && cost > 0,
    );
  }

  #denied(key: Key, decision: Decision, cost: number): RateLimiterRes {
    const { used = 0, remaining = 0, retryAfterMs, reason } = decision;
    // What never fits is not told to come back at once.
    let afterMs = retryAfterMs ?? (this.duration === 0 ? -1 : this.msDuration);
    // Only where nothing at all would pass: another request may ask for less.
    if (this.#blockedHere !== undefined && reason !== "never_fits" && (remaining === 0 || reason === "blocked")) {
      if (this.#blockedHereMs > 0) afterMs = this.#blockedHereMs;
      this.#blockedHere.add(String(key), afterMs);
    }
    const isFirst = used === 0 && reason !== "blocked";
    return new RateLimiterRes(0, afterMs, Math.max(used + cost, Math.floor(this.points) + 1), isFirst);
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

function storeOptions(options: RateLimiterOptions): StoreOptions {
  const { counters, algorithm, onFailure, onDegraded, insuranceLimiter, keyPrefix = defaultPrefix } = options;
  if (typeof keyPrefix !== "string") throw wrongOption("keyPrefix", "must be a text");
  const insured: StoreOptions = {
    onFailure: "closed",
    onDegraded:
      onDegraded ??
      ((reason) =>
        warnOfProcess("SLUICE_DEGRADED", `counters could not be asked (${reason}); the insurance limiter answers`)),
  };
  return {
    counters,
    algorithm,
    onFailure,
    onDegraded,
    prefix: keyPrefix,
    ...(insuranceLimiter === undefined ? undefined : insured),
  };
}

/** Options that are not supported are never just passed over. */
export function refuse(options: object, name: string, message: string): void {
  if (Reflect.get(options, name)) throw wrongOption(name, message);
}

function refuseCustomDuration(options: OperationOptions): void {
  refuse(options, "customDuration", "is not supported; make a limiter for each duration");
}

function checkPoints(points: number, most: number): number {
  if (Number.isInteger(points) && points >= 0 && points <= most) return points;
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
