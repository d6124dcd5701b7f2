import type { LimitOutcome, LimitRecord, ResolvedLimit, TakeAnswer } from "../counters/counter-store.ts";
import type { SeveralOutcome } from "../counters/several-takes.ts";
import type { OneOutcome } from "../counters/single-takes.ts";
import { findDeciding, leastRemaining, limitDecision, shadowDenials, usedUnits } from "../decision/combine-outcomes.ts";
import { CountedDecision } from "../decision/counted-decision.ts";
import type { Decision, LimitDecision, ShadowDenial } from "../decision/decision.ts";
import { describeDistinct } from "../decision/describe-distinct.ts";
import type { LimiterWatch } from "../decision/limiter-watch.ts";
import { type Standing, SubjectStates, untroubled } from "../decision/subject-states.ts";
import { refusedDecision, unlimitedDecision } from "../decision/uncounted-decision.ts";
import type { CompiledLimit } from "../limits/compiled-limit.ts";
import { appliedIn, type Refusal, type Resolution } from "../match/resolve.ts";
import type { CheckRequest } from "../request/check-request.ts";

const noShadow: readonly ShadowDenial[] = [];
const plainCheck = { preview: false, replayed: false };

/** Turns the counters' answers into decisions, and remembers each subject's state. */
export class DecisionMaker {
  readonly #states = new SubjectStates();
  readonly #watch: LimiterWatch | undefined;

  constructor(watch: LimiterWatch | undefined = undefined) {
    this.#watch = watch;
  }

  /** `answer` is undefined if no counter was asked. */
  decide(request: CheckRequest, resolution: Resolution, answer: TakeAnswer | undefined): Decision {
    const { limits, refusals } = resolution;
    const preview = request.preview === true;
    const refusal = refusals.length === 0 ? undefined : refusals.find((one) => one.enforced);
    if (refusal !== undefined) return refusedDecision(request, refusal, shadowRefusals(refusals));
    if (answer === undefined) return unlimitedDecision(request, appliedIn(resolution), shadowRefusals(refusals));
    const { outcomes } = answer;
    const shadow = findShadow(limits, refusals, answer);
    const speaking = findDeciding(limits, outcomes);
    if (speaking === undefined) {
      const unlimited = unlimitedDecision(request, appliedIn(resolution), shadow);
      // With details, the limits of policies in shadow mode are listed too.
      if (request.details !== true) return unlimited;
      return { ...unlimited, limits: limitDecisions(request, limits, answer) };
    }
    const { limit, subject, cost } = speaking.limit;
    const { outcome } = speaking;
    const remaining = leastRemaining(limits, outcomes);
    const used = usedUnits(outcome.window, outcome.windowRemaining);
    const asked = { preview, replayed: answer.replayed };
    const standing = this.#isUntroubled(limit, outcome, used)
      ? untroubled
      : this.#observe(limit, subject, cost, outcome, used, answer.atMs, preview || answer.replayed);
    const counted = decideBy(limit, cost, outcome, remaining, used, standing, answer.atMs, shadow, asked);
    const brief = limit.distinct === undefined ? counted : withDistinct(counted, limit.distinct.dimension);
    const decision =
      request.details !== true && answer.receipt === undefined && answer.records === undefined
        ? brief
        : withDetails(brief, request, limits, answer, answer.records?.[speaking.index]);
    this.#watch?.onDecided?.(decision, answer.atMs, answer.order ?? 0);
    return decision;
  }

  /** The decision on a single window. */
  decideOne(limit: CompiledLimit, subject: string, cost: number, outcome: Readonly<OneOutcome>): Decision {
    const { remaining, atMs } = outcome;
    const used = usedUnits(outcome.window, remaining);
    const standing = this.#isUntroubled(limit, outcome, used)
      ? untroubled
      : this.#observe(limit, subject, cost, outcome, used, atMs, false);
    const decision = decideBy(limit, cost, outcome, remaining, used, standing, atMs, noShadow, plainCheck);
    this.#watch?.onDecided?.(decision, atMs, outcome.order);
    return decision;
  }

  /** The decision on several limits, all of them enforced. The subject is read only if its state matters. */
  decideSeveral(limits: readonly ResolvedLimit[], several: Readonly<SeveralOutcome>): Decision {
    const { outcome, remaining, atMs } = several;
    const asked = limits[several.speaking]!;
    const { limit, cost } = asked;
    const used = usedUnits(outcome.window, outcome.windowRemaining);
    const standing = this.#isUntroubled(limit, outcome, used)
      ? untroubled
      : this.#observe(limit, asked.subject, cost, outcome, used, atMs, false);
    const decision = decideBy(limit, cost, outcome, remaining, used, standing, atMs, noShadow, plainCheck);
    this.#watch?.onDecided?.(decision, atMs, 0);
    return decision;
  }

  /** The subjects of these limits are blocked for so long. */
  block(limits: readonly ResolvedLimit[], forMs: number): void {
    for (const { limit, subject } of limits)
      if (limit.blockable) this.#states.prolong({ identity: limit.identity, subject }, forMs);
  }

  /** Whether the subject's state is surely normal and stays so, without looking it up. */
  #isUntroubled(
    { policy }: CompiledLimit,
    { fits, window }: Pick<LimitOutcome, "fits" | "window">,
    used: number,
  ): boolean {
    return fits === "now" && used / window.capacity <= policy.warnAt && this.#states.size === 0;
  }

  /** The state of the deciding limit's subject after this decision. */
  #observe(
    limit: CompiledLimit,
    subject: string,
    cost: number,
    { fits, window, resetAfterMs }: Pick<LimitOutcome, "fits" | "window" | "resetAfterMs">,
    used: number,
    nowMs: number,
    changesNothing: boolean,
  ): Standing {
    const { identity, policy } = limit;
    return this.#states.observe(
      {
        identity,
        subject,
        allowed: fits === "now",
        // A used-up one-off quota counts as exhausted too, although waiting does not help.
        exhausted: fits !== "never" || cost <= window.capacity,
        cost,
        usedShare: used / window.capacity,
        warnAt: policy.warnAt,
        resetAfterMs,
        nowMs,
      },
      changesNothing,
    );
  }
}

/** The decision in the words of the limit that speaks. */
function decideBy(
  limit: CompiledLimit,
  cost: number,
  outcome: Omit<LimitOutcome, "windowRemaining">,
  remaining: number,
  used: number,
  standing: Standing,
  atMs: number,
  shadow: readonly ShadowDenial[],
  { preview, replayed }: { readonly preview: boolean; readonly replayed: boolean },
): Decision {
  const { window } = outcome;
  return new CountedDecision(limit, window, cost, outcome, remaining, used, standing, atMs, shadow, preview, replayed);
}

function withDistinct(decision: Decision, dimension: string): Decision {
  return { ...decision, distinct: describeDistinct(dimension, decision.limit ?? 0) };
}

function withDetails(
  decision: Decision,
  request: CheckRequest,
  limits: readonly ResolvedLimit[],
  answer: TakeAnswer,
  record: LimitRecord | undefined,
): Decision {
  return {
    ...decision,
    denyCount: record === undefined ? decision.denyCount : countDenied(record, decision),
    limits: request.details === true ? limitDecisions(request, limits, answer) : undefined,
    receipt: answer.receipt,
  };
}

function limitDecisions(
  { record }: CheckRequest,
  limits: readonly ResolvedLimit[],
  { outcomes, records }: TakeAnswer,
): readonly LimitDecision[] {
  return limits.map((one, i) => limitDecision(one, outcomes[i]!, record === true ? records?.[i] : undefined));
}

/** A preview is not recorded; it reports what the count would be. */
function countDenied({ denied }: LimitRecord, { allowed, preview, cost }: Decision): number {
  if (allowed) return 0;
  return preview ? denied + cost : denied;
}

function findShadow(
  limits: readonly ResolvedLimit[],
  refusals: readonly Refusal[],
  answer: TakeAnswer,
): readonly ShadowDenial[] {
  let shadowed = refusals.length > 0;
  for (const { group } of limits) if (group !== 0) shadowed = true;
  return shadowed ? [...shadowRefusals(refusals), ...shadowDenials(limits, answer.outcomes)] : noShadow;
}

/** The denials of shadow policies that need no counter. */
export function shadowRefusals(refusals: readonly Refusal[]): readonly ShadowDenial[] {
  if (refusals.length === 0) return noShadow;
  return refusals
    .filter(({ enforced }) => !enforced)
    .flatMap(({ policy, reason, scope, retryAfterMs }) => {
      if (policy === undefined) return [];
      const { id, version } = policy.policy;
      return [{ policy: id, version, scope, reason, retryAfterMs }];
    });
}
