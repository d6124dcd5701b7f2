import type { Clock } from "./clock.ts";
import type { CounterStore, Receipt, WindowReading } from "./counters/counter-store.ts";
import type { Decision } from "./decision/decision.ts";
import type { PolicySet } from "./policy/policy.ts";
import type { CheckRequest } from "./request/check-request.ts";
import type { SubjectDirectory } from "./subject/subject-directory.ts";

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
}

/** Policies at one generation: replaced whole, never edited. */
export interface SnapshotInfo {
  readonly generation: number;
  readonly policySet: PolicySet;
}

/**
 * Decides. `check` and its siblings throw `SluiceError` only for what the caller got wrong; a denial is a value. While the
 * counters cannot be asked `check` answers as the policies say; `give`, `charge`, `reset` and `explain` reject with
 * `StoreUnavailable`.
 */
export interface Limiter {
  check(request: CheckRequest): Promise<Decision>;
  /** `check` without a turn of the event loop; throws `not_local` where counters are not in this process. */
  checkSync(request: CheckRequest): Decision;
  /** Gives a take back by its receipt. False when it was void: given already, too late, or reset since. */
  give(receipt: Receipt): Promise<boolean>;
  /**
   * Takes unconditionally, after the fact: what a response turned out to cost. While the counters cannot be asked, this
   * node's own are charged, where a policy fails `local` and none fails closed.
   */
  charge(request: CheckRequest): Promise<void>;
  /** Forgets the counters that this request would be counted in. */
  reset(request: CheckRequest): Promise<void>;
  /** Decides as a preview, and tells how the answer comes about. */
  explain(request: CheckRequest): Promise<Explanation>;
  /** Replaces every policy at once. Requests already being decided finish under the old ones. */
  usePolicies(policies: PolicySet | Readonly<Record<string, unknown>>): SnapshotInfo;
  readonly snapshot: SnapshotInfo;
  readonly counters: CounterStore;
  readonly subjects: SubjectDirectory;
  close(): Promise<void>;
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
  /** Decided and reported, never denied. */
  readonly shadow: boolean;
  readonly windows: readonly (WindowReading & {
    /** The arithmetic in words, one line per step. */
    readonly arithmetic: readonly string[];
  })[];
}
