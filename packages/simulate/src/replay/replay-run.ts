import { createLimiter, type Decision, type Limiter, MemoryCounters, type PolicySet, SluiceError } from "sluice";
import { ReplayClock } from "./replay-clock.ts";
import type { SimulatedRequest } from "./simulated-request.ts";
import { type AskedLimit, WatchedCounters } from "./watched-counters.ts";

export interface ReplayRunOptions {
  readonly policies: PolicySet;
  readonly domain: string | undefined;
  /** The first request: no later one may come before it. */
  readonly first: Pick<SimulatedRequest, "timeMs" | "recorded">;
  readonly maxCounterBytes: number;
  /** Whether every request is also decided at the time that its log says: the start of a second. Takes as much memory again. */
  readonly alsoAtStart?: boolean;
}

/** A policy's part in a run. */
export interface PolicyCount {
  /** Requests that its limits counted, whatever was decided. */
  requests: number;
  /** Requests that it denied: of several policies that would, the one that decided. */
  denied: number;
  /** Requests that it would have denied, but for its shadow mode. */
  shadowDenied: number;
}

/** Counters take at least this, so that a run can start; a few thousand of them fit. */
const leastCounterBytes = 1 << 20;
/** A counter takes fewer bytes, so that the bound on bytes is the one that holds. */
const bytesPerCounter = 16;

/**
 * Replays requests against one set of policies, in the limiter that serves them, with counters that start empty and a
 * clock that shows the time of each request.
 */
export class ReplayRun {
  readonly counts: Map<string, PolicyCount> = new Map();
  /** How many requests lacked a dimension that a limit counts by: by policy and dimension, with a line break between. */
  readonly missing: Map<string, number> = new Map();
  readonly #limiter: Limiter;
  readonly #clock: ReplayClock;
  readonly #counters: WatchedCounters;
  readonly #request: {
    domain: string | undefined;
    dimensions: SimulatedRequest["dimensions"];
    cost: number | undefined;
    policies: readonly string[] | undefined;
  };
  readonly #domain: string | undefined;
  /** Counters of their own for the start of each second, and their clock. */
  readonly #atStart: { readonly clock: ReplayClock; readonly counters: MemoryCounters } | undefined;
  #denied = 0;
  #deniedAtStart = 0;

  constructor({ policies, domain, first, maxCounterBytes, alsoAtStart = false }: ReplayRunOptions) {
    this.#domain = domain;
    this.#clock = new ReplayClock(first);
    const maxBytes = Math.max(leastCounterBytes, maxCounterBytes);
    const maxCounters = Math.ceil(maxBytes / bytesPerCounter);
    if (alsoAtStart) {
      const clock = new ReplayClock(first);
      this.#atStart = { clock, counters: new MemoryCounters({ clock, maxBytes, maxCounters, strong: true }) };
    }
    this.#counters = new WatchedCounters(
      { clock: this.#clock, maxBytes, maxCounters, strong: true },
      this.#atStart?.counters,
    );
    this.#limiter = createLimiter({
      policies,
      clock: this.#clock,
      counters: this.#counters,
      onMissing: ({ id }, dimension) => {
        const key = `${id}\n${dimension}`;
        this.missing.set(key, (this.missing.get(key) ?? 0) + 1);
      },
    });
    this.#request = { domain, dimensions: {}, cost: undefined, policies: undefined };
  }

  /** Undefined if the request is one that a limiter refuses to decide, such as one with an `ip` that is no address. */
  decide(request: SimulatedRequest, timeMs: number): Decision | undefined {
    const { recorded } = request;
    if (recorded?.steadyMs === undefined) this.#clock.moveTo(timeMs);
    else this.#clock.moveToInstant(recorded.originMs, recorded.steadyMs);
    this.#atStart?.clock.moveTo(request.timeMs);
    this.#counters.forgetAsked();
    let decision: Decision;
    try {
      decision = request.together === undefined ? this.#decideOne(request) : this.#decideTogether(request);
    } catch (error) {
      if (error instanceof SluiceError && error.code === "invalid_request") return undefined;
      throw error;
    }
    if (!decision.allowed) this.#denied += 1;
    if (this.#atStart !== undefined && !this.#counters.allowedByTwin(decision.allowed)) this.#deniedAtStart += 1;
    this.#count(decision);
    return decision;
  }

  /** Counters stay, as they do when a server gets other policies. */
  usePolicies(policies: PolicySet): void {
    this.#limiter.usePolicies(policies);
  }

  get denied(): number {
    return this.#denied;
  }

  /** How many are denied if every request comes at the start of its second. Undefined: that was not asked for. */
  get deniedAtStart(): number | undefined {
    return this.#atStart && this.#deniedAtStart;
  }

  /** The limits that counted the latest request; valid until the next one. */
  get asked(): readonly AskedLimit[] {
    return this.#counters.asked;
  }

  get askedCount(): number {
    return this.#counters.askedCount;
  }

  /** Live counters that were dropped because memory was full. */
  get countersLost(): number {
    const all = this.#atStart === undefined ? [this.#counters] : [this.#counters, this.#atStart.counters];
    return all.reduce((sum, { stats }) => sum + stats.evictedLive + stats.refused, 0);
  }

  /** The request object is used again and again. */
  #decideOne({ domain = this.#domain, dimensions, cost, policies }: SimulatedRequest): Decision {
    const request = this.#request;
    request.domain = domain;
    request.dimensions = dimensions;
    request.cost = cost;
    request.policies = policies;
    return this.#limiter.checkSync(request);
  }

  /** All requests or none: the denial that decided, else the first decision. */
  #decideTogether({ together = [] }: SimulatedRequest): Decision {
    const parts = together.map(({ domain = this.#domain, dimensions, cost, policies }) => ({
      ...{ domain, dimensions, cost, policies },
    }));
    // Counters in this process answer at once.
    const decisions = this.#limiter.checkTogether(parts) as readonly Decision[];
    return decisions.find(({ allowed }) => !allowed) ?? decisions[0]!;
  }

  #count(decision: Decision): void {
    const { asked, askedCount } = this.#counters;
    for (let i = 0; i < askedCount; i++) {
      const { id } = asked[i]!.limit.policy;
      // A policy with several limits counts a request once. Its limits follow each other.
      if (i === 0 || asked[i - 1]!.limit.policy.id !== id) this.#countFor(id).requests += 1;
    }
    if (!decision.allowed) {
      const count = this.#countFor(decision.policy ?? "");
      count.denied += 1;
      // Denied by name, without asking a counter.
      if (askedCount === 0) count.requests += 1;
    }
    for (const { policy } of decision.shadow) this.#countFor(policy).shadowDenied += 1;
  }

  #countFor(policy: string): PolicyCount {
    let count = this.counts.get(policy);
    if (count === undefined) {
      count = { requests: 0, denied: 0, shadowDenied: 0 };
      this.counts.set(policy, count);
    }
    return count;
  }
}

/** Whether this limit is the one that decided. */
export function isDeciding({ limit }: AskedLimit, decision: Decision): boolean {
  return limit.scope === decision.scope && limit.policy.id === decision.policy;
}
