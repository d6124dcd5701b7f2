import { type DynamicModule, type Provider, ServiceUnavailableException } from "@nestjs/common";
import {
  getOptionsToken,
  getStorageToken,
  ThrottlerModule as TheirThrottlerModule,
  type ThrottlerAsyncOptions,
  type ThrottlerModuleOptions,
  type ThrottlerStorage,
} from "@nestjs/throttler";
import { type Decision, StoreUnavailable } from "sluice";
import { type LimitShape, LimitsByShape, type StoreOptions } from "./limits-by-shape.ts";

export * from "@nestjs/throttler";
export type { StoreOptions } from "./limits-by-shape.ts";

/** What `increment` answers, in the words of @nestjs/throttler. Times are whole seconds. */
type ThrottlerRecord = Awaited<ReturnType<ThrottlerStorage["increment"]>>;

/**
 * A storage for @nestjs/throttler 6, in memory or wherever `counters` are: `ThrottlerModule.forRoot({ throttlers, storage: new
 * SluiceThrottlerStorage({ counters, prefix }) })`. Each hit is one atomic call; refused hits are not charged (`totalHits` is
 * then the limit plus one), `ttl` and `blockDuration` are exact to the millisecond, counters end by themselves, and in memory
 * they are bounded.
 *
 * A block that is shorter than its `ttl` ends without forgetting what was used: never more than the limit within a window.
 * By `sliding_log` it counts as their own storage does, never more than the limit within any stretch of `ttl`.
 */
export class SluiceThrottlerStorage implements ThrottlerStorage {
  readonly #limits: LimitsByShape;

  constructor(options: StoreOptions = {}) {
    this.#limits = new LimitsByShape("nest-throttler", options);
    this.#limits.claim();
  }

  async increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName = "default",
  ): Promise<ThrottlerRecord> {
    const shape: LimitShape = { windowMs: ttl, limit, blockForMs: Math.max(blockDuration, 0) };
    try {
      return recordOf(await this.#limits.hit(subjectOf(throttlerName, key), shape), shape);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      throw new ServiceUnavailableException("Service Unavailable", { cause: error });
    }
  }

  onApplicationShutdown(): void {
    this.#limits.disclaim();
  }
}

/** Throttlers count apart, whatever keys they make: no two pairs of a name and a key are written alike. */
function subjectOf(throttlerName: string, key: string): string {
  return `${throttlerName.replace(/[\\|]/g, "\\$&")}|${key}`;
}

function recordOf({ allowed, used, retryAfterMs, resetAfterMs }: Decision, shape: LimitShape): ThrottlerRecord {
  const { windowMs, limit, blockForMs } = shape;
  const timeToExpire = wholeSeconds(resetAfterMs ?? windowMs);
  if (allowed) return { totalHits: used ?? 0, timeToExpire, isBlocked: false, timeToBlockExpire: 0 };
  // Without a time to come back at, as where the limit is 0, the client asks again after a while.
  const timeToBlockExpire = Math.max(wholeSeconds(retryAfterMs ?? (blockForMs || windowMs)), 1);
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
  useFactory: (options: ThrottlerModuleOptions) =>
    (Array.isArray(options) ? undefined : options.storage) ?? new SluiceThrottlerStorage(),
};

function withOurStorage(module: DynamicModule): DynamicModule {
  const others = (module.providers ?? []).filter(
    (one) => typeof one === "function" || one.provide !== getStorageToken(),
  );
  const providers = [...others, ourStorage];
  return { ...module, providers, exports: providers };
}
