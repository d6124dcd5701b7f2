import type { LimitOutcome } from "../counters/counter-store.ts";
import type { CompiledLimit, CompiledWindow } from "../limits/compiled-limit.ts";
import { decisionReason, findMoreAfter, findQueue, findRetryAfter } from "./combine-outcomes.ts";
import type { Decision, ShadowDenial } from "./decision.ts";

type SubjectStanding = Pick<Decision, "state" | "denyCount">;

/** Creates a decision as reported by the deciding limit. */
export const CountedDecision = fill as unknown as new (...made: Parameters<typeof fill>) => Decision;

/**
 * A constructor rather than an object literal, because every check that waits for remote counters leaves one. V8 tracks
 * how many literals survive. In a process that has just started most do, since they wait for a server's first answers,
 * and from then on each would be allocated in old space, as garbage that only a full collection removes. See decision
 * 0012.
 */
function fill(
  this: { -readonly [Field in keyof Decision]: Decision[Field] },
  limit: CompiledLimit,
  window: CompiledWindow,
  cost: number,
  outcome: Omit<LimitOutcome, "window" | "windowRemaining">,
  remaining: number,
  used: number,
  standing: SubjectStanding,
  atMs: number,
  shadow: readonly ShadowDenial[],
  preview: boolean,
  replayed: boolean,
): void {
  const { policy } = limit;
  const { fits, resetAfterMs } = outcome;
  this.allowed = fits === "now";
  this.reason = decisionReason(fits);
  this.cost = cost;
  this.policy = policy.id;
  this.version = policy.version;
  this.scope = limit.scope;
  this.window = window.source;
  this.limit = window.capacity;
  this.remaining = remaining;
  this.limitRemaining = outcome.remaining;
  this.used = used;
  this.retryAfterMs = findRetryAfter(outcome);
  this.resetAfterMs = resetAfterMs;
  this.resetAtMs = findResetAt(window, atMs, resetAfterMs);
  this.moreAfterMs = findMoreAfter(outcome);
  this.queue = findQueue(window, outcome);
  this.state = standing.state;
  this.denyCount = standing.denyCount;
  this.replayed = replayed;
  this.preview = preview;
  this.degraded = undefined;
  this.shadow = shadow;
  this.limits = undefined;
  this.receipt = undefined;
}

/** Sums of instants are exact to less than this. */
const noiseMs = 2 ** -10;

/**
 * The whole millisecond at which the counter is as good as new. `resetAfterMs` is rounded up already. Windows that end
 * at a whole millisecond end within the one that the sum falls into; other counters may become idle at any instant, and
 * the next whole one is safe.
 */
function findResetAt({ kind }: CompiledWindow, atMs: number, resetAfterMs: number): number {
  const isAligned = kind === "count" || kind === "sliding" || kind === "distinct";
  return isAligned ? Math.floor(atMs + resetAfterMs + noiseMs) : Math.ceil(atMs + resetAfterMs);
}

// Plain data, as if it were written as a literal.
Object.defineProperty(fill, "prototype", { value: Object.prototype, writable: false });
