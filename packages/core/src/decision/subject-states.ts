import { CounterBudget, CounterTable } from "../counters/counter-table.ts";
import { type Hash64, hashText } from "../counters/hash.ts";
import type { SubjectState } from "./decision.ts";

/** Back to normal below this part of the warning threshold (70 of 80 %), so that a subject on the edge does not flicker. */
const backToNormal = 0.875;

const states: readonly SubjectState[] = ["normal", "warning", "throttled"];

export interface Standing {
  readonly state: SubjectState;
  readonly denyCount: number;
}

/** The standing of almost every subject. */
export const untroubled: Standing = { state: "normal", denyCount: 0 };

/** What a decision reveals about its subject. */
export interface Observation {
  readonly identity: string;
  readonly subject: string;
  readonly allowed: boolean;
  /** Denied because the limit is used up, rather than because the cost never fits. */
  readonly exhausted: boolean;
  readonly cost: number;
  readonly usedShare: number;
  readonly warnAt: number;
  readonly resetAfterMs: number;
  readonly nowMs: number;
}

/**
 * Whether subjects are normal, near their limit or at it, and how much they were denied in a row. It lives in this
 * node's memory, for a bounded number of subjects, and only for those that are not normal: a store write per denial
 * would make denials the most expensive answer.
 *
 *     normal ─ over 80 % ─► warning ─ denied ─► throttled
 *        ◄── under 70 % ──────┴◄── allowed again ──┘
 */
export class SubjectStates {
  /** Words: when it is forgotten, the state, the deny count. */
  readonly #table: CounterTable;
  readonly #hash: Hash64 = { lo: 0, hi: 0 };

  constructor(maxSubjects = 100_000) {
    const budget = new CounterBudget(maxSubjects, Number.POSITIVE_INFINITY);
    this.#table = budget.watch(new CounterTable(3, budget));
  }

  get size(): number {
    return this.#table.count;
  }

  /** The subject's standing after this decision; remembered unless it is a preview. */
  observe(seen: Observation, preview: boolean): Standing {
    const at = this.#find(seen);
    const { numbers } = this.#table;
    const known = at >= 0 && numbers[at]! > seen.nowMs;
    const before: SubjectState = known ? states[numbers[at + 1]!]! : "normal";
    const deniedBefore = known ? numbers[at + 2]! : 0;
    const standing: Standing = {
      state: nextState(before, seen),
      denyCount: seen.allowed ? 0 : deniedBefore + seen.cost,
    };
    if (!preview) this.#remember(seen, at, standing);
    return standing;
  }

  /** The subject is blocked for so long: what is known of it is remembered as much longer, so that its denials stay in a row. */
  prolong(blocked: Pick<Observation, "identity" | "subject">, byMs: number): void {
    const at = this.#find(blocked);
    if (at >= 0) this.#table.numbers[at]! += byMs;
  }

  #find(seen: Pick<Observation, "identity" | "subject">): number {
    hashText(seen.identity, this.#hash);
    const { lo, hi } = this.#hash;
    hashText(seen.subject, this.#hash);
    this.#hash.lo ^= lo;
    this.#hash.hi = this.#hash.hi ^ hi || 1;
    return this.#table.find(this.#hash.lo, this.#hash.hi);
  }

  #remember(seen: Observation, foundAt: number, { state, denyCount }: Standing): void {
    if (state === "normal" && denyCount === 0) {
      if (foundAt >= 0) this.#table.delete(foundAt);
      return;
    }
    const at = foundAt >= 0 ? foundAt : this.#table.insert(this.#hash.lo, this.#hash.hi, seen.nowMs);
    // Throttled subjects go last, but they do go: nothing is enforced by what is remembered here.
    this.#table.setLeft(at, state === "throttled" ? 0.1 : 0.5);
    const { numbers } = this.#table;
    numbers[at] = seen.nowMs + Math.max(seen.resetAfterMs, 1000);
    numbers[at + 1] = states.indexOf(state);
    numbers[at + 2] = denyCount;
  }
}

function nextState(before: SubjectState, seen: Observation): SubjectState {
  if (!seen.allowed) return seen.exhausted ? "throttled" : before;
  if (before === "normal") return seen.usedShare > seen.warnAt ? "warning" : "normal";
  return seen.usedShare < seen.warnAt * backToNormal ? "normal" : "warning";
}
