import { rememberHoldMs } from "../policy/bounds.ts";
import type { HoldAnswer, HoldId, HoldStore } from "./counter-store.ts";
import { ExpiringMap } from "./expiring-map.ts";
import { type Ending, ExpiryQueue } from "./expiry-queue.ts";
import type { Receipts, TakenWindow, WatchedWindow } from "./receipts.ts";
import type { SteadyClock } from "./steady-clock.ts";
import type { WindowCounters } from "./window-counters.ts";

/** A window that was taken from, and how much of the counter stands for this hold: what is held, or was charged since. */
interface HeldWindow {
  readonly window: WatchedWindow;
  charged: number;
}

interface Hold extends Ending {
  readonly id: HoldId;
  readonly amount: number;
  readonly windows: readonly HeldWindow[];
  /** What was reported, in all. */
  actual: number;
  state: "held" | "expired" | "settled";
  expired: boolean;
}

/**
 * Holds of counters in memory:
 *
 *     held ── commit, last ──► settled        what was not used is given back
 *       └──── its time is up ─► expired ── commit, last ──► settled
 *                               what was not reported is given back; a later report charges that again
 *
 * Live holds are bounded by refusing more, others by forgetting the oldest.
 */
export class Holds implements HoldStore {
  readonly #windows: WindowCounters;
  readonly #receipts: Receipts;
  readonly #clock: SteadyClock;
  readonly #max: number;
  readonly #live = new Map<HoldId, Hold>();
  readonly #queue = new ExpiryQueue<Hold>();
  readonly #ended: ExpiringMap<Hold>;
  readonly #ring = (nowMs: number): void => this.#expire(nowMs);

  constructor(windows: WindowCounters, receipts: Receipts, clock: SteadyClock, max: number) {
    this.#windows = windows;
    this.#receipts = receipts;
    this.#clock = clock;
    this.#max = max;
    this.#ended = new ExpiringMap(max);
  }

  /** How many are live. */
  get size(): number {
    return this.#live.size;
  }

  get hasRoom(): boolean {
    return this.#live.size < this.#max;
  }

  /** Makes a hold of a take. */
  create(windows: readonly TakenWindow[], holdMs: number, nowMs: number): HoldId {
    const id = this.#receipts.drawName("h");
    const amount = windows[0]!.cost;
    const held = this.#receipts.hold(windows).map((window) => ({ window, charged: amount }));
    const endsMs = nowMs + holdMs;
    const hold: Hold = { id, amount, windows: held, actual: 0, state: "held", expired: false, endsMs, place: 0 };
    this.#live.set(id, hold);
    this.#queue.add(hold);
    this.#setAlarm();
    return id;
  }

  commit(id: HoldId, actual: number, last: boolean): HoldAnswer {
    const nowMs = this.#clock.now();
    const hold = this.#find(id, nowMs);
    if (hold === undefined || hold.state === "settled") return this.#answer(hold, true);
    hold.actual = Math.max(hold.actual, actual);
    for (const held of hold.windows) if (hold.actual > held.charged) this.#charge(held, hold.actual, nowMs);
    this.#windows.trim(nowMs);
    if (!last) return this.#answer(hold, false);
    if (hold.state === "held") {
      this.#giveBack(hold, nowMs);
      this.#queue.remove(hold);
      this.#setAlarm();
    }
    this.#end(hold, "settled", nowMs);
    return this.#answer(hold, false);
  }

  extend(id: HoldId, holdMs: number): HoldAnswer {
    const nowMs = this.#clock.now();
    const hold = this.#find(id, nowMs);
    if (hold?.state === "held" && nowMs + holdMs > hold.endsMs) {
      this.#queue.move(hold, nowMs + holdMs);
      this.#setAlarm();
    }
    return this.#answer(hold, hold?.state === "settled");
  }

  #find(id: HoldId, nowMs: number): Hold | undefined {
    return this.#live.get(id) ?? this.#ended.find(id, nowMs);
  }

  #expire(nowMs: number): void {
    for (let hold = this.#queue.takeEnded(nowMs); hold !== undefined; hold = this.#queue.takeEnded(nowMs)) {
      this.#giveBack(hold, nowMs);
      hold.expired = true;
      this.#end(hold, "expired", nowMs);
    }
    this.#setAlarm();
  }

  /** It is live no longer: its counters are watched no more, and it is remembered for a while. */
  #end(hold: Hold, state: "expired" | "settled", nowMs: number): void {
    if (hold.state === "held") this.#receipts.release(hold.windows.map(({ window }) => window));
    hold.state = state;
    this.#live.delete(hold.id);
    this.#ended.set(hold.id, hold, nowMs + rememberHoldMs, nowMs);
  }

  /** Gives back what was not reported, as far as that does not admit more than the limits allow. */
  #giveBack({ windows, actual }: Hold, nowMs: number): void {
    for (const held of windows) {
      if (held.charged <= actual) continue;
      const outstanding = this.#receipts.findOutstanding(held.window, held.charged - actual);
      if (outstanding === undefined) continue;
      held.charged -= this.#windows.give(outstanding, nowMs, this.#clock.originMs);
    }
  }

  /** Charges what the report exceeds the part that the counter has for this hold. */
  #charge(held: HeldWindow, actual: number, nowMs: number): void {
    const { window, lo, hi } = held.window.taken;
    const placing = this.#windows.charge(window, lo, hi, actual - held.charged, nowMs, this.#clock.originMs);
    if (placing === "placed") this.#receipts.begin(window, lo, hi);
    held.charged = actual;
  }

  #setAlarm(): void {
    this.#clock.setAlarm(this.#queue.nextMs, this.#ring);
  }

  #answer(hold: Hold | undefined, replayed: boolean): HoldAnswer {
    if (hold === undefined) return unknownHold;
    const { state, amount, actual, expired, endsMs } = hold;
    const expiresAtMs = Math.round(this.#clock.originMs + endsMs);
    return { state, amount, actual, overdraft: Math.max(actual - amount, 0), expired, expiresAtMs, replayed };
  }
}

export const unknownHold: HoldAnswer = {
  state: "unknown",
  amount: 0,
  actual: 0,
  overdraft: 0,
  expired: false,
  expiresAtMs: 0,
  replayed: false,
};
