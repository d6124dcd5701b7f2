import {
  RateLimitResponse_Code as Code,
  type RateLimitResponse_DescriptorStatus as DescriptorStatus,
  type RateLimitRequest,
  type RateLimitResponse,
} from "@sluice/protocol/envoy";
import { type CheckRequest, type Decision, SluiceError, StoreUnavailable } from "sluice";
import { type Caller, demand } from "../../access/access.ts";
import { whenDecided } from "../../service/create-decide.ts";
import { isUnreadablePath } from "../../service/is-unreadable-path.ts";
import type { Service } from "../../service/service.ts";
import { type DescriptorCheck, type DescriptorPlan, planRequest } from "./plan-request.ts";
import { renderLimitHeaders } from "./render-limit-headers.ts";
import { renderReset, renderStatus, unlimitedStatus, unmatchedStatus } from "./render-status.ts";

export interface ShouldRateLimitOptions {
  /** The caller: giving back (`is_negative_hits`) needs the permission to credit. */
  readonly caller: Caller;
  /** Whether the answer has headers for Envoy to add. */
  readonly headers?: boolean | undefined;
  /** How long the caller waits at most. */
  readonly deadlineMs?: number | undefined;
}

type AskedService = Pick<Service, "decide" | "limiter">;

/**
 * Answers Envoy's question, over either transport. All descriptors of a request are decided together: all of them are
 * charged, or none is. Throws `invalid_request` for anything else, `overloaded`, and `store_unavailable` if the
 * counters are unavailable and a policy fails closed: never an answer of UNKNOWN, which Envoy would let pass. An
 * unreadable path is over the limit for the same reason.
 */
export function shouldRateLimit(
  request: RateLimitRequest,
  service: AskedService,
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
  service: AskedService,
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
 * The kill switch decides all descriptors alike, including those without limits. Its denial is an answer: Envoy would
 * let an error pass.
 */
function answerForced(
  { plans, checks }: PlannedAnswer,
  mode: "open" | "closed",
  { decide }: AskedService,
  headers: boolean,
): RateLimitResponse | Promise<RateLimitResponse> {
  // Asked all the same, so that they are counted.
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

/** The plans, by the policies of this moment, and the statuses known so far, by the descriptors' places. */
interface PlannedAnswer {
  readonly plans: readonly DescriptorPlan[];
  readonly checks: readonly PlacedCheck[];
  /** Undefined if counters are still to be asked. */
  readonly statuses: (DescriptorStatus | undefined)[];
}

type PlacedCheck = DescriptorCheck & { readonly place: number };

function plan(request: RateLimitRequest, { limiter }: AskedService): PlannedAnswer {
  const plans = planRequest(request, limiter);
  const checks = plans.flatMap((one, place) => (one.kind === "check" ? [{ ...one, place }] : []));
  return { plans, checks, statuses: plans.map(uncountedStatus) };
}

/** If there are only takes, and no quota next to limits that deny, one question is enough. */
function needsLook(checks: readonly DescriptorCheck[]): boolean {
  if (checks.some((one) => !takes(one))) return true;
  return checks.some(({ role }) => role === "quota") && checks.some(({ role }) => role !== "quota");
}

function takes({ hits, givesBack }: DescriptorCheck): boolean {
  return hits > 0 && !givesBack;
}

/**
 * If a descriptor only peeks, gives back, or has a quota that does not deny on its own, all of them are peeked at
 * before any is charged.
 */
async function lookFirst(
  request: RateLimitRequest,
  checks: readonly PlacedCheck[],
  service: AskedService,
  deadlineMs: number | undefined,
): Promise<PlannedAnswer> {
  const leftMs = countDown(deadlineMs);
  await giveBack(
    checks.filter(({ givesBack }) => givesBack),
    service,
  );
  // After every await, policies may have been replaced, and with them the ids to ask by.
  const look = plan(request, service);
  note(look, look.checks, await ask(look.checks.map(previewRequest), service, { preview: true, deadlineMs: leftMs() }));
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
  // The last quota was used up between the peek and the take, which took from the others.
  if (enforced.every(({ place }) => answer.statuses[place]?.code === Code.OK)) await giveBack(enforced, service);
  await chargeAnyway(taking, service);
  return answer;
}

/** What is left of a caller's deadline, at least the minimum of a millisecond. */
function countDown(deadlineMs: number | undefined): () => number | undefined {
  if (deadlineMs === undefined) return () => undefined;
  const endMs = performance.now() + deadlineMs;
  return () => Math.max(endMs - performance.now(), 1);
}

function take(
  checks: readonly PlacedCheck[],
  service: AskedService,
  deadlineMs: number | undefined,
): readonly Decision[] | Promise<readonly Decision[]> {
  const requests = checks.map(({ request, hits }) => ({ ...request, cost: hits }));
  return ask(requests, service, { deadlineMs });
}

function ask(
  requests: readonly CheckRequest[],
  { decide }: AskedService,
  options: { readonly preview?: boolean; readonly deadlineMs: number | undefined },
): readonly Decision[] | Promise<readonly Decision[]> {
  const [only] = requests;
  // A single preview would be answered from memory for a moment; `together` asks afresh.
  if (requests.length === 1 && options.preview !== true)
    return whenDecided(decide.one({ ...only, ...options }), (one) => refuseOutage([one]));
  return whenDecided(decide.together(requests, options), refuseOutage);
}

/** Peeks whether the cost fits; without one, whether anything does. */
function previewRequest(check: DescriptorCheck): CheckRequest {
  return { ...check.request, cost: takes(check) ? check.hits : 0 };
}

/** What cannot be given back now stays taken, which is the safe side; the peek that follows reports the outage. */
async function giveBack(checks: readonly DescriptorCheck[], service: AskedService): Promise<void> {
  await Promise.all(checks.map(({ request, hits }) => charge(request, -hits, service)));
}

async function chargeAnyway(checks: readonly DescriptorCheck[], service: AskedService): Promise<void> {
  await Promise.all(checks.map(({ deniedCharge, hits }) => deniedCharge && charge(deniedCharge, hits, service)));
}

async function charge(request: CheckRequest, cost: number, { limiter }: AskedService): Promise<void> {
  if (cost !== 0) await limiter.charge({ ...request, cost }).catch(ignorePassing);
}

/** Ignores unavailable counters, and policies that have just been replaced. */
function ignorePassing(error: unknown): void {
  const gone = error instanceof SluiceError && error.code === "policy_not_found";
  if (!gone && !(error instanceof StoreUnavailable)) throw error;
}

/** A denial by a limit stands, whatever else could not be asked. */
function refuseOutage(decisions: readonly Decision[]): readonly Decision[] {
  const isOutage = ({ allowed, reason }: Decision): boolean => !allowed && reason === "degraded";
  if (!decisions.some(isOutage) || decisions.some((one) => !one.allowed && !isOutage(one))) return decisions;
  throw new SluiceError("store_unavailable", "the counters are unavailable, and a policy that applies fails closed");
}

function note(
  { statuses }: Pick<PlannedAnswer, "statuses">,
  checks: readonly PlacedCheck[],
  decisions: readonly Decision[],
): void {
  for (const [i, check] of checks.entries()) statuses[check.place] = renderStatus(decisions[i]!, check);
}

/** Over if a descriptor is that denies on its own; or if there are quotas, and all of them are. */
function isOver({ plans, statuses }: PlannedAnswer): boolean {
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

function render(answer: PlannedAnswer, headers: boolean): RateLimitResponse {
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
