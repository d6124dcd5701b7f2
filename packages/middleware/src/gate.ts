import {
  type CheckRequest,
  type Decision,
  type ErrorCode,
  findClientIp,
  type Hold,
  renderHeaders,
  renderProblemBody,
  SluiceError,
} from "sluice";
import { maxHoldAmount } from "sluice/internal";
import { checkOptions } from "./check-options.ts";
import { type AddressReader, createAddressFinder } from "./find-address.ts";
import { isPromiseLike } from "./is-promise-like.ts";
import { type AskedLimiter, type Limits, limiterFrom } from "./limits.ts";
import { OutageWatch } from "./outage-watch.ts";
import type { DimensionValue, Held, RateLimitOptions, Sent } from "./rate-limit-options.ts";
import { badRequestBody, problemType, type RefusalBody } from "./refusal.ts";
import { reportError } from "./report-error.ts";
import { asksForAddress, everything, type RequestNeeds, requestNeeds } from "./request-needs.ts";
import { AdmittedRequest, type Ticket } from "./ticket.ts";
import { warnOncePerMinute } from "./warn-once-per-minute.ts";

/** How an adapter reads its requests. */
export interface RequestReader<Request> extends AddressReader<Request> {
  method(request: Request): string | undefined;
  /** The path as it was sent, with or without its query. */
  path(request: Request): string | undefined;
  /** The pattern of the route, if the framework has matched one already: `/orders/:id`. */
  route(request: Request): string | undefined;
}

/** No limit was checked. */
export interface Skipped {
  readonly kind: "skipped";
}

export interface Passed {
  readonly kind: "passed";
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined if the limiter failed and the request passed without a decision. */
  readonly ticket: Ticket | undefined;
}

export interface Refused {
  readonly kind: "refused";
  readonly status: number;
  /** Names in lower case, `content-type` included. */
  readonly headers: Readonly<Record<string, string>>;
  /** The text to send. Empty if the status allows no body. */
  readonly body: string;
  /** The problem, whatever body the app renders from it: for transports other than HTTP. */
  readonly problem: RefusalBody;
  /** Undefined for a bad request. */
  readonly decision: Decision | undefined;
}

export type Verdict = Skipped | Passed | Refused;

/** What an adapter calls before a request is handled, and after its answer was sent. */
export interface Gate<Request, Answer = Sent> {
  /**
   * Decides, synchronously if counters are in this process and the app's functions are synchronous. Throws (or rejects)
   * only errors of the app's functions, and mistakes in how the middleware was set up.
   */
  decide(request: Request): Verdict | Promise<Verdict>;
  /** Whether `settle` has anything to do. If not, adapters need not watch answers. */
  readonly settles: boolean;
  /** Whether any policy counts by the client's address; undefined if the policies are not known here. */
  readonly asksForAddress: boolean | undefined;
  /** After the answer of a request that passed: charges, or gives back. Never rejects. */
  settle(request: Request, ticket: Ticket, sent: Answer): Promise<void>;
}

const skipped: Skipped = { kind: "skipped" };
const noHeaders: Readonly<Record<string, string>> = {};

export function createGate<Request, Answer = Sent>(
  reader: RequestReader<Request>,
  limits: Limits,
  options: RateLimitOptions<Request, Answer> = {},
): Gate<Request, Answer> {
  checkOptions(options);
  return new MiddlewareGate(reader, limiterFrom(limits, options), options);
}

class MiddlewareGate<Request, Answer> implements Gate<Request, Answer> {
  readonly settles: boolean;
  readonly asksForAddress: boolean | undefined;
  readonly #reader: RequestReader<Request>;
  readonly #limiter: AskedLimiter;
  readonly #options: RateLimitOptions<Request, Answer>;
  readonly #own: readonly (readonly [string, (request: Request) => DimensionValue | Promise<DimensionValue>])[];
  readonly #findAddress: (request: Request) => string | undefined;
  readonly #random: () => number;
  readonly #outages: OutageWatch<Request>;
  #requestNeeds: RequestNeeds;
  #needsSnapshot: AskedLimiter["snapshot"];

  constructor(reader: RequestReader<Request>, limiter: AskedLimiter, options: RateLimitOptions<Request, Answer>) {
    this.#reader = reader;
    this.#limiter = limiter;
    this.#options = options;
    this.#own = Object.entries(options.dimensions ?? {});
    this.#findAddress = createAddressFinder(reader, options);
    this.#random = options.random ?? Math.random;
    const { counters = limiter } = limiter;
    this.#outages = new OutageWatch(counters, limiter.counters?.reportsOutages === true, options.onError);
    this.#requestNeeds = requestNeeds(limiter, options.domain);
    this.#needsSnapshot = limiter.snapshot;
    this.asksForAddress = asksForAddress(limiter, options.domain);
    const { charge, giveBack, hold } = options;
    this.settles = charge !== undefined || giveBack !== undefined || hold !== undefined;
    if (hold !== undefined && limiter.reserve === undefined) throw noHolds();
  }

  decide(request: Request): Verdict | Promise<Verdict> {
    const { skip } = this.#options;
    if (skip === undefined) return this.#ask(request);
    const skips = skip(request);
    if (isPromiseLike(skips)) this.#keepAddress(request);
    return whenReady(skips, (decided) => (decided ? skipped : this.#ask(request)));
  }

  /**
   * Node forgets a client's address when the client hangs up, unless it was read before. Without this, a client that leaves
   * while the app decides would share a counter with all clients of unknown address.
   */
  #keepAddress(request: Request): void {
    try {
      this.#reader.peer(request);
    } catch {
      // Thrown again when the address is needed.
    }
  }

  async settle(request: Request, ticket: Ticket, sent: Answer): Promise<void> {
    const { charge, giveBack } = this.#options;
    if (ticket.hold !== undefined) {
      await this.#settleHold(request, ticket.hold, sent);
      return;
    }
    try {
      if (giveBack !== undefined && (await giveBack(request, sent))) await ticket.giveBack();
    } catch (error) {
      this.#report(error, request, "a request could not be given back");
    }
    try {
      const cost = await charge?.(request, sent);
      if (cost !== undefined && cost !== 0) await ticket.charge(cost);
    } catch (error) {
      this.#report(error, request, "an answer could not be charged");
    }
  }

  /** If the handler settled the hold, or `charge` fails, this only gives back what was not reported. */
  async #settleHold(request: Request, hold: Hold, sent: Answer): Promise<void> {
    let cost: number | undefined;
    try {
      cost = await this.#options.charge?.(request, sent);
    } catch (error) {
      this.#report(error, request, "an answer could not be charged");
    }
    try {
      await hold.settle(Math.min(Math.ceil(cost ?? 0), maxHoldAmount));
    } catch (error) {
      this.#report(error, request, "a hold could not be settled, and expires");
      await hold.cancel().catch(() => undefined);
    }
  }

  #ask(request: Request): Verdict | Promise<Verdict> {
    const { cost, hold } = this.#options;
    if (hold !== undefined) {
      return whenReady(this.#allDimensions(request), (known) =>
        whenReady(typeof hold === "function" ? hold(request) : hold, (held) => this.#reserve(request, known, held)),
      );
    }
    if (this.#own.length === 0 && typeof cost !== "function")
      return this.#check(request, this.#dimensions(request), cost);
    const dimensions = this.#allDimensions(request);
    return whenReady(dimensions, (known) =>
      whenReady(typeof cost === "function" ? cost(request) : cost, (costs) => this.#check(request, known, costs)),
    );
  }

  #check(
    request: Request,
    dimensions: Readonly<Record<string, string>>,
    cost: number | undefined,
  ): Verdict | Promise<Verdict> {
    const { domain, policies, giveBack } = this.#options;
    // A request that costs nothing still gets the rate limit headers.
    const preview = cost === 0 ? true : undefined;
    const receipt = giveBack === undefined ? undefined : true;
    const asked: CheckRequest = { dimensions, domain, policies, cost, preview, receipt };
    const limiter = this.#limiter;
    if (limiter.counters?.local !== true || limiter.checkSync === undefined) {
      return this.#checkAsync(asked).then(
        (decision) => this.#verdict(request, asked, decision),
        (error: unknown) => this.#withoutDecision(request, asked, error),
      );
    }
    let decision: Decision;
    try {
      decision = limiter.checkSync(asked);
    } catch (error) {
      return this.#withoutDecision(request, asked, error);
    }
    return this.#verdict(request, asked, decision);
  }

  #reserve(request: Request, dimensions: Readonly<Record<string, string>>, held: Held): Promise<Verdict> {
    const { domain, policies } = this.#options;
    const asked: CheckRequest = { dimensions, domain, policies };
    const again = (others: Readonly<Record<string, string>>): Promise<Verdict> => this.#reserve(request, others, held);
    return this.#limiter.reserve!({ ...asked, ...(typeof held === "number" ? { estimate: held } : held) }).then(
      (hold) => this.#verdict(request, asked, hold.decision, hold),
      (error: unknown) => this.#withoutDecision(request, asked, error, again),
    );
  }

  /** Turns a throw into a rejection, and promises of other libraries into native ones, which adapters test for. */
  #checkAsync(asked: CheckRequest): Promise<Decision> {
    try {
      return Promise.resolve(this.#limiter.check(asked));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #verdict(request: Request, asked: CheckRequest, decision: Decision, hold?: Hold): Verdict {
    const { headers: generations, onDecision } = this.#options;
    if (onDecision !== undefined) this.#reportDecision(onDecision, decision, request);
    if (decision.degraded !== undefined) this.#outages.degraded(decision, request);
    else if (this.#outages.isOn && decision.limit !== undefined) this.#outages.counted();
    const headers = renderHeaders(decision, { generations, random: this.#random, lowerCase: true, brief: true });
    if (decision.allowed) {
      return { kind: "passed", headers, ticket: new AdmittedRequest(this.#limiter, asked, decision, hold) };
    }
    return this.#refused(request, renderProblemBody(decision), headers, decision);
  }

  #reportDecision(
    onDecision: (decision: Decision, request: Request) => unknown,
    decision: Decision,
    request: Request,
  ): void {
    const returned = onDecision(decision, request);
    if (!isPromiseLike(returned)) return;
    returned.then(undefined, (error: unknown) => this.#report(error, request, "onDecision failed"));
  }

  /**
   * The limiter threw. An address with a port counts as the address, and an invalid address as unknown; anything else that
   * is wrong with the request is answered as a bad request; a mistake of the app is thrown. If the limiter itself failed in
   * a way its policies do not cover, the request passes and the failure is reported.
   */
  #withoutDecision(
    request: Request,
    asked: CheckRequest,
    error: unknown,
    again: (dimensions: Readonly<Record<string, string>>) => Verdict | Promise<Verdict> = (dimensions) =>
      this.#check(request, dimensions, asked.cost),
  ): Verdict | Promise<Verdict> {
    if (error instanceof SluiceError && !brokenCodes.has(error.code)) {
      if (error.code !== "invalid_request") throw error;
      const { ip, ...dimensions } = asked.dimensions ?? {};
      const [problem] = error.problems;
      if (ip !== undefined && problem?.path[1] === "ip") {
        const address = findClientIp({ peer: ip });
        if (address !== undefined) return again({ ...dimensions, ip: address });
        warnOncePerMinute(
          "SLUICE_BAD_ADDRESS",
          "the client's address is not an IP address, so all such requests share a counter; set `trustedProxies` or `ip`",
        );
        return again(dimensions);
      }
      return this.#refused(request, badRequestBody(error), {}, undefined);
    }
    this.#report(error, request, "the limiter failed, and the request passed");
    return { kind: "passed", headers: noHeaders, ticket: undefined };
  }

  #refused(
    request: Request,
    problem: RefusalBody,
    headers: Record<string, string>,
    decision: Decision | undefined,
  ): Refused {
    const { status = problem.status, body = problem, contentType } = this.#options.refuse?.(problem, request) ?? {};
    const text = withoutBody.has(status) ? "" : typeof body === "string" ? body : JSON.stringify(body);
    headers["content-type"] =
      contentType ?? (body === problem ? problemType : typeof body === "string" ? plainText : json);
    headers["cache-control"] = "no-store";
    return { kind: "refused", status, headers, body: text, problem, decision };
  }

  #dimensions(request: Request): Record<string, string> {
    const dimensions: Record<string, string> = {};
    const needs = this.#needs();
    const endpoint = needs.forEndpoint ? this.#endpoint(request) : undefined;
    if (endpoint !== undefined) dimensions.endpoint = endpoint;
    const method = needs.forMethod ? this.#reader.method(request) : undefined;
    if (method !== undefined) dimensions.method = method;
    if (!needs.forAddress) return dimensions;
    const ip = this.#findAddress(request);
    if (ip !== undefined) dimensions.ip = ip;
    else this.#warnAboutAddress();
    return dimensions;
  }

  #allDimensions(request: Request): Record<string, string> | Promise<Record<string, string>> {
    const dimensions = this.#dimensions(request);
    let waiting: Promise<void>[] | undefined;
    for (const [name, read] of this.#own) {
      try {
        const value = whenReady(read(request), (known) => setDimension(dimensions, name, known));
        if (value === undefined) continue;
        waiting ??= [];
        waiting.push(value);
      } catch (error) {
        if (waiting === undefined) throw error;
        // Pending reads may reject as well; Promise.all handles those rejections.
        waiting.push(Promise.reject(error));
        break;
      }
    }
    return waiting === undefined ? dimensions : Promise.all(waiting).then(() => dimensions);
  }

  /** Reading a request costs time, so only what a policy uses is read. Policies may be replaced at any time. */
  #needs(): RequestNeeds {
    const { snapshot, subjects } = this.#limiter;
    // Limits of single subjects may use any dimension, and change without a new snapshot.
    if (subjects?.size !== 0 || this.#options.policies !== undefined) return everything;
    if (snapshot !== this.#needsSnapshot) {
      this.#needsSnapshot = snapshot;
      this.#requestNeeds = requestNeeds(this.#limiter, this.#options.domain);
    }
    return this.#requestNeeds;
  }

  #endpoint(request: Request): string | undefined {
    const { endpoint = "route" } = this.#options;
    if (typeof endpoint === "function") return endpoint(request);
    const route = endpoint === "route" ? this.#reader.route(request) : undefined;
    return route ?? withoutQuery(this.#reader.path(request));
  }

  #warnAboutAddress(): void {
    warnOncePerMinute(
      "SLUICE_NO_ADDRESS",
      "the client's address is unknown, so all such requests share a counter; set `trustedProxies` or `ip`",
    );
  }

  #report(error: unknown, request: Request, what: string): void {
    reportError(this.#options.onError, error, request, "SLUICE_LIMITER_FAILED", what);
  }
}

function noHolds(): SluiceError {
  const message = "needs a limiter in this process, with counters that keep holds";
  return new SluiceError("not_holdable", `hold ${message}`, [{ path: ["hold"], message }]);
}

/** Errors of a remote limiter that neither the request nor the app's options cause, such as a revoked token. */
const brokenCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "unauthenticated",
  "permission_denied",
  "not_ready",
  "overloaded",
  "internal",
]);

/** Statuses without a body. The Fetch API throws if one of these gets a body. */
const withoutBody: ReadonlySet<number> = new Set([204, 205, 304]);
const plainText = "text/plain; charset=utf-8";
const json = "application/json; charset=utf-8";

/** A value of another type is the app's mistake: as a string it would be the same for all clients. */
function setDimension(dimensions: Record<string, string>, name: string, value: DimensionValue): void {
  if (value === undefined || value === null || value === "") delete dimensions[name];
  else if (typeof value === "string") dimensions[name] = value;
  else if (typeof value === "number" || typeof value === "bigint") dimensions[name] = String(value);
  else throw new TypeError(`dimensions.${name} must return a string or a number, not ${typeof value}`);
}

/** Continues synchronously if there is nothing to wait for. Thenables, such as database queries, count as promises. */
function whenReady<Value, Result>(
  value: Value | PromiseLike<Value>,
  go: (value: Value) => Result | Promise<Result>,
): Result | Promise<Result> {
  return isPromiseLike(value) ? Promise.resolve(value).then(go) : go(value);
}

/** A query says nothing about the endpoint, and may be longer than any dimension. */
function withoutQuery(path: string | undefined): string | undefined {
  const queryAt = path === undefined ? -1 : path.indexOf("?");
  return queryAt === -1 ? path : path!.slice(0, queryAt);
}
