import { SluiceError } from "sluice";
import { aFunction } from "sluice/internal";
import { attachTicket } from "./attach-ticket.ts";
import { checkedOptions } from "./check-options.ts";
import { pathFromUrl } from "./fetch/path-from-url.ts";
import { watchAnswer } from "./fetch/watch-answer.ts";
import { withHeaders } from "./fetch/with-headers.ts";
import { createGate, type Gate, type Passed, type Refused, type Verdict } from "./gate.ts";
import { isPromiseLike } from "./is-promise-like.ts";
import type { Limits } from "./limits.ts";
import type { RateLimitOptions, Sent } from "./rate-limit-options.ts";

export { findTicket } from "./attach-ticket.ts";
export type { Limits } from "./limits.ts";
export type { RateLimitOptions, Sent } from "./rate-limit-options.ts";
export type { Ticket } from "./ticket.ts";

// biome-ignore lint/suspicious/noExplicitAny: what a runtime passes after the request is between it and the app.
type Rest = any[];

/** `rest` are the runtime's arguments after the request: Bun's server, Deno's info, a Worker's environment. */
export interface FetchOptions extends Omit<RateLimitOptions<Request>, "ip"> {
  /** The client's address: on Cloudflare `(request) => request.headers.get("cf-connecting-ip") ?? undefined`. */
  readonly ip?: ((request: Request, ...rest: Rest) => string | undefined) | undefined;
  /**
   * The address at the other end of the connection, if the runtime knows it: `(request, server) =>
   * server.requestIP(request)?.address` in Bun, `(_request, info) => info.remoteAddr.hostname` in Deno. It is the client's,
   * unless it is one of the `trustedProxies`.
   */
  readonly peer?: ((request: Request, ...rest: Rest) => string | undefined) | undefined;
  /**
   * Keeps the runtime awake until an answer has been charged or given back: in a Worker
   * `(settled, _request, _env, context) => context.waitUntil(settled)`.
   */
  readonly waitUntil?: ((settled: Promise<void>, request: Request, ...rest: Rest) => void) | undefined;
  /** The status the runtime sends for an error that a handler throws, to charge by it. Default: 500 for every error. */
  readonly statusFromThrown?: ((thrown: unknown) => number) | undefined;
}

/** A handler's answer. Bun's handlers return nothing after an upgrade. */
type Answer = Response | undefined;

/** Puts limits before a handler, which gets the same arguments as without them. */
export type Guard = <Arguments extends readonly [request: Request, ...rest: Rest], Answered extends Answer>(
  handler: (...args: Arguments) => Answered | Promise<Answered>,
) => (...args: [...Arguments, ...Rest]) => Answered | Response | Promise<Answered | Response>;

/**
 * For functions from a `Request` to a `Response`, as in Bun, Deno, Workers and many frameworks:
 * `Bun.serve({ fetch: rateLimit("100/m", { peer })(handler) })`. The Fetch API does not expose the client's address, so
 * limits by address need `ip`, `peer` or the number of `trustedProxies`; without one of them they are refused here. An
 * error that the handler throws passes through, and the runtime's answer to it carries no rate limit headers.
 */
export function rateLimit(limits: Limits, options: FetchOptions = {}): Guard {
  const { ip, peer, waitUntil, statusFromThrown, ...gateOptions } = checkedOptions(options, ownForms);
  const rests = new WeakMap<Request, Rest>();
  const withRest = (find: (request: Request, ...rest: Rest) => string | undefined) => (request: Request) =>
    find(request, ...rests.get(request)!);
  const readPeer = peer === undefined ? () => undefined : withRest(peer);
  const gate: Gate<Request> = createGate<Request>(
    {
      method: (request) => request.method,
      path: (request) => pathFromUrl(request.url),
      route: () => undefined,
      peer: readPeer,
      ip: readPeer,
      header: (request, name) => request.headers.get(name) ?? undefined,
    },
    limits,
    { ...gateOptions, ip: ip === undefined ? undefined : withRest(ip) },
  );
  refuseWithoutAddress(gate, options);
  const needsRest = ip !== undefined || peer !== undefined;

  return (handler) =>
    (...args) => {
      const [request, ...rest] = args;
      if (needsRest) rests.set(request, rest);
      // TypeScript cannot infer that a handler gets at least its own arguments.
      const handle = handler as (...args: Rest) => ReturnType<typeof handler>;
      const carryOut = (verdict: Verdict) => {
        if (verdict.kind === "refused") return renderRefusal(request, verdict);
        if (verdict.kind === "skipped") return handle(...args);
        const keepAwake = (settled: Promise<void>) => waitUntil?.(settled, request, ...rest);
        return passOn(gate, request, verdict, () => handle(...args), keepAwake, statusFromThrown);
      };
      const verdict = gate.decide(request);
      return verdict instanceof Promise ? verdict.then(carryOut) : carryOut(verdict);
    };
}

const ownForms = { peer: aFunction, waitUntil: aFunction, statusFromThrown: aFunction };

function passOn<Answered extends Answer>(
  gate: Gate<Request>,
  request: Request,
  { headers, ticket }: Passed,
  handle: () => Answered | Promise<Answered>,
  keepAwake: (settled: Promise<void>) => void,
  statusFromThrown: (thrown: unknown) => number = () => 500,
): Answered | Response | Promise<Answered | Response> {
  if (ticket !== undefined) attachTicket(request, ticket);
  let settle: ((sent: Sent) => void) | undefined;
  if (gate.settles && ticket !== undefined) {
    const settled = new Promise<void>((resolve) => {
      settle = (sent) => resolve(gate.settle(request, ticket, sent));
    });
    keepAwake(settled);
  }
  const failed = (error: unknown): never => {
    settle?.({ status: statusFromThrown(error), bytes: 0 });
    throw error;
  };
  const answered = (answer: Answered): Answered | Response => {
    if (answer === undefined) {
      settle?.({ status: 101, bytes: 0 });
      return answer;
    }
    const response = withHeaders(answer, headers);
    return settle === undefined ? response : watchAnswer(request, response, settle);
  };
  let answer: Answered | Promise<Answered>;
  try {
    answer = handle();
  } catch (error) {
    return failed(error);
  }
  // Handlers may come from another realm, whose promises are not instances of this one's.
  return isPromiseLike(answer) ? Promise.resolve(answer).then(answered, failed) : answered(answer);
}

function renderRefusal({ method }: Request, { status, headers, body }: Refused): Response {
  return new Response(method === "HEAD" || body === "" ? null : body, { status, headers });
}

function refuseWithoutAddress({ asksForAddress }: Gate<Request>, { ip, peer, trustedProxies = 0 }: FetchOptions): void {
  const findsAddress =
    ip !== undefined || peer !== undefined || (typeof trustedProxies === "number" && trustedProxies > 0);
  if (findsAddress || asksForAddress !== true) return;
  const message =
    "is required, or `peer`, or the number of `trustedProxies`: these limits count by the client's address, which the " +
    "Fetch API does not expose";
  throw new SluiceError("invalid_policies", `ip ${message}`, [{ path: ["ip"], message }]);
}
