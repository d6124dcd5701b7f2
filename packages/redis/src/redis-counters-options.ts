import { SluiceError } from "sluice";
import {
  aFunction,
  anObject,
  aText,
  checkOptions,
  maxDeadlineMs,
  numberFrom,
  type OptionForms,
  trueOrFalse,
} from "sluice/internal";
import type { CircuitBreakerOptions } from "sluice/store";
import { mostPerCall } from "./ask/encode-call.ts";
import type { ScriptTuning } from "./ask/lane.ts";
import type { RedisServers } from "./connect/redis-servers.ts";
import type { Cell } from "./place/cells.ts";
import type { RedisEvent } from "./site.ts";

export interface RedisCountersOptions {
  /** The servers: an address such as `redis://127.0.0.1:6379`, or all details. */
  readonly servers: string | RedisServers;
  /** The prefix of every key. Absent: `s`. Deployments that share a server choose different ones. */
  readonly prefix?: string | undefined;
  /** How long a check may wait for its answer unless its policies say otherwise. Absent: 25 ms. */
  readonly deadlineMs?: number | undefined;
  /** In a cluster, over how many hash tags counters are spread. Absent: 32. Changing it starts all counters anew. */
  readonly lanes?: number | undefined;
  /** Tenants or tiers whose counters live on separate servers. */
  readonly cells?: readonly Cell[] | undefined;
  readonly breaker?: CircuitBreakerOptions | undefined;
  /** The most checks in one call, 1 … 127. Absent: 64, some 100 µs of the server's time. */
  readonly maxBatch?: number | undefined;
  /** The most calls in flight per lane. Absent: 4. */
  readonly maxInFlight?: number | undefined;
  /**
   * The most checks that wait per lane; further ones are answered as their policies say for an outage. Absent: 10 000.
   */
  readonly maxWaiting?: number | undefined;
  /** How old a connection gets before another replaces it; at most 24 h. Absent: an hour. */
  readonly maxConnectionAgeMs?: number | undefined;
  /** Called with what happens to the servers, for logs and metrics. Must not throw. */
  readonly onEvent?: ((event: RedisEvent) => void) | undefined;
  /**
   * Whether the process warns when an outage begins and when it ends (`SluiceWarning`). Absent: if there is no
   * `onEvent`.
   */
  readonly warn?: boolean | undefined;
}

/** Numbers are checked one by one, below. */
export const optionForms: OptionForms<RedisCountersOptions> = {
  servers: undefined,
  prefix: undefined,
  deadlineMs: undefined,
  lanes: undefined,
  cells: { holds: Array.isArray, wanted: "a list of cells" },
  breaker: anObject,
  maxBatch: undefined,
  maxInFlight: undefined,
  maxWaiting: undefined,
  maxConnectionAgeMs: undefined,
  onEvent: aFunction,
  warn: trueOrFalse,
};

const breakerForms: OptionForms<CircuitBreakerOptions> = {
  failuresInARow: numberFrom(1),
  failureShare: numberFrom(0, 1),
  minCalls: numberFrom(0),
  overMs: numberFrom(1),
  probeEveryMs: numberFrom(1),
  onChange: aFunction,
};

const cellForms: OptionForms<Cell> = { name: aText, servers: undefined, values: anObject, tiers: undefined };

/** For tests: scripts on the test's clock. */
export interface RedisTestOptions {
  readonly tune?: ScriptTuning;
}

export const defaultPrefix = "s";

/** Refuses options that cannot work, naming the first. */
export function checkRedisOptions(options: RedisCountersOptions & RedisTestOptions): void {
  const { tune: _, ...given } = { ...options };
  checkOptions(given, optionForms, { name: "RedisCounters", code: "invalid_request" });
  const { breaker = {}, cells = [] } = options;
  checkOptions(breaker, breakerForms, { name: "breaker", code: "invalid_request" });
  for (const cell of cells) checkOptions(cell, cellForms, { name: "a cell", code: "invalid_request" });
  checkPrefix(options.prefix ?? defaultPrefix);
  checkWhole("maxBatch", options.maxBatch, mostPerCall);
  checkWhole("maxInFlight", options.maxInFlight, 1000);
  checkWhole("maxWaiting", options.maxWaiting, 1_000_000);
  checkWhole("lanes", options.lanes, 1024);
  checkDeadline(options.deadlineMs);
  checkWhole("maxConnectionAgeMs", options.maxConnectionAgeMs, 24 * 60 * 60 * 1000);
}

export function checkDeadline(deadlineMs: number | undefined): void {
  checkWhole("deadlineMs", deadlineMs, maxDeadlineMs);
}

/** Braces would determine the keys' slot in a cluster. */
function checkPrefix(prefix: string): void {
  if (/^[\w.:-]{1,64}$/.test(prefix)) return;
  const message = `must be 1 to 64 letters, digits, dots, colons, hyphens or underscores, not ${JSON.stringify(prefix)}`;
  throw new SluiceError("invalid_request", `prefix ${message}`, [{ path: ["prefix"], message }]);
}

function checkWhole(name: string, value: number | undefined, most: number): void {
  if (value === undefined || (Number.isInteger(value) && value >= 1 && value <= most)) return;
  const message = `must be a whole number from 1 to ${most}, not ${value}`;
  throw new SluiceError("invalid_request", `${name} ${message}`, [{ path: [name], message }]);
}
