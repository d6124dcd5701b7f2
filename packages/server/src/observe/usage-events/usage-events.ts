import { setImmediate as turn } from "node:timers/promises";
import type { CheckRequest, Decision, Limiter, Policy } from "sluice";
import { DecidingLimits } from "./deciding-limits.ts";
import { publicSubject } from "./public-subject.ts";
import { Summaries, type Summary, type SummaryWindow, summaryId } from "./summaries.ts";
import { type UsageEvent, type UsageEventData, usageEventType } from "./usage-event.ts";

export interface UsageEventsOptions {
  readonly limiter: Pick<Limiter, "snapshot">;
  readonly ipv6PrefixBits: number;
  /** The name of this node, and what differs after each start. */
  readonly node: string;
  readonly boot: string;
  readonly source: string;
  /** The dimension whose value is the subject of events: the customer. */
  readonly subjectDimension: string;
  /** Called with every event; must neither throw nor wait. */
  readonly publish: (event: UsageEvent) => void;
  /** Epoch milliseconds. Absent: the machine's clock. */
  readonly nowMs?: (() => number) | undefined;
  /** The most subjects with a separate summary in one window. */
  readonly maxSubjects?: number | undefined;
}

/** Summaries begin at multiples of this. */
export const summaryMs = 10_000;

/** Events made in one turn of the event loop: about a millisecond. */
const eventsPerTurn = 250;

/**
 * Turns decisions into usage events, as policies choose: one for each decision, or a summary of all alike within ten seconds.
 * Every check ends here, so a summary is only counted, and its event made when the ten seconds are over.
 */
export class UsageEvents {
  /** Whether events go anywhere. Without that, a decision costs a comparison. */
  active = false;
  readonly #options: UsageEventsOptions;
  readonly #limits: DecidingLimits;
  readonly #summaries: Summaries;
  readonly #nowMs: () => number;
  #windowMs: number;
  #sequence = 0;
  #flushes = 0;
  #failed = 0;
  #flushing: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: UsageEventsOptions) {
    this.#options = options;
    this.#limits = new DecidingLimits(options.limiter, options.ipv6PrefixBits);
    this.#summaries = new Summaries(options.subjectDimension, options.maxSubjects ?? 50_000);
    this.#nowMs = options.nowMs ?? Date.now;
    this.#windowMs = this.#periodStart(this.#nowMs());
  }

  /** Decisions summed up as `(other)`, and those of which no event could be made. Both only grow. */
  get stats(): { readonly untracked: number; readonly failed: number } {
    return { untracked: this.#summaries.untracked, failed: this.#failed };
  }

  /** `isCharged` is false if another request that was checked together with this one was denied. Never throws. */
  count(request: CheckRequest, decision: Decision, isCharged = true): void {
    // A preview takes nothing, and a replayed decision was counted before.
    if (!this.active || decision.preview || decision.replayed) return;
    try {
      this.#count(request, decision, isCharged ? decision.cost : 0);
    } catch {
      // The decision stands, whatever is wrong with its event.
      this.#failed += 1;
    }
  }

  /** Makes events of everything counted so far. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const { node, boot } = this.#options;
    this.#flushes += 1;
    const window = { node, boot, startMs: this.#windowMs, flush: this.#flushes };
    this.#windowMs = this.#periodStart(this.#nowMs());
    const summaries = this.#summaries.take();
    this.#flushing = this.#flushing.then(() => this.#publishAll(summaries, window));
    return this.#flushing;
  }

  #count(request: CheckRequest, decision: Decision, cost: number): void {
    const policy = this.#limits.findEachPolicy(request, this.#nowMs);
    if (policy !== undefined) {
      this.#options.publish(this.#eachEvent(request, decision, policy, cost));
      return;
    }
    const limit = this.#limits.find(request, decision);
    if (limit.events === "none") return;
    const nowMs = this.#nowMs();
    // A clock that was set back does not begin a window anew.
    if (nowMs >= this.#windowMs + summaryMs) void this.flush();
    const key = this.#limits.readKey(limit.compiled, limit.policy, request);
    this.#summaries.add(limit, this.#readSubject(request, key), key, decision, cost);
    this.#timer ??= setTimeout(() => void this.flush(), this.#windowMs + summaryMs - nowMs).unref();
  }

  #eachEvent(request: CheckRequest, decision: Decision, policy: Policy, cost: number): UsageEvent {
    const { node, boot } = this.#options;
    const isDeciding = decision.policy === policy.id;
    const compiled = isDeciding ? this.#limits.find(request, decision).compiled : undefined;
    const key = this.#limits.readKey(compiled ?? this.#limits.findFirst(policy), undefined, request);
    this.#sequence += 1;
    // A request is charged once, but denied as often as it is sent: a reader would take its charge for a repeat of the denial.
    const chargedId = decision.allowed ? request.id : undefined;
    const id = chargedId ?? `${node}-${boot}-${this.#sequence.toString(36)}`;
    const region = request.dimensions?.region;
    return this.#event(id, this.#readSubject(request, key), {
      ...{
        kind: "each",
        key,
        cost,
        allowed: decision.allowed,
        ts: this.#nowMs(),
        requests: 1,
        reason: decision.reason,
      },
      ...{ request_id: request.id, policy: policy.id, version: isDeciding ? decision.version : policy.version },
      scope: isDeciding ? decision.scope : undefined,
      limit: isDeciding ? finite(decision.limit) : undefined,
      remaining: isDeciding ? finite(decision.remaining) : undefined,
      denied_by: deniedBy(decision),
      degraded: decision.degraded,
      region: region === undefined ? undefined : publicSubject("region", region),
      node,
    });
  }

  #summaryEvent(summary: Summary, window: SummaryWindow): UsageEvent {
    const { node, startMs: ts } = window;
    const { limit, subject, key, cost, allowed, requests, reason, degraded } = summary;
    const { policy, version, scope } = limit;
    return this.#event(summaryId(window, summary), subject, {
      ...{ kind: "summary", key, cost, allowed, ts, requests, reason, policy, version, scope },
      ...{ limit: finite(summary.capacity), remaining: finite(summary.remaining) },
      ...{ denied_by: deniedBy({ allowed, policy, scope }), degraded, node },
    });
  }

  #event(id: string, subject: string, data: UsageEventData): UsageEvent {
    return {
      specversion: "1.0",
      type: usageEventType,
      source: this.#options.source,
      id,
      // CloudEvents has no empty subjects.
      subject: subject === "" ? undefined : subject,
      time: new Date(data.ts).toISOString(),
      datacontenttype: "application/json",
      data,
    };
  }

  /** The customer, else the subject of the limit. */
  #readSubject({ dimensions }: CheckRequest, key: string): string {
    const { subjectDimension } = this.#options;
    const customer = dimensions?.[subjectDimension];
    return customer === undefined || customer === "" ? key : publicSubject(subjectDimension, customer);
  }

  /** In slices: there may be tens of thousands, and checks wait meanwhile. */
  async #publishAll(summaries: Iterable<Summary>, window: SummaryWindow): Promise<void> {
    let made = 0;
    for (const summary of summaries) {
      this.#options.publish(this.#summaryEvent(summary, window));
      made += 1;
      if (made % eventsPerTurn === 0) await turn();
    }
  }

  #periodStart(nowMs: number): number {
    return Math.floor(nowMs / summaryMs) * summaryMs;
  }
}

function deniedBy({
  allowed,
  policy,
  scope,
}: Partial<Pick<Decision, "allowed" | "policy" | "scope">>): string | undefined {
  if (allowed === true || policy === undefined) return undefined;
  return scope === undefined ? policy : `${policy}/${scope}`;
}

/** JSON has no infinite numbers. */
function finite(value: number | undefined): number | undefined {
  return value !== undefined && Number.isFinite(value) ? value : undefined;
}
