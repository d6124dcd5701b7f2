import type { Decision } from "sluice";
import { identifyingDimensions, renderWindow } from "sluice/internal";
import type { CompiledLimit } from "sluice/store";
import { FrequentNames } from "./frequent-names.ts";
import { isDeciding, type ReplayRun } from "./replay-run.ts";
import type { SimulatedRequest } from "./simulated-request.ts";
import type { HurtReport, HurtSubject, PeakReport } from "./simulation-report.ts";
import { type SubjectBudget, SubjectCounts } from "./subject-counts.ts";
import { quantile, WindowPeaks } from "./window-peaks.ts";

/** Subjects that find no room are still named if they are hurt often. */
const sketchPlaces = 1024;
const topCount = 20;

/** Stands for the subject of a limit without dimensions. */
const everyRequest = "(all requests)";

interface CountedLimit {
  readonly policy: string;
  readonly scope: string;
  readonly counts: SubjectCounts;
  readonly peaks: readonly WindowPeaks[];
}

/** What the subjects of each limit ask for, and which of them a candidate hurts. */
export class LimitDemand {
  readonly #budget: SubjectBudget;
  readonly #byLimit: Map<CompiledLimit, CountedLimit> = new Map();
  /** Of policies that deny by name, without a counter. */
  readonly #byName: Map<string, CountedLimit> = new Map();
  readonly #beyond: FrequentNames = new FrequentNames(sketchPlaces);
  #hasBeyond = false;

  constructor(maxSubjects: number) {
    this.#budget = { left: maxSubjects };
  }

  /** Counts the request that the run has just decided. */
  add(run: ReplayRun, request: SimulatedRequest, decision: Decision, allowedNow: boolean, timeMs: number): void {
    const { asked, askedCount } = run;
    if (askedCount === 0 && !decision.allowed) this.#addByName(request, decision, allowedNow);
    for (let i = 0; i < askedCount; i++) {
      const { limit, subject, cost } = asked[i]!;
      const counted = this.#byLimit.get(limit) ?? this.#begin(limit);
      const denied = !decision.allowed && isDeciding(asked[i]!, decision);
      const place = counted.counts.findPlace(subject);
      if (place === undefined) {
        this.#addBeyond(counted, subject, denied && allowedNow);
        continue;
      }
      counted.counts.count(place, denied, denied && allowedNow);
      for (const peaks of counted.peaks) peaks.add(place, counted.counts.capacity, cost, timeMs);
    }
  }

  /** `requests` is how many there were altogether. */
  hurt(requests: number): HurtReport {
    const found: HurtSubject[] = [];
    let subjects = 0;
    for (const { policy, scope, counts } of this.#all()) {
      for (let place = 0; place < counts.size; place++) {
        const newly_denied = counts.newlyDenied[place]!;
        if (newly_denied === 0) continue;
        subjects += 1;
        const asked = counts.requests[place]!;
        const subject = counts.names[place] || everyRequest;
        keepTop(found, { policy, scope, subject, requests: asked, newly_denied, traffic_share: asked / requests });
      }
    }
    const beyond = this.#beyond.list();
    subjects += beyond.length;
    for (const { name, count, error } of beyond) {
      const [policy = "", scope = "", subject = ""] = name.split("\n");
      const newly_denied = count - error;
      keepTop(found, { policy, scope, subject, requests: count, newly_denied, traffic_share: count / requests });
    }
    return { subjects, exact: !this.#hasBeyond, top: found.sort(byHarm).slice(0, topCount) };
  }

  get peaks(): readonly PeakReport[] {
    return [...this.#byLimit.values()].flatMap(({ policy, scope, counts, peaks }) =>
      peaks.map((one): PeakReport => {
        const sorted = one.sorted(counts.size);
        const { source } = one.window;
        return {
          policy,
          scope,
          window: renderWindow(source),
          limit: source.limit,
          subjects: sorted.length,
          subjects_over: sorted.length - countUpTo(sorted, source.limit),
          p50: quantile(sorted, 0.5),
          p90: quantile(sorted, 0.9),
          p99: quantile(sorted, 0.99),
          p99_9: quantile(sorted, 0.999),
          max: sorted.at(-1) ?? 0,
          curve: Array.from({ length: 101 }, (_, percent) => quantile(sorted, percent / 100)),
        };
      }),
    );
  }

  #all(): readonly CountedLimit[] {
    return [...this.#byLimit.values(), ...this.#byName.values()];
  }

  #begin(limit: CompiledLimit): CountedLimit {
    // A quota that never refills has no windows to compare.
    const windows = limit.windows.filter(({ perMs }) => Number.isFinite(perMs));
    const counted: CountedLimit = {
      policy: limit.policy.id,
      scope: limit.scope,
      counts: new SubjectCounts(this.#budget),
      peaks: windows.map((window) => new WindowPeaks(window)),
    };
    this.#byLimit.set(limit, counted);
    return counted;
  }

  #addByName({ dimensions }: SimulatedRequest, decision: Decision, allowedNow: boolean): void {
    const policy = decision.policy ?? "";
    const scope = decision.scope ?? decision.reason;
    const key = `${policy}\n${scope}`;
    let counted = this.#byName.get(key);
    if (counted === undefined) {
      counted = { policy, scope, counts: new SubjectCounts(this.#budget), peaks: [] };
      this.#byName.set(key, counted);
    }
    const name = identifyingDimensions.find((one) => dimensions[one] !== undefined && dimensions[one] !== "");
    const subject = name === undefined ? "(unknown)" : `${name}:${dimensions[name]}`;
    const place = counted.counts.findPlace(subject);
    if (place === undefined) this.#addBeyond(counted, subject, allowedNow);
    else counted.counts.count(place, true, allowedNow);
  }

  #addBeyond({ policy, scope }: CountedLimit, subject: string, newlyDenied: boolean): void {
    this.#hasBeyond = true;
    if (newlyDenied) this.#beyond.add(`${policy}\n${scope}\n${subject}`);
  }
}

function byHarm(one: HurtSubject, other: HurtSubject): number {
  return other.newly_denied - one.newly_denied || (one.subject < other.subject ? -1 : 1);
}

/** Keeps a list short while it grows, without sorting it for each subject. */
function keepTop(found: HurtSubject[], subject: HurtSubject): void {
  found.push(subject);
  if (found.length < 50 * topCount) return;
  found.sort(byHarm);
  found.length = topCount;
}

/** How many of the values do not exceed `most`. */
function countUpTo(sorted: Float64Array, most: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! <= most) low = middle + 1;
    else high = middle;
  }
  return low;
}
