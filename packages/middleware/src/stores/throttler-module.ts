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

/** The result of `increment`, with the field names of @nestjs/throttler. Times are whole seconds. */
type ThrottlerRecord = Awaited<ReturnType<ThrottlerStorage["increment"]>>;

/**
 * A storage for @nestjs/throttler 6, in memory or in `counters`: `ThrottlerModule.forRoot({ throttlers, storage: new
 * SluiceThrottlerStorage({ counters, prefix }) })`. Each hit is one atomic call; refused hits are not charged (`totalHits` is
 * then the limit plus one), `ttl` and `blockDuration` are exact to the millisecond, counters expire, and in memory they are bounded.
 *
 * A refusal begins a block of `blockDuration`, and the key starts fresh when that ends, even if it is shorter than `ttl`, as
 * with the original storage. With `sliding_log` it also counts like the original: never more than the limit within any `ttl`.
 */
export class SluiceThrottlerStorage implements ThrottlerStorage {
  readonly #limits: LimitsByShape;

  constructor(options: StoreOptions = {}) {
    this.#limits = new LimitsByShape("nest-throttler", options, { windowMs: "ttl", blockForMs: "blockDuration" });
    this.#limits.claim();
  }

  /** Refuses unsupported times by name, before the first request. Times that are functions are checked when they are used. */
  checkThrottlers(throttlers: readonly ThrottlerOptions[]): void {
    for (const { ttl, limit, blockDuration = 0 } of throttlers) {
      if (typeof ttl !== "number" || typeof limit !== "number" || typeof blockDuration !== "number") continue;
      this.#limits.limiterFor(createShape(ttl, limit, blockDuration));
    }
  }

  async increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName = "default",
  ): Promise<ThrottlerRecord> {
    const shape = createShape(ttl, limit, blockDuration);
    const subject = throttlerSubject(throttlerName, key);
    try {
      const decision = await this.#limits.hit(subject, shape);
      if (beginsBlock(decision, shape)) await this.#beginAnewAfterBlock(subject, shape);
      return recordFromDecision(decision, shape);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      throw new ServiceUnavailableException("Service Unavailable", { cause: error });
    }
  }

  onApplicationShutdown(): void {
    this.#limits.disclaim();
  }

  /** Exactly one refusal begins a block. Nothing passes during the block, so the key's usage can be forgotten now. */
  async #beginAnewAfterBlock(subject: string, shape: LimitShape): Promise<void> {
    const { reason } = await this.#limits.peek(subject, shape);
    // Full memory has no room for a block; then the usage keeps refusing.
    if (reason === "blocked") await this.#limits.empty(subject, shape, shape.limit);
  }
}

/** By default, a block is as long as its ttl. If that exceeds the longest block, the key is refused until its window ends. */
function createShape(ttl: number, limit: number, blockDuration: number): LimitShape {
  const isTooLong = blockDuration === ttl && ttl > maxBlockForMs;
  return { windowMs: ttl, limit, blockForMs: isTooLong ? 0 : Math.max(blockDuration, 0) };
}

/** Throttlers count separately, whatever keys they generate: no two pairs of name and key render to the same text. */
function throttlerSubject(throttlerName: string, key: string): string {
  return `${throttlerName.replace(/[\\|]/g, "\\$&")}|${key}`;
}

function beginsBlock({ reason }: Decision, { blockForMs = 0 }: LimitShape): boolean {
  return reason === "over_limit" && blockForMs > 0;
}

function recordFromDecision(decision: Decision, shape: LimitShape): ThrottlerRecord {
  const { allowed, used, retryAfterMs, resetAfterMs } = decision;
  const { windowMs, limit, blockForMs = 0 } = shape;
  const timeToExpire = wholeSeconds(resetAfterMs ?? windowMs);
  if (allowed) return { totalHits: used ?? 0, timeToExpire, isBlocked: false, timeToBlockExpire: 0 };
  // Without a retry time, as for a limit of 0, the client retries after a ttl.
  const blockedMs = beginsBlock(decision, shape) ? blockForMs : (retryAfterMs ?? (blockForMs || windowMs));
  const timeToBlockExpire = Math.max(wholeSeconds(blockedMs), 1);
  return { totalHits: Math.max(Math.floor(limit), 0) + 1, timeToExpire, isBlocked: true, timeToBlockExpire };
}

function wholeSeconds(ms: number): number {
  return Math.ceil(ms / 1000);
}

/** The original module, with a `SluiceThrottlerStorage` in memory if the options name no storage. */
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
