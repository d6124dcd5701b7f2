import type { Clock } from "./clock.ts";
import type {
  CounterStore,
  HoldAnswer,
  HoldId,
  LeaseAnswer,
  LeaseAsk,
  Receipt,
  WindowReading,
} from "./counters/counter-store.ts";
import type { Decision } from "./decision/decision.ts";
import type { LimiterWatch } from "./decision/limiter-watch.ts";
import type { CommitOptions, Hold, ReserveRequest } from "./hold.ts";
import type { ResetOptions, SkippedLimit, SubjectResetRequest } from "./match/find-subject-counters.ts";
import type { OnTrial } from "./match/report-trials.ts";
import type { SubjectDirectory } from "./match/subject-directory.ts";
import type { BlockedSubject, Policy, PolicySet } from "./policy/policy.ts";
import type { CheckRequest } from "./request/check-request.ts";

export interface LimiterOptions {
  /** Policies as parsed by `parsePolicies`, or in the format of a policy file, which is parsed here. */
  readonly policies?: PolicySet | Readonly<Record<string, unknown>>;
  /** Where counters live. Absent: in this process's memory. */
  readonly counters?: CounterStore;
  readonly subjects?: SubjectDirectory;
  readonly clock?: Clock;
  /** How many bits of an IPv6 address tell subjects apart, 1 … 128. Absent: 64, the network of one customer. */
  readonly ipv6PrefixBits?: number;
  /** How long a preview may be answered from memory. 0 … 50; absent: 50, or 0 if counters are local. */
  readonly previewCacheMs?: number;
  /**
   * Called with each decision by a policy that has two versions in force (`Policy.trial`): the version, the step at
   * which the subject joins the trial, and whether that version denies. A version that does not match counts as passing
   * what its other one matches, and is reported as well. Previews, replays and decisions without counters are left out.
   */
  readonly onTrial?: OnTrial | undefined;
  /**
   * Called for every dimension that a limit counts by and a checked request lacks, with its policy. Previews and limits that a request
   * brings along are left out. Must not throw.
   */
  readonly onMissing?: ((policy: Policy, dimension: string) => void) | undefined;
  /** Called for every preview answered from memory. */
  readonly onPreviewHit?: (() => void) | undefined;
  /** Follows decisions and their instants, to record them. Absent: they are not followed. */
  readonly watch?: LimiterWatch | undefined;
}

/** Options for several requests checked together. */
export type TogetherOptions = Pick<CheckRequest, "id" | "idTtlMs" | "preview" | "deadlineMs">;

/** A counter that was reset. */
export interface ResetCounter {
  readonly policy: string;
  /** The limit's name, else its dimensions. */
  readonly scope: string;
  readonly subject: string;
}

export interface SubjectReset {
  readonly counters: readonly ResetCounter[];
  /** Limits that could not be resolved, because values are missing. */
  readonly skipped: readonly SkippedLimit[];
}

/** How every check is decided, in an emergency. */
export interface ForcedDecisions {
  /** Allows everything, or denies everything as if counters were unavailable and every policy failed closed. */
  readonly mode: "open" | "closed";
  /** Epoch milliseconds. */
  readonly untilMs: number;
}

/** Policies at one generation: replaced as a whole, never edited. */
export interface SnapshotInfo {
  readonly generation: number;
  readonly policySet: PolicySet;
}

/**
 * Decides. `check` and its siblings throw `SluiceError` only for the caller's mistakes; a denial is a value. While the
 * counters are unavailable, `check` answers as the policies say; `give`, `charge`, `block`, `reset` and `explain`
 * reject with `StoreUnavailable`.
 */
export interface Limiter {
  check(request: CheckRequest): Promise<Decision>;
  /** `check` without a turn of the event loop; throws `not_local` if counters are not in this process. */
  checkSync(request: CheckRequest): Decision;
  /**
   * Decides several requests together: all of them are charged, or none is. Each gets an answer; if one is denied, the
   * others report how they stood. Synchronous if counters are in this process. While counters are unavailable, each is
   * answered as its own policies say. Ids, previews and deadlines are those of `options`, not of single requests; there
   * are no receipts.
   */
  checkTogether(
    requests: readonly CheckRequest[],
    options?: TogetherOptions,
  ): readonly Decision[] | Promise<readonly Decision[]>;
  /** `check` as a preview: the same answer, without taking anything. */
  peek(request: CheckRequest): Promise<Decision>;
  /** Gives a take back by its receipt. False if that is void: given back already, too late, or reset since. */
  give(receipt: Receipt): Promise<boolean>;
  /**
   * Takes unconditionally, after the fact: what a response turned out to cost. A cost below 0 is a credit: it is given
   * back without a receipt, until the counter is empty, and a counter that does not exist is left alone. While the
   * counters are unavailable, this node's own are charged if a policy fails `local` and none fails closed.
   */
  charge(request: CheckRequest): Promise<void>;
  /**
   * Charges an amount now, for work whose cost is known later: `settle` the hold with what it turned out to be. See
   * docs/holds.md. Throws `not_holdable` if the counters keep no holds. While they are unavailable, decides as a check
   * does, and holds nothing.
   */
  reserve(request: ReserveRequest): Promise<Hold>;
  /**
   * Reports what the work under a hold has cost so far, in all; unless `last` is false, that settles it. Repeated, it
   * gives the first answer for ten minutes.
   */
  commit(id: HoldId, actual: number, options?: CommitOptions): Promise<HoldAnswer>;
  /** Makes a live hold last for at least so long from now: 1 ms … 24 h, whole. */
  extend(id: HoldId, ttlMs: number): Promise<HoldAnswer>;
  /** Settles a hold by what was reported so far, which is nothing if nothing was. */
  cancel(id: HoldId): Promise<HoldAnswer>;
  /**
   * Denies the subjects of this request with reason `blocked` for this long: 1 ms … 30 days, whole. Each of its limits
   * with `blockable` or `block_for` does; `invalid_request` if there is none that is enforced. A block that lasts
   * longer already stays as it is.
   */
  block(request: CheckRequest, forMs: number): Promise<void>;
  /** Forgets the counters of this request, and lifts their blocks. Empty if no limit counts such a request. */
  reset(request: CheckRequest, options?: ResetOptions): Promise<readonly ResetCounter[]>;
  /** Forgets every counter of a subject, whichever requests lead to it, and lifts its blocks. */
  resetSubject(request: SubjectResetRequest): Promise<SubjectReset>;
  /**
   * Takes units from the counters of such requests, to be spent later by the caller, by the rules of
   * docs/lease-protocol.md. Throws `not_leasable`, having done nothing, if anything but leasable counters decides such
   * requests. Settling alone (`want: 0`) works as long as there are counters.
   */
  lease(request: CheckRequest, ask: LeaseAsk): Promise<LeaseGrant>;
  /** Decides as a preview, and explains how the answer comes about. */
  explain(request: CheckRequest): Promise<Explanation>;
  /** Replaces all policies at once. Requests already being decided finish under the old ones. */
  usePolicies(policies: PolicySet | Readonly<Record<string, unknown>>): SnapshotInfo;
  /**
   * Decides every check alike until then, without policies or counters; undefined lets policies decide again. It
   * expires automatically, whatever happens to the clock: never later than it would from now. While it is open, charges
   * are not counted either.
   */
  force(forced: ForcedDecisions | undefined): void;
  /** Undefined as soon as it has expired. */
  readonly forced: ForcedDecisions | undefined;
  readonly snapshot: SnapshotInfo;
  /** The operator's blocks that a request with these dimensions meets now, the one that ends last first. */
  findBlocks(dimensions: Readonly<Record<string, string>>): readonly BlockedSubject[];
  readonly counters: CounterStore;
  readonly subjects: SubjectDirectory;
  close(): Promise<void>;
}

export interface LeaseGrant extends Pick<LeaseAnswer, "granted" | "epoch" | "unspent" | "forgotten" | "atMs"> {
  /** How such a request stands after the grant, as a preview. Its `cost` is what one such request takes. */
  readonly decision: Decision;
}

/** Why the answer is what it is: the policies considered, the counters they led to, and how each stands. */
export interface Explanation {
  readonly request: CheckRequest;
  readonly domain: string;
  /** The endpoint as it is matched, with path tricks undone. */
  readonly endpoint: string | undefined;
  readonly policies: readonly PolicyExplanation[];
  readonly limits: readonly LimitExplanation[];
  /** The preview of this request. */
  readonly decision: Decision;
}

export interface PolicyExplanation {
  readonly policy: string;
  readonly applies: boolean;
  /** "matches endpoint /v1/orders/**, method GET", "replaced by beta.read", "rollout 10 % by user: not this one". */
  readonly why: string;
}

export interface LimitExplanation {
  readonly policy: string;
  readonly scope: string;
  readonly subject: string;
  /** The counter's whole identity, as an operator would look for it. */
  readonly counter: string;
  readonly cost: number;
  readonly tier: string | undefined;
  /** Dimensions of the limit that the request lacks. Requests that lack the same ones share this counter. */
  readonly missing: readonly string[];
  /** Decided and reported, never denied. */
  readonly shadow: boolean;
  /** "exactly, at the counters", "by leases while hot, at most 10 over 1000/s (max_overshoot 1%)". */
  readonly counted: string;
  /** By how much leases, on all nodes together, may exceed the limit. 0: it is never leased. */
  readonly allowance: number;
  readonly windows: readonly (WindowReading & {
    /** The arithmetic in words, one line per step. */
    readonly arithmetic: readonly string[];
  })[];
}
