import type { FastifyRequest } from "fastify";
import { SluiceError } from "sluice";
import { createGate, type Gate } from "../gate.ts";
import type { Limits } from "../limits.ts";
import type { RateLimitOptions } from "../rate-limit-options.ts";
import { createFastifyReader } from "./create-fastify-reader.ts";

/** A route's `config.rateLimit`: `false` for no limit, or limits that replace the plugin's. */
export type RouteLimits = Limits | false;

/** A route's `config`, as Fastify completes it. */
export interface RouteConfig {
  readonly method: string | readonly string[];
  readonly url: string;
  readonly rateLimit: RouteLimits;
}

/** Routes with their own limits, by their config. If a route is inside two plugins, the first one counts it. */
const claimed = new WeakMap<RouteConfig, { readonly by: RouteGates; readonly gate: Gate<FastifyRequest> }>();

/** The gates of routes that have their own limits. All other options are the plugin's. */
export class RouteGates {
  readonly #options: RateLimitOptions<FastifyRequest>;
  /** Routes that differ only in their constraints share a name. */
  readonly #byRoute = new Map<string, Map<Limits, Gate<FastifyRequest>>>();

  constructor(options: RateLimitOptions<FastifyRequest>) {
    this.#options = options;
  }

  /** Undefined if no limit applies, or another plugin's does. */
  find(config: RouteConfig): Gate<FastifyRequest> | undefined {
    if (config.rateLimit === false) return undefined;
    const known = claimed.get(config);
    if (known !== undefined) return known.by === this ? known.gate : undefined;
    const gate = this.create(config, config.rateLimit);
    claimed.set(config, { by: this, gate });
    return gate;
  }

  /** The same gate for a route and the HEAD route that Fastify adds to it, so that both count together. */
  create({ method, url }: Omit<RouteConfig, "rateLimit">, limits: Limits): Gate<FastifyRequest> {
    const methods = new Set([method].flat().map((one) => (one === "HEAD" ? "GET" : one)));
    const route = `${[...methods].join(".")}:${url}`;
    const gates = this.#byRoute.get(route) ?? new Map<Limits, Gate<FastifyRequest>>();
    const known = gates.get(limits);
    if (known !== undefined) return known;
    try {
      const options = this.#optionsFor(route, limits, gates.size > 0);
      const gate = createGate(createFastifyReader(), checkShape(limits), options);
      this.#byRoute.set(route, gates.set(limits, gate));
      return gate;
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error;
      throw new SluiceError(error.code, `config.rateLimit of ${route}: ${error.message}`, error.problems);
    }
  }

  /** One-line limits are named after their route, because counters may be shared. */
  #optionsFor(route: string, limits: Limits, isAnother: boolean): RateLimitOptions<FastifyRequest> {
    const { name = "limit", counters, algorithm, onFailure, blockFor, ...options } = this.#options;
    if (typeof limits !== "string" && !Array.isArray(limits)) return options;
    if (isAnother && counters !== undefined) {
      throw new SluiceError(
        "invalid_policies",
        "another route with this method and path has different limits; name both: limit(windows, { name, counters })",
      );
    }
    return { ...options, name: `${name}:${asPolicyId(route)}`, counters, algorithm, onFailure, blockFor };
  }
}

/** Each route gets a distinct id. Most routes are valid ids already. */
function asPolicyId(route: string): string {
  return route.replace(/[^A-Za-z0-9._:/-]/gu, (char) => `@${char.codePointAt(0)!.toString(16)}.`);
}

/** @fastify/rate-limit reads the same property, and its objects mean something else. */
function checkShape(limits: Limits): Limits {
  if (typeof limits !== "object" || limits === null || Array.isArray(limits)) return limits;
  if ("limiter" in limits || "check" in limits || "policies" in limits) return limits;
  throw new SluiceError("invalid_policies", "must be false, windows such as 5/m, a limit, a limiter or policies");
}
