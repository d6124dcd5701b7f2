import type { SeveralTakes } from "../counters/several-takes.ts";
import type { OneOutcome, SingleTakes, TakeCallback } from "../counters/single-takes.ts";
import type { Decision } from "../decision/decision.ts";
import type { LimiterOptions } from "../limiter.ts";
import type { CompiledLimit, CompiledWindow } from "../limits/compiled-limit.ts";
import { candidatesFor } from "../match/find-candidates.ts";
import { findWindows } from "../match/find-windows.ts";
import { onlyGivenLimit } from "../match/given-limits.ts";
import { resolve } from "../match/resolve.ts";
import type { Snapshot } from "../match/snapshot.ts";
import type { SubjectDirectory } from "../match/subject-directory.ts";
import { subjectWithin } from "../match/subject-within.ts";
import type { CheckRequest } from "../request/check-request.ts";
import { rawDimension, rawEndpoint, readDimension } from "../request/read-dimension.ts";
import type { DecisionMaker } from "./decision-maker.ts";
import type { OutageDecisions } from "./outage-decisions.ts";
import { SeveralChecks } from "./several-checks.ts";

const noDimensions: Readonly<Record<string, string>> = {};

export interface SingleChecksOptions {
  readonly takes: SingleTakes;
  /** Undefined if the counters take from several limits only by `take`. */
  readonly severalTakes: SeveralTakes | undefined;
  readonly subjects: SubjectDirectory;
  readonly epochMs: () => number;
  readonly decisions: DecisionMaker;
  readonly outages: OutageDecisions;
  readonly onMissing: LimiterOptions["onMissing"];
}

/**
 * The fast path: by far the commonest check, one limit with one window and no further options, goes straight from the
 * endpoint's match to the counter. The decision is the same as on the general path, in about two thirds of the time;
 * see decision 0007, and 0012 for counters that answer later.
 *
 * There is one per snapshot, so a check that waits is decided by the policies it began with. It is itself the callback
 * that a store calls when the answer comes later, so a check needs no closure.
 */
export class SingleChecks implements TakeCallback<Decision> {
  readonly #snapshot: Snapshot;
  readonly #takes: SingleTakes;
  readonly #subjects: SubjectDirectory;
  readonly #epochMs: () => number;
  readonly #decisions: DecisionMaker;
  readonly #outages: OutageDecisions;
  readonly #onMissing: LimiterOptions["onMissing"];
  readonly #several: SeveralChecks | undefined;

  constructor(snapshot: Snapshot, options: SingleChecksOptions) {
    this.#snapshot = snapshot;
    this.#takes = options.takes;
    this.#subjects = options.subjects;
    this.#epochMs = options.epochMs;
    this.#decisions = options.decisions;
    this.#outages = options.outages;
    this.#onMissing = options.onMissing;
    const { severalTakes } = options;
    this.#several = severalTakes && new SeveralChecks(snapshot, severalTakes, this, options);
  }

  /** Undefined if the request needs the general path. A promise only if the store answers later. */
  check(request: CheckRequest): Decision | Promise<Decision> | undefined {
    if (request.policies !== undefined || request.id !== undefined || request.preview === true) return undefined;
    if (request.details === true || request.receipt === true || request.dimensions === undefined) return undefined;
    const { dimensions, limits } = request;
    if (this.#snapshot.exceptions !== undefined && this.#isException(dimensions)) return undefined;
    if (limits !== undefined) {
      const given = onlyGivenLimit(limits);
      return given && this.#checkOne(request, given);
    }
    const match = this.#snapshot.matchEndpoint(request.domain, rawEndpoint(dimensions));
    if (!match.settled) return undefined;
    const { onlyLimit, fewLimits } = candidatesFor(this.#snapshot, match, dimensions, this.#epochMs);
    if (this.#snapshot.exceptions !== undefined && this.#isAnyDisabled(onlyLimit, fewLimits)) return undefined;
    if (onlyLimit !== undefined) return this.#checkOne(request, onlyLimit);
    if (fewLimits === undefined || this.#several === undefined) return undefined;
    return this.#several.check(request, dimensions, fewLimits);
  }

  #isException(dimensions: Readonly<Record<string, string>>): boolean {
    const { exceptions } = this.#snapshot;
    return exceptions !== undefined && exceptions.blocks(dimensions, this.#epochMs).length > 0;
  }

  #isAnyDisabled(only: CompiledLimit | undefined, few: readonly CompiledLimit[] = []): boolean {
    const { exceptions } = this.#snapshot;
    if (exceptions === undefined) return false;
    if (only !== undefined) return exceptions.disabled(only.policy.id, this.#epochMs) !== undefined;
    return few.some(({ policy }) => exceptions.disabled(policy.id, this.#epochMs) !== undefined);
  }

  #checkOne(request: CheckRequest, limit: CompiledLimit): Decision | Promise<Decision> | undefined {
    const { dimensions = noDimensions, cost = 1 } = request;
    const value = readDimension(dimensions, limit.source.by[0]!, this.#snapshot.ipv6PrefixBits);
    const windows = this.#findOnlyWindows(limit, value, request);
    if (windows === undefined) return undefined;
    if (value === "" && request.limits === undefined) this.#onMissing?.(limit.policy, limit.source.by[0]!);
    const subject = limit.fallback ? subjectWithin(value, 1, request.domain, dimensions) : value;
    let outcome: Readonly<OneOutcome> | Promise<Decision>;
    try {
      outcome = this.#takes.takeOne(limit, windows, subject, cost, request, this);
    } catch (error) {
      return this.fail(request, error);
    }
    return outcome instanceof Promise ? outcome : this.#decisions.decideOne(limit, subject, cost, outcome);
  }

  decide(limit: CompiledLimit, subject: string, cost: number, outcome: Readonly<OneOutcome>): Decision {
    return this.#decisions.decideOne(limit, subject, cost, outcome);
  }

  fail(request: CheckRequest, error: unknown): Decision {
    return this.#outages.decide(request, resolve(this.#snapshot, this.#subjects, request, this.#epochMs), error);
  }

  /** The only limit's windows for the subject, if they are of the commonest kind too. */
  #findOnlyWindows(
    limit: CompiledLimit,
    subject: string,
    { dimensions = noDimensions, limits }: CheckRequest,
  ): readonly CompiledWindow[] | undefined {
    const running = this.#subjects;
    const written = this.#snapshot.subjects;
    // Tiers and overrides apply to policies, not to limits that a request brings along.
    const isAnyKnown = limits === undefined && (running.size !== 0 || written.size !== 0);
    if (!isAnyKnown && limit.tiers.size === 0) return limit.windows;
    const known = isAnyKnown ? { running, written } : undefined;
    const tier = rawDimension(dimensions, "tier");
    const windows = findWindows(limit, [subject], tier, known, this.#epochMs);
    return windows.length === 1 && windows[0]!.kind === "arrival" ? windows : undefined;
  }
}
