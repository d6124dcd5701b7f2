import type { CheckRequest, Decision, Window } from "sluice";
import { canonicalValue, defaultIpv6PrefixBits, renderWindow } from "sluice/internal";
import { TrackedSubjects } from "./tracked-subjects.ts";

/** What a policy's limit was used, in total or by one subject. */
export interface UsageCounts {
  readonly policy: string;
  readonly limit: string;
  /** The dimension that subjects are tracked by, and the subject; both are empty for the total. */
  readonly dimension: string;
  readonly subject: string;
  decided: number;
  allowed: number;
  denied: number;
  /** What was charged. */
  cost: number;
  degraded: number;
  shadowDenied: number;
  /** Denials by reason and window; undefined if there are none. */
  denials: Map<string, UsageDenials> | undefined;
}

export interface UsageDenials {
  readonly reason: string;
  /** The window that denied, as policies write it; empty if none did. */
  readonly window: string;
  denied: number;
}

export interface UsageSumsOptions {
  /** The dimensions whose subjects are tracked. */
  readonly dimensions: readonly string[];
  /** How much of an IPv6 address is its subject. Absent: as much as by default. */
  readonly ipv6PrefixBits?: number | undefined;
  /** The most subjects of all dimensions together, and the most limits, until `forgetNames`. Others share the one below. */
  readonly maxSubjects?: number | undefined;
  readonly maxLimits?: number | undefined;
  /** The most sums of subjects until `take`: a subject has one for each limit. Others share. Absent: twice as many as subjects. */
  readonly maxSums?: number | undefined;
}

/** Stands for all limits, subjects or windows above the bound. */
export const otherUsage = "(other)";

/** Windows that deny, of one limit and subject. */
const maxWindows = 50;

/**
 * Sums of decisions since the last `take`. A decision counts once, for the limit that spoke, and once more for its subject of
 * each tracked dimension. Every check ends here, so counting finds its sums by the window's identity and allocates only for what
 * is new.
 *
 * Callers choose subjects, and may bring limits and windows of their choice, so the number of each is bounded, and with it the
 * number of rows that are stored. If there are more, the busiest subjects and the first limits have separate sums. A subject may be
 * counted by any number of limits, so the sums of one period are bounded as well.
 */
export class UsageSums {
  readonly #dimensions: readonly string[];
  readonly #ipv6PrefixBits: number;
  readonly #maxLimits: number;
  readonly #maxSums: number;
  /** Sums of subjects since `take`. */
  #sums = 0;
  #limits = new Map<string, LimitUsage>();
  #byWindow = new Map<Window, LimitUsage>();
  readonly #subjects: TrackedSubjects;
  /** Every limit with separate sums since `forgetNames`. */
  readonly #limitNames = new Set<string>();
  #untracked = 0;
  /** Whether the last subject had no place: where callers invent subjects, the next one will have none either. */
  #wasUnplaced = false;

  constructor({ dimensions, ipv6PrefixBits, maxSubjects = 50_000, maxLimits = 20_000, ...more }: UsageSumsOptions) {
    this.#dimensions = dimensions;
    this.#ipv6PrefixBits = ipv6PrefixBits ?? defaultIpv6PrefixBits;
    this.#subjects = new TrackedSubjects(dimensions.length, maxSubjects);
    this.#maxLimits = maxLimits;
    this.#maxSums = more.maxSums ?? 2 * maxSubjects;
  }

  /** Decisions whose subject was above the bound, and counts as `otherUsage`. Only grows. */
  get untracked(): number {
    return this.#untracked;
  }

  /** `isCharged` is false if another request that was checked together with this one was denied. */
  count({ dimensions }: CheckRequest, decision: Decision, isCharged = true): void {
    // A preview takes nothing, and a replayed decision was counted before.
    if (decision.preview || decision.replayed) return;
    const { window, policy = "", scope = "" } = decision;
    let usage = window === undefined ? undefined : this.#byWindow.get(window);
    // Limits may share a window: an override gives the same one to all that it covers.
    if (usage === undefined || usage.total.limit !== scope || usage.total.policy !== policy)
      usage = this.#findLimit(decision);
    add(usage.total, decision, isCharged);
    const tracked = this.#dimensions;
    for (let i = 0; i < tracked.length; i++) {
      const subject = dimensions?.[tracked[i]!];
      if (subject !== undefined) add(this.#findSubject(usage, i, subject), decision, isCharged);
    }
  }

  /** All sums since the last time. `shareOfDay` has passed: the later it is, the more busy subjects get separate sums. */
  take(shareOfDay = 0): readonly UsageCounts[] {
    const limits = [...this.#limits.values()];
    this.#limits = new Map();
    this.#byWindow = new Map();
    this.#sums = 0;
    this.#subjects.endPeriod(shareOfDay);
    const sums: UsageCounts[] = [];
    for (const { total, subjects, others } of limits) {
      sums.push(total);
      for (const [index, counts] of subjects.entries()) {
        for (const one of counts.values()) sums.push(one);
        const other = others[index];
        if (other !== undefined) sums.push(other);
      }
    }
    return sums;
  }

  /** Lets other subjects and limits have separate sums. To be called once a day. */
  forgetNames(): void {
    this.#subjects.forget();
    this.#limitNames.clear();
  }

  #findLimit(decision: Decision): LimitUsage {
    const { policy = "", scope = "", window } = decision;
    const key = JSON.stringify([policy, scope]);
    let usage = this.#limits.get(key);
    if (usage === undefined) {
      if (!admit(this.#limitNames, key, this.#maxLimits)) return this.#other();
      usage = createLimitUsage(policy, scope, this.#dimensions.length);
      this.#limits.set(key, usage);
    }
    // Limits that requests bring along have a window each: they must not fill the map.
    if (window !== undefined && this.#byWindow.size < this.#maxLimits) this.#byWindow.set(window, usage);
    return usage;
  }

  #other(): LimitUsage {
    let usage = this.#limits.get(otherUsage);
    if (usage === undefined) {
      usage = createLimitUsage(otherUsage, otherUsage, this.#dimensions.length);
      this.#limits.set(otherUsage, usage);
    }
    return usage;
  }

  #findSubject(usage: LimitUsage, index: number, asked: string): UsageCounts {
    const found = this.#wasUnplaced ? undefined : usage.subjects[index]!.get(asked);
    return (
      found ?? this.#findCanonical(usage, index, canonicalValue(this.#dimensions[index]!, asked, this.#ipv6PrefixBits))
    );
  }

  /** Only one spelling of an address has an entry: there are as many as a caller wants. */
  #findCanonical({ total, subjects, others }: LimitUsage, index: number, subject: string): UsageCounts {
    const tracked = this.#subjects;
    let hasPlace = false;
    if (!tracked.isFull || tracked.mayHave(index, subject)) {
      this.#wasUnplaced = false;
      const known = subjects[index]!.get(subject);
      if (known !== undefined) return known;
      hasPlace = subject !== otherUsage && tracked.admit(index, subject);
      if (hasPlace && this.#sums < this.#maxSums) {
        this.#sums += 1;
        const counts = createCounts(total.policy, total.limit, this.#dimensions[index]!, subject);
        subjects[index]!.set(subject, counts);
        return counts;
      }
    } else this.#wasUnplaced = true;
    if (!hasPlace && subject !== otherUsage) tracked.note(index, subject);
    this.#untracked += 1;
    others[index] ??= createCounts(total.policy, total.limit, this.#dimensions[index]!, otherUsage);
    return others[index];
  }
}

/** Whether a name is known, or there is room for it. */
function admit(names: Set<string>, name: string, most: number): boolean {
  if (names.has(name)) return true;
  if (names.size >= most) return false;
  names.add(name);
  return true;
}

interface LimitUsage {
  readonly total: UsageCounts;
  /** For each tracked dimension. */
  readonly subjects: readonly Map<string, UsageCounts>[];
  /** For each tracked dimension: all subjects without separate sums. */
  readonly others: (UsageCounts | undefined)[];
}

function createLimitUsage(policy: string, limit: string, dimensions: number): LimitUsage {
  return {
    total: createCounts(policy, limit, "", ""),
    subjects: Array.from({ length: dimensions }, () => new Map<string, UsageCounts>()),
    others: new Array<undefined>(dimensions).fill(undefined),
  };
}

function createCounts(policy: string, limit: string, dimension: string, subject: string): UsageCounts {
  return {
    ...{ policy, limit, dimension, subject, decided: 0, allowed: 0, denied: 0, cost: 0 },
    ...{ degraded: 0, shadowDenied: 0, denials: undefined },
  };
}

function add(counts: UsageCounts, decision: Decision, isCharged: boolean): void {
  counts.decided += 1;
  if (decision.allowed) {
    counts.allowed += 1;
    if (isCharged) counts.cost += decision.cost;
  } else addDenial(counts, decision);
  if (decision.degraded !== undefined) counts.degraded += 1;
  if (decision.shadow.length > 0) counts.shadowDenied += 1;
}

function addDenial(counts: UsageCounts, { reason, window }: Decision): void {
  counts.denied += 1;
  const name = window === undefined ? "" : (window.name ?? renderWindow(window));
  counts.denials ??= new Map();
  const { denials: byWindow } = counts;
  const known = byWindow.get(`${reason} ${name}`);
  if (known !== undefined) {
    known.denied += 1;
    return;
  }
  const shown = byWindow.size < maxWindows ? name : otherUsage;
  const denials = byWindow.get(`${reason} ${shown}`);
  if (denials === undefined) byWindow.set(`${reason} ${shown}`, { reason, window: shown, denied: 1 });
  else denials.denied += 1;
}
