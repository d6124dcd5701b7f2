import type { CompiledLimit } from "../limits/compiled-limit.ts";
import type { Blocks } from "./blocks.ts";
import type { ResolvedLimit } from "./counter-store.ts";
import { type Hash64, hashText } from "./hash.ts";
import type { Receipts, TakenWindow } from "./receipts.ts";
import type { SteadyClock } from "./steady-clock.ts";
import { StoreUnavailable } from "./store-unavailable.ts";
import { fits, isTaken, type LookedAt, type TakePlan } from "./take-plan.ts";
import type { WindowCounters } from "./window-counters.ts";

/** A window that was looked at, and where its counter was found. */
interface PlanStep extends LookedAt {
  readonly lo: number;
  readonly hi: number;
  readonly at: number;
  /** There was none, and now there is. */
  placed: boolean;
  /** Its word 0, where the counter is reserved for this request until it is taken from. */
  reserved: number | undefined;
}

export type MemoryPlan = TakePlan<PlanStep>;

/**
 * Takes from several windows in memory, all or nothing:
 *
 *     plan: look at every window ─► make room for counters that are not there ─► block what is denied ─► take
 *
 * Whatever may fail does so before anything is taken.
 */
export class PlannedTakes {
  readonly #windows: WindowCounters;
  readonly #blocks: Blocks;
  readonly #receipts: Receipts;
  readonly #clock: SteadyClock;
  readonly #subject: Hash64 = { lo: 0, hi: 0 };

  constructor(windows: WindowCounters, blocks: Blocks, receipts: Receipts, clock: SteadyClock) {
    this.#windows = windows;
    this.#blocks = blocks;
    this.#receipts = receipts;
    this.#clock = clock;
  }

  /** Looks at every window, and takes nothing. */
  plan(limits: readonly ResolvedLimit[], nowMs: number): MemoryPlan {
    const steps: PlanStep[] = [];
    let refused: Set<number> | undefined;
    for (let i = 0; i < limits.length; i++) {
      const { limit, windows, subject, cost, group } = limits[i]!;
      hashText(subject, this.#subject);
      const blockedMs = limit.blockable ? this.#blocks.leftMs(limit, this.#subject, nowMs) : 0;
      for (let w = 0; w < windows.length; w++) {
        const window = windows[w]!;
        const lo = this.#subject.lo ^ window.hashLo;
        const hi = this.#subject.hi ^ window.hashHi || 1;
        const at = this.#windows.find(window, lo, hi);
        const verdict = this.#windows.verdict(window, at, cost, nowMs, this.#clock.originMs);
        const step: PlanStep = {
          limit: i,
          window,
          lo,
          hi,
          at,
          placed: false,
          reserved: undefined,
          verdict,
          blockedMs,
          newlyBlockedMs: 0,
        };
        steps.push(step);
        if (!fits(step)) {
          refused ??= new Set();
          refused.add(group);
        }
      }
    }
    return { steps, refused: refused ?? nothingRefused };
  }

  /** Takes every group that fits, noting it in `taken`, and blocks what is denied where its limit says so. */
  carryOut(limits: readonly ResolvedLimit[], plan: MemoryPlan, nowMs: number, taken: TakenWindow[] | undefined): void {
    // Placing a counter may move others: what was found before the first one is looked up again after it.
    let foundHolds = !this.#makeRoom(limits, plan, nowMs);
    // Before anything is taken: a block may need the room of another counter, which must not be one of this request's.
    if (plan.refused.size > 0) {
      for (const step of plan.steps) {
        const { limit, group, subject } = limits[step.limit]!;
        if (isTaken(plan, group)) continue;
        const { window, lo, hi, verdict } = step;
        const at = foundHolds ? step.at : this.#windows.find(window, lo, hi);
        this.#windows.bringBack(window, at, nowMs);
        if (at >= 0 && verdict.fits === "later") this.#windows.hold(window, at);
        // Under a denial of what is enforced, shadow groups see nothing.
        if (limit.blockForMs > 0 && (group === 0 || !plan.refused.has(0))) {
          if (this.#block(limit, subject, step, nowMs)) foundHolds = false;
        }
      }
    }
    for (const step of plan.steps) {
      const { group, cost } = limits[step.limit]!;
      const { window, lo, hi, verdict } = step;
      if (!window.charges || !isTaken(plan, group)) continue;
      const at = foundHolds ? step.at : this.#windows.find(window, lo, hi);
      if (at < 0) continue;
      this.#windows.take(window, at, verdict, cost, nowMs);
      taken?.push({ window, lo, hi, cost, takenMs: nowMs, word0: verdict.word0 });
    }
    this.#windows.trimLogs(nowMs);
  }

  /**
   * Finds room for every counter that a take needs, before anything is taken: a request is not charged in part. Throws if a
   * policy that fails closed is not given any. False where all of them were there.
   */
  #makeRoom(limits: readonly ResolvedLimit[], plan: MemoryPlan, nowMs: number): boolean {
    const { steps, refused } = plan;
    if (refused.has(0)) return false;
    const takes = ({ limit, window }: PlanStep): boolean => window.charges && isTaken(plan, limits[limit]!.group);
    // A shadow limit that refuses may need room for its block.
    if (refused.size === 0 && !steps.some((step) => step.at < 0 && takes(step))) return false;
    // One counter of this request does not make room for another, although an idle one may.
    for (const step of steps) {
      if (step.at < 0) continue;
      if (takes(step)) step.reserved = this.#windows.reserve(step.window, step.at);
      else this.#windows.hold(step.window, step.at);
    }
    let closed = false;
    for (const step of steps) {
      if (closed || step.at >= 0 || !takes(step)) continue;
      const { window, lo, hi } = step;
      step.placed = this.#windows.place(window, lo, hi, nowMs) >= 0;
      if (step.placed) this.#receipts.begin(window, lo, hi);
      const { limit, group } = limits[step.limit]!;
      closed = !step.placed && group === 0 && limit.policy.onFailure === "closed";
    }
    // What is reserved stays so until it is taken from, unless nothing is taken.
    for (const { window, lo, hi, at, verdict, placed, reserved } of steps) {
      if (at >= 0 && (closed || reserved === undefined)) this.#windows.letGo(window, lo, hi, verdict, reserved);
      else if (closed && placed) this.#windows.forget(window, lo, hi);
    }
    if (closed) throw noRoom();
    return true;
  }

  /** A block is begun by a denial that waiting would cure, and not renewed while it runs. True where it was begun. */
  #block(limit: CompiledLimit, subject: string, step: PlanStep, nowMs: number): boolean {
    if (step.verdict.fits !== "later" || step.blockedMs > 0) return false;
    hashText(subject, this.#subject);
    if (!this.#blocks.begin(limit, this.#subject, nowMs + limit.blockForMs, nowMs)) return false;
    step.newlyBlockedMs = limit.blockForMs;
    return true;
  }
}

const nothingRefused: ReadonlySet<number> = new Set();

let full: StoreUnavailable | undefined;

/** One for all: where memory is full, every check of a new subject needs it, and making it takes longer than deciding. */
export function noRoom(): StoreUnavailable {
  full ??= new StoreUnavailable("storage_full", undefined, { mayBeDone: false });
  return full;
}
