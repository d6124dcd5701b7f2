import {
  RateLimitResponse_Code as Code,
  type RateLimitResponse_DescriptorStatus as DescriptorStatus,
  type RateLimitRequest,
  type RateLimitResponse,
} from "@sluice/protocol/envoy";
import { type CheckRequest, type Decision, SluiceError, StoreUnavailable } from "sluice";
import { type Caller, demand } from "../../access/access.ts";
import { whenDecided } from "../../service/decide.ts";
import { isUnreadablePath } from "../../service/is-unreadable-path.ts";
import type { Service } from "../../service/service.ts";
import { type DescriptorCheck, type DescriptorPlan, planRequest } from "./plan-request.ts";
import { renderLimitHeaders } from "./render-limit-headers.ts";
import { renderReset, renderStatus, unlimitedStatus, unmatchedStatus } from "./render-status.ts";

export interface ShouldRateLimitOptions {
  /** Who asks: giving back (`is_negative_hits`) needs the permission to credit. */
  readonly caller: Caller;
  /** Whether the answer has headers for Envoy to add. */
  readonly headers?: boolean | undefined;
  /** How long the caller waits at most. */
  readonly deadlineMs?: number | undefined;
}

type Asked = Pick<Service, "decide" | "limiter">;

/**
 * Answers Envoy's question, whichever way it came. All descriptors of a request are decided together: all of them are
 * charged, or none is. Throws `invalid_request` for what is no such question, `overloaded`, and `store_unavailable` where the
 * counters are away and a policy fails closed: never an answer that says it does not know, which Envoy would let pass. A path
 * that cannot be looked at is over the limit for the same reason.
 */
export function shouldRateLimit(
  request: RateLimitRequest,
  service: Asked,
  options: ShouldRateLimitOptions,
): RateLimitResponse | Promise<RateLimitResponse> {
  const deny = (error: unknown): RateLimitResponse => {
    if (!isUnreadablePath(error)) throw error;
    const over = { code: Code.OVER_LIMIT, limitRemaining: 0 };
    return respond(
      Code.OVER_LIMIT,
      request.descriptors.map(() => over),
      options.headers === true,
    );
  };
  try {
    const answer = answerRequest(request, service, options);
    return answer instanceof Promise ? answer.catch(deny) : answer;
  } catch (error) {
    return deny(error);
  }
}

function answerRequest(
  request: RateLimitRequest,
  service: Asked,
  { caller, headers = false, deadlineMs }: ShouldRateLimitOptions,
): RateLimitResponse | Promise<RateLimitResponse> {
  if (request.descriptors.some(({ isNegativeHits }) => isNegativeHits)) demand(caller, "credit");
  const asked = plan(request, service);
  const { checks } = asked;
  const { forced } = service.limiter;
  if (forced !== undefined) return answerForced(asked, forced.mode, service, headers);
  if (checks.length === 0) return render(asked, headers);
  if (needsLook(checks)) return lookFirst(request, checks, service, deadlineMs).then((final) => render(final, headers));
  const go = (decisions: readonly Decision[]): RateLimitResponse | Promise<RateLimitResponse> => {
    note(asked, checks, decisions);
    if (!isOver(asked) || !checks.some(({ deniedCharge }) => deniedCharge)) return render(asked, headers);
    return chargeAnyway(checks, service).then(() => render(asked, headers));
  };
  const decided = take(checks, service, deadlineMs);
  return decided instanceof Promise ? decided.then(go) : go(decided);
}

/**
 * The kill switch decides all descriptors alike, also those that nothing limits. That it denies is an answer: what is an error
 * Envoy would let pass.
 */
function answerForced(
  { plans, checks }: Answer,
  mode: "open" | "closed",
  { decide }: Asked,
  headers: boolean,
): RateLimitResponse | Promise<RateLimitResponse> {
  // Asked for all the same, so that they are counted.
  const decided = decide.together(checks.filter(takes).map(({ request, hits }) => ({ ...request, cost: hits })));
  return whenDecided(decided, ([first]) => {
    const code = mode === "open" ? Code.OK : Code.OVER_LIMIT;
    const status = { code, limitRemaining: 0, durationUntilReset: first && renderReset(first) };
    return respond(
      code,
      plans.map(() => status),
      headers,
    );
  });
}

/** What is to be done, by the policies of this moment, and what is known so far, by the descriptors' places. */
interface Answer {
  readonly plans: readonly DescriptorPlan[];
  readonly checks: readonly PlacedCheck[];
  /** Undefined where counters are still to be asked. */
  readonly statuses: (DescriptorStatus | undefined)[];
}

type PlacedCheck = DescriptorCheck & { readonly place: number };

function plan(request: RateLimitRequest, { limiter }: Asked): Answer {
  const plans = planRequest(request, limiter.snapshot.policySet);
  const checks = plans.flatMap((one, place) => (one.kind === "check" ? [{ ...one, place }] : []));
  return { plans, checks, statuses: plans.map(uncountedStatus) };
}

/** With nothing but takes, and no quota beside limits that deny, one question is enough. */
function needsLook(checks: readonly DescriptorCheck[]): boolean {
  if (checks.some((one) => !takes(one))) return true;
  return checks.some(({ role }) => role === "quota") && checks.some(({ role }) => role !== "quota");
}

function takes({ hits, givesBack }: DescriptorCheck): boolean {
  return hits > 0 && !givesBack;
}

/**
 * Where a descriptor only looks, gives back, or has a quota that does not deny by itself, all of them are looked at before
 * any is charged.
 */
async function lookFirst(
  request: RateLimitRequest,
  checks: readonly PlacedCheck[],
  service: Asked,
  deadlineMs: number | undefined,
): Promise<Answer> {
  const leftMs = countDown(deadlineMs);
  await giveBack(
    checks.filter(({ givesBack }) => givesBack),
    service,
  );
  // Whenever others had a turn, policies may have been replaced, and with them the ids that are asked by.
  const look = plan(request, service);
  note(look, look.checks, await ask(look.checks.map(lookOf), service, { preview: true, deadlineMs: leftMs() }));
  if (isOver(look)) {
    await chargeAnyway(look.checks.filter(takes), service);
    return look;
  }
  const answer = plan(request, service);
  const taking = answer.checks.filter(takes);
  for (const [place, status] of look.statuses.entries()) answer.statuses[place] ??= status;
  if (taking.length === 0) return answer;
  note(answer, taking, await take(taking, service, leftMs()));
  if (!isOver(answer)) return answer;
  const enforced = taking.filter(({ role }) => role === "enforced");
  // The last quota was used up between the look and the take, which took from the others.
  if (enforced.every(({ place }) => answer.statuses[place]?.code === Code.OK)) await giveBack(enforced, service);
  await chargeAnyway(taking, service);
  return answer;
}

/** What is left of a caller's patience, at least the millisecond that may be asked for. */
function countDown(deadlineMs: number | undefined): () => number | undefined {
  if (deadlineMs === undefined) return () => undefined;
  const endMs = performance.now() + deadlineMs;
  return () => Math.max(endMs - performance.now(), 1);
}

function take(
  checks: readonly PlacedCheck[],
  service: Asked,
  deadlineMs: number | undefined,
): readonly Decision[] | Promise<readonly Decision[]> {
  const requests = checks.map(({ request, hits }) => ({ ...request, cost: hits }));
  return ask(requests, service, { deadlineMs });
}

function ask(
  requests: readonly CheckRequest[],
  { decide }: Asked,
  options: { readonly preview?: boolean; readonly deadlineMs: number | undefined },
): readonly Decision[] | Promise<readonly Decision[]> {
  const [only] = requests;
  // A preview of one would be answered from memory for a moment; together it is asked afresh.
  if (requests.length === 1 && options.preview !== true)
    return whenDecided(decide.one({ ...only, ...options }), (one) => refuseOutage([one]));
  return whenDecided(decide.together(requests, options), refuseOutage);
}

/** Looks whether the cost fits; where there is none, whether anything does. */
function lookOf(check: DescriptorCheck): CheckRequest {
  return { ...check.request, cost: takes(check) ? check.hits : 0 };
}

/** What cannot be given back now stays taken, which is the safe side; the look that follows tells of the outage. */
async function giveBack(checks: readonly DescriptorCheck[], service: Asked): Promise<void> {
  await Promise.all(checks.map(({ request, hits }) => charge(request, -hits, service)));
}

async function chargeAnyway(checks: readonly DescriptorCheck[], service: Asked): Promise<void> {
  await Promise.all(checks.map(({ deniedCharge, hits }) => deniedCharge && charge(deniedCharge, hits, service)));
}

async function charge(request: CheckRequest, cost: number, { limiter }: Asked): Promise<void> {
  if (cost !== 0) await limiter.charge({ ...request, cost }).catch(ignorePassing);
}

/** Counters that are away, and policies that have just been replaced. */
function ignorePassing(error: unknown): void {
  const gone = error instanceof SluiceError && error.code === "policy_not_found";
  if (!gone && !(error instanceof StoreUnavailable)) throw error;
}

/** A denial by a limit stands, whatever else could not be asked. */
function refuseOutage(decisions: readonly Decision[]): readonly Decision[] {
  const isOutage = ({ allowed, reason }: Decision): boolean => !allowed && reason === "degraded";
  if (!decisions.some(isOutage) || decisions.some((one) => !one.allowed && !isOutage(one))) return decisions;
  throw new SluiceError("store_unavailable", "the counters cannot be asked, and a policy that applies fails closed");
}

function note(
  { statuses }: Pick<Answer, "statuses">,
  checks: readonly PlacedCheck[],
  decisions: readonly Decision[],
): void {
  for (const [i, check] of checks.entries()) statuses[check.place] = renderStatus(decisions[i]!, check);
}

/** Over where a descriptor is that denies by itself; or where there are quotas, and all of them are. */
function isOver({ plans, statuses }: Answer): boolean {
  let quotas = 0;
  let quotasOver = 0;
  for (const [place, plan] of plans.entries()) {
    if (plan.kind !== "check") continue;
    const over = statuses[place]?.code === Code.OVER_LIMIT;
    if (over && plan.role === "enforced") return true;
    if (plan.role !== "quota") continue;
    quotas += 1;
    if (over) quotasOver += 1;
  }
  return quotas > 0 && quotas === quotasOver;
}

function uncountedStatus(plan: DescriptorPlan): DescriptorStatus | undefined {
  if (plan.kind === "check") return undefined;
  return plan.kind === "unlimited" ? unlimitedStatus : unmatchedStatus;
}

const noBytes = new Uint8Array();

function render(answer: Answer, headers: boolean): RateLimitResponse {
  const statuses = answer.statuses.map((status) => status ?? unmatchedStatus);
  return respond(isOver(answer) ? Code.OVER_LIMIT : Code.OK, statuses, headers);
}

function respond(overallCode: Code, statuses: DescriptorStatus[], headers: boolean): RateLimitResponse {
  return {
    overallCode,
    statuses,
    responseHeadersToAdd: headers ? renderLimitHeaders(statuses) : [],
    requestHeadersToAdd: [],
    rawBody: noBytes,
  };
}
