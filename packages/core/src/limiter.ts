import type { Clock } from "./clock.ts";
import type { CounterStore, LeaseAnswer, LeaseAsk, Receipt, WindowReading } from "./counters/counter-store.ts";
import type { Decision } from "./decision/decision.ts";
import type { ResetOptions, SkippedLimit, SubjectResetRequest } from "./match/find-subject-counters.ts";
import type { OnTrial } from "./match/report-trials.ts";
import type { SubjectDirectory } from "./match/subject-directory.ts";
import type { Policy, PolicySet } from "./policy/policy.ts";
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
  /** How long a preview may be answered from memory. 0 … 50; absent: 50, and 0 where counters are local. */
  readonly previewCacheMs?: number;
  /**
   * Hears of each decision by a policy that two versions of are in force (`Policy.trial`): by which, of a subject that joins the
   * trial at which step, and whether that version denies. A version that does not match passes what its other one matches, and
   * is heard of as well. Previews, replays and what counters could not be asked for are left out.
   */
  readonly onTrial?: OnTrial | undefined;
  /**
   * Called for every dimension that a limit counts by and a checked request lacks, with its policy. Previews and limits that a request
   * brings along are left out. Must not throw.
   */
  readonly onMissing?: ((policy: Policy, dimension: string) => void) | undefined;
  /** Called for every preview that was answered from memory. */
  readonly onPreviewHit?: (() => void) | undefined;
}

/** What is asked of several requests together. */
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
  /** What could not be found, because values are missing. */
  readonly skipped: readonly SkippedLimit[];
}

/** How every check is decided, in an emergency. */
export interface ForcedDecisions {
  /** Allowed; or denied, as if counters were away and every policy failed closed. */
  readonly mode: "open" | "closed";
  /** Epoch milliseconds. */
  readonly untilMs: number;
}

/** Policies at one generation: replaced whole, never edited. */
export interface SnapshotInfo {
  readonly generation: number;
  readonly policySet: PolicySet;
}

/**
 * Decides. `check` and its siblings throw `SluiceError` only for what the caller got wrong; a denial is a value. While the
 * counters cannot be asked `check` answers as the policies say; `give`, `charge`, `block`, `reset` and `explain` reject with
 * `StoreUnavailable`.
 */
export interface Limiter {
  check(request: CheckRequest): Promise<Decision>;
  /** `check` without a turn of the event loop; throws `not_local` where counters are not in this process. */
  checkSync(request: CheckRequest): Decision;
  /**
   * Decides several requests together: all of them are charged, or none is. Each is answered for itself; where one is
   * denied, the others say how they stood. At once where counters are in this process. While counters cannot be asked, each is
   * answered as its own policies say. Ids, previews and deadlines are those of `options`, not of single requests; there
   * are no receipts.
   */
  checkTogether(
    requests: readonly CheckRequest[],
    options?: TogetherOptions,
  ): readonly Decision[] | Promise<readonly Decision[]>;
  /** `check` as a preview: the same answer, and nothing is taken. */
  peek(request: CheckRequest): Promise<Decision>;
  /** Gives a take back by its receipt. False when it was void: given already, too late, or reset since. */
  give(receipt: Receipt): Promise<boolean>;
  /**
   * Takes unconditionally, after the fact: what a response turned out to cost. A cost below 0 is a credit: so much is given
   * back without a receipt, until the counter is empty, and what does not exist is left alone. While the counters cannot be asked, this
   * node's own are charged, where a policy fails `local` and none fails closed.
   */
  charge(request: CheckRequest): Promise<void>;
  /**
   * Denies the subjects of this request with reason `blocked`, from now on and for so long: 1 ms … 30 days, whole. That is
   * by each of its limits with `blockable` or `block_for`; `invalid_request` where there is none that is enforced. A block
   * that lasts longer already stays as it is.
   */
  block(request: CheckRequest, forMs: number): Promise<void>;
  /** Forgets the counters that this request would be counted in, and lifts their blocks. Empty: no limit counts such a request. */
  reset(request: CheckRequest, options?: ResetOptions): Promise<readonly ResetCounter[]>;
  /** Forgets every counter of a subject, whichever requests lead to it, and lifts its blocks. */
  resetSubject(request: SubjectResetRequest): Promise<SubjectReset>;
  /**
   * Takes from the counters of such requests for later: to be spent by whoever asks, by the rules of docs/lease-protocol.md. `not_leasable`
   * where something else than counters that can be leased decides about them; then nothing was done. What is only settled
   * (`want: 0`) goes through as long as there are counters.
   */
  lease(request: CheckRequest, ask: LeaseAsk): Promise<LeaseGrant>;
  /** Decides as a preview, and tells how the answer comes about. */
  explain(request: CheckRequest): Promise<Explanation>;
  /** Replaces every policy at once. Requests already being decided finish under the old ones. */
  usePolicies(policies: PolicySet | Readonly<Record<string, unknown>>): SnapshotInfo;
  /**
   * Decides every check alike until then, without asking policies or counters; undefined: as policies say again. It ends by
   * itself, whatever becomes of the clock: never later than it would from now. While it is open, charges are not counted either.
   */
  force(forced: ForcedDecisions | undefined): void;
  /** Undefined from the moment that it ends. */
  readonly forced: ForcedDecisions | undefined;
  readonly snapshot: SnapshotInfo;
  readonly counters: CounterStore;
  readonly subjects: SubjectDirectory;
  close(): Promise<void>;
}

export interface LeaseGrant extends Pick<LeaseAnswer, "granted" | "epoch" | "unspent" | "forgotten" | "atMs"> {
  /** How such a request stands after the grant, as a preview. Its `cost` is what one of them takes. */
  readonly decision: Decision;
}

/** Why the answer is what it is: which policies were looked at, which counters they led to, how each stands. */
export interface Explanation {
  readonly request: CheckRequest;
  readonly domain: string;
  /** The endpoint as it is matched, after undoing path tricks. */
  readonly endpoint: string | undefined;
  readonly policies: readonly PolicyExplanation[];
  readonly limits: readonly LimitExplanation[];
  /** The preview of this very request. */
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
  /** Dimensions of the limit that the request does not carry. Requests that lack the same ones share this counter. */
  readonly missing: readonly string[];
  /** Decided and reported, never denied. */
  readonly shadow: boolean;
  /** "exactly, at the counters", "by leases while hot, at most 10 over 1000/s (max_overshoot 1%)". */
  readonly counted: string;
  /** By how much leases, on all nodes together, may exceed what the limit allows. 0: nothing of it is ever leased. */
  readonly allowance: number;
  readonly windows: readonly (WindowReading & {
    /** The arithmetic in words, one line per step. */
    readonly arithmetic: readonly string[];
  })[];
}
