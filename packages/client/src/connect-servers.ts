import {
  type CheckRequest,
  type Decision,
  maxDimensionLength,
  maxDimensions,
  maxNameLength,
  type Receipt,
  SluiceError,
  type StoreUnavailableReason,
  validateRequest,
} from "sluice";
import { aFunction, anObject, checkOptions, type OptionForm, type OptionForms } from "sluice/store";
import type { Unanswered } from "./batch.ts";
import type { AnswerValue, Exchange, ExchangeEvents, Question } from "./exchange.ts";
import { type AddressState, GuardedAddress } from "./guarded-address.ts";
import { invalidRequest } from "./invalid-request.ts";
import { checkLeaseOptions, RemoteLeases } from "./leases/remote-leases.ts";
import type { Address } from "./parse-addresses.ts";
import { parseDeadlineMs } from "./parse-deadline.ts";
import { QuestionLine } from "./question-line.ts";
import type { ConnectOptions, RemoteLimiter, RemoteStats, TlsOptions } from "./remote-limiter.ts";
import { type RemoteTime, systemTime } from "./remote-time.ts";
import { createStopgap, unanswered } from "./when-unavailable.ts";

/** How questions reach an address. */
export type CreateExchange = (address: Address, options: ConnectOptions, events: ExchangeEvents) => Exchange;

/** Servers across a network answer in a few milliseconds; the rest allows for pauses of theirs and ours. */
const usualDeadlineMs = 100;
/** The least time for calls that no request of the app waits for. */
const leastPatienceMs = 1_000;
/**
 * Leases, which are asked for in numbers, wait longer than servers wait for their counters. If those do not answer, the server
 * then says so, and is not blamed for it.
 */
const leasePatienceMs = 2_000;
const usualMaxWaiting = 10_000;
/** What servers take. */
const maxPolicyLength = 256;
const modes: readonly unknown[] = ["open", "closed", "local"];

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
  const degraded: Record<StoreUnavailableReason, number> = {
    storage_unavailable: 0,
    storage_timeout: 0,
    process_starved: 0,
    storage_overloaded: 0,
    storage_full: 0,
  };
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
        onChange: tell,
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

  /** A log that breaks keeps nobody from being asked. */
  function tell(address: string, state: AddressState, why: string): void {
    try {
      onChange?.({ address, state, why });
    } catch {}
  }

  function check(request: CheckRequest): Promise<Decision> {
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
          degraded[outcome.reason] += 1;
          // What the app's own function throws is its caller's to hear.
          new Promise<Decision>((decided) => decided(stopgap.check(request, outcome.reason))).then(resolve, reject);
        }
      });
    });
  }

  /** Asks what nobody's request waits for. */
  function ask(
    question: Question,
    otherwise: (outcome: Unanswered) => AnswerValue | Promise<AnswerValue>,
  ): Promise<AnswerValue> {
    return new Promise((resolve, reject) => {
      line.ask(question, Math.max(deadlineMs, leastPatienceMs), (outcome) => {
        if (outcome.kind === "answer") resolve(outcome.value);
        else if (outcome.kind === "refused") reject(outcome.error);
        else new Promise<AnswerValue>((done) => done(otherwise(outcome))).then(resolve, reject);
      });
    });
  }

  function refuse({ reason, mayBeDone }: Unanswered): never {
    throw unanswered(reason, mayBeDone);
  }

  return {
    check,
    peek: (request) => check({ ...request, preview: true }),
    async charge(request): Promise<void> {
      checkRequest(request, "charged");
      await ask({ kind: "charge", request }, (outcome) =>
        stopgap.charge === undefined ? refuse(outcome) : stopgap.charge(request, outcome.reason),
      );
    },
    async give(receipt: Receipt): Promise<boolean> {
      if (typeof receipt !== "string" || receipt === "") throw invalidRequest("receipt", "must be a text");
      if (stopgap.issued(receipt)) return stopgap.give(receipt);
      return (await ask({ kind: "give", receipt }, refuse)) === true;
    },
    async reset(request): Promise<number> {
      checkRequest(request, "asked");
      const count = await ask({ kind: "reset", request }, refuse);
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
        degraded: { ...degraded },
        addresses: guarded.map(({ stats }) => stats),
        leases: leases?.stats ?? noLeases,
      };
    },
  };
}

/** The stats of leases that are switched off. */
const noLeases: RemoteStats["leases"] = {
  ...{ held: 0, units: 0, decided: 0, calls: 0, refused: 0, failed: 0, granted: 0, returned: 0, lost: 0 },
};

const falseOrObject: OptionForm = {
  holds: (value) => value === false || anObject.holds(value),
  wanted: "false, or an object",
};

const connectForms: OptionForms<ConnectOptions> = {
  whenUnavailable: undefined,
  local: anObject,
  deadline: undefined,
  deadlineMs: undefined,
  token: undefined,
  tls: anObject,
  maxWaiting: undefined,
  leases: falseOrObject,
  onChange: aFunction,
};

/** What it is called elsewhere. */
const foreign = {
  onFailure: "did you mean whenUnavailable?",
  timeout: "did you mean deadlineMs?",
  timeoutMs: "did you mean deadlineMs?",
  onEvent: "did you mean onChange?",
  policies: 'policies are the server\'s; for an outage write whenUnavailable: "local", local: { policies }',
};

const tlsForms: OptionForms<TlsOptions> = { ca: undefined, cert: undefined, key: undefined, serverName: undefined };

function checkConnectOptions(options: ConnectOptions, addresses: readonly Address[]): void {
  checkOptions(options, connectForms, { name: "connect", code: "invalid_request", foreign });
  const { whenUnavailable, token, maxWaiting } = options;
  if (whenUnavailable !== undefined && typeof whenUnavailable !== "function" && !modes.includes(whenUnavailable))
    throw invalidRequest("whenUnavailable", "must be open, closed, local or a function");
  // What is wrong with a token is told without the token.
  if (token !== undefined && (typeof token !== "string" || !/^[\x21-\x7e]+$/.test(token)))
    throw invalidRequest("token", "must be a text of visible ASCII characters");
  if (options.leases) checkLeaseOptions(options.leases);
  if (options.tls !== undefined) checkTls(options.tls, addresses);
  if (maxWaiting !== undefined && !(Number.isInteger(maxWaiting) && maxWaiting >= 1))
    throw invalidRequest("maxWaiting", "must be a whole number of at least 1");
}

function checkTls(tls: TlsOptions, addresses: readonly Address[]): void {
  checkOptions(tls, tlsForms, { name: "tls", code: "invalid_request" });
  if (!addresses.some((address) => address.tls)) throw invalidRequest("tls", "is for grpcs:// and https:// addresses");
  for (const name of ["ca", "cert", "key"] as const) {
    const pem: unknown = tls[name];
    if (pem === undefined || typeof pem === "string" || pem instanceof Uint8Array) continue;
    throw invalidRequest(`tls.${name}`, "must be PEM, as a text or as bytes");
  }
  if (tls.cert !== undefined && tls.key === undefined) throw invalidRequest("tls.key", "must be given with tls.cert");
  if (tls.key !== undefined && tls.cert === undefined) throw invalidRequest("tls.cert", "must be given with tls.key");
  const { serverName } = tls;
  if (serverName !== undefined && (typeof serverName !== "string" || serverName === ""))
    throw invalidRequest("tls.serverName", "must be the name of a host");
}

/** One request that cannot be sent, or is larger than servers take, must not spoil those that travel with it. */
function checkRequest(request: CheckRequest, costs: "asked" | "charged"): void {
  validateRequest(request, costs);
  if (request.limits !== undefined)
    throw invalidRequest("limits", "are for a limiter in this process; a server decides by its policies");
  const { dimensions, domain = "", policies } = request;
  if (domain.length > maxNameLength) throw invalidRequest("domain", `must have at most ${maxNameLength} characters`);
  if (policies?.some((id) => id.length > maxPolicyLength))
    throw invalidRequest("policies", `must have at most ${maxPolicyLength} characters each`);
  let count = 0;
  for (const name in dimensions) {
    count += 1;
    if (name.length === 0 || name.length > maxNameLength)
      throw invalidRequest("dimensions", `must have names of 1 to ${maxNameLength} characters`);
    const value: unknown = dimensions[name];
    if (typeof value === "string" && value.length <= maxDimensionLength) continue;
    const message =
      typeof value === "string"
        ? `must have at most ${maxDimensionLength} characters, but has ${value.length}`
        : `must be a string, not ${value === null ? "null" : typeof value}`;
    throw new SluiceError("invalid_request", `dimensions.${name} ${message}`, [
      { path: ["dimensions", name], message },
    ]);
  }
  if (count > maxDimensions)
    throw invalidRequest("dimensions", `must have at most ${maxDimensions} entries, but has ${count}`);
}
