import { type CheckRequest, type Decision, type ErrorCode, type Limiter, SluiceError } from "sluice";
import type { TogetherOptions } from "sluice/internal";
import type { Decide } from "../../decide.ts";
import type { DenialSamples } from "../../observe/denials/denial-samples.ts";
import type { DecisionTail } from "../../observe/live/decision-tail.ts";
import type { Recorder } from "../../observe/recording/recorder.ts";
import type { Metrics, ShedReason } from "../../observe/telemetry/metrics.ts";
import type { UsageSums } from "../../observe/usage/usage-sums.ts";
import type { UsageEvents } from "../../observe/usage-events/usage-events.ts";

export interface DecideOptions {
  readonly limiter: Limiter;
  readonly metrics: Pick<Metrics, "countDecision" | "countError" | "countShed">;
  /** Called with every decision, for logs and traces; must not throw. */
  readonly observe?: ((request: CheckRequest, decision: Decision) => void) | undefined;
  /** The history of usage. */
  readonly usage?: Pick<UsageSums, "count"> | undefined;
  /** The stream of usage events. */
  readonly events?: Pick<UsageEvents, "count"> | undefined;
  /** The sample of denials. */
  readonly denials?: Pick<DenialSamples, "count"> | undefined;
  /** Records requests, while someone has it do so. */
  readonly recorder?: Pick<Recorder, "active"> | undefined;
  /** Decisions for those who watch them. */
  readonly tail?: Pick<DecisionTail, "count"> | undefined;
  /** The most checks that wait for remote counters. */
  readonly maxPending?: number;
  /** The most checks in a second; 0: no bound. */
  readonly maxChecksPerSecond?: number;
  readonly nowMs?: () => number;
}

export function createDecide(options: DecideOptions): Decide {
  const { limiter, metrics, observe, usage, events, denials, recorder, tail } = options;
  const { maxPending = Infinity, maxChecksPerSecond = 0 } = options;
  const nowMs = options.nowMs ?? ((): number => performance.now());
  const bound = maxChecksPerSecond === 0 ? undefined : nodeLimit(maxChecksPerSecond);
  let pending = 0;

  function shed(reason: ShedReason, checks: number): never {
    metrics.countShed(reason, checks);
    throw new SluiceError(
      "overloaded",
      reason === "pending"
        ? "too many checks are waiting for the counters here; retry shortly, or ask another server"
        : "this server is at its configured check rate; retry shortly, or ask another server",
    );
  }

  function admit(checks: number, atMs: number): void {
    if (pending + checks > maxPending && pending > 0) shed("pending", checks);
    if (bound !== undefined && !bound(checks, atMs)) shed("rate", checks);
  }

  function counted(request: CheckRequest, decision: Decision, startedMs: number, isCharged = true): Decision {
    metrics.countDecision(decision, (nowMs() - startedMs) / 1000);
    usage?.count(request, decision, isCharged);
    events?.count(request, decision, isCharged);
    denials?.count(request, decision);
    tail?.count(request, decision);
    observe?.(request, decision);
    return decision;
  }

  function refused(error: unknown): never {
    const code: ErrorCode = error instanceof SluiceError ? error.code : "internal";
    metrics.countError(code);
    throw error;
  }

  function one(request: CheckRequest): Decision | Promise<Decision> {
    const startedMs = nowMs();
    admit(1, startedMs);
    if (!limiter.counters.local) {
      pending += 1;
      return limiter.check(request).then(
        (decision) => {
          pending -= 1;
          recorder?.active?.count(request, decision);
          return counted(request, decision, startedMs);
        },
        (error: unknown) => {
          pending -= 1;
          return refused(error);
        },
      );
    }
    try {
      const decision = limiter.checkSync(request);
      recorder?.active?.count(request, decision);
      return counted(request, decision, startedMs);
    } catch (error) {
      return refused(error);
    }
  }

  function together(
    requests: readonly CheckRequest[],
    asked?: TogetherOptions,
  ): readonly Decision[] | Promise<readonly Decision[]> {
    const startedMs = nowMs();
    const all = (decisions: readonly Decision[]): readonly Decision[] => {
      recorder?.active?.countTogether(requests, decisions);
      // All of them are charged, or none is.
      const isCharged = decisions.every(({ allowed }) => allowed);
      for (const [i, decision] of decisions.entries()) counted(requests[i]!, decision, startedMs, isCharged);
      return decisions;
    };
    admit(requests.length, startedMs);
    try {
      const answer = limiter.checkTogether(requests, asked);
      if (!(answer instanceof Promise)) return all(answer);
      pending += requests.length;
      return answer.then(
        (decisions) => {
          pending -= requests.length;
          return all(decisions);
        },
        (error: unknown) => {
          pending -= requests.length;
          return refused(error);
        },
      );
    } catch (error) {
      return refused(error);
    }
  }

  return {
    one,
    together,
    get pending(): number {
      return pending;
    },
  };
}

/** A second's worth; a microsecond more, because fractional intervals do not add up to a second. */
const toleranceMs = 1_000.001;

/**
 * The node's own limit, by arrival times (GCRA): whether this many checks may be decided now. A second's worth may come
 * at once.
 */
function nodeLimit(perSecond: number): (checks: number, nowMs: number) => boolean {
  let arrivalMs = -Infinity;
  return (checks, nowMs) => {
    const nextMs = Math.max(arrivalMs, nowMs) + (checks * 1_000) / perSecond;
    // A batch larger than a second's worth passes when nothing else did, rather than never.
    if (nextMs - nowMs > toleranceMs && arrivalMs > nowMs) return false;
    arrivalMs = nextMs;
    return true;
  };
}

/** Continues with a decision when it is there, which may be now. */
export function whenDecided<D, T>(decision: D | Promise<D>, go: (decision: D) => T): T | Promise<T> {
  return decision instanceof Promise ? decision.then(go) : go(decision);
}
