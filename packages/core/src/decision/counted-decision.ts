import type { LimitOutcome } from "../counters/counter-store.ts";
import type { CompiledLimit, CompiledWindow } from "../match/compiled.ts";
import { queueOf, reasonOf, retryAfterOf } from "./combine-outcomes.ts";
import type { Decision, ShadowDenial } from "./decision.ts";

type Standing = Pick<Decision, "state" | "denyCount">;

/** Makes the decision in the words of the limit that speaks. */
export const CountedDecision = fill as unknown as new (...made: Parameters<typeof fill>) => Decision;

/**
 * A constructor rather than an object literal, because every check that waits for counters elsewhere leaves one. Of literals V8 watches
 * how many survive; in a process that has just started most do, since they wait for a server's first answers, and from then on each
 * would be made among the objects that stay, as garbage that only a full collection takes away. See decision 0012.
 */
function fill(
  this: { -readonly [Field in keyof Decision]: Decision[Field] },
  limit: CompiledLimit,
  window: CompiledWindow,
  cost: number,
  outcome: Omit<LimitOutcome, "window">,
  used: number,
  standing: Standing,
  atMs: number,
  shadow: readonly ShadowDenial[],
  preview: boolean,
  replayed: boolean,
): void {
  const { policy } = limit;
  const { fits, remaining, resetAfterMs } = outcome;
  this.allowed = fits === "now";
  this.reason = reasonOf(fits);
  this.cost = cost;
  this.policy = policy.id;
  this.version = policy.version;
  this.scope = limit.scope;
  this.window = window.source;
  this.limit = window.capacity;
  this.remaining = remaining;
  this.used = used;
  this.retryAfterMs = retryAfterOf(outcome);
  this.resetAfterMs = resetAfterMs;
  this.resetAtMs = Math.ceil(atMs + resetAfterMs);
  this.queue = queueOf(window, outcome);
  this.state = standing.state;
  this.denyCount = standing.denyCount;
  this.replayed = replayed;
  this.preview = preview;
  this.degraded = undefined;
  this.shadow = shadow;
  this.limits = undefined;
  this.receipt = undefined;
}
// Plain data, as if it were written as a literal.
Object.defineProperty(fill, "prototype", { value: Object.prototype, writable: false });
