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

const noDimensions: Readonly<Record<string, string>> = {};

export interface SingleChecksOptions {
  readonly takes: SingleTakes;
  readonly subjects: SubjectDirectory;
  readonly epochMs: () => number;
  readonly decisions: DecisionMaker;
  readonly outages: OutageDecisions;
  readonly onMissing: LimiterOptions["onMissing"];
}

/**
 * The fast path: the commonest check by far, one limit with one window and no further options, goes straight from the
 * endpoint's match to the counter. The decision is the same as by the general path, in about two thirds of the time; see
 * decision 0007, and 0012 for counters that answer later.
 *
 * There is one for each snapshot, so a check that waits is decided by the policies it began with. It is itself the
 * callback that a store calls when the answer comes later, so a check needs no closure.
 */
export class SingleChecks implements TakeCallback<Decision> {
  readonly #snapshot: Snapshot;
  readonly #takes: SingleTakes;
  readonly #subjects: SubjectDirectory;
  readonly #epochMs: () => number;
  readonly #decisions: DecisionMaker;
  readonly #outages: OutageDecisions;
  readonly #onMissing: LimiterOptions["onMissing"];

  constructor(snapshot: Snapshot, options: SingleChecksOptions) {
    this.#snapshot = snapshot;
    this.#takes = options.takes;
    this.#subjects = options.subjects;
    this.#epochMs = options.epochMs;
    this.#decisions = options.decisions;
    this.#outages = options.outages;
    this.#onMissing = options.onMissing;
  }

  /** Undefined if there is more to the request. A promise only if the store answers later. */
  check(request: CheckRequest): Decision | Promise<Decision> | undefined {
    const limit = this.#findOnlyLimit(request);
    if (limit === undefined) return undefined;
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

  /** The only limit of a request, if it is of the commonest kind and the request has no further options. */
  #findOnlyLimit(request: CheckRequest): CompiledLimit | undefined {
    if (request.policies !== undefined || request.id !== undefined || request.preview === true) return undefined;
    if (request.details === true || request.receipt === true || request.dimensions === undefined) return undefined;
    const { dimensions } = request;
    if (request.limits !== undefined) return onlyGivenLimit(request.limits);
    const match = this.#snapshot.matchEndpoint(request.domain, rawEndpoint(dimensions));
    if (!match.settled) return undefined;
    return candidatesFor(this.#snapshot, match, dimensions, this.#epochMs).onlyLimit;
  }

  /** Its windows for the subject, if they are of the commonest kind too. */
  #findOnlyWindows(
    limit: CompiledLimit,
    subject: string,
    { dimensions = noDimensions, limits }: CheckRequest,
  ): readonly CompiledWindow[] | undefined {
    const running = this.#subjects;
    const written = this.#snapshot.subjects;
    // What is known of subjects is said of policies, and not of limits that a request brings along.
    const isAnybodyKnown = limits === undefined && (running.size !== 0 || written.size !== 0);
    if (!isAnybodyKnown && limit.tiers.size === 0) return limit.windows;
    const known = isAnybodyKnown ? { running, written } : undefined;
    const tier = rawDimension(dimensions, "tier");
    const windows = findWindows(limit, [subject], tier, known, this.#epochMs);
    return windows.length === 1 && windows[0]!.kind === "arrival" ? windows : undefined;
  }
}
