import type { ExecutionContext } from "@nestjs/common";
import { SluiceError } from "sluice";
import { createGate, type Gate } from "../gate.ts";
import { type AskedLimiter, type Limits, limiterFrom, type OneLineOptions } from "../limits.ts";
import type { RateLimitOptions } from "../rate-limit-options.ts";
import { type ContextKind, endpointFromContext, type HandlerOrClass, type NestRequest, readerFor } from "./exchange.ts";

/** The limits of an app, and how they are checked. */
export interface RateLimitSettings<Request extends object = NestRequest> extends RateLimitOptions<Request> {
  readonly limits: Limits;
}

/** The settings of a controller or a handler. It inherits those it omits. */
export interface RouteLimits<Request extends object = NestRequest> extends RateLimitOptions<Request> {
  readonly limits?: Limits | undefined;
}

/** The mark that a decorator leaves: settings, or no limits at all. */
export type RouteMark = RouteLimits | "skip";

/** Finds the mark on a controller or a handler. */
export type ReadMark = (target: HandlerOrClass) => RouteMark | undefined;

/**
 * The gate of every handler. Of the settings of handler, controller and app, the nearest wins: its limits replace theirs,
 * its options override theirs, and its dimensions are added to theirs.
 */
export class RouteGates {
  readonly #settings: RateLimitSettings;
  readonly #limiter: AskedLimiter;
  readonly #readMark: ReadMark;
  /** By handler and controller, because controllers inherit handlers; then by endpoint. */
  readonly #gates = new WeakMap<HandlerOrClass, WeakMap<HandlerOrClass, Map<string, Gate<NestRequest> | undefined>>>();
  readonly #limiters = new WeakMap<RouteLimits, WeakMap<HandlerOrClass, AskedLimiter>>();
  /** Names of limits that are in use. */
  readonly #names: Set<string>;

  constructor(settings: RateLimitSettings, readMark: ReadMark) {
    this.#settings = settings;
    this.#readMark = readMark;
    this.#names = new Set([settings.name ?? "limit"]);
    this.#limiter = limiterFrom(settings.limits, settings);
    // Reports mistakes now, not at the first request.
    createGate(readerFor("http", ""), this.#limiter, gateOptions([settings]));
  }

  /** Undefined if nothing is limited. */
  gateFor(context: ExecutionContext, kind: ContextKind): Gate<NestRequest> | undefined {
    const ofHandler = findOrCreate(this.#gates, context.getHandler(), () => new WeakMap());
    const gates = findOrCreate(ofHandler, context.getClass(), () => new Map());
    // A handler serves one route, or several that the platform distinguishes; a resolver may serve fields of several types.
    const endpoint = kind === "graphql" ? endpointFromContext(context, kind) : kind;
    if (gates.has(endpoint)) return gates.get(endpoint);
    const gate = this.#createGate(context, kind);
    gates.set(endpoint, gate);
    return gate;
  }

  #createGate(context: ExecutionContext, kind: ContextKind): Gate<NestRequest> | undefined {
    const ofHandler = this.#readMark(context.getHandler());
    const ofController = this.#readMark(context.getClass());
    if (ofHandler === "skip" || (ofHandler === undefined && ofController === "skip")) return undefined;
    const levels: RouteLimits[] = [this.#settings];
    if (ofController !== undefined && ofController !== "skip") levels.push(ofController);
    if (ofHandler !== undefined) levels.push(ofHandler);
    const limiter = this.#limiterFor(levels, context, ofHandler);
    return createGate(readerFor(kind, endpointFromContext(context, kind)), limiter, gateOptions(levels));
  }

  /** The limiter of the nearest level that has limits. */
  #limiterFor(
    levels: readonly RouteLimits[],
    context: ExecutionContext,
    ofHandler: RouteLimits | undefined,
  ): AskedLimiter {
    const nearest = levels.findLastIndex(({ limits }) => limits !== undefined);
    const level = levels[nearest]!;
    if (nearest === 0) return this.#limiter;
    const controller = context.getClass();
    const byController = findOrCreate(this.#limiters, level, () => new WeakMap());
    return findOrCreate(byController, controller, () => {
      const name = level === ofHandler ? `${controller.name}.${context.getHandler().name}` : controller.name;
      const around = levels.slice(0, nearest);
      return this.#createLimiter(around, this.#limiterFor(around, context, undefined), level, name);
    });
  }

  #createLimiter(
    around: readonly RouteLimits[],
    limiterAround: AskedLimiter,
    level: RouteLimits,
    name: string,
  ): AskedLimiter {
    const limits = level.limits!;
    if (!isOneLine(limits)) return limiterFrom(limits, level);
    // The name is not inherited: two limits with one name would be one limit.
    const { algorithm, onFailure, blockFor } = merged([...around, level]);
    const counters = level.counters ?? limiterAround.counters;
    const local = counters?.local ?? true;
    return limiterFrom(limits, {
      counters,
      algorithm,
      onFailure,
      blockFor,
      name: level.name ?? this.#newName(name, local),
    });
  }

  /** A name that no other limit has. If counters are shared, other processes must arrive at the same one. */
  #newName(wanted: string, local: boolean): string {
    const name = wanted.replaceAll(/[^A-Za-z0-9._-]/g, "_").slice(0, 120);
    let unused = name;
    for (let i = 2; this.#names.has(unused); i++) {
      if (!local) {
        const message = `is required: two limits would both be called ${name}, and share their counters`;
        throw new SluiceError("invalid_policies", `name ${message}`, [{ path: ["name"], message }]);
      }
      unused = `${name}.${i}`;
    }
    this.#names.add(unused);
    return unused;
  }
}

function findOrCreate<Key extends WeakKey, Value>(known: WeakMap<Key, Value>, key: Key, create: () => Value): Value {
  const found = known.get(key);
  if (found !== undefined) return found;
  const created = create();
  known.set(key, created);
  return created;
}

export function isOneLine(limits: Limits | undefined): limits is string | readonly string[] {
  return typeof limits === "string" || Array.isArray(limits);
}

/** A gate's options besides its limiter; the nearest level comes last. */
function gateOptions(levels: readonly RouteLimits[]): RateLimitOptions<NestRequest> {
  return { ...merged(levels), ...noOneLineOptions };
}

const noOneLineOptions: OneLineOptions = {
  name: undefined,
  counters: undefined,
  algorithm: undefined,
  onFailure: undefined,
  blockFor: undefined,
};

function merged(levels: readonly RouteLimits[]): RateLimitOptions<NestRequest> {
  const options: Record<string, unknown> = {};
  for (const { limits: _, ...level } of levels) {
    for (const [name, value] of Object.entries(level)) if (value !== undefined) options[name] = value;
  }
  const dimensions = Object.assign({}, ...levels.map((level) => level.dimensions));
  return { ...options, dimensions };
}
