import { checkBlockable, checkBlockMs } from "./check/block-request.ts";
import { checkTogether, parsePart } from "./check/check-together.ts";
import { DecisionMaker } from "./check/decision-maker.ts";
import { ForcedChecks } from "./check/forced-checks.ts";
import { HoldChecks } from "./check/hold-checks.ts";
import { OutageDecisions } from "./check/outage-decisions.ts";
import { prepareCounters } from "./check/prepare-counters.ts";
import { PreviewCache, type PreviewCacheOptions } from "./check/preview-cache.ts";
import { distinctCounters, resetCounterFrom, resetCounters } from "./check/reset-counters.ts";
import { SingleChecks, type SingleChecksOptions } from "./check/single-checks.ts";
import { createTakeOptions } from "./check/take-options.ts";
import { type Clock, systemClock } from "./clock.ts";
import { checkLeaseAsk } from "./counters/check-lease-ask.ts";
import type {
  CounterStore,
  HoldAnswer,
  HoldId,
  LeaseAsk,
  Receipt,
  ResolvedLimit,
  TakeAnswer,
} from "./counters/counter-store.ts";
import { MemoryCounters } from "./counters/memory-counters.ts";
import { findSeveralTakes } from "./counters/several-takes.ts";
import { findSingleTakes, singleTakesFrom } from "./counters/single-takes.ts";
import { orUnavailable, unavailable } from "./counters/store-unavailable.ts";
import type { Decision } from "./decision/decision.ts";
import { forcedDecision } from "./decision/uncounted-decision.ts";
import { SluiceError } from "./errors.ts";
import { isLocalReceipt } from "./failing/local-counters.ts";
import { resolveLocal } from "./failing/resolve-local.ts";
import type { CommitOptions, Hold, ReserveRequest } from "./hold.ts";
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
import { checkLimiterOptions, checkPrefixBits, maxPreviewCacheMs } from "./limiter-options.ts";
import type { ResetOptions, SubjectResetRequest } from "./match/find-subject-counters.ts";
import { reportTrials } from "./match/report-trials.ts";
import { isRefused, type Resolution, resolve } from "./match/resolve.ts";
import { Snapshot } from "./match/snapshot.ts";
import { MemorySubjectDirectory, type SubjectDirectory } from "./match/subject-directory.ts";
import { policySetFrom } from "./policy/parse-policies.ts";
import type { BlockedSubject, PolicySet } from "./policy/policy.ts";
import type { CheckRequest } from "./request/check-request.ts";
import { validateRequest } from "./request/validate-request.ts";
import { defaultIpv6PrefixBits } from "./subject/ip-address.ts";
import { untrackedList } from "./untracked-list.ts";

/** Builds a limiter. Nothing is opened and no timer runs until the first check. */
export function createLimiter(options: LimiterOptions = {}): Limiter {
  checkLimiterOptions(options);
  return new SluiceLimiter(options);
}

/**
 * A check passes through the kill switch (`ForcedChecks`), then the fast path (`SingleChecks`), or else `resolve`, the
 * counters, and `DecisionMaker`. If the counters fail, `OutageDecisions` answers. All of it is in `check/`.
 */
class SluiceLimiter implements Limiter {
  readonly counters: CounterStore;
  readonly subjects: SubjectDirectory;
  readonly #clock: Clock;
  readonly #epochMs: () => number;
  readonly #forced: ForcedChecks;
  readonly #decisions: DecisionMaker;
  readonly #watch: LimiterOptions["watch"];
  readonly #outages: OutageDecisions;
  readonly #holds: HoldChecks;
  readonly #onTrial: LimiterOptions["onTrial"];
  readonly #onMissing: LimiterOptions["onMissing"];
  readonly #ipv6PrefixBits: number;
  /** Undefined if the counters have no fast path. */
  readonly #singlesOptions: SingleChecksOptions | undefined;
  readonly #previewsOptions: PreviewCacheOptions;
  #snapshot: Snapshot;
  #singles: SingleChecks | undefined;
  #previews: PreviewCache;

  constructor(options: LimiterOptions) {
    const clock = options.clock ?? systemClock;
    const counters = options.counters ?? new MemoryCounters({ clock });
    const { onMissing, onPreviewHit, onTrial } = options;
    this.#clock = clock;
    this.#watch = options.watch;
    this.#decisions = new DecisionMaker(options.watch);
    this.#epochMs = () => clock.epochMs();
    this.#forced = new ForcedChecks(clock);
    this.#outages = new OutageDecisions(clock, this.#decisions);
    this.#onTrial = onTrial;
    this.#onMissing = onMissing;
    this.#ipv6PrefixBits = checkPrefixBits(options.ipv6PrefixBits ?? defaultIpv6PrefixBits);
    this.counters = counters;
    this.#holds = this.#createHolds();
    this.subjects = options.subjects ?? new MemorySubjectDirectory([], this.#ipv6PrefixBits);
    const takes = counters.local ? findSingleTakes(counters) : singleTakesFrom(counters);
    this.#singlesOptions = takes && {
      takes,
      severalTakes: counters.local ? findSeveralTakes(counters) : undefined,
      subjects: this.subjects,
      epochMs: this.#epochMs,
      decisions: this.#decisions,
      outages: this.#outages,
      onMissing,
    };
    // Asking local counters costs less than remembering their answer.
    const maxAgeMs = options.previewCacheMs ?? (counters.local ? 0 : maxPreviewCacheMs);
    this.#previewsOptions = { counters, clock, maxAgeMs, onHit: onPreviewHit };
    this.#snapshot = this.#createSnapshot(options.policies ?? { policies: [] }, 1);
    this.#singles = this.#createSingles();
    this.#previews = new PreviewCache(this.#previewsOptions);
  }

  get snapshot(): SnapshotInfo {
    return this.#snapshot;
  }

  findBlocks(dimensions: Readonly<Record<string, string>>): readonly BlockedSubject[] {
    return this.#snapshot.exceptions?.blocks(dimensions, this.#epochMs) ?? [];
  }

  usePolicies(policies: PolicySet | Readonly<Record<string, unknown>>): SnapshotInfo {
    this.#snapshot = this.#createSnapshot(policies, this.#snapshot.generation + 1);
    this.#singles = this.#createSingles();
    this.#previews = new PreviewCache(this.#previewsOptions);
    return this.#snapshot;
  }

  force(forced: ForcedDecisions | undefined): void {
    this.#forced.use(forced);
  }

  get forced(): ForcedDecisions | undefined {
    return this.#forced.current;
  }

  checkSync(request: CheckRequest): Decision {
    if (!this.counters.local) {
      throw new SluiceError(
        "not_local",
        "checkSync needs counters in this process; use check, which waits for remote ones",
      );
    }
    validateRequest(request);
    // Counters in this process answer at once.
    const quick = this.#forced.decide(request) ?? (this.#singles?.check(request) as Decision | undefined);
    if (quick !== undefined) return quick;
    const resolution = this.#resolveChecked(request, []);
    let answer: TakeAnswer | undefined;
    try {
      answer = this.#ask(request, resolution) as TakeAnswer | undefined;
    } catch (error) {
      return this.#outages.decide(request, resolution, error);
    }
    return this.#decide(request, resolution, answer);
  }

  check(request: CheckRequest): Promise<Decision> {
    try {
      if (this.counters.local) return promised(this.checkSync(request));
      validateRequest(request);
      const quick = this.#forced.decide(request) ?? this.#singles?.check(request);
      if (quick !== undefined) return quick instanceof Promise ? quick : promised(quick);
      const resolution = this.#resolveChecked(request, untrackedList());
      const answer = this.#askRemote(request, resolution);
      if (!(answer instanceof Promise)) return Promise.resolve(this.#decide(request, resolution, answer));
      return answer.then(
        (one) => this.#decide(request, resolution, one),
        (error: unknown) => this.#outages.decide(request, resolution, error),
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
    const parts = requests.map((request, i) => parsePart(request, options, i));
    const { forced } = this;
    if (forced !== undefined) {
      const decisions = parts.map((part) => forcedDecision(part, forced, this.#clock.epochMs()));
      return this.counters.local ? decisions : Promise.resolve(decisions);
    }
    return checkTogether(parts, options, {
      counters: this.counters,
      resolve: (part) => this.#resolveChecked(part, []),
      decide: (part, resolution, answer) => this.#decide(part, resolution, answer),
      decideOutage: (part, resolution, error) => this.#outages.decide(part, resolution, error),
    });
  }

  peek(request: CheckRequest): Promise<Decision> {
    return this.check({ ...request, preview: true });
  }

  async give(receipt: Receipt): Promise<boolean> {
    this.#watch?.onChanged?.("give_back");
    if (isLocalReceipt(receipt)) return this.#outages.give(receipt);
    return orUnavailable(() => this.counters.give(receipt));
  }

  async charge(request: CheckRequest): Promise<void> {
    validateRequest(request, "charged");
    // A request that passed uncounted is not charged later either: it would be owed when policies decide again.
    if ((request.cost ?? 1) > 0 && this.forced?.mode === "open") return;
    const resolution = resolve(this.#snapshot, this.subjects, request, this.#epochMs);
    const { limits } = resolution;
    if (limits.length === 0) return;
    this.#watch?.onChanged?.("charge");
    try {
      await this.counters.charge(limits);
    } catch (error) {
      if (error instanceof SluiceError) throw error;
      const local = resolveLocal(resolution).limits;
      if (!local.some(({ group }) => group === 0)) throw unavailable(error);
      this.#outages.charge(local);
    }
  }

  reserve(request: ReserveRequest): Promise<Hold> {
    return this.#holds.reserve(request);
  }

  commit(id: HoldId, actual: number, options?: CommitOptions): Promise<HoldAnswer> {
    return this.#holds.commit(id, actual, options);
  }

  extend(id: HoldId, ttlMs: number): Promise<HoldAnswer> {
    return this.#holds.extend(id, ttlMs);
  }

  cancel(id: HoldId): Promise<HoldAnswer> {
    return this.#holds.cancel(id);
  }

  async block(request: CheckRequest, forMs: number): Promise<void> {
    checkBlockMs(forMs);
    const resolution = this.#resolve(request);
    checkBlockable(resolution);
    this.#watch?.onChanged?.("block");
    await orUnavailable(() => this.counters.block(resolution.limits, forMs));
    this.#decisions.block(resolution.limits, forMs);
    this.#previews.clear();
  }

  async reset(request: CheckRequest, { reach }: ResetOptions = {}): Promise<readonly ResetCounter[]> {
    const resolution = this.#resolve(request);
    await this.#reset(resolution.limits, resolveLocal(resolution).limits, reach);
    return resolution.limits.map(resetCounterFrom);
  }

  async resetSubject(request: SubjectResetRequest): Promise<SubjectReset> {
    validateRequest({ dimensions: { ...request.others, [request.dimension]: request.value } });
    const { findSubjectCounters } = await import("./match/find-subject-counters.ts");
    const { policies, skipped } = findSubjectCounters(this.#snapshot, this.subjects, request, this.#epochMs);
    const limits = policies.flatMap((one) => one.limits);
    const local = policies.flatMap(({ policy, paths, asked, limits: own }) => {
      const candidates = [{ policy, paths, certain: true }];
      return resolveLocal({ limits: own, candidates, asked }).limits;
    });
    await this.#reset(limits, local, request.reach);
    return { counters: distinctCounters(limits.map(resetCounterFrom)), skipped };
  }

  async #reset(
    limits: readonly ResolvedLimit[],
    local: readonly ResolvedLimit[],
    reach: ResetOptions["reach"],
  ): Promise<void> {
    if (reach === "nothing") return;
    this.#watch?.onChanged?.("reset");
    await resetCounters(this.counters, limits, reach);
    this.#outages.reset(local);
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
    if (why !== undefined || !grantsLeases(counters)) throw notLeasable(why ?? "these counters grant no leases");
    this.#watch?.onChanged?.("lease");
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
      decision: this.#decisions.decide({ ...request, preview: true }, resolution, taken),
    };
  }

  async explain(request: CheckRequest): Promise<Explanation> {
    const asked: CheckRequest = { ...request, preview: true, details: true, id: undefined };
    const resolution = this.#resolve(asked);
    // Loaded on first use: most apps never need it, and a bundle starts without it.
    const { explain, readStanding } = await import("./explain.ts");
    const standing = await orUnavailable(() => readStanding(this.counters, resolution.limits, request.deadlineMs));
    const answer = resolution.limits.length === 0 || isRefused(resolution.refusals) ? undefined : standing.answer;
    const decision = this.#forced.decide(asked) ?? this.#decisions.decide(asked, resolution, answer);
    return explain(this.#snapshot, request, resolution, standing, decision, this.counters, this.#epochMs);
  }

  async close(): Promise<void> {
    await this.counters.close();
  }

  #createSnapshot(policies: PolicySet | Readonly<Record<string, unknown>>, generation: number): Snapshot {
    const snapshot = new Snapshot(policySetFrom(policies), generation, this.#ipv6PrefixBits);
    prepareCounters(this.counters, snapshot.policySet);
    return snapshot;
  }

  #createHolds(): HoldChecks {
    return new HoldChecks({
      counters: this.counters,
      resolve: (request) => {
        validateRequest(request);
        return this.#resolveChecked(request, []);
      },
      decide: (request, resolution, answer) => this.#decide(request, resolution, answer),
      decideOutage: (request, resolution, error) => this.#outages.decide(request, resolution, error),
      decideForced: (request) => this.#forced.decide(request),
      onChange: () => this.#watch?.onChanged?.("hold"),
    });
  }

  #createSingles(): SingleChecks | undefined {
    return this.#singlesOptions && new SingleChecks(this.#snapshot, this.#singlesOptions);
  }

  /** Resolves a check. `onMissing` is called for what it lacks, unless it is a preview or brings its limits along. */
  #resolveChecked(request: CheckRequest, limits: ResolvedLimit[]): Resolution {
    const onMissing = request.preview === true || request.limits !== undefined ? undefined : this.#onMissing;
    return resolve(this.#snapshot, this.subjects, request, this.#epochMs, limits, onMissing);
  }

  #resolve(request: CheckRequest): Resolution {
    validateRequest(request);
    return resolve(this.#snapshot, this.subjects, request, this.#epochMs);
  }

  /** Undefined if no counter needs to be asked. */
  #ask(request: CheckRequest, resolution: Resolution): TakeAnswer | Promise<TakeAnswer> | undefined {
    const { limits, refusals } = resolution;
    if (limits.length === 0 || isRefused(refusals)) return undefined;
    if (request.preview === true) return this.#previews.peek(limits, request);
    const onTrial = this.#onTrial !== undefined && this.#snapshot.hasTrials;
    return this.counters.take(limits, createTakeOptions(request, limits, onTrial));
  }

  /** The same for counters that are not in this process. A store that throws has failed like one that rejects. */
  #askRemote(request: CheckRequest, resolution: Resolution): TakeAnswer | Promise<TakeAnswer | undefined> | undefined {
    try {
      return this.#ask(request, resolution);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Decides, and reports to trials. */
  #decide(request: CheckRequest, resolution: Resolution, answer: TakeAnswer | undefined): Decision {
    const onTrial = this.#onTrial;
    if (onTrial !== undefined && this.#snapshot.hasTrials && request.preview !== true && answer?.replayed !== true)
      reportTrials(onTrial, this.#snapshot, request, resolution, answer);
    return this.#decisions.decide(request, resolution, answer);
  }
}

/**
 * A promise of a decision made already. A promise looks for a `then` in its value; if a field of that was just read, V8
 * knows its shape and that there is none, which saves an awaited check a tenth. See decision 0007.
 */
function promised(decision: Decision): Promise<Decision> {
  void decision.allowed;
  return Promise.resolve(decision);
}
