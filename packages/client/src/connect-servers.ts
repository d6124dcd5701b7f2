import type { CheckRequest, Decision } from "sluice";
import type { Receipt, StoreUnavailableReason } from "sluice/store";
import type { Unanswered } from "./batch.ts";
import { checkConnectOptions } from "./check-connect-options.ts";
import { checkRequest } from "./check-request.ts";
import type { AnswerValue, Exchange, ExchangeEvents, Question } from "./exchange.ts";
import { GuardedAddress } from "./guarded-address.ts";
import { invalidRequest } from "./invalid-request.ts";
import { RemoteLeases } from "./leases/remote-leases.ts";
import type { Address } from "./parse-addresses.ts";
import { parseDeadlineMs } from "./parse-deadline.ts";
import { QuestionLine } from "./question-line.ts";
import type { ConnectOptions, RemoteLimiter, RemoteStats } from "./remote-limiter.ts";
import { type RemoteTime, systemTime } from "./remote-time.ts";
import { createStopgap, type Stopgap, unanswered } from "./when-unavailable.ts";

/** How questions reach an address. */
export type CreateExchange = (address: Address, options: ConnectOptions, events: ExchangeEvents) => Exchange;

/** Servers across a network answer in a few milliseconds; the rest allows for pauses on both sides. */
const usualDeadlineMs = 100;
/** The least time for calls that no request of the app waits for. */
const leastPatienceMs = 1_000;
/**
 * Leases, which are requested in bulk, wait longer than servers wait for their counters. If those do not answer, the
 * server then says so, and is not blamed for it.
 */
const leasePatienceMs = 2_000;
const usualMaxWaiting = 10_000;

export function connectServers(
  addresses: readonly Address[],
  options: ConnectOptions,
  createExchange: CreateExchange,
  time: RemoteTime = systemTime,
  random: () => number = Math.random,
): RemoteLimiter {
  checkConnectOptions(options, addresses);
  const { whenUnavailable = "open", local, maxWaiting = usualMaxWaiting, onChange } = options;
  const deadlineMs = parseDeadlineMs(options) ?? usualDeadlineMs;
  const stopgap = createStopgap(whenUnavailable, local);
  const guarded: readonly GuardedAddress[] = addresses.map(
    (address) =>
      new GuardedAddress({
        name: address.name,
        createExchange: (events) => createExchange(address, options, events),
        time,
        random,
        // A caller that waits longer for an answer waits as long for the connection.
        openWithinMs: Math.max(deadlineMs, leastPatienceMs),
        onReady: () => line.wake(),
        onAside: () => line.failWaiting(),
        // An error in the log callback does not affect checks.
        onChange: (name, state, why) => {
          try {
            onChange?.({ address: name, state, why });
          } catch {}
        },
      }),
  );
  const line = new QuestionLine({ addresses: guarded, time, patienceMs: deadlineMs, maxWaiting });
  const leases =
    options.leases === false
      ? undefined
      : new RemoteLeases({
          ...options.leases,
          ask: (question, settle) => line.ask(question, Math.max(deadlineMs, leasePatienceMs), settle),
          time,
        });
  const calls = new Calls({ line, leases, stopgap, deadlineMs });

  return {
    check: (request) => calls.check(request),
    peek: (request) => calls.check({ ...request, preview: true }),
    async charge(request): Promise<void> {
      checkRequest(request, "charged");
      await calls.ask({ kind: "charge", request }, (outcome) =>
        stopgap.charge === undefined ? refuse(outcome) : stopgap.charge(request, outcome.reason),
      );
    },
    async give(receipt: Receipt): Promise<boolean> {
      if (typeof receipt !== "string" || receipt === "") throw invalidRequest("receipt", "must be a text");
      if (stopgap.issued(receipt)) return stopgap.give(receipt);
      return (await calls.ask({ kind: "give", receipt }, refuse)) === true;
    },
    async reset(request): Promise<number> {
      checkRequest(request, "asked");
      const count = await calls.ask({ kind: "reset", request }, refuse);
      return typeof count === "number" ? count : 0;
    },
    async close(): Promise<void> {
      await leases?.close(leastPatienceMs);
      line.close();
      for (const address of guarded) address.close();
    },
    get stats(): RemoteStats {
      return {
        ...line.stats,
        degraded: { ...calls.degraded },
        addresses: guarded.map(({ stats }) => stats),
        leases: leases?.stats ?? noLeases,
      };
    },
  };
}

interface CallsOptions {
  readonly line: QuestionLine;
  readonly leases: RemoteLeases | undefined;
  readonly stopgap: Stopgap;
  readonly deadlineMs: number;
}

/**
 * The life of a call:
 *
 *     check ──► lease in hand? ──► line ──answer, refusal──► caller
 *                   └─► decided        └──no answer──► stopgap (`whenUnavailable`), which is counted
 */
class Calls {
  readonly degraded: Record<StoreUnavailableReason, number> = {
    storage_unavailable: 0,
    storage_timeout: 0,
    process_starved: 0,
    storage_overloaded: 0,
    storage_full: 0,
  };
  readonly #options: CallsOptions;

  constructor(options: CallsOptions) {
    this.#options = options;
  }

  check(request: CheckRequest): Promise<Decision> {
    const { line, leases, stopgap, deadlineMs } = this.#options;
    return new Promise((resolve, reject) => {
      checkRequest(request, "asked");
      const leased = leases?.decide(request);
      if (leased !== undefined) {
        resolve(leased);
        return;
      }
      const budgetMs = Math.min(deadlineMs, request.deadlineMs ?? deadlineMs);
      line.ask({ kind: "check", request }, budgetMs, (outcome) => {
        if (outcome.kind === "answer") resolve(outcome.value as Decision);
        else if (outcome.kind === "refused") reject(outcome.error);
        else {
          this.degraded[outcome.reason] += 1;
          // An error thrown by the app's own function goes to its caller.
          new Promise<Decision>((decided) => decided(stopgap.check(request, outcome.reason))).then(resolve, reject);
        }
      });
    });
  }

  /** Asks questions that no request of the app waits for. */
  ask(
    question: Question,
    otherwise: (outcome: Unanswered) => AnswerValue | Promise<AnswerValue>,
  ): Promise<AnswerValue> {
    const { line, deadlineMs } = this.#options;
    return new Promise((resolve, reject) => {
      line.ask(question, Math.max(deadlineMs, leastPatienceMs), (outcome) => {
        if (outcome.kind === "answer") resolve(outcome.value);
        else if (outcome.kind === "refused") reject(outcome.error);
        else new Promise<AnswerValue>((done) => done(otherwise(outcome))).then(resolve, reject);
      });
    });
  }
}

function refuse({ reason, mayBeDone }: Unanswered): never {
  throw unanswered(reason, mayBeDone);
}

/** The stats of leases that are switched off. */
const noLeases: RemoteStats["leases"] = {
  ...{ held: 0, units: 0, decided: 0, calls: 0, refused: 0, failed: 0, granted: 0, returned: 0, lost: 0 },
};
