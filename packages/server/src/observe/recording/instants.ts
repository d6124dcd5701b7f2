import { type CounterStore, type Decision, MemoryCounters } from "sluice";
import { type LimiterWatch, systemClock } from "sluice/internal";

/** When exactly a request was decided, by the counters' clock. */
export interface Instant {
  /** By counters on a server: microseconds since 1970. */
  readonly us: number | undefined;
  /** By counters in memory: milliseconds of their steady clock, and epoch milliseconds of its instant 0. */
  readonly steadyMs: number | undefined;
  readonly originMs: number | undefined;
  /** The place among requests of the same instant; 0: they came in order. */
  readonly order: number;
}

/** Finds the instant of decisions while someone records them. */
export interface Instants {
  find(decision: Decision): Instant;
  /** Ends what following costs. */
  close(): void;
}

export function followInstants(store: CounterStore, watch: LimiterWatch): Instants {
  return store instanceof MemoryCounters ? ofMemory(store) : ofServer(watch);
}

/** Counters in this process decide at once, so their latest instant is that of the latest decision. */
function ofMemory(counters: MemoryCounters): Instants {
  return {
    find(decision): Instant {
      const { originMs, latestMs } = counters;
      // Without a counter, no clock was read.
      const steadyMs = decision.limit === undefined ? Math.max(latestMs, systemClock.nowMs()) : latestMs;
      return { us: undefined, steadyMs, originMs, order: 0 };
    },
    close(): void {},
  };
}

function ofServer(watch: LimiterWatch): Instants {
  const known = new WeakMap<Decision, Instant>();
  watch.onDecided = (decision, atMs, order) => known.set(decision, createInstant(atMs, order));
  return {
    find: (decision) => known.get(decision) ?? createInstant(systemClock.epochMs(), 0),
    close(): void {
      watch.onDecided = undefined;
    },
  };
}

function createInstant(atMs: number, order: number): Instant {
  return { us: Math.round(atMs * 1000), steadyMs: undefined, originMs: undefined, order };
}
