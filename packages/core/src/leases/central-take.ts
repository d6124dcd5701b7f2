import type { LimitOutcome, ResolvedLimit } from "../counters/counter-store.ts";
import type { OneOutcome, TakeCallback } from "../counters/single-takes.ts";
import type { HotKeys } from "../hot-keys/hot-keys.ts";
import type { CompiledLimit, CompiledWindow } from "../limits/compiled-limit.ts";
import type { CheckRequest } from "../request/check-request.ts";
import type { LocalDenials } from "./local-denials.ts";

/** Notes the central store's denials. */
export class CentralDenials {
  readonly #hotKeys: HotKeys;
  readonly #local: LocalDenials;

  constructor(hotKeys: HotKeys, local: LocalDenials) {
    this.#hotKeys = hotKeys;
    this.#local = local;
  }

  /** `lo` and `hi` name the counter, and `askedMs` is when the store was asked. */
  note(lo: number, hi: number, asked: ResolvedLimit, outcome: LimitOutcome, askedMs: number, atMs: number): void {
    this.#hotKeys.noteDenied(lo, hi);
    const { policy, blockForMs, distinct } = asked.limit;
    // A value that was seen passes next to one that is denied.
    if (distinct !== undefined) return;
    // The denial that begins a block is not the one that the block gives.
    if (blockForMs > 0 && outcome.fits === "later") return;
    if (policy.counters !== "exact") this.#local.note(lo, hi, asked, outcome, askedMs, atMs);
  }
}

/**
 * A single take asked of the central store. It is both the limit asked for and the callback, so that a check allocates
 * one object here and no closures.
 */
export class CentralTake<T> implements ResolvedLimit, TakeCallback<T> {
  readonly limit: CompiledLimit;
  readonly windows: readonly CompiledWindow[];
  readonly subject: string;
  readonly cost: number;
  readonly group = 0;
  readonly lo: number;
  readonly hi: number;
  readonly askedMs: number;
  readonly denials: CentralDenials;
  readonly callback: TakeCallback<T>;

  constructor(
    limit: CompiledLimit,
    windows: readonly CompiledWindow[],
    subject: string,
    cost: number,
    lo: number,
    hi: number,
    askedMs: number,
    denials: CentralDenials,
    callback: TakeCallback<T>,
  ) {
    this.limit = limit;
    this.windows = windows;
    this.subject = subject;
    this.cost = cost;
    this.lo = lo;
    this.hi = hi;
    this.askedMs = askedMs;
    this.denials = denials;
    this.callback = callback;
  }

  decide(limit: CompiledLimit, subject: string, cost: number, outcome: Readonly<OneOutcome>): T {
    this.noteDenial(outcome);
    return this.callback.decide(limit, subject, cost, outcome);
  }

  fail(request: CheckRequest, error: unknown): T {
    return this.callback.fail(request, error);
  }

  /** Does nothing unless the outcome is a denial. */
  noteDenial(outcome: Readonly<OneOutcome>): void {
    if (outcome.fits === "now") return;
    this.denials.note(this.lo, this.hi, this, outcomeFrom(outcome), this.askedMs, outcome.atMs);
  }
}

/** A copy to keep, of an outcome that is reused. */
export function outcomeFrom(one: Readonly<OneOutcome>): LimitOutcome {
  const { fits, window, remaining, retryAfterMs, resetAfterMs, moreAfterMs, queuePosition, queueDelayMs } = one;
  return {
    fits,
    window,
    remaining,
    windowRemaining: remaining,
    retryAfterMs,
    resetAfterMs,
    moreAfterMs,
    queuePosition,
    queueDelayMs,
  };
}
