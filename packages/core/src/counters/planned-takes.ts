import { createVerdict, type WritableVerdict } from "../algorithms/window-verdict.ts";
import type { CompiledLimit, CompiledWindow } from "../limits/compiled-limit.ts";
import type { Blocks } from "./blocks.ts";
import type { ResolvedLimit } from "./counter-store.ts";
import { type Hash64, hashText } from "./hash.ts";
import { noRoom } from "./no-room.ts";
import type { Receipts, TakenWindow } from "./receipts.ts";
import type { AskedAgain } from "./several-takes.ts";
import type { SteadyClock } from "./steady-clock.ts";
import { fits, isTaken, type LookedAt, type TakePlan } from "./take-plan.ts";
import type { WindowCounters } from "./window-counters.ts";

/** A window that was examined, and where its counter was found. */
interface PlanStep extends LookedAt {
  readonly lo: number;
  readonly hi: number;
  /** −1 if there is none. */
  readonly at: number;
  /** There was no counter, and one was placed. */
  placed: boolean;
  /** Word 0 of a counter that is reserved for this request until it is taken from. */
  reserved: number | undefined;
}

export type MemoryPlan = TakePlan<PlanStep>;

/** A step that is used again for the next request. */
type ReusedStep = { -readonly [Name in keyof PlanStep]: PlanStep[Name] } & { readonly verdict: WritableVerdict };

interface ReusedPlan extends MemoryPlan {
  readonly steps: readonly ReusedStep[];
  refused: ReadonlySet<number>;
}

/**
 * Takes from several windows in memory, all or nothing:
 *
 *     plan: examine every window ─► make room for missing counters ─► block what is denied ─► take
 *
 * Whatever may fail does so before anything is taken.
 */
export class PlannedTakes {
  readonly #windows: WindowCounters;
  readonly #blocks: Blocks;
  readonly #receipts: Receipts;
  readonly #clock: SteadyClock;
  readonly #subject: Hash64 = { lo: 0, hi: 0 };
  /** By their number of windows. */
  readonly #reused: (ReusedPlan | undefined)[] = [];

  constructor(windows: WindowCounters, blocks: Blocks, receipts: Receipts, clock: SteadyClock) {
    this.#windows = windows;
    this.#blocks = blocks;
    this.#receipts = receipts;
    this.#clock = clock;
  }

  /** Examines every window, and takes nothing. */
  plan(limits: readonly ResolvedLimit[], nowMs: number): MemoryPlan {
    const steps: PlanStep[] = [];
    let refused: Set<number> | undefined;
    for (let i = 0; i < limits.length; i++) {
      const { limit, windows, subject, cost, value, group } = limits[i]!;
      hashText(subject, this.#subject);
      const blockedMs = limit.blockable ? this.#blocks.leftMs(limit, this.#subject, nowMs) : 0;
      for (let w = 0; w < windows.length; w++) {
        const window = windows[w]!;
        const lo = this.#subject.lo ^ window.hashLo;
        const hi = this.#subject.hi ^ window.hashHi || 1;
        const at = this.#windows.find(window, lo, hi);
        const worth = limit.distinct === undefined ? cost : this.#windows.distinct.worth(at, value ?? "", nowMs);
        const verdict = this.#windows.verdict(window, at, worth, nowMs, this.#clock.originMs);
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

  /** The same for `SeveralTakes`, in a plan that is valid until the next call. */
  planAgain(limits: readonly AskedAgain[], count: number, nowMs: number): MemoryPlan {
    let windowCount = 0;
    for (let i = 0; i < count; i++) windowCount += limits[i]!.windows.length;
    this.#reused[windowCount] ??= createReusedPlan(limits[0]!.windows[0]!, windowCount);
    const plan = this.#reused[windowCount]!;
    const { steps } = plan;
    const { originMs } = this.#clock;
    let refused = nothingRefused;
    let next = 0;
    for (let i = 0; i < count; i++) {
      const { windows, cost } = limits[i]!;
      limits[i]!.hashSubject(this.#subject);
      const { lo, hi } = this.#subject;
      for (let w = 0; w < windows.length; w++) {
        const step = steps[next++]!;
        const window = windows[w]!;
        step.limit = i;
        step.window = window;
        step.lo = lo ^ window.hashLo;
        step.hi = hi ^ window.hashHi || 1;
        step.at = this.#windows.find(window, step.lo, step.hi);
        step.placed = false;
        step.reserved = undefined;
        this.#windows.verdict(window, step.at, cost, nowMs, originMs, step.verdict);
        if (step.verdict.fits !== "now") refused = enforcedRefused;
      }
    }
    plan.refused = refused;
    return plan;
  }

  /** `carryOut` for such a plan. If every counter exists and everything fits, the costs are taken without further checks. */
  carryOutAgain(limits: readonly ResolvedLimit[], plan: MemoryPlan, nowMs: number): void {
    const { steps, refused } = plan;
    let direct = refused === nothingRefused;
    for (let i = 0; i < steps.length; i++) if (steps[i]!.at < 0) direct = false;
    if (!direct) {
      this.carryOut(limits, plan, nowMs, undefined);
      return;
    }
    for (let i = 0; i < steps.length; i++) {
      const { window, at, verdict, limit } = steps[i]!;
      this.#windows.take(window, at, verdict, limits[limit]!.cost, nowMs);
    }
  }

  /** Takes every group that fits, noting it in `taken`, and blocks what is denied if its limit says so. */
  carryOut(limits: readonly ResolvedLimit[], plan: MemoryPlan, nowMs: number, taken: TakenWindow[] | undefined): void {
    // Placing a counter may move others: after the first, earlier finds are looked up again.
    let foundHolds = !this.#makeRoom(limits, plan, nowMs);
    // Before anything is taken: a block may need another counter's room, which must not be one of this request's.
    if (plan.refused.size > 0) {
      for (const step of plan.steps) {
        const { limit, group, subject } = limits[step.limit]!;
        if (isTaken(plan, group)) continue;
        const { window, lo, hi, verdict } = step;
        const at = foundHolds ? step.at : this.#windows.find(window, lo, hi);
        this.#windows.bringBack(window, at, nowMs);
        if (at >= 0 && verdict.fits === "later") this.#windows.hold(window, at);
        // Under an enforced denial, shadow groups see nothing.
        if (limit.blockForMs > 0 && (group === 0 || !plan.refused.has(0))) {
          if (this.#block(limit, subject, step, nowMs)) foundHolds = false;
        }
      }
    }
    for (const step of plan.steps) {
      const { group, cost, value } = limits[step.limit]!;
      const { window, lo, hi, verdict } = step;
      if (!window.charges || !isTaken(plan, group)) continue;
      const at = foundHolds ? step.at : this.#windows.find(window, lo, hi);
      if (at < 0) continue;
      this.#windows.take(window, at, verdict, cost, nowMs);
      if (window.kind === "distinct") {
        // Nothing takes a value back, so no receipt has it.
        this.#windows.distinct.add(at, value ?? "", verdict.word0, nowMs);
        continue;
      }
      taken?.push({ window, lo, hi, cost, takenMs: nowMs, word0: verdict.word0 });
    }
    this.#windows.trim(nowMs);
  }

  /** Notes a value whether it fits or not. */
  chargeValue(window: CompiledWindow, lo: number, hi: number, value: string, nowMs: number): void {
    const found = this.#windows.find(window, lo, hi);
    const at = found >= 0 ? found : this.#windows.place(window, lo, hi, nowMs);
    if (at < 0) return;
    const worth = this.#windows.distinct.worth(at, value, nowMs);
    const verdict = this.#windows.verdict(window, at, worth, nowMs, this.#clock.originMs);
    this.#windows.take(window, at, verdict, worth, nowMs);
    this.#windows.distinct.add(at, value, verdict.word0, nowMs);
  }

  /**
   * Finds room for every counter that a take needs before anything is taken, so a request is never charged in part.
   * Throws if there is none for a policy that fails closed. False if all of them existed.
   */
  #makeRoom(limits: readonly ResolvedLimit[], plan: MemoryPlan, nowMs: number): boolean {
    const { steps, refused } = plan;
    if (refused.has(0)) return false;
    const takes = ({ limit, window }: PlanStep): boolean => window.charges && isTaken(plan, limits[limit]!.group);
    // A shadow limit that refuses may need room for its block.
    if (refused.size === 0 && !steps.some((step) => step.at < 0 && takes(step))) return false;
    // One counter of this request does not make room for another, even if it is idle.
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
    // A reserved counter stays so until it is taken from, unless nothing is taken.
    for (const { window, lo, hi, at, verdict, placed, reserved } of steps) {
      if (at >= 0 && (closed || reserved === undefined))
        this.#windows.letGo(window, lo, hi, verdict.remaining, reserved);
      else if (closed && placed) this.#windows.forget(window, lo, hi);
    }
    if (closed) throw noRoom();
    return true;
  }

  /** A denial that waiting would cure begins a block, and does not renew one. True if it began one. */
  #block(limit: CompiledLimit, subject: string, step: PlanStep, nowMs: number): boolean {
    if (step.verdict.fits !== "later" || step.blockedMs > 0) return false;
    hashText(subject, this.#subject);
    if (!this.#blocks.begin(limit, this.#subject, nowMs + limit.blockForMs, nowMs)) return false;
    step.newlyBlockedMs = limit.blockForMs;
    return true;
  }
}

const nothingRefused: ReadonlySet<number> = new Set();
const enforcedRefused: ReadonlySet<number> = new Set([0]);

function createReusedPlan(window: CompiledWindow, windowCount: number): ReusedPlan {
  const steps = Array.from({ length: windowCount }, () => ({
    limit: 0,
    window,
    lo: 0,
    hi: 0,
    at: -1,
    placed: false,
    reserved: undefined,
    verdict: createVerdict(),
    blockedMs: 0,
    newlyBlockedMs: 0,
  }));
  return { steps, refused: nothingRefused };
}
