import { moreArrivesMs, queuePosition } from "../algorithms/arrival.ts";
import { isLeasable, leaseAllowance } from "../counters/allowance.ts";
import type { LeaseAnswer, ResolvedLimit } from "../counters/counter-store.ts";
import type { OneOutcome } from "../counters/single-takes.ts";
import type { CompiledLimit, CompiledWindow } from "../limits/compiled-limit.ts";
import type { Lease } from "./lease.ts";
import type { HeldLease, LeasePhase } from "./lease-holder.ts";

/** One counter that is leased: all windows of one limit, for one subject. */
export class LeasedCounter implements HeldLease {
  readonly lo: number;
  readonly hi: number;
  readonly lease: Lease;
  windows: readonly CompiledWindow[];
  /**
   * The most restrictive window in the central store's last answer, and when that was asked. Whole numbers: see
   * `Lease`.
   */
  window: CompiledWindow;
  /** Left in that window, and the least over all windows if there are several. */
  remaining = 0;
  leastRemaining = 0;
  resetAfterMs = 0;
  moreAfterMs = 0;
  heardMs: number;
  limit: CompiledLimit;
  readonly subject: string;
  phase: LeasePhase = "held";
  lostCounted = 0;
  /** It is among those to be fetched in a moment. */
  gathered = false;

  constructor(asked: ResolvedLimit, lo: number, hi: number, lease: Lease, nowMs: number) {
    const { limit, windows, subject } = asked;
    this.lo = lo;
    this.hi = hi;
    this.lease = lease;
    this.windows = windows;
    this.window = windows[0]!;
    this.heardMs = Math.floor(nowMs);
    this.limit = limit;
    this.subject = subject;
  }

  /** It is no longer spent. */
  get gone(): boolean {
    return this.phase !== "held";
  }

  /** Notes the central store's answer to a call made at `askedMs`. */
  hear({ outcomes }: LeaseAnswer, askedMs: number): void {
    const outcome = outcomes[0];
    if (outcome === undefined) return;
    this.window = outcome.window;
    this.remaining = outcome.windowRemaining;
    this.leastRemaining = outcome.remaining;
    this.resetAfterMs = outcome.resetAfterMs;
    this.moreAfterMs = outcome.moreAfterMs;
    this.heardMs = Math.floor(askedMs);
  }

  /**
   * How it stands as far as this node knows: the central store's last answer, brought up to now, plus what is in hand.
   */
  describe(cost: number, nowMs: number, one: OneOutcome): void {
    const { window, remaining, resetAfterMs } = this;
    const passedMs = nowMs - this.heardMs;
    const { tokens } = this.lease;
    one.window = window;
    one.fits = "now";
    one.retryAfterMs = 0;
    one.queuePosition = 0;
    one.queueDelayMs = 0;
    if (window.kind === "arrival") {
      const { intervalMs, capacity } = window;
      const aheadMs = Math.max(resetAfterMs - passedMs - tokens * intervalMs, 0);
      const refilled = remaining + tokens + Math.floor(passedMs / intervalMs);
      one.remaining = Math.min(refilled, Math.floor(capacity));
      one.resetAfterMs = Math.ceil(aheadMs);
      one.moreAfterMs = Math.max(moreArrivesMs(window, aheadMs, one.remaining), 1);
      if (window.leaky) {
        one.queuePosition = Math.max(queuePosition(window, aheadMs), cost);
        one.queueDelayMs = Math.max(Math.ceil(aheadMs - cost * intervalMs), 0);
      }
    } else {
      // What was counted then no longer counts after the reset.
      one.remaining = passedMs < resetAfterMs ? Math.min(remaining + tokens, window.capacity) : window.capacity;
      one.resetAfterMs = Math.max(Math.ceil(resetAfterMs - passedMs), 0);
      one.moreAfterMs =
        one.remaining < window.capacity
          ? Math.max(Math.ceil(this.moreAfterMs - passedMs), 1)
          : Number.POSITIVE_INFINITY;
    }
  }

  /**
   * The largest cost that would pass, including what is in hand. Of several windows only the reporting one is known to
   * have refilled since, so this may understate, and never overstates by what another window would refuse.
   */
  leastLeft(inSpeaking: number): number {
    if (this.windows.length === 1) return inSpeaking;
    return Math.min(inSpeaking, this.leastRemaining + this.lease.tokens);
  }
}

type LimitAndWindows = Pick<ResolvedLimit, "limit" | "windows">;

/** Whether a unit granted by one is worth the same to the other, with the same allowance. */
export function isAlike(one: LimitAndWindows, other: LimitAndWindows): boolean {
  return (
    isLeasable(other) &&
    leaseAllowance(one) === leaseAllowance(other) &&
    one.windows.length === other.windows.length &&
    one.windows.every(({ identity, perMs, capacity, source }, i) => {
      const window = other.windows[i]!;
      const isSameRate = perMs === window.perMs && source.limit === window.source.limit;
      return isSameRate && identity === window.identity && capacity === window.capacity;
    })
  );
}
