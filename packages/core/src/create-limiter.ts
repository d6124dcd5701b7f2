import { type Clock, systemClock } from "./clock.ts";
import { checkLeaseAsk } from "./counters/check-lease-ask.ts";
import type {
  CounterStore,
  LeaseAsk,
  LimitOutcome,
  LimitRecord,
  OneAsker,
  OneOutcome,
  Receipt,
  ResolvedLimit,
  TakeAnswer,
  TakeOptions,
} from "./counters/counter-store.ts";
import { ExpiringMap } from "./counters/expiring-map.ts";
import { MemoryCounters } from "./counters/memory-counters.ts";
import { orUnavailable, outageReasonOf, unavailable } from "./counters/store-unavailable.ts";
import { findSpeaking, leastRemaining, limitDecision, shadowDenials, usedOf } from "./decision/combine-outcomes.ts";
import { CountedDecision } from "./decision/counted-decision.ts";
import type { Decision, LimitDecision, ShadowDenial } from "./decision/decision.ts";
import { SubjectStates, untroubled } from "./decision/subject-states.ts";
import { degradedDecision, forcedDecision, refusedDecision, unlimitedDecision } from "./decision/uncounted-decision.ts";
import { SluiceError } from "./errors.ts";
import { isLocalReceipt, LocalCounters } from "./failing/local-counters.ts";
import { resolveLocal } from "./failing/resolve-local.ts";
import { grantsLeases, notLeasable, whyNotLeased } from "./leases/lease-refusals.ts";
import type {
  Explanation,
  ForcedDecisions,
  LeaseGrant,
  Limiter,
  LimiterOptions,
  ResetCounter,
  SnapshotInfo,
  SubjectReset,
  TogetherOptions,
} from "./limiter.ts";
import { checkLimiterOptions, maxPreviewCacheMs } from "./limiter-options.ts";
import type { CompiledLimit, CompiledWindow } from "./limits/compiled-limit.ts";
import { listThatWaits } from "./list-that-waits.ts";
import type { ResetOptions, SubjectResetRequest } from "./match/counters-of-subject.ts";
import { candidatesFor } from "./match/find-candidates.ts";
import { findWindows } from "./match/find-windows.ts";
import { onlyGivenLimit } from "./match/given-limits.ts";
import { joinResolutions } from "./match/join-resolutions.ts";
import { appliedIn, isRefused, type Refusal, type Resolution, resolve } from "./match/resolve.ts";
import { Snapshot } from "./match/snapshot.ts";
import { MemorySubjectDirectory, type SubjectDirectory } from "./match/subject-directory.ts";
import { subjectWithin } from "./match/subject-within.ts";
import { tellTrials } from "./match/tell-trials.ts";
import { maxBlockMs } from "./policy/bounds.ts";
import { parsePolicies } from "./policy/parse-policies.ts";
import type { PolicySet } from "./policy/policy.ts";
import type { CheckRequest } from "./request/check-request.ts";
import { rawDimension, rawEndpoint, readDimension } from "./request/read-dimension.ts";
import { validateRequest } from "./request/validate-request.ts";
import { defaultIpv6PrefixBits } from "./subject/ip-address.ts";

const maxPreviews = 5000;
/** How many limits are reset in one call of a store. */
const resetTogether = 100;
const noShadow: readonly ShadowDenial[] = [];
const nothingAsked = { preview: false, replayed: false };
const noDimensions: Readonly<Record<string, string>> = {};

/** Builds a limiter. Nothing is opened and no timer runs until it is asked. */
export function createLimiter(options: LimiterOptions = {}): Limiter {
  checkLimiterOptions(options);
  return new SluiceLimiter(options);
}

class SluiceLimiter implements Limiter {
  readonly counters: CounterStore;
  readonly subjects: SubjectDirectory;
  readonly #clock: Clock;
  readonly #epochMs: () => number;
  readonly #states = new SubjectStates();
  readonly #previewCacheMs: number;
  readonly #onPreviewHit: (() => void) | undefined;
  readonly #onTrial: LimiterOptions["onTrial"];
  readonly #onMissing: LimiterOptions["onMissing"];
  readonly #ipv6PrefixBits: number;
  readonly #previews = new ExpiringMap<{ readonly answer: TakeAnswer; readonly askedMs: number }>(maxPreviews);
  /** For policies that fail `local`; there from the first outage on. */
  #local: LocalCounters | undefined;
  #snapshot: Snapshot;
  #asker: OneAsker<Decision>;
  #forced: (ForcedDecisions & { readonly endsMs: number }) | undefined;

  constructor(options: LimiterOptions) {
    this.#clock = options.clock ?? systemClock;
    this.#epochMs = () => this.#clock.epochMs();
    this.counters = options.counters ?? new MemoryCounters({ clock: this.#clock });
    this.#ipv6PrefixBits = checkedPrefix(options.ipv6PrefixBits ?? defaultIpv6PrefixBits);
    this.subjects = options.subjects ?? new MemorySubjectDirectory([], this.#ipv6PrefixBits);
    // Asking local counters costs less than remembering their answer.
    this.#previewCacheMs = options.previewCacheMs ?? (this.counters.local ? 0 : maxPreviewCacheMs);
    this.#onPreviewHit = options.onPreviewHit;
    this.#onTrial = options.onTrial;
    this.#onMissing = options.onMissing;
    this.#snapshot = new Snapshot(policySetFrom(options.policies ?? { policies: [] }), 1, this.#ipv6PrefixBits);
    this.#asker = this.#createAsker(this.#snapshot);
  }

  get snapshot(): SnapshotInfo {
    return this.#snapshot;
  }

  usePolicies(policies: PolicySet | Readonly<Record<string, unknown>>): SnapshotInfo {
    this.#snapshot = new Snapshot(policySetFrom(policies), this.#snapshot.generation + 1, this.#ipv6PrefixBits);
    this.#asker = this.#createAsker(this.#snapshot);
    this.#previews.clear();
    return this.#snapshot;
  }

  force(forced: ForcedDecisions | undefined): void {
    const leftMs = (forced?.untilMs ?? 0) - this.#clock.epochMs();
    this.#forced = forced === undefined ? undefined : { ...forced, endsMs: this.#clock.nowMs() + leftMs };
  }

  get forced(): ForcedDecisions | undefined {
    if (this.#forced === undefined) return undefined;
    const { mode, untilMs, endsMs } = this.#forced;
    // By the wall clock or by the steady one, whichever comes first.
    if (this.#clock.epochMs() < untilMs && this.#clock.nowMs() < endsMs) return { mode, untilMs };
    this.#forced = undefined;
    return undefined;
  }

  /** Undefined where policies decide. */
  #decideByForce(request: CheckRequest): Decision | undefined {
    const forced = this.#forced === undefined ? undefined : this.forced;
    return forced && forcedDecision(request, forced, this.#clock.epochMs());
  }

  checkSync(request: CheckRequest): Decision {
    if (!this.counters.local) {
      throw new SluiceError("not_local", "checkSync needs counters in this process; use check, which waits for theirs");
    }
    validateRequest(request);
    const simple = this.#decideByForce(request) ?? this.#checkSimple(request);
    if (simple !== undefined) return simple;
    const resolution = this.#resolveChecked(request, []);
    let answer: TakeAnswer | undefined;
    try {
      answer = this.#ask(request, resolution) as TakeAnswer | undefined;
    } catch (error) {
      return this.#withoutCounters(request, resolution, error);
    }
    return this.#decided(request, resolution, answer);
  }

  /**
   * The commonest check by far, one limit with one window and nothing asked beside, straight through: the same decision
   * as the way round, in about two thirds of the time. Undefined where there is more to it.
   */
  #checkSimple(request: CheckRequest): Decision | undefined {
    const { counters } = this;
    if (counters.takeOne === undefined) return undefined;
    const limit = this.#findOnlyLimit(request);
    if (limit === undefined) return undefined;
    const { dimensions = noDimensions, cost = 1 } = request;
    const value = readDimension(dimensions, limit.source.by[0]!, this.#ipv6PrefixBits);
    const windows = this.#findOnlyWindows(limit, value, request);
    if (windows === undefined) return undefined;
    if (value === "" && request.limits === undefined) this.#onMissing?.(limit.policy, limit.source.by[0]!);
    const subject = limit.fallback ? subjectWithin(value, 1, request.domain, dimensions) : value;
    let outcome: Readonly<OneOutcome>;
    try {
      outcome = counters.takeOne(limit, windows, subject, cost, request, this.#asker) as Readonly<OneOutcome>;
    } catch (error) {
      return this.#asker.fail(request, error);
    }
    return this.#spokenByOne(limit, subject, cost, outcome);
  }

  /** The same where counters are elsewhere. */
  #checkSimpleElsewhere(request: CheckRequest): Promise<Decision> | undefined {
    const limit = this.#findOnlyLimit(request);
    if (limit === undefined) return undefined;
    const { dimensions = noDimensions, cost = 1 } = request;
    const value = readDimension(dimensions, limit.source.by[0]!, this.#ipv6PrefixBits);
    const windows = this.#findOnlyWindows(limit, value, request);
    if (windows === undefined) return undefined;
    if (value === "" && request.limits === undefined) this.#onMissing?.(limit.policy, limit.source.by[0]!);
    const subject = limit.fallback ? subjectWithin(value, 1, request.domain, dimensions) : value;
    const answer = this.#takeElsewhere(limit, windows, subject, cost, request);
    return answer instanceof Promise ? answer : promised(this.#asker.decide(limit, subject, cost, answer));
  }

  #takeElsewhere(
    limit: CompiledLimit,
    windows: readonly CompiledWindow[],
    subject: string,
    cost: number,
    request: CheckRequest,
  ): Readonly<OneOutcome> | Promise<Decision> {
    const asker = this.#asker;
    try {
      if (this.counters.takeOne !== undefined)
        return this.counters.takeOne(limit, windows, subject, cost, request, asker);
      const { deadlineMs } = request;
      const asked: ResolvedLimit = { limit, windows, subject, cost, group: 0 };
      const answer = this.counters.take([asked], deadlineMs === undefined ? undefined : { deadlineMs });
      const decide = ({ outcomes, atMs }: TakeAnswer): Decision =>
        asker.decide(limit, subject, cost, { ...outcomes[0]!, atMs });
      if (!(answer instanceof Promise)) return Promise.resolve(decide(answer));
      return answer.then(decide, (error: unknown) => asker.fail(request, error));
    } catch (error) {
      return Promise.resolve(asker.fail(request, error));
    }
  }

  /** Decides by policies as they are now, also what is answered when there are others. */
  #createAsker(snapshot: Snapshot): OneAsker<Decision> {
    return {
      decide: (limit, subject, cost, outcome) => this.#spokenByOne(limit, subject, cost, outcome),
      fail: (request, error) =>
        this.#withoutCounters(request, resolve(snapshot, this.subjects, request, this.#epochMs), error),
    };
  }

  /** Its windows for the subject, where they are of the commonest kind for everybody. */
  #findOnlyWindows(
    limit: CompiledLimit,
    subject: string,
    { dimensions = noDimensions, limits }: CheckRequest,
  ): readonly CompiledWindow[] | undefined {
    const running = this.subjects;
    const written = this.#snapshot.subjects;
    // What is known of subjects is said of policies, and not of limits that a request brings along.
    const isAnybodyKnown = limits === undefined && (running.size !== 0 || written.size !== 0);
    if (!isAnybodyKnown && limit.tiers.size === 0) return limit.windows;
    const known = isAnybodyKnown ? { running, written } : undefined;
    const tier = rawDimension(dimensions, "tier");
    const windows = findWindows(limit, [subject], tier, known, this.#epochMs);
    return windows.length === 1 && windows[0]!.kind === "arrival" ? windows : undefined;
  }

  /** The only limit there is to a request, where it is of the commonest kind and nothing is asked beside. */
  #findOnlyLimit(request: CheckRequest): CompiledLimit | undefined {
    if (request.policies !== undefined || request.id !== undefined || request.preview === true) return undefined;
    if (request.details === true || request.receipt === true || request.dimensions === undefined) return undefined;
    const { dimensions } = request;
    if (request.limits !== undefined) return onlyGivenLimit(request.limits);
    const snapshot = this.#snapshot;
    const match = snapshot.matchEndpoint(request.domain, rawEndpoint(dimensions));
    if (!match.settled) return undefined;
    return candidatesFor(snapshot, match, dimensions, this.#epochMs).onlyLimit;
  }

  check(request: CheckRequest): Promise<Decision> {
    try {
      if (this.counters.local) return promised(this.checkSync(request));
      validateRequest(request);
      const forced = this.#decideByForce(request);
      if (forced !== undefined) return Promise.resolve(forced);
      const simple = this.#checkSimpleElsewhere(request);
      if (simple !== undefined) return simple;
      const resolution = this.#resolveChecked(request, listThatWaits());
      const answer = this.#askElsewhere(request, resolution);
      if (!(answer instanceof Promise)) return Promise.resolve(this.#decided(request, resolution, answer));
      return answer.then(
        (one) => this.#decided(request, resolution, one),
        (error: unknown) => this.#withoutCounters(request, resolution, error),
      );
    } catch (error) {
      return Promise.reject(error);
    }
  }

  checkTogether(
    requests: readonly CheckRequest[],
    options: TogetherOptions = {},
  ): readonly Decision[] | Promise<readonly Decision[]> {
    validateRequest(options);
    const parts = requests.map((request, i) => partOf(request, options, i));
    const { forced } = this;
    if (forced !== undefined) {
      const decisions = parts.map((part) => forcedDecision(part, forced, this.#clock.epochMs()));
      return this.counters.local ? decisions : Promise.resolve(decisions);
    }
    const resolutions = parts.map((part) => this.#resolveChecked(part, []));
    const { limits, places } = joinResolutions(resolutions, (i) => parts[i]!.cost === 0);
    const decisions = (answer: TakeAnswer | undefined): readonly Decision[] =>
      parts.map((part, i) => this.#decided(part, resolutions[i]!, answer && answerAt(answer, places[i]!)));
    const withoutCounters = (error: unknown): readonly Decision[] =>
      parts.map((part, i) => this.#withoutCounters(part, resolutions[i]!, error));
    // Where one is denied by name nothing is taken, but the others still tell how they stand.
    const refused = resolutions.some(({ refusals }) => isRefused(refusals));
    try {
      const answer = this.#askTogether(limits, options, refused);
      return answer instanceof Promise ? answer.then(decisions, withoutCounters) : decisions(answer);
    } catch (error) {
      const answers = withoutCounters(error);
      return this.counters.local ? answers : Promise.resolve(answers);
    }
  }

  #askTogether(
    limits: readonly ResolvedLimit[],
    options: TogetherOptions,
    refused: boolean,
  ): TakeAnswer | Promise<TakeAnswer> | undefined {
    if (limits.length === 0) return undefined;
    if (options.preview === true || refused) return this.counters.peek(limits, options);
    return this.counters.take(limits, takeOptionsOf({ ...options, details: true }, limits, false));
  }

  peek(request: CheckRequest): Promise<Decision> {
    return this.check({ ...request, preview: true });
  }

  async give(receipt: Receipt): Promise<boolean> {
    if (isLocalReceipt(receipt)) return this.#local?.give(receipt) ?? false;
    return orUnavailable(() => this.counters.give(receipt));
  }

  async charge(request: CheckRequest): Promise<void> {
    validateRequest(request, "charged");
    // What passes uncounted is not charged later either: it would be owed when policies decide again.
    if ((request.cost ?? 1) > 0 && this.forced?.mode === "open") return;
    const resolution = resolve(this.#snapshot, this.subjects, request, this.#epochMs);
    const { limits } = resolution;
    if (limits.length === 0) return;
    try {
      await this.counters.charge(limits);
    } catch (error) {
      if (error instanceof SluiceError) throw error;
      const local = resolveLocal(resolution).limits;
      if (!local.some(({ group }) => group === 0)) throw unavailable(error);
      this.#localCounters().charge(local);
    }
  }

  async block(request: CheckRequest, forMs: number): Promise<void> {
    checkBlockMs(forMs);
    const resolution = this.#resolve(request);
    const { limits } = resolution;
    if (!limits.some(({ limit, group }) => limit.blockable && group === 0)) throw notBlockable(resolution);
    await orUnavailable(() => this.counters.block(limits, forMs));
    this.#previews.clear();
  }

  async reset(request: CheckRequest, { reach }: ResetOptions = {}): Promise<readonly ResetCounter[]> {
    const resolution = this.#resolve(request);
    await this.#reset(resolution.limits, resolveLocal(resolution).limits, reach);
    return resolution.limits.map(counterOf);
  }

  async resetSubject(wish: SubjectResetRequest): Promise<SubjectReset> {
    validateRequest({ dimensions: { ...wish.others, [wish.dimension]: wish.value } });
    const { countersOfSubject } = await import("./match/counters-of-subject.ts");
    const { policies, skipped } = countersOfSubject(this.#snapshot, this.subjects, wish, this.#epochMs);
    const limits = policies.flatMap((one) => one.limits);
    const local = policies.flatMap(({ policy, paths, asked, limits: own }) => {
      const candidates = [{ policy, paths, certain: true }];
      return resolveLocal({ limits: own, candidates, asked }).limits;
    });
    await this.#reset(limits, local, wish.reach);
    return { counters: distinct(limits.map(counterOf)), skipped };
  }

  async #reset(
    limits: readonly ResolvedLimit[],
    local: readonly ResolvedLimit[],
    reach: ResetOptions["reach"],
  ): Promise<void> {
    if (reach === "nothing") return;
    for (let first = 0; first < limits.length; first += resetTogether) {
      const some = limits.slice(first, first + resetTogether);
      if (reach === "process") this.counters.forget?.(some);
      else await orUnavailable(() => this.counters.reset(some));
    }
    this.#local?.reset(local);
    this.#previews.clear();
  }

  async lease(request: CheckRequest, ask: LeaseAsk): Promise<LeaseGrant> {
    validateRequest(request);
    checkLeaseAsk(ask);
    const resolution = resolve(this.#snapshot, this.subjects, request, this.#epochMs);
    const { limits } = resolution;
    const { counters } = this;
    const why =
      ask.want > 0 && this.forced !== undefined ? "the kill switch is on" : whyNotLeased(resolution, ask.want);
    if (why !== undefined || !grantsLeases(counters)) throw notLeasable(why ?? "these counters grant none");
    const answer = await orUnavailable(() => counters.lease(limits, ask));
    if (answer.outcomes.length === 0) throw notLeasable("their counters live in several places");
    const { granted, epoch, unspent, forgotten, atMs, outcomes } = answer;
    const taken: TakeAnswer = { taken: false, atMs, outcomes, receipt: undefined, replayed: false };
    return {
      granted,
      epoch,
      unspent,
      forgotten,
      atMs,
      decision: this.#decision({ ...request, preview: true }, resolution, taken),
    };
  }

  async explain(request: CheckRequest): Promise<Explanation> {
    const asked: CheckRequest = { ...request, preview: true, details: true, id: undefined };
    const resolution = this.#resolve(asked);
    const { answer, readings } = await orUnavailable(async () => ({
      answer: await this.#ask(asked, resolution),
      readings: await Promise.all(resolution.limits.map((limit) => this.counters.read(limit))),
    }));
    const decision = this.#decideByForce(asked) ?? this.#decision(asked, resolution, answer);
    // Loaded when it is first asked for: most apps never do, and a bundle starts without it.
    const { explain } = await import("./explain.ts");
    return explain(this.#snapshot, request, resolution, readings, decision, this.counters, this.#epochMs);
  }

  async close(): Promise<void> {
    await this.counters.close();
  }

  /** What a check is decided by; what it lacks is heard of, unless it is a preview or brings its limits along. */
  #resolveChecked(request: CheckRequest, limits: ResolvedLimit[]): Resolution {
    const onMissing = request.preview === true || request.limits !== undefined ? undefined : this.#onMissing;
    return resolve(this.#snapshot, this.subjects, request, this.#epochMs, limits, onMissing);
  }

  #resolve(request: CheckRequest): Resolution {
    validateRequest(request);
    return resolve(this.#snapshot, this.subjects, request, this.#epochMs);
  }

  /** Undefined where no counter needs to be asked. */
  #ask(request: CheckRequest, resolution: Resolution): TakeAnswer | Promise<TakeAnswer> | undefined {
    const { limits, refusals } = resolution;
    if (limits.length === 0 || isRefused(refusals)) return undefined;
    if (request.preview === true) return this.#peek(limits, request);
    const onTrial = this.#onTrial !== undefined && this.#snapshot.hasTrials;
    return this.counters.take(limits, takeOptionsOf(request, limits, onTrial));
  }

  /** The same from counters that are not in this process. A store that throws has failed like one that rejects. */
  #askElsewhere(
    request: CheckRequest,
    resolution: Resolution,
  ): TakeAnswer | Promise<TakeAnswer | undefined> | undefined {
    try {
      return this.#ask(request, resolution);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #peek(limits: readonly ResolvedLimit[], { deadlineMs, record }: CheckRequest): TakeAnswer | Promise<TakeAnswer> {
    if (this.#previewCacheMs === 0 || record === true) return this.counters.peek(limits, { deadlineMs, record });
    const key = previewKeyOf(limits);
    const nowMs = this.#clock.nowMs();
    const known = this.#previews.find(key, nowMs);
    // A preview from after now was made before the clock stepped back.
    if (known !== undefined && known.askedMs <= nowMs) {
      this.#onPreviewHit?.();
      return known.answer;
    }
    const snapshot = this.#snapshot;
    const remember = (answer: TakeAnswer): TakeAnswer => {
      const preview = { answer, askedMs: nowMs };
      if (snapshot === this.#snapshot) this.#previews.set(key, preview, nowMs + this.#previewCacheMs, nowMs);
      return answer;
    };
    const answer = this.counters.peek(limits, { deadlineMs });
    return answer instanceof Promise ? answer.then(remember) : remember(answer);
  }

  /**
   * The counters did not answer: what the policies say for that case. One that fails closed denies; else those that fail
   * local are decided by this node's own counters, all or nothing; the rest passes. What the caller got wrong stays an
   * error.
   */
  #withoutCounters(request: CheckRequest, resolution: Resolution, error: unknown): Decision {
    const degraded = outageReasonOf(error);
    const local = resolveLocal(resolution);
    let shadow = shadowRefusals(resolution.refusals);
    if (local.limits.length + local.refusals.length > 0) {
      const { limits } = local;
      const refusals = [...resolution.refusals, ...local.refusals];
      const asking = limits.length > 0 && !isRefused(refusals);
      const answer = asking ? this.#askLocally(request, limits) : undefined;
      const decision = this.#decision(request, { ...resolution, limits, refusals }, answer);
      if (!decision.allowed) return { ...decision, degraded };
      if (decision.reason !== "unlimited") return { ...decision, reason: "degraded", degraded };
      // Only policies in shadow mode have local limits for it.
      shadow = decision.shadow;
    }
    return degradedDecision(request, resolution.limits, degraded, shadow);
  }

  #askLocally(request: CheckRequest, limits: readonly ResolvedLimit[]): TakeAnswer {
    const counters = this.#localCounters();
    return request.preview === true
      ? counters.peek(limits, request)
      : counters.take(limits, takeOptionsOf(request, limits, false));
  }

  #localCounters(): LocalCounters {
    this.#local ??= new LocalCounters(this.#clock);
    return this.#local;
  }

  /** The decision, of which trials hear. */
  #decided(request: CheckRequest, resolution: Resolution, answer: TakeAnswer | undefined): Decision {
    if (
      this.#onTrial !== undefined &&
      this.#snapshot.hasTrials &&
      request.preview !== true &&
      answer?.replayed !== true
    )
      tellTrials(this.#onTrial, this.#snapshot, request, resolution, answer);
    return this.#decision(request, resolution, answer);
  }

  #decision(request: CheckRequest, resolution: Resolution, answer: TakeAnswer | undefined): Decision {
    const { limits, refusals } = resolution;
    const preview = request.preview === true;
    const refusal = refusals.length === 0 ? undefined : refusals.find((one) => one.policy.enforced);
    if (refusal !== undefined) return refusedDecision(request, refusal, shadowRefusals(refusals));
    if (answer === undefined) return unlimitedDecision(request, appliedIn(resolution), shadowRefusals(refusals));
    const { outcomes } = answer;
    const shadow = shadowOf(limits, refusals, answer);
    const speaking = findSpeaking(limits, outcomes);
    if (speaking === undefined) {
      const unlimited = unlimitedDecision(request, appliedIn(resolution), shadow);
      // What policies in shadow mode would say is told to who asks for every limit.
      if (request.details !== true) return unlimited;
      return { ...unlimited, limits: limitDecisions(request, limits, answer) };
    }
    const { limit, subject, cost } = speaking.limit;
    const { outcome } = speaking;
    const remaining = leastRemaining(limits, outcomes);
    const used = usedOf(outcome.window, outcome.windowRemaining);
    const asked = { preview, replayed: answer.replayed };
    const decision = this.#spokenBy(limit, subject, cost, outcome, remaining, used, answer.atMs, shadow, asked);
    if (request.details !== true && answer.receipt === undefined && answer.records === undefined) return decision;
    const record = answer.records?.[speaking.index];
    return {
      ...decision,
      denyCount: record === undefined ? decision.denyCount : deniedWith(record, decision),
      limits: request.details === true ? limitDecisions(request, limits, answer) : undefined,
      receipt: answer.receipt,
    };
  }

  /** The decision where one window is all there is. */
  #spokenByOne(limit: CompiledLimit, subject: string, cost: number, outcome: Readonly<OneOutcome>): Decision {
    const { remaining } = outcome;
    const used = usedOf(outcome.window, remaining);
    return this.#spokenBy(limit, subject, cost, outcome, remaining, used, outcome.atMs, noShadow, nothingAsked);
  }

  /** The decision, in the words of the limit that speaks. */
  #spokenBy(
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
function deniedWith({ denied }: LimitRecord, { allowed, preview, cost }: Decision): number {
  if (allowed) return 0;
  return preview ? denied + cost : denied;
}

/**
 * A promise of what is decided already. A promise looks for a `then` in whatever it is made of; where a field of it was just read, V8
 * knows its shape and that there is none, which saves an awaited check a tenth. See decision 0007.
 */
function promised(decision: Decision): Promise<Decision> {
  void decision.allowed;
  return Promise.resolve(decision);
}

function takeOptionsOf(
  request: CheckRequest,
  limits: readonly ResolvedLimit[],
  onTrial: boolean,
): TakeOptions | undefined {
  const { id, idTtlMs, receipt, deadlineMs, record } = request;
  const details = onTrial || request.details === true;
  if (id === undefined && receipt !== true) {
    return deadlineMs === undefined && !details ? undefined : { deadlineMs, details, record };
  }
  return {
    id,
    idTtlMs,
    fingerprint: id === undefined ? undefined : fingerprintOf(limits),
    receipt,
    deadlineMs,
    details,
    record,
  };
}

/** One request of several, as it is decided: what is asked of all of them holds for it. */
function partOf(request: CheckRequest, { preview }: TogetherOptions, index: number): CheckRequest {
  for (const field of ["id", "idTtlMs", "preview", "deadlineMs", "receipt"] as const) {
    if (request[field] === undefined) continue;
    const message = "is asked of all requests together, not of one of them";
    throw new SluiceError("invalid_request", `requests[${index}].${field} ${message}`, [
      { path: ["requests", index, field], message },
    ]);
  }
  const part = preview === true ? { ...request, preview } : request;
  validateRequest(part);
  return part;
}

/** What an answer to several requests is to one of them. */
function answerAt(answer: TakeAnswer, places: readonly number[]): TakeAnswer {
  const { outcomes, records } = answer;
  return {
    ...answer,
    outcomes: places.map((place) => outcomes[place]!),
    records: records && places.map((place) => records[place]),
  };
}

function checkedPrefix(bits: number): number {
  if (Number.isInteger(bits) && bits >= 1 && bits <= 128) return bits;
  const message = `must be a whole number from 1 to 128, not ${bits}`;
  throw new SluiceError("invalid_request", `ipv6PrefixBits ${message}`, [{ path: ["ipv6PrefixBits"], message }]);
}

function checkBlockMs(forMs: number): void {
  if (Number.isInteger(forMs) && forMs >= 1 && forMs <= maxBlockMs) return;
  const message = `must be a whole number of milliseconds from 1 to ${maxBlockMs}, not ${String(forMs)}`;
  throw new SluiceError("invalid_request", `forMs ${message}`, [{ path: ["forMs"], message }]);
}

function counterOf({ limit, subject }: ResolvedLimit): ResetCounter {
  return { policy: limit.policy.id, scope: limit.scope, subject };
}

/** Two versions of a policy share their counters. */
function distinct(counters: readonly ResetCounter[]): readonly ResetCounter[] {
  return [...new Map(counters.map((one) => [JSON.stringify(one), one])).values()];
}

/** Nothing would look for the block: that is told rather than done. */
function notBlockable({ limits, candidates }: Resolution): SluiceError {
  const ids = [...new Set(candidates.map(({ policy }) => policy.policy.id))].join(", ");
  const shadowed = limits.some(({ limit }) => limit.blockable) ? ", of a policy that is enforced," : "";
  const message =
    ids === ""
      ? "cannot be blocked: no policy applies to it"
      : `cannot be blocked by policy ${ids}: a limit that applies to it${shadowed} needs blockable: true, or block_for`;
  return new SluiceError("invalid_request", `the request ${message}`, [{ path: [], message }]);
}

function policySetFrom(policies: PolicySet | Readonly<Record<string, unknown>>): PolicySet {
  return policies.kind === "policy_set" ? (policies as PolicySet) : parsePolicies(policies);
}

/** What a request id is bound to: the policies asked, the counters they led to, and the cost; in whatever order. */
function fingerprintOf(limits: readonly ResolvedLimit[]): string {
  const parts = limits.map(({ limit, subject, cost }) => `${limit.identity}\n${cost}\n${subject.length}\n${subject}`);
  return parts.sort().join("\n");
}

/** The same with the windows, which differ by tier. */
function previewKeyOf(limits: readonly ResolvedLimit[]): string {
  const windows = limits.map((limit) =>
    limit.windows.map(({ identity, source }) => [identity, source.limit, source.burst]),
  );
  return `${fingerprintOf(limits)}\n${JSON.stringify(windows)}`;
}

function shadowOf(
  limits: readonly ResolvedLimit[],
  refusals: readonly Refusal[],
  answer: TakeAnswer,
): readonly ShadowDenial[] {
  let shadowed = refusals.length > 0;
  for (const { group } of limits) if (group !== 0) shadowed = true;
  return shadowed ? [...shadowRefusals(refusals), ...shadowDenials(limits, answer.outcomes)] : noShadow;
}

function shadowRefusals(refusals: readonly Refusal[]): readonly ShadowDenial[] {
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
