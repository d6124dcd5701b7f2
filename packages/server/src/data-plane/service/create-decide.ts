import {
  type CheckRequest,
  type Decision,
  type ErrorCode,
  type Hold,
  type Limiter,
  type ReserveRequest,
  SluiceError,
} from "sluice";
import type { TogetherOptions } from "sluice/internal";
import type { Decide } from "../../decide.ts";
import type { DenialSamples } from "../../observe/denials/denial-samples.ts";
import type { DecisionTail } from "../../observe/live/decision-tail.ts";
import type { Recorder } from "../../observe/recording/recorder.ts";
import type { Metrics } from "../../observe/telemetry/metrics.ts";
import type { UsageSums } from "../../observe/usage/usage-sums.ts";
import type { UsageEvents } from "../../observe/usage-events/usage-events.ts";
import { Admission } from "./admission.ts";

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
  const admission = new Admission({
    maxPending,
    maxChecksPerSecond,
    onShed: (reason, checks) => metrics.countShed(reason, checks),
  });

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
    admission.admit(1, startedMs);
    if (!limiter.counters.local) {
      admission.pending += 1;
      return limiter.check(request).then(
        (decision) => {
          admission.pending -= 1;
          recorder?.active?.count(request, decision);
          return counted(request, decision, startedMs);
        },
        (error: unknown) => {
          admission.pending -= 1;
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
    admission.admit(requests.length, startedMs);
    try {
      const answer = limiter.checkTogether(requests, asked);
      if (!(answer instanceof Promise)) return all(answer);
      admission.pending += requests.length;
      return answer.then(
        (decisions) => {
          admission.pending -= requests.length;
          return all(decisions);
        },
        (error: unknown) => {
          admission.pending -= requests.length;
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
    reserve: (request) => reserveCounted(request, limiter, admission, nowMs, counted).catch(refused),
    get pending(): number {
      return admission.pending;
    },
  };
}

async function reserveCounted(
  request: ReserveRequest,
  limiter: Limiter,
  admission: Admission,
  nowMs: () => number,
  counted: (request: CheckRequest, decision: Decision, startedMs: number) => Decision,
): Promise<Hold> {
  const startedMs = nowMs();
  admission.admit(1, startedMs);
  admission.pending += 1;
  try {
    const hold = await limiter.reserve(request);
    const { domain, dimensions, policies } = request;
    counted({ domain, dimensions, policies, cost: hold.amount }, hold.decision, startedMs);
    return hold;
  } finally {
    admission.pending -= 1;
  }
}

/** Continues with a decision when it is there, which may be now. */
export function whenDecided<D, T>(decision: D | Promise<D>, go: (decision: D) => T): T | Promise<T> {
  return decision instanceof Promise ? decision.then(go) : go(decision);
}
