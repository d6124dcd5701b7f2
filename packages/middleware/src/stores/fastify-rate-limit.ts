import theirPlugin, {
  type FastifyRateLimitStore,
  type FastifyRateLimitStoreCtor,
  type RateLimitPluginOptions as TheirPluginOptions,
} from "@fastify/rate-limit";
import type { FastifyInstance, FastifyPluginAsync } from "fastify";
import { type CounterStore, type Decision, StoreUnavailable } from "sluice";
import { maxBlockMs } from "sluice/internal";
import {
  LimitsByShape,
  type LimitsOptions,
  type ShapeNames,
  type StoreOptions,
  wrongOption,
} from "./limits-by-shape.ts";

export type {
  CreateRateLimitOptions,
  errorResponseBuilderContext,
  FastifyRateLimitOptions,
  FastifyRateLimitStore,
  FastifyRateLimitStoreCtor,
  RateLimitHook,
  RateLimitOptions,
} from "@fastify/rate-limit";
export type { StoreOptions } from "./limits-by-shape.ts";
export { fastifyRateLimit, fastifyRateLimit as default };

/** Undefined with @fastify/rate-limit 10. */
export const normalizeIP: (ip: string, ipv6Subnet?: number) => string = theirPlugin.normalizeIP;

/** The options of @fastify/rate-limit, and where counters live. */
export interface RateLimitPluginOptions
  extends TheirPluginOptions,
    Pick<StoreOptions, "algorithm" | "onFailure" | "onDegraded"> {
  /** Where counters live. Default: on the server of `redis`, else in this process's memory. Requires a `nameSpace`. */
  readonly counters?: CounterStore | undefined;
}

/** What the plugin passes to a store: its own options, or those of a route. */
interface StoreParams {
  readonly continueExceeding?: boolean | undefined;
  readonly exponentialBackoff?: boolean | undefined;
  readonly max?: unknown;
  readonly timeWindow?: unknown;
  readonly routeInfo?: RouteInfo | undefined;
}

interface RouteInfo {
  readonly method?: string | readonly string[] | undefined;
  readonly url?: string | undefined;
  readonly constraints?: unknown;
  readonly config?: { readonly rateLimit?: { readonly skipOnError?: unknown } | false | undefined } | undefined;
}

const names: ShapeNames = { windowMs: "timeWindow", blockForMs: "timeWindow" };

type Callback = Parameters<FastifyRateLimitStore["incr"]>[1];

interface Standing {
  readonly current: number;
  readonly ttl: number;
}

/**
 * A store for @fastify/rate-limit 10 and 11, in memory; `sluiceStore` makes one over other counters. Each hit is one atomic
 * call; hits beyond `max` are not charged. They are reported as `max` plus how many this process has refused the key in a
 * row, which `ban` uses. `continueExceeding` and `exponentialBackoff` block the key for their time, 30 days at most.
 *
 * Routes with their own limits have separate counters, by method, path and constraints. In shared counters, limiters that
 * belong to no route (`fastify.rateLimit()`, `fastify.createRateLimit()`) are distinguished by `max` and `timeWindow`.
 */
export class SluiceStore implements FastifyRateLimitStore {
  readonly #limits: LimitsByShape;
  readonly #options: LimitsOptions;
  readonly #backoff: "none" | "window" | "exponential";
  /** The limits of this store and of its children, each prefix once. */
  #claimed = new Map<string, LimitsByShape>();

  constructor(params: StoreParams = {}, options: LimitsOptions = {}) {
    this.#options = options;
    this.#limits = new LimitsByShape("fastify-rate-limit", options, names);
    this.#limits.claim();
    this.#backoff = params.continueExceeding ? "window" : params.exponentialBackoff ? "exponential" : "none";
    this.#remember();
    const { timeWindow, max } = params;
    // Refuses impossible windows now, not at the first request.
    if (typeof timeWindow === "number") {
      this.#limits.limiterFor(this.#shape(timeWindow, typeof max === "number" ? max : 1));
    }
  }

  incr(key: string, callback: Callback, timeWindow: number, max: number): void {
    let decision: Decision | Promise<Decision>;
    try {
      decision = this.#limits.hit(String(key), this.#shape(timeWindow, max));
    } catch (error) {
      callback(error as Error);
      return;
    }
    if (decision instanceof Promise || !(decision.allowed || this.#backoff === "none")) {
      answer(callback, this.#afterHit(key, timeWindow, max, decision));
    } else callback(null, standingAfter(decision, timeWindow, max));
  }

  /** Reads a key's state; takes nothing. */
  read(key: string, callback: Callback, timeWindow: number, max: number): void {
    answer(callback, this.#read(key, timeWindow, max));
  }

  child(route: object): SluiceStore {
    const { max, timeWindow, routeInfo } = route as StoreParams;
    const options = obeySkipOnError(this.#options, ownSkipOnError ?? findSkipOnError(routeInfo));
    const { counters, prefix = "" } = options;
    if (counters === undefined) return new SluiceStore(route, options);
    const { method, url, constraints } = routeInfo ?? {};
    const name = url === undefined ? [written(max), written(timeWindow)] : [method, url, constraints];
    const child = new SluiceStore(route, { ...options, prefix: prefix + JSON.stringify(name) });
    child.#claimed = this.#claimed;
    return child.#remember();
  }

  /** Closes nothing: the code that opened `counters` closes them. */
  close(): void {
    for (const limits of this.#claimed.values()) limits.disclaim();
    this.#claimed.clear();
  }

  #remember(): this {
    this.#claimed.set(this.#options.prefix ?? "", this.#limits);
    return this;
  }

  #shape(windowMs: number, limit: number): { windowMs: number; limit: number; blockable: boolean } {
    return { windowMs, limit, blockable: this.#backoff !== "none" };
  }

  async #afterHit(
    key: string,
    timeWindow: number,
    max: number,
    asked: Decision | Promise<Decision>,
  ): Promise<Standing> {
    const decision = await asked;
    const standing = standingAfter(decision, timeWindow, max);
    if (decision.allowed || this.#backoff === "none") return standing;
    const times = this.#backoff === "window" ? 1 : 2 ** (standing.current - Math.floor(max) - 1);
    const forMs = Math.min(timeWindow * times, maxBlockMs);
    await this.#limits.block(String(key), this.#shape(timeWindow, max), forMs).catch((error: unknown) => {
      // The failure was reported. The request is refused, with or without the block.
      if (!(error instanceof StoreUnavailable)) throw error;
    });
    return { current: standing.current, ttl: Math.max(standing.ttl, forMs) };
  }

  async #read(key: string, timeWindow: number, max: number): Promise<Standing> {
    const decision = await this.#limits.peek(String(key), this.#shape(timeWindow, max));
    const { reason, used = 0, retryAfterMs = 0, resetAfterMs = 0 } = decision;
    if (reason === "blocked") return { current: Math.floor(max) + 1, ttl: retryAfterMs };
    return { current: used, ttl: used === 0 ? 0 : resetAfterMs };
  }
}

/** A class for `store`, over other counters than memory: `store: sluiceStore({ counters, prefix: "api" })`. */
export function sluiceStore(options: StoreOptions): FastifyRateLimitStoreCtor {
  return class extends SluiceStore {
    constructor(params: StoreParams) {
      super(params, options);
    }
  };
}

/**
 * @fastify/rate-limit, with Sluice's counters if no `store` is given: those of `counters`, else on the server of `redis`
 * (a client of ioredis, iovalkey or node-redis; needs @sluice/redis), else in memory. Memory is bounded without `cache`.
 */
const fastifyRateLimit: FastifyPluginAsync<RateLimitPluginOptions> = async (fastify, options) => {
  const { counters, algorithm, onFailure, onDegraded, ...settings } = options;
  if (settings.store !== undefined) {
    for (const [name, value] of Object.entries({ counters, algorithm, onFailure, onDegraded })) {
      if (value !== undefined) throw wrongOption(name, "has no effect if store is given: remove one of them");
    }
    await theirPlugin(fastify, settings, () => {});
    return;
  }
  const given: LimitsOptions = { ...(await chooseCounters(options)), algorithm, onFailure, onDegraded };
  const ours = obeySkipOnError(given, settings.skipOnError);
  class Store extends SluiceStore {
    constructor(params: StoreParams) {
      super(params, ours);
      fastify.addHook("onClose", async () => this.close());
    }
  }
  await theirPlugin(fastify, { ...settings, store: Store }, () => {});
  noteOwnSkipOnError(fastify, "rateLimit");
  noteOwnSkipOnError(fastify, "createRateLimit");
};

/**
 * If `skipOnError` is given, for the plugin or for a route, failures become errors for @fastify/rate-limit, which skips
 * them or passes them on. Otherwise `onFailure` decides.
 */
function obeySkipOnError(options: LimitsOptions, skipOnError: unknown): LimitsOptions {
  const { onFailure } = options;
  if (typeof skipOnError !== "boolean") return options;
  if (onFailure === (skipOnError ? "closed" : "open")) {
    throw wrongOption("skipOnError", `${skipOnError} contradicts onFailure ${onFailure}: leave one out`);
  }
  return onFailure === undefined ? { ...options, onFailure: "error" } : options;
}

function findSkipOnError(route: RouteInfo | undefined): unknown {
  const own = route?.config?.rateLimit;
  return own ? own.skipOnError : undefined;
}

/** The option of a limiter that belongs to no route, while it is being created. */
let ownSkipOnError: unknown;

/** The plugin merges such a limiter's options with its own, so stores see `skipOnError: false` even if it was not given. */
function noteOwnSkipOnError(fastify: FastifyInstance, name: "rateLimit" | "createRateLimit"): void {
  const make: (options?: object) => unknown = fastify[name];
  const noting = (options?: { readonly skipOnError?: unknown }): unknown => {
    ownSkipOnError = options?.skipOnError;
    try {
      return make.call(fastify, options);
    } finally {
      ownSkipOnError = undefined;
    }
  };
  Object.assign(fastify, { [name]: noting });
}

// As fastify-plugin does: hooks and decorators apply to the instance that registers the plugin, under its original name.
Object.assign(fastifyRateLimit, {
  [Symbol.for("skip-override")]: true,
  [Symbol.for("fastify.display-name")]: "@fastify/rate-limit",
  [Symbol.for("plugin-meta")]: { fastify: "5.x", name: "@fastify/rate-limit" },
});

async function chooseCounters(options: RateLimitPluginOptions): Promise<Pick<StoreOptions, "counters" | "prefix">> {
  const { counters, redis, nameSpace } = options;
  if (counters !== undefined) return { counters, prefix: nameSpace };
  if (redis === undefined || redis === null) return {};
  // Imported late, so that apps with counters in memory need not install @sluice/redis.
  const { countersFromClient } = await import("./counters-from-client.ts");
  return { counters: countersFromClient(redis as object), prefix: nameSpace ?? "fastify-rate-limit-" };
}

function standingAfter(decision: Decision, timeWindow: number, max: number): Standing {
  const { allowed, used = 1, denyCount, retryAfterMs, resetAfterMs } = decision;
  if (allowed) return { current: used, ttl: resetAfterMs ?? timeWindow };
  return { current: Math.floor(max) + Math.max(denyCount, 1), ttl: retryAfterMs ?? timeWindow };
}

function answer(callback: Callback, standing: Promise<Standing>): void {
  standing.then(
    (one) => callback(null, one),
    (error: unknown) => callback(error as Error),
  );
}

function written(value: unknown): unknown {
  return typeof value === "function" ? "function" : value;
}
