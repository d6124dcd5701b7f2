import type { CheckRequest, Decision, SluiceError } from "sluice";
import { checkOptions, type HeldLease, Lease, LeaseHolder, type LeaseOutcome, type OptionForms } from "sluice/internal";
import type { Outcome } from "../batch.ts";
import type { LeaseQuestion, LeaseReply } from "../exchange.ts";
import { invalidRequest } from "../invalid-request.ts";
import type { RemoteTime } from "../remote-time.ts";
import { BusyKeys } from "./busy-keys.ts";
import { type GrantState, leasedDecision } from "./leased-decision.ts";
import { requestKey } from "./request-key.ts";

/** When subjects are leased, and how many. */
export interface LeaseOptions {
  /** Starting at this many equal checks a second, they are decided locally. Absent: 50. */
  readonly perSecond?: number | undefined;
  /** How many leases are held at most. Absent: 1 000. */
  readonly max?: number | undefined;
  /**
   * How much longer than usual they are spent while no server answers, at most. Absent: as long as servers say, 60 s.
   */
  readonly staleMs?: number | undefined;
}

/** Counters that only grow, except for the first two. */
export interface RemoteLeasesStats {
  /** Leases held, and units in hand. */
  readonly held: number;
  readonly units: number;
  /** Checks decided locally. */
  readonly decided: number;
  /**
   * Calls to servers for that, give-backs included; those that granted nothing, or were refused; those without an
   * answer.
   */
  readonly calls: number;
  readonly refused: number;
  readonly failed: number;
  /** Units granted, given back, and expired unspent. */
  readonly granted: number;
  readonly returned: number;
  readonly lost: number;
}

export interface RemoteLeasesOptions extends LeaseOptions {
  /** Asks a server. Settles once. */
  readonly ask: (question: LeaseQuestion, settle: (outcome: Outcome) => void) => void;
  readonly time: RemoteTime;
}

/** The lease of all equal checks. */
interface RequestLease extends HeldLease {
  readonly key: string;
  readonly request: CheckRequest;
  /** From the last answer; the lease obeys them, and is sized to last for `refreshMs`. */
  readonly times: { readonly refreshMs: number; leaseMs: number; staleMs: number };
  /** Undefined until something was granted. */
  standing: GrantState | undefined;
  /** The cost of a check that names none. */
  cost: number;
  /** When to check whether it is still used. */
  sweepMs: number;
  /** No more is requested before this, because grants are too small to be worth their calls. */
  notBeforeMs: number;
  pauseMs: number;
}

const usualPerSecond = 50;
const usualMax = 1_000;
/** A lease that is used at less than this share of the rate that makes a key busy is given back. */
const coolShare = 1 / 4;
/** Before the first answer the times of leases are unknown, and nothing is in hand. */
const unknownTimes = { refreshMs: 1_000, leaseMs: 20_000, staleMs: 60_000 } as const;
/** The most units to request at once. */
const maxWant = 1_000_000;
/** A call costs about as much as this many checks that travel together; fewer units are hardly worth it. */
const leastWorth = 16;
const firstPauseMs = 250;
const longestPauseMs = 5_000;
/** How long a key that is not to be leased is left alone, and all keys if servers have no leases. */
const restMs = 30_000;
const maxResting = 1_000;
const sweepEveryMs = 1_000;

/**
 * Leases of hot keys. Frequent equal checks are decided locally, at once, by units that a server granted. Everything
 * else goes to a server, as if there were no leases. `LeaseHolder` describes the life of each lease; this class decides
 * which checks are busy enough for one, and when servers are left alone because they grant too little.
 */
export class RemoteLeases {
  readonly #options: RemoteLeasesOptions;
  readonly #busy: BusyKeys;
  readonly #coolPerSecond: number;
  readonly #max: number;
  readonly #held = new Map<string, RequestLease>();
  readonly #holder: LeaseHolder<RequestLease, LeaseReply>;
  /** Until when keys are left alone, the oldest first. */
  readonly #resting = new Map<string, number>();
  #noneBeforeMs = Number.NEGATIVE_INFINITY;
  #closed = false;
  #decided = 0;

  constructor(options: RemoteLeasesOptions) {
    const { perSecond = usualPerSecond, max = usualMax, ask, time } = options;
    this.#options = options;
    this.#busy = new BusyKeys(perSecond);
    this.#coolPerSecond = perSecond * coolShare;
    this.#max = max;
    const table = this.#held;
    this.#holder = new LeaseHolder(
      { clock: time.clock, callLater: (work, inMs) => time.scheduleIdly(inMs, work), sweepEveryMs },
      {
        get size() {
          return table.size;
        },
        unsentGiveBack: "keep",
        send: ({ request }, { want, settled }, settle) =>
          ask({ kind: "lease", request, want, settled }, (outcome) => settle(outcome as LeaseOutcome<LeaseReply>)),
        hear: (held, reply, askedMs, nowMs) => this.#hear(held, reply, askedMs, nowMs),
        onGranted: (held, nowMs) => this.#pace(held, nowMs),
        onRefused: (held, error, nowMs) => this.#restAfter(error, held.key, nowMs),
        onUnanswered: (held, nowMs) => {
          held.sweepMs = nowMs + held.times.leaseMs;
        },
        onGone: ({ key }) => table.delete(key),
        sweep: (nowMs) => this.#sweep(nowMs),
      },
    );
  }

  get stats(): RemoteLeasesStats {
    const nowMs = this.#options.time.clock.nowMs();
    const { calls, refused, failedFetches, failedReturns, granted, returned, lost } = this.#holder.counts;
    let units = 0;
    let lostSince = 0;
    for (const { lease, lostCounted } of this.#held.values()) {
      units += lease.spendable(nowMs);
      lostSince += lease.lost - lostCounted;
    }
    return {
      held: this.#held.size,
      units,
      decided: this.#decided,
      calls,
      refused,
      failed: failedFetches + failedReturns,
      granted,
      returned,
      lost: lost + lostSince,
    };
  }

  /** Decides by the units in hand. Undefined: ask a server. */
  decide(request: CheckRequest): Decision | undefined {
    if (this.#closed || !isPlain(request)) return undefined;
    const key = requestKey(request);
    if (key === undefined) return undefined;
    const nowMs = this.#options.time.clock.nowMs();
    const held = this.#held.get(key);
    if (held === undefined) {
      this.#note(key, request, nowMs);
      return undefined;
    }
    if (held.phase !== "held") return undefined;
    const { lease, standing } = held;
    const cost = request.cost ?? held.cost;
    const decided = lease.spend(cost, nowMs);
    if (nowMs >= held.notBeforeMs && lease.isDue(nowMs)) this.#holder.ask(held, nowMs);
    if (!decided || standing === undefined) return undefined;
    this.#decided += 1;
    return leasedDecision(standing, cost, lease.spendable(nowMs), nowMs);
  }

  /** Gives everything back, and waits for that, up to this time. */
  async close(withinMs: number): Promise<void> {
    this.#closed = true;
    const { schedule } = this.#options.time;
    const all = [...this.#held.values()];
    // A process that is ending waits for this.
    await this.#holder.drain(all, all.length, withinMs, (work, inMs) => schedule(inMs, work));
  }

  /** Counts a check, and leases its key if it is busy. */
  #note(key: string, request: CheckRequest, nowMs: number): void {
    if (nowMs < this.#noneBeforeMs || this.#isResting(key, nowMs)) return;
    const perSecond = this.#busy.note(key, nowMs);
    if (perSecond === 0 || this.#held.size >= this.#max) return;
    const { domain, dimensions, policies } = request;
    const times = { ...unknownTimes };
    const held: RequestLease = {
      key,
      request: { domain, dimensions: { ...dimensions }, policies: policies && [...policies] },
      lease: new Lease(times, maxWant, perSecond, nowMs),
      times,
      phase: "held",
      lostCounted: 0,
      standing: undefined,
      cost: 1,
      sweepMs: nowMs,
      notBeforeMs: nowMs,
      pauseMs: firstPauseMs,
    };
    this.#held.set(key, held);
    this.#holder.ask(held, nowMs);
    this.#holder.sweepLater();
  }

  #isResting(key: string, nowMs: number): boolean {
    const untilMs = this.#resting.get(key);
    if (untilMs === undefined) return false;
    if (nowMs < untilMs) return true;
    this.#resting.delete(key);
    return false;
  }

  #rest(key: string, nowMs: number): void {
    this.#resting.delete(key);
    this.#resting.set(key, nowMs + restMs);
    if (this.#resting.size <= maxResting) return;
    const [oldest] = this.#resting.keys();
    this.#resting.delete(oldest!);
  }

  #hear(held: RequestLease, reply: LeaseReply, askedMs: number, nowMs: number): void {
    const { staleMs = Number.POSITIVE_INFINITY } = this.#options;
    held.times.leaseMs = reply.leaseMs;
    held.times.staleMs = Math.min(reply.staleMs, staleMs);
    held.sweepMs = askedMs + reply.leaseMs;
    held.standing = { decision: reply.decision, atMs: nowMs };
    held.cost = reply.cost;
  }

  /**
   * While grants are small, the next request is made later and later; if there is never a grant, the key is left alone
   * for a while.
   */
  #pace(held: RequestLease, nowMs: number): void {
    const { lease } = held;
    if (lease.size >= leastWorth) {
      held.pauseMs = firstPauseMs;
      held.notBeforeMs = nowMs;
      return;
    }
    if (lease.size === 0 && held.pauseMs === longestPauseMs) {
      this.#rest(held.key, nowMs);
      this.#holder.leave(held, nowMs);
      return;
    }
    held.notBeforeMs = nowMs + held.pauseMs;
    held.pauseMs = Math.min(held.pauseMs * 2, longestPauseMs);
  }

  /** A server refuses a grant: for this key, or for all of them if it has no leases. */
  #restAfter({ code }: SluiceError, key: string, nowMs: number): void {
    if (code === "not_leasable" || code === "invalid_request" || code === "policy_not_found") this.#rest(key, nowMs);
    else this.#noneBeforeMs = nowMs + restMs;
  }

  /** Leases whose time is over are renewed if they are in use, and given back if not. */
  #sweep(nowMs: number): void {
    for (const held of this.#held.values()) {
      const { lease } = held;
      if (held.phase !== "held" || lease.asking || nowMs < held.sweepMs) continue;
      if (lease.isCool(this.#coolPerSecond, nowMs)) this.#holder.leave(held, nowMs);
      else if (nowMs >= held.notBeforeMs && lease.isDue(nowMs)) this.#holder.ask(held, nowMs);
    }
  }
}

/** Whether spending units is all that a check needs. */
function isPlain({ id, preview, details, receipt }: CheckRequest): boolean {
  return id === undefined && preview !== true && details !== true && receipt !== true;
}

const leaseForms: OptionForms<LeaseOptions> = { perSecond: undefined, max: undefined, staleMs: undefined };

/** Throws an error that names the invalid option. */
export function checkLeaseOptions(options: LeaseOptions): void {
  checkOptions(options, leaseForms, { name: "leases", code: "invalid_request" });
  const { perSecond, max, staleMs } = options;
  if (perSecond !== undefined && !(Number.isFinite(perSecond) && perSecond >= 1))
    throw invalidRequest("leases.perSecond", "must be a number of at least 1");
  if (max !== undefined && !(Number.isInteger(max) && max >= 1))
    throw invalidRequest("leases.max", "must be a whole number of at least 1");
  if (staleMs !== undefined && !(Number.isFinite(staleMs) && staleMs >= 0))
    throw invalidRequest("leases.staleMs", "must be a number of at least 0");
}
