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

/** Stands for all limits above the bound: requests may bring any number of their own. */
const otherLimit: DecidingLimit = {
  ...{ name: otherSubjects, policy: otherSubjects, version: undefined, scope: undefined, events: "summary" },
  compiled: undefined,
};

const maxLimits = 20_000;
/** How long names are on average at most: callers choose them. */
const meanNameLength = 256;

/**
 * Sums of decisions by limit and subject. Callers choose subjects, so their number is bounded, and how long their names are
 * together: the decisions of those that come later are summed up as `otherSubjects`.
 */
export class Summaries {
  readonly #subjectDimension: string;
  readonly #maxSubjects: number;
  /** By the names of limits: two events of one window must not be about the same. */
  #byLimit = new Map<string, Map<string, Summary[]>>();
  #subjects = 0;
  /** The length of all names together. */
  #length = 0;
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
    // The subject is usually part of the key, and then the key says it all.
    const isInKey = limit.compiled?.source.by.includes(this.#subjectDimension) === true;
    const name = isInKey || subject === key ? key : `${subject}\n${key}`;
    const known = this.#byLimit.get(limit.name)?.get(name);
    if (known !== undefined) {
      addTo(known, { limit, subject, key }, decision, cost);
      return;
    }
    const length = subject.length + key.length;
    if (this.#hasRoom(limit, length)) {
      this.#subjects += 1;
      this.#length += length;
      addTo(this.#find(limit, name), { limit, subject, key }, decision, cost);
      return;
    }
    this.#untracked += 1;
    const ofLimit = this.#hasLimit(limit) ? limit : otherLimit;
    const others = { limit: ofLimit, subject: otherSubjects, key: otherSubjects };
    addTo(this.#find(ofLimit, otherSubjects), others, decision, cost);
  }

  /** All sums since the last time. */
  take(): Iterable<Summary> {
    const taken = this.#byLimit;
    this.#byLimit = new Map();
    this.#subjects = 0;
    this.#length = 0;
    return listSummaries(taken);
  }

  #hasRoom(limit: DecidingLimit, length: number): boolean {
    const isShort = this.#length + length <= this.#maxSubjects * meanNameLength;
    return this.#subjects < this.#maxSubjects && isShort && this.#hasLimit(limit);
  }

  #hasLimit({ name }: DecidingLimit): boolean {
    return this.#byLimit.size < maxLimits || this.#byLimit.has(name);
  }

  #find(limit: DecidingLimit, name: string): Summary[] {
    let bySubject = this.#byLimit.get(limit.name);
    if (bySubject === undefined) {
      bySubject = new Map();
      this.#byLimit.set(limit.name, bySubject);
    }
    let summaries = bySubject.get(name);
    if (summaries === undefined) {
      summaries = [];
      bySubject.set(name, summaries);
    }
    return summaries;
  }
}

function addTo(
  summaries: Summary[],
  about: Pick<Summary, "limit" | "subject" | "key">,
  decision: Decision,
  cost: number,
): void {
  const { reason, degraded, allowed, limit: capacity, remaining } = decision;
  for (const summary of summaries) {
    if (summary.reason !== reason || summary.degraded !== degraded || summary.allowed !== allowed) continue;
    summary.requests += 1;
    summary.cost += cost;
    summary.capacity = capacity;
    summary.remaining = remaining;
    return;
  }
  summaries.push({ ...about, reason, allowed, degraded, requests: 1, cost, capacity, remaining });
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
