import {
  AskedAgain,
  areTaken,
  mostWindows,
  type SeveralOutcome,
  type SeveralTakes,
} from "../counters/several-takes.ts";
import type { Decision } from "../decision/decision.ts";
import type { LimiterOptions } from "../limiter.ts";
import type { CompiledLimit, CompiledWindow } from "../limits/compiled-limit.ts";
import { findWindows, type KnownSubjects } from "../match/find-windows.ts";
import type { Snapshot } from "../match/snapshot.ts";
import type { SubjectDirectory } from "../match/subject-directory.ts";
import { subjectWithin } from "../match/subject-within.ts";
import type { CheckRequest } from "../request/check-request.ts";
import { rawDimension, readDimension } from "../request/read-dimension.ts";
import { joinSubject } from "../subject/join-subject.ts";
import type { DecisionMaker } from "./decision-maker.ts";

type Dimensions = Readonly<Record<string, string>>;

export interface SeveralChecksOptions {
  readonly subjects: SubjectDirectory;
  readonly epochMs: () => number;
  readonly decisions: DecisionMaker;
  readonly onMissing: LimiterOptions["onMissing"];
}

/** Decides a check whose counters cannot be asked. */
export interface FailedCheck {
  fail(request: CheckRequest, error: unknown): Decision;
}

/**
 * The fast path of requests with a few limits, by counters in this process. The decision is the same as by the general path; see
 * decision 0048.
 *
 * The resolved limits are written into objects that are reused for the next request. Meanwhile code of the caller's may run (a getter
 * of a dimension, a clock, a directory of subjects) and check something as well: that check takes the general path.
 */
export class SeveralChecks {
  readonly #snapshot: Snapshot;
  readonly #takes: SeveralTakes;
  readonly #failed: FailedCheck;
  readonly #subjects: SubjectDirectory;
  readonly #epochMs: () => number;
  readonly #decisions: DecisionMaker;
  readonly #tellsMissing: boolean;
  /** As many as any request had. */
  readonly #asked: AskedAgain[] = [];
  #inUse = false;

  constructor(snapshot: Snapshot, takes: SeveralTakes, failed: FailedCheck, options: SeveralChecksOptions) {
    this.#snapshot = snapshot;
    this.#takes = takes;
    this.#failed = failed;
    this.#subjects = options.subjects;
    this.#epochMs = options.epochMs;
    this.#decisions = options.decisions;
    this.#tellsMissing = options.onMissing !== undefined;
  }

  /** Undefined if the request needs the general path. */
  check(request: CheckRequest, dimensions: Dimensions, limits: readonly CompiledLimit[]): Decision | undefined {
    if (this.#inUse) return undefined;
    this.#inUse = true;
    try {
      if (!this.#resolve(request, dimensions, limits)) return undefined;
      let outcome: Readonly<SeveralOutcome>;
      try {
        outcome = this.#takes.takeSeveral(this.#asked, limits.length);
      } catch (error) {
        return this.#failed.fail(request, error);
      }
      return this.#decisions.decideSeveral(this.#asked, outcome);
    } finally {
      this.#inUse = false;
    }
  }

  /** Fills in what is asked of each limit. False if `SeveralTakes` does not handle it, or `onMissing` has to be called. */
  #resolve(request: CheckRequest, dimensions: Dimensions, limits: readonly CompiledLimit[]): boolean {
    const { ipv6PrefixBits, subjects: written } = this.#snapshot;
    const running = this.#subjects;
    const known = running.size !== 0 || written.size !== 0 ? { running, written } : undefined;
    const cost = request.cost ?? 1;
    let windowCount = 0;
    for (let i = 0; i < limits.length; i++) {
      const limit = limits[i]!;
      const { by } = limit.source;
      this.#asked[i] ??= new AskedAgain(limit);
      const asked = this.#asked[i]!;
      asked.limit = limit;
      asked.cost = cost;
      asked.second = undefined;
      if (by.length === 1) asked.first = readDimension(dimensions, by[0]!, ipv6PrefixBits);
      else if (by.length === 2) {
        asked.first = readDimension(dimensions, by[0]!, ipv6PrefixBits);
        asked.second = readDimension(dimensions, by[1]!, ipv6PrefixBits);
      } else asked.first = joinSubject(readValues(by, dimensions, ipv6PrefixBits));
      if (this.#tellsMissing && isMissingAny(asked, by, dimensions, ipv6PrefixBits)) return false;
      if (limit.fallback) {
        asked.first = subjectWithin(asked.subject, by.length, request.domain, dimensions);
        asked.second = undefined;
      }
      asked.windows = limit.windows;
      if (known !== undefined || limit.tiers.size > 0) {
        asked.windows = this.#findWindows(limit, dimensions, ipv6PrefixBits, known);
        if (!areTaken(asked.windows)) return false;
      }
      windowCount += asked.windows.length;
    }
    return windowCount <= mostWindows;
  }

  #findWindows(
    limit: CompiledLimit,
    dimensions: Dimensions,
    ipv6PrefixBits: number,
    known: KnownSubjects | undefined,
  ): readonly CompiledWindow[] {
    const values = readValues(limit.source.by, dimensions, ipv6PrefixBits);
    return findWindows(limit, values, rawDimension(dimensions, "tier"), known, this.#epochMs);
  }
}

/** Whether the request lacks a value of the limit. */
function isMissingAny(
  { first, second }: AskedAgain,
  by: readonly string[],
  dimensions: Dimensions,
  ipv6PrefixBits: number,
): boolean {
  if (by.length <= 2) return by.length > 0 && (first === "" || second === "");
  return readValues(by, dimensions, ipv6PrefixBits).includes("");
}

function readValues(by: readonly string[], dimensions: Dimensions, ipv6PrefixBits: number): readonly string[] {
  return by.map((name) => readDimension(dimensions, name, ipv6PrefixBits));
}
