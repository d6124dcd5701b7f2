import type { CheckRequest, Decision, SluiceError } from "sluice";
import { checkOptions, Lease, type OptionForms } from "sluice/store";
import type { Outcome } from "../batch.ts";
import type { LeaseQuestion, LeaseReply } from "../exchange.ts";
import { invalidRequest } from "../invalid-request.ts";
import type { RemoteTime } from "../remote-time.ts";
import { BusyKeys } from "./busy-keys.ts";
import { leasedDecision, type Told } from "./leased-decision.ts";
import { requestKey } from "./request-key.ts";

/** When subjects are leased, and how many. */
export interface LeaseOptions {
  /** From so many checks alike in a second on they are decided here. Absent: 50. */
  readonly perSecond?: number | undefined;
  /** How many leases are held at most. Absent: 1 000. */
  readonly max?: number | undefined;
  /** How much longer than usual they are spent while no server answers, at most. Absent: as long as servers say, 60 s. */
  readonly staleMs?: number | undefined;
}

/** Numbers that only grow, but for the first two. */
export interface RemoteLeasesStats {
  /** Leases that are held, and units in hand. */
  readonly held: number;
  readonly units: number;
  /** Checks that were decided here. */
  readonly decided: number;
  /** Calls to servers for that, give-backs included; those that granted nothing, or were refused; those without an answer. */
  readonly calls: number;
  readonly refused: number;
  readonly failed: number;
  /** Units that were granted, given back, and that ended unspent. */
  readonly granted: number;
  readonly returned: number;
  readonly lost: number;
}

export interface RemoteLeasesOptions extends LeaseOptions {
  /** Asks a server. Settles once. */
  readonly ask: (question: LeaseQuestion, settle: (outcome: Outcome) => void) => void;
  readonly time: RemoteTime;
}

/** `held`: spent and renewed. `leaving`: to be given back as soon as its call is answered. `giving`: being given back. */
type Phase = "held" | "leaving" | "giving";

interface Held {
  readonly key: string;
  readonly request: CheckRequest;
  readonly lease: Lease;
  /** As the last answer says; the lease goes by them, and is sized to last for `refreshMs`. */
  readonly times: { readonly refreshMs: number; leaseMs: number; staleMs: number };
  phase: Phase;
  /** Undefined until something was granted. */
  told: Told | undefined;
  /** What one check takes that says no cost of its own. */
  cost: number;
  /** When the call that is under way was begun, and what it gives back. */
  askedMs: number;
  returning: number;
  /** When it is looked at whether it is still used. */
  sweepMs: number;
  /** No more is asked for before this, because grants are too small to be worth their calls. */
  notBeforeMs: number;
  pauseMs: number;
}

const usualPerSecond = 50;
const usualMax = 1_000;
/** A lease that is used less than this share of what makes a key busy is given back. */
const coolShare = 1 / 4;
/** Before the first answer nothing is known of how long leases are good for, and nothing is in hand. */
const unknownTimes = { refreshMs: 1_000, leaseMs: 20_000, staleMs: 60_000 } as const;
/** The most that servers are to be asked for at once. */
const maxWant = 1_000_000;
/** A call costs about as much as this many checks that travel together; less in hand is hardly worth it. */
const leastWorth = 16;
const firstPauseMs = 250;
const longestPauseMs = 5_000;
/** How long a key that is not to be leased is left alone, and all of them where servers know of no leases. */
const restMs = 30_000;
const maxResting = 1_000;
const sweepEveryMs = 1_000;

/**
 * Leases of what is asked about most. Checks alike that come often are decided here, at once, by units that a server granted; it is
 * asked for more before the last fifth is gone, one call at a time, and what is left is given back when fewer come or nobody does.
 * Whatever cannot be decided here goes to a server, as if there were no leases.
 */
export class RemoteLeases {
  readonly #options: RemoteLeasesOptions;
  readonly #busy: BusyKeys;
  readonly #coolPerSecond: number;
  readonly #max: number;
  readonly #held = new Map<string, Held>();
  /** Until when keys are left alone, the oldest first. */
  readonly #resting = new Map<string, number>();
  #noneBeforeMs = Number.NEGATIVE_INFINITY;
  #callOffSweep: (() => void) | undefined;
  #closed = false;
  #whenEmpty: (() => void) | undefined;
  #decided = 0;
  #calls = 0;
  #refused = 0;
  #failed = 0;
  #granted = 0;
  #returned = 0;
  #lost = 0;

  constructor(options: RemoteLeasesOptions) {
    const { perSecond = usualPerSecond, max = usualMax } = options;
    this.#options = options;
    this.#busy = new BusyKeys(perSecond);
    this.#coolPerSecond = perSecond * coolShare;
    this.#max = max;
  }

  get stats(): RemoteLeasesStats {
    const nowMs = this.#options.time.clock.nowMs();
    let units = 0;
    let lost = this.#lost;
    for (const { lease } of this.#held.values()) {
      units += lease.spendable(nowMs);
      lost += lease.lost;
    }
    return {
      held: this.#held.size,
      units,
      decided: this.#decided,
      calls: this.#calls,
      refused: this.#refused,
      failed: this.#failed,
      granted: this.#granted,
      returned: this.#returned,
      lost,
    };
  }

  /** Decides by what is in hand. Undefined: a server is to be asked. */
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
    const { lease, told } = held;
    const cost = request.cost ?? held.cost;
    const decided = lease.spend(cost, nowMs);
    if (nowMs >= held.notBeforeMs && lease.isDue(nowMs)) this.#ask(held, nowMs);
    if (!decided || told === undefined) return undefined;
    this.#decided += 1;
    return leasedDecision(told, cost, lease.spendable(nowMs), nowMs);
  }

  /** Gives everything back, and waits for that: as long as this at most. */
  async close(withinMs: number): Promise<void> {
    this.#closed = true;
    this.#callOffSweep?.();
    this.#callOffSweep = undefined;
    const nowMs = this.#options.time.clock.nowMs();
    for (const held of this.#held.values()) this.#leave(held, nowMs);
    if (this.#held.size === 0) return;
    await new Promise<void>((resolve) => {
      const callOff = this.#options.time.schedule(withinMs, resolve);
      this.#whenEmpty = () => {
        callOff();
        resolve();
      };
    });
  }

  /** Counts a check, and leases what is busy with it. */
  #note(key: string, request: CheckRequest, nowMs: number): void {
    if (nowMs < this.#noneBeforeMs || this.#isResting(key, nowMs)) return;
    const perSecond = this.#busy.note(key, nowMs);
    if (perSecond === 0 || this.#held.size >= this.#max) return;
    const { domain, dimensions, policies } = request;
    const times = { ...unknownTimes };
    const held: Held = {
      key,
      request: { domain, dimensions: { ...dimensions }, policies: policies && [...policies] },
      lease: new Lease(times, maxWant, perSecond, nowMs),
      times,
      phase: "held",
      told: undefined,
      cost: 1,
      askedMs: nowMs,
      returning: 0,
      sweepMs: nowMs,
      notBeforeMs: nowMs,
      pauseMs: firstPauseMs,
    };
    this.#held.set(key, held);
    this.#ask(held, nowMs);
    this.#sweepSoon();
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

  #ask(held: Held, nowMs: number): void {
    held.askedMs = nowMs;
    const { want, settled } = held.lease.ask(nowMs);
    this.#send(held, { kind: "lease", request: held.request, want, settled });
  }

  /** Gives it back, now or as soon as that is possible. */
  #leave(held: Held, nowMs: number): void {
    if (held.phase === "giving") return;
    held.phase = "leaving";
    if (held.lease.asking) return;
    const settled = held.lease.giveBack(nowMs)?.settled;
    if (settled === undefined) {
      this.#forget(held);
      return;
    }
    held.phase = "giving";
    held.returning = settled.returned;
    this.#send(held, { kind: "lease", request: held.request, want: 0, settled });
  }

  #send(held: Held, question: LeaseQuestion): void {
    this.#calls += 1;
    this.#options.ask(question, (outcome) => {
      const nowMs = this.#options.time.clock.nowMs();
      if (outcome.kind === "answer") this.#take(held, outcome.value as LeaseReply, nowMs);
      else if (outcome.kind === "refused") this.#stop(held, outcome.error, nowMs);
      else this.#fail(held, outcome.mayBeDone, nowMs);
    });
  }

  #take(held: Held, reply: LeaseReply, nowMs: number): void {
    const { lease, times } = held;
    const { staleMs = Number.POSITIVE_INFINITY } = this.#options;
    times.leaseMs = reply.leaseMs;
    times.staleMs = Math.min(reply.staleMs, staleMs);
    lease.granted(reply, nowMs);
    this.#granted += reply.granted;
    if (held.phase === "giving") {
      this.#returned += held.returning;
      this.#forget(held);
      return;
    }
    held.sweepMs = held.askedMs + reply.leaseMs;
    held.told = { decision: reply.decision, atMs: nowMs };
    held.cost = reply.cost;
    if (reply.granted === 0) this.#refused += 1;
    if (held.phase === "leaving") this.#leave(held, nowMs);
    else this.#pace(held, nowMs);
  }

  /** Where there is little to be had it is asked for ever more seldom, and where there never is anything not at all for a while. */
  #pace(held: Held, nowMs: number): void {
    const { lease } = held;
    if (lease.size >= leastWorth) {
      held.pauseMs = firstPauseMs;
      held.notBeforeMs = nowMs;
      return;
    }
    if (lease.size === 0 && held.pauseMs === longestPauseMs) {
      this.#rest(held.key, nowMs);
      this.#leave(held, nowMs);
      return;
    }
    held.notBeforeMs = nowMs + held.pauseMs;
    held.pauseMs = Math.min(held.pauseMs * 2, longestPauseMs);
  }

  /** A server says that there is nothing to be had, and has done nothing. What is in hand goes back. */
  #stop(held: Held, { code }: SluiceError, nowMs: number): void {
    this.#refused += 1;
    held.lease.callOff(nowMs);
    if (code === "not_leasable" || code === "invalid_request" || code === "policy_not_found")
      this.#rest(held.key, nowMs);
    else this.#noneBeforeMs = nowMs + restMs;
    if (held.phase === "giving") this.#forget(held);
    else this.#leave(held, nowMs);
  }

  /** No server answered. What is in hand is spent for as long as it is good, also what was to be given back. */
  #fail(held: Held, mayBeDone: boolean, nowMs: number): void {
    this.#failed += 1;
    if (mayBeDone) held.lease.failed(nowMs);
    else held.lease.callOff(nowMs);
    if (held.phase === "leaving") this.#leave(held, nowMs);
    else if (held.phase === "giving" && (mayBeDone || this.#closed)) this.#forget(held);
    else {
      held.phase = "held";
      held.sweepMs = nowMs + held.times.leaseMs;
    }
  }

  #forget(held: Held): void {
    held.lease.abandon();
    this.#lost += held.lease.lost;
    this.#held.delete(held.key);
    if (this.#held.size === 0) this.#whenEmpty?.();
  }

  #sweepSoon(): void {
    if (this.#closed || this.#held.size === 0) return;
    this.#callOffSweep ??= this.#options.time.scheduleIdly(sweepEveryMs, () => {
      this.#callOffSweep = undefined;
      this.#sweep(this.#options.time.clock.nowMs());
      this.#sweepSoon();
    });
  }

  /** Leases whose time is over are renewed where they are used, and given back where they are not. */
  #sweep(nowMs: number): void {
    for (const held of this.#held.values()) {
      const { lease } = held;
      if (held.phase !== "held" || lease.asking || nowMs < held.sweepMs) continue;
      if (lease.isCool(this.#coolPerSecond, nowMs)) this.#leave(held, nowMs);
      else if (nowMs >= held.notBeforeMs && lease.isDue(nowMs)) this.#ask(held, nowMs);
    }
  }
}

/** Whether spending units is all that a check asks for. */
function isPlain({ id, preview, details, receipt }: CheckRequest): boolean {
  return id === undefined && preview !== true && details !== true && receipt !== true;
}

const leaseForms: OptionForms<LeaseOptions> = { perSecond: undefined, max: undefined, staleMs: undefined };

/** Throws an error that names the option that is wrong. */
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
