import { type DynamicModule, type Provider, ServiceUnavailableException } from "@nestjs/common";
import {
  getOptionsToken,
  getStorageToken,
  ThrottlerModule as TheirThrottlerModule,
  type ThrottlerAsyncOptions,
  type ThrottlerModuleOptions,
  type ThrottlerOptions,
  type ThrottlerStorage,
} from "@nestjs/throttler";
import { type Decision, StoreUnavailable } from "sluice";
import { type LimitShape, LimitsByShape, maxBlockForMs, type StoreOptions } from "./limits-by-shape.ts";

export * from "@nestjs/throttler";
export type { StoreOptions } from "./limits-by-shape.ts";

/** What `increment` answers, in the words of @nestjs/throttler. Times are whole seconds. */
type ThrottlerRecord = Awaited<ReturnType<ThrottlerStorage["increment"]>>;

/**
 * A storage for @nestjs/throttler 6, in memory or wherever `counters` are: `ThrottlerModule.forRoot({ throttlers, storage: new
 * SluiceThrottlerStorage({ counters, prefix }) })`. Each hit is one atomic call; refused hits are not charged (`totalHits` is
 * then the limit plus one), `ttl` and `blockDuration` are exact to the millisecond, counters expire, and in memory they are bounded.
 *
 * A refusal begins a block of `blockDuration`, and the key begins anew when that ends, also where it is shorter than `ttl`: as their
 * own storage does. By `sliding_log` it counts as theirs does too, never more than the limit within any stretch of `ttl`.
 */
export class SluiceThrottlerStorage implements ThrottlerStorage {
  readonly #limits: LimitsByShape;

  constructor(options: StoreOptions = {}) {
    this.#limits = new LimitsByShape("nest-throttler", options, { windowMs: "ttl", blockForMs: "blockDuration" });
    this.#limits.claim();
  }

  /** Refuses times that it cannot keep, by name, before the first request. Those that are functions are refused when they are used. */
  checkThrottlers(throttlers: readonly ThrottlerOptions[]): void {
    for (const { ttl, limit, blockDuration = 0 } of throttlers) {
      if (typeof ttl !== "number" || typeof limit !== "number" || typeof blockDuration !== "number") continue;
      this.#limits.limiterFor(shapeOf(ttl, limit, blockDuration));
    }
  }

  async increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName = "default",
  ): Promise<ThrottlerRecord> {
    const shape = shapeOf(ttl, limit, blockDuration);
    const subject = subjectOf(throttlerName, key);
    try {
      const decision = await this.#limits.hit(subject, shape);
      if (beginsBlock(decision, shape)) await this.#beginAnewAfterBlock(subject, shape);
      return recordOf(decision, shape);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      throw new ServiceUnavailableException("Service Unavailable", { cause: error });
    }
  }

  onApplicationShutdown(): void {
    this.#limits.disclaim();
  }

  /** Exactly one refusal begins a block. Nothing passes while the block stands, so what was used can be forgotten now. */
  async #beginAnewAfterBlock(subject: string, shape: LimitShape): Promise<void> {
    const { reason } = await this.#limits.peek(subject, shape);
    // Full memory has no room for a block: then what was used goes on refusing.
    if (reason === "blocked") await this.#limits.empty(subject, shape, shape.limit);
  }
}

/** Absent, a block is as long as its ttl. Where that is longer than blocks can be, the key is refused until its window ends. */
function shapeOf(ttl: number, limit: number, blockDuration: number): LimitShape {
  const isTooLong = blockDuration === ttl && ttl > maxBlockForMs;
  return { windowMs: ttl, limit, blockForMs: isTooLong ? 0 : Math.max(blockDuration, 0) };
}

/** Throttlers count apart, whatever keys they make: no two pairs of a name and a key are written alike. */
function subjectOf(throttlerName: string, key: string): string {
  return `${throttlerName.replace(/[\\|]/g, "\\$&")}|${key}`;
}

function beginsBlock({ reason }: Decision, { blockForMs = 0 }: LimitShape): boolean {
  return reason === "over_limit" && blockForMs > 0;
}

function recordOf(decision: Decision, shape: LimitShape): ThrottlerRecord {
  const { allowed, used, retryAfterMs, resetAfterMs } = decision;
  const { windowMs, limit, blockForMs = 0 } = shape;
  const timeToExpire = wholeSeconds(resetAfterMs ?? windowMs);
  if (allowed) return { totalHits: used ?? 0, timeToExpire, isBlocked: false, timeToBlockExpire: 0 };
  // Without a time to come back at, as where the limit is 0, the client asks again after a while.
  const blockedMs = beginsBlock(decision, shape) ? blockForMs : (retryAfterMs ?? (blockForMs || windowMs));
  const timeToBlockExpire = Math.max(wholeSeconds(blockedMs), 1);
  return { totalHits: Math.max(Math.floor(limit), 0) + 1, timeToExpire, isBlocked: true, timeToBlockExpire };
}

function wholeSeconds(ms: number): number {
  return Math.ceil(ms / 1000);
}

/** Theirs, with a `SluiceThrottlerStorage` in memory where the options name no storage. */
export class ThrottlerModule extends TheirThrottlerModule {
  static override forRoot(options?: ThrottlerModuleOptions): DynamicModule {
    return withOurStorage(TheirThrottlerModule.forRoot(options));
  }

  static override forRootAsync(options: ThrottlerAsyncOptions): DynamicModule {
    return withOurStorage(TheirThrottlerModule.forRootAsync(options));
  }
}

const ourStorage: Provider = {
  provide: getStorageToken(),
  inject: [getOptionsToken()],
  useFactory: (options: ThrottlerModuleOptions) => {
    const { storage = new SluiceThrottlerStorage(), throttlers } = Array.isArray(options)
      ? { throttlers: options }
      : options;
    if (storage instanceof SluiceThrottlerStorage) storage.checkThrottlers(throttlers);
    return storage;
  },
};

function withOurStorage(module: DynamicModule): DynamicModule {
  const others = (module.providers ?? []).filter(
    (one) => typeof one === "function" || one.provide !== getStorageToken(),
  );
  const providers = [...others, ourStorage];
  return { ...module, providers, exports: providers };
}
