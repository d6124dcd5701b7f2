import { createHash } from "node:crypto";
import type { Decision, DecisionReason, DegradedReason } from "sluice";
import type { DecidingLimit } from "./deciding-limits.ts";

/** Decisions of one window that agree in all of these fields. */
export interface Summary {
  readonly limit: DecidingLimit;
  readonly subject: string;
  readonly key: string;
  readonly reason: DecisionReason;
  readonly allowed: boolean;
  readonly degraded: DegradedReason | undefined;
  requests: number;
  cost: number;
  /** As of the last decision. */
  capacity: number | undefined;
  remaining: number | undefined;
}

/** Stands for all subjects above the bound. */
export const otherSubjects = "(other)";

/**
 * Sums of decisions by limit and subject. Callers choose subjects, so their number is bounded: the decisions of those that come
 * later are summed up as `otherSubjects`.
 */
export class Summaries {
  readonly #subjectDimension: string;
  readonly #maxSubjects: number;
  /** By the names of limits: two events of one window must not be about the same. */
  #byLimit = new Map<string, Map<string, Summary[]>>();
  #subjects = 0;
  #untracked = 0;

  constructor(subjectDimension: string, maxSubjects: number) {
    this.#subjectDimension = subjectDimension;
    this.#maxSubjects = maxSubjects;
  }

  /** Decisions summed up as `otherSubjects`. Only grows. */
  get untracked(): number {
    return this.#untracked;
  }

  add(limit: DecidingLimit, subject: string, key: string, decision: Decision, cost: number): void {
    let bySubject = this.#byLimit.get(limit.name);
    if (bySubject === undefined) {
      bySubject = new Map();
      this.#byLimit.set(limit.name, bySubject);
    }
    // The subject is usually part of the key, and then the key says it all.
    const isInKey = limit.compiled?.source.by.includes(this.#subjectDimension) === true;
    const name = isInKey || subject === key ? key : `${subject}\n${key}`;
    let summaries = bySubject.get(name);
    if (summaries === undefined) {
      if (this.#subjects >= this.#maxSubjects && key !== otherSubjects) {
        this.#untracked += 1;
        this.add(limit, otherSubjects, otherSubjects, decision, cost);
        return;
      }
      this.#subjects += 1;
      summaries = [];
      bySubject.set(name, summaries);
    }
    const { reason, degraded, allowed } = decision;
    for (const summary of summaries) {
      if (summary.reason !== reason || summary.degraded !== degraded || summary.allowed !== allowed) continue;
      summary.requests += 1;
      summary.cost += cost;
      summary.capacity = decision.limit;
      summary.remaining = decision.remaining;
      return;
    }
    const { limit: capacity, remaining } = decision;
    summaries.push({ limit, subject, key, reason, allowed, degraded, requests: 1, cost, capacity, remaining });
  }

  /** All sums since the last time. */
  take(): Iterable<Summary> {
    const taken = this.#byLimit;
    this.#byLimit = new Map();
    this.#subjects = 0;
    return listSummaries(taken);
  }
}

function* listSummaries(byLimit: ReadonlyMap<string, ReadonlyMap<string, readonly Summary[]>>): Generator<Summary> {
  for (const bySubject of byLimit.values()) for (const summaries of bySubject.values()) yield* summaries;
}

/** What summaries are of: the node, its start, and the number of the flush, besides the window. */
export interface SummaryWindow {
  readonly node: string;
  readonly boot: string;
  readonly startMs: number;
  /** A window that is flushed early has another flush, whose sums are not the same. */
  readonly flush: number;
}

/** The id of a summary: the same whenever it is made of the same window and fields. */
export function summaryId({ node, boot, startMs, flush }: SummaryWindow, summary: Summary): string {
  const { limit, subject, key, reason, allowed, degraded } = summary;
  const name = [node, boot, startMs, flush, limit.name, subject, key, reason, allowed, degraded];
  return createHash("sha256").update(JSON.stringify(name)).digest("hex").slice(0, 32);
}
