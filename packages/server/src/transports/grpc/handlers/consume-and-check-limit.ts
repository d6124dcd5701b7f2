import type { CheckRequest as CheckMessage, CheckResponse } from "@sluice/protocol/ratelimiter";
import type { CheckRequest, Decision, Policy, PolicySet } from "sluice";
import { bucketLevels } from "../bucket-levels.ts";
import { isOurs } from "../errors.ts";
import { readLimitKey } from "../limit-key.ts";
import type { CallInfo, GrpcContext } from "../method.ts";

export async function consumeAndCheckLimit(
  request: CheckMessage,
  context: GrpcContext,
  call: CallInfo,
): Promise<CheckResponse> {
  const key = readLimitKey(context.limiter.snapshot.policySet, request);
  const decision = await context.decide.one({
    ...key,
    cost: request.cost ?? 1,
    details: true,
    deadlineMs: call.deadlineMs,
  });
  const { remaining, index } = await leastRemaining(decision, key, context, call);
  return {
    allowed: decision.allowed,
    remainingCapacity: remaining,
    limitingRateIndex: index,
    denyCount: decision.allowed ? 0 : decision.denyCount,
  };
}

/**
 * The bucket with the least left, counted in units and not in shares, and which rate that is. A policy of one rate has told
 * already; of several, the decision tells only of the one that limits most, and the buckets are looked at. Where they cannot
 * be, what was decided stands: it is charged, and the caller is not to try again.
 */
async function leastRemaining(
  decision: Decision,
  key: Pick<CheckRequest, "domain" | "dimensions">,
  context: GrpcContext,
  call: CallInfo,
): Promise<{ readonly remaining: number; readonly index: number }> {
  const { allowed, remaining = decision.limit ?? 0, cost } = decision;
  const asked = allowed ? 0 : cost;
  let least = { remaining: remaining - asked, index: 0 };
  if (decision.degraded !== undefined || !hasSeveralRates(decision, context)) return least;
  try {
    const levels = await bucketLevels({ ...key, deadlineMs: call.deadlineMs }, context);
    for (const [index, level] of levels.entries()) {
      const left = level.remainingCapacity - asked;
      if (index === 0 || left < least.remaining) least = { remaining: left, index };
    }
  } catch (error) {
    if (isOurs(error)) context.log.error({ err: error }, "buckets could not be looked at after a decision");
  }
  return least;
}

const severalByPolicy = new WeakMap<PolicySet, ReadonlySet<string>>();

function hasSeveralRates({ limits = [] }: Decision, { limiter }: GrpcContext): boolean {
  const enforced = limits.filter(({ shadow }) => !shadow);
  if (enforced.length !== 1) return enforced.length > 1;
  return severalIn(limiter.snapshot.policySet).has(enforced[0]!.policy);
}

/** Policies with a limit that has several windows, for some tier at least. */
function severalIn(policySet: PolicySet): ReadonlySet<string> {
  let several = severalByPolicy.get(policySet);
  if (several === undefined) {
    const { policies, fallback } = policySet;
    const all = fallback === undefined ? policies : [...policies, fallback];
    several = new Set(all.filter(({ limits }) => limits.some(hasSeveralWindows)).map(({ id }) => id));
    severalByPolicy.set(policySet, several);
  }
  return several;
}

function hasSeveralWindows({ windows, tiers }: Policy["limits"][number]): boolean {
  return windows.length > 1 || Object.values(tiers).some((tier) => tier.windows.length > 1);
}
