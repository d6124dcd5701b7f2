import type { CallLater, Clock } from "../clock.ts";
import type { LeaseAnswer, LeaseAsk } from "../counters/counter-store.ts";
import type { SluiceError } from "../errors.ts";
import type { Lease } from "./lease.ts";

/**
 * `held`: it is spent and renewed. `leaving`: it is given back when its call has ended. `giving`: it is being given
 * back. `gone`: it was given back, or lost.
 */
export type LeasePhase = "held" | "leaving" | "giving" | "gone";

/** A lease, as its holder sees it. Only the holder writes to it. */
export interface HeldLease {
  readonly lease: Lease;
  phase: LeasePhase;
  /** How much of `lease.lost` is in the holder's counts already. */
  lostCounted: number;
}

/** How a call for a lease ended. */
export type LeaseOutcome<A> =
  | { readonly kind: "answer"; readonly value: A }
  /** There is nothing to grant. Nothing was carried out. */
  | { readonly kind: "refused"; readonly error: SluiceError }
  /** `mayBeDone`: it may have been carried out all the same. */
  | { readonly kind: "unanswered"; readonly mayBeDone: boolean };

/** The parts of a holder that differ: the table of leases, when one begins, and how calls travel. */
export interface LeaseOwner<H, A> {
  /** How many leases are in the table. While there are any, `sweep` is called. */
  readonly size: number;
  /** What happens to a give-back that certainly never left: it is dropped as lost, or the lease is kept and spent. */
  readonly unsentGiveBack: "drop" | "keep";
  /** Sends a call. Settles once, at once or later. */
  send(held: H, ask: LeaseAsk, settle: (outcome: LeaseOutcome<A>) => void): void;
  /** Called with an answer before its lease gets it. */
  hear(held: H, answer: A, askedMs: number, nowMs: number): void;
  /** Called when a held lease was granted units, or none. */
  onGranted?(held: H, nowMs: number): void;
  /** Called when there is nothing to grant: the lease is given back next. */
  onRefused?(held: H, error: SluiceError, nowMs: number): void;
  /** Called when a call was not answered and the lease is held. */
  onUnanswered?(held: H, nowMs: number): void;
  /** Called when the lease is no longer spent. */
  onLeave?(held: H): void;
  onGone?(held: H): void;
  /** Gives back leases that cooled, and renews those that are due. */
  sweep(nowMs: number): void;
  /** Called when the last lease is gone, or all are given back. */
  onSweepEnd?(): void;
}

/** Counts that only grow. */
export interface LeaseCounts {
  /** Calls sent: for more, and to give back. */
  calls: number;
  /** Finished calls for more; those of them without an answer; and give-backs without one. */
  fetches: number;
  failedFetches: number;
  failedReturns: number;
  /** Calls for more that were granted nothing, and calls of both kinds that were refused. */
  refused: number;
  /** Units: granted, given back, and ended unspent. */
  granted: number;
  returned: number;
  lost: number;
}

export interface LeaseHolderOptions {
  readonly clock: Clock;
  readonly callLater: CallLater;
  readonly sweepEveryMs: number;
}

/**
 * The life of leases: asked for, renewed, given back when they cool, and all of them in the end. Each has one call at a
 * time.
 *
 *     hot ──► held ──────── cool, refused or drained ──────► giving ──► gone
 *              │ ▲                                             ▲ │
 *          ask ▼ │ granted, or no answer                       │ └──► held, if it never left and is kept
 *            asking ─────── the same ──► leaving ── call ends ─┘
 *
 * While no answer comes a lease stays: the units in hand are all there is to decide by. Every unit that is neither
 * spent nor given back is counted as lost.
 */
export class LeaseHolder<H extends HeldLease, A extends Pick<LeaseAnswer, "granted" | "epoch">> {
  readonly #options: LeaseHolderOptions;
  readonly #owner: LeaseOwner<H, A>;
  readonly #counts: LeaseCounts = {
    ...{ calls: 0, fetches: 0, failedFetches: 0, failedReturns: 0 },
    ...{ refused: 0, granted: 0, returned: 0, lost: 0 },
  };
  #cancelSweep: (() => void) | undefined;
  #isDraining = false;
  /** The leases that `drain` waits for now, and what it does when they are gone. */
  #leavers: Set<H> | undefined;
  #onLeft: (() => void) | undefined;

  constructor(options: LeaseHolderOptions, owner: LeaseOwner<H, A>) {
    this.#options = options;
    this.#owner = owner;
  }

  get counts(): Readonly<LeaseCounts> {
    return this.#counts;
  }

  /** Asks for more. No call may be in flight for it. */
  ask(held: H, nowMs: number): void {
    this.#call(held, held.lease.ask(nowMs), nowMs);
  }

  /** Ends a lease: gives it back now, or when its call has ended. */
  leave(held: H, nowMs: number): void {
    if (held.phase === "giving" || held.phase === "gone") return;
    held.phase = "leaving";
    this.#owner.onLeave?.(held);
    if (!held.lease.asking) this.giveBack(held, nowMs);
  }

  /** Gives back what is in hand of a lease that is no longer spent. No call may be in flight for it. */
  giveBack(held: H, nowMs: number): void {
    const ask = held.lease.giveBack(nowMs);
    if (ask === undefined) {
      this.#end(held);
      return;
    }
    held.phase = "giving";
    this.#call(held, ask, nowMs);
  }

  #call(held: H, ask: LeaseAsk, askedMs: number): void {
    this.#counts.calls += 1;
    this.#owner.send(held, ask, (outcome) => {
      const nowMs = this.#options.clock.nowMs();
      if (ask.want > 0) this.#counts.fetches += 1;
      if (outcome.kind === "answer") this.#take(held, ask, outcome.value, askedMs, nowMs);
      else if (outcome.kind === "refused") this.#stop(held, outcome.error, nowMs);
      else this.#fail(held, ask, outcome.mayBeDone, nowMs);
      this.#countLost(held);
    });
  }

  #take(held: H, ask: LeaseAsk, answer: A, askedMs: number, nowMs: number): void {
    const { lease, phase } = held;
    this.#owner.hear(held, answer, askedMs, nowMs);
    lease.granted(answer, nowMs);
    this.#counts.granted += answer.granted;
    this.#counts.returned += ask.settled?.returned ?? 0;
    if (ask.want > 0 && answer.granted === 0) this.#counts.refused += 1;
    if (phase === "held") this.#owner.onGranted?.(held, nowMs);
    // After a give-back, something is in hand if it was reserved until then. Units that were not asked for are not
    // given back, or a server that always grants some would be called forever.
    else if (phase === "leaving" || (lease.tokens > 0 && answer.granted === 0)) this.giveBack(held, nowMs);
    else this.#end(held);
  }

  #stop(held: H, error: SluiceError, nowMs: number): void {
    this.#counts.refused += 1;
    held.lease.callOff(nowMs);
    this.#owner.onRefused?.(held, error, nowMs);
    if (held.phase === "giving") this.#end(held);
    else this.leave(held, nowMs);
  }

  #fail(held: H, ask: LeaseAsk, mayBeDone: boolean, nowMs: number): void {
    const { lease } = held;
    this.#counts[ask.want > 0 ? "failedFetches" : "failedReturns"] += 1;
    if (mayBeDone) lease.failed(nowMs);
    else lease.callOff(nowMs);
    const isKept = !mayBeDone && this.#owner.unsentGiveBack === "keep";
    if (held.phase === "leaving" && isKept) this.giveBack(held, nowMs);
    else if (held.phase === "held" || (isKept && !this.#isDraining)) {
      held.phase = "held";
      this.#owner.onUnanswered?.(held, nowMs);
    } else this.#end(held);
  }

  #end(held: H): void {
    held.phase = "gone";
    held.lease.abandon();
    this.#countLost(held);
    this.#owner.onGone?.(held);
    if (this.#leavers?.delete(held) && this.#leavers.size === 0) this.#onLeft?.();
  }

  #countLost(held: H): void {
    const { lost } = held.lease;
    this.#counts.lost += lost - held.lostCounted;
    held.lostCounted = lost;
  }

  /** Sweeps as long as there are leases: call it when one is added. */
  sweepLater(): void {
    if (this.#owner.size === 0) return;
    this.#cancelSweep ??= this.#options.callLater(() => {
      this.#cancelSweep = undefined;
      this.#owner.sweep(this.#options.clock.nowMs());
      if (this.#owner.size > 0) this.sweepLater();
      else this.#owner.onSweepEnd?.();
    }, this.#options.sweepEveryMs);
  }

  /** Gives all of these back, `callsTogether` at a time, as far as answers come in time. Stops sweeping. */
  async drain(
    all: readonly H[],
    callsTogether: number,
    withinMs: number,
    callLater: CallLater = this.#options.callLater,
  ): Promise<void> {
    this.#isDraining = true;
    this.#cancelSweep?.();
    this.#cancelSweep = undefined;
    this.#owner.onSweepEnd?.();
    if (all.length === 0) return;
    let timeIsUp = false;
    let cancel: (() => void) | undefined;
    const timer = new Promise<void>((resolve) => {
      cancel = callLater(() => {
        timeIsUp = true;
        resolve();
      }, withinMs);
    });
    for (let i = 0; i < all.length && !timeIsUp; i += callsTogether)
      await Promise.race([this.#leaveAll(all.slice(i, i + callsTogether)), timer]);
    cancel?.();
  }

  #leaveAll(leases: readonly H[]): Promise<void> {
    const nowMs = this.#options.clock.nowMs();
    return new Promise((resolve) => {
      const leavers = new Set(leases.filter(({ phase }) => phase !== "gone"));
      if (leavers.size === 0) resolve();
      this.#leavers = leavers;
      this.#onLeft = resolve;
      for (const held of leases) this.leave(held, nowMs);
    });
  }
}
