import type { LimitOutcome, LimitRecord, ResolvedLimit, TakeAnswer } from "../counters/counter-store.ts";
import type { OneOutcome } from "../counters/single-takes.ts";
import { findSpeaking, leastRemaining, limitDecision, shadowDenials, usedUnits } from "../decision/combine-outcomes.ts";
import { CountedDecision } from "../decision/counted-decision.ts";
import type { Decision, LimitDecision, ShadowDenial } from "../decision/decision.ts";
import { SubjectStates, untroubled } from "../decision/subject-states.ts";
import { refusedDecision, unlimitedDecision } from "../decision/uncounted-decision.ts";
import type { CompiledLimit } from "../limits/compiled-limit.ts";
import { appliedIn, type Refusal, type Resolution } from "../match/resolve.ts";
import type { CheckRequest } from "../request/check-request.ts";

const noShadow: readonly ShadowDenial[] = [];
const plainCheck = { preview: false, replayed: false };

/** Makes decisions of what counters answered, and remembers how each subject stood. */
export class DecisionMaker {
  readonly #states = new SubjectStates();

  /** `answer` is undefined if no counter was asked. */
  decide(request: CheckRequest, resolution: Resolution, answer: TakeAnswer | undefined): Decision {
    const { limits, refusals } = resolution;
    const preview = request.preview === true;
    const refusal = refusals.length === 0 ? undefined : refusals.find((one) => one.policy.enforced);
    if (refusal !== undefined) return refusedDecision(request, refusal, shadowRefusals(refusals));
    if (answer === undefined) return unlimitedDecision(request, appliedIn(resolution), shadowRefusals(refusals));
    const { outcomes } = answer;
    const shadow = findShadow(limits, refusals, answer);
    const speaking = findSpeaking(limits, outcomes);
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
    const decision = this.#decideBy(limit, subject, cost, outcome, remaining, used, answer.atMs, shadow, asked);
    if (request.details !== true && answer.receipt === undefined && answer.records === undefined) return decision;
    const record = answer.records?.[speaking.index];
    return {
      ...decision,
      denyCount: record === undefined ? decision.denyCount : countDenied(record, decision),
      limits: request.details === true ? limitDecisions(request, limits, answer) : undefined,
      receipt: answer.receipt,
    };
  }

  /** The decision if one window is all there is. */
  decideOne(limit: CompiledLimit, subject: string, cost: number, outcome: Readonly<OneOutcome>): Decision {
    const { remaining } = outcome;
    const used = usedUnits(outcome.window, remaining);
    return this.#decideBy(limit, subject, cost, outcome, remaining, used, outcome.atMs, noShadow, plainCheck);
  }

  /** The decision in the words of the limit that speaks. */
  #decideBy(
    limit: CompiledLimit,
    subject: string,
    cost: number,
    outcome: Omit<LimitOutcome, "windowRemaining">,
    remaining: number,
    used: number,
    atMs: number,
    shadow: readonly ShadowDenial[],
    { preview, replayed }: { readonly preview: boolean; readonly replayed: boolean },
  ): Decision {
    const { fits, window, resetAfterMs } = outcome;
    const { policy } = limit;
    const allowed = fits === "now";
    const usedShare = used / window.capacity;
    const standing =
      allowed && usedShare <= policy.warnAt && this.#states.size === 0
        ? untroubled
        : this.#states.observe(
            {
              identity: limit.identity,
              subject,
              allowed,
              // A one-off quota that is used up is exhausted too, although waiting does not help.
              exhausted: fits !== "never" || cost <= window.capacity,
              cost,
              usedShare,
              warnAt: policy.warnAt,
              resetAfterMs,
              nowMs: atMs,
            },
            preview || replayed,
          );
    return new CountedDecision(
      limit,
      window,
      cost,
      outcome,
      remaining,
      used,
      standing,
      atMs,
      shadow,
      preview,
      replayed,
    );
  }
}

function limitDecisions(
  { record }: CheckRequest,
  limits: readonly ResolvedLimit[],
  { outcomes, records }: TakeAnswer,
): readonly LimitDecision[] {
  return limits.map((one, i) => limitDecision(one, outcomes[i]!, record === true ? records?.[i] : undefined));
}

/** A preview is not recorded, and says what would be. */
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

/** What policies in shadow mode would deny without asking a counter. */
export function shadowRefusals(refusals: readonly Refusal[]): readonly ShadowDenial[] {
  if (refusals.length === 0) return noShadow;
  return refusals
    .filter(({ policy }) => !policy.enforced)
    .map(({ policy: { policy }, reason, scope }) => ({
      policy: policy.id,
      version: policy.version,
      scope,
      reason,
      retryAfterMs: undefined,
    }));
}
