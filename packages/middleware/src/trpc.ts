import { TRPCError } from "@trpc/server";
import { getHTTPStatusCodeFromError } from "@trpc/server/http";
import { TRPC_ERROR_CODES_BY_KEY } from "@trpc/server/rpc";
import type { Decision } from "sluice";
import { aFunction } from "sluice/internal";
import { attachTicket } from "./attach-ticket.ts";
import { checkedOptions } from "./check-options.ts";
import { createGate, type Passed, type Refused, type RequestReader, type Verdict } from "./gate.ts";
import type { Limits } from "./limits.ts";
import type { RateLimitOptions } from "./rate-limit-options.ts";
import type { RefusalBody } from "./refusal.ts";
import { findRequest } from "./trpc/find-request.ts";
import { findHeaderTarget, type HeaderTarget, setHeaders } from "./trpc/header-target.ts";

export { findTicket } from "./attach-ticket.ts";
export type { Limits } from "./limits.ts";
export type { Ticket } from "./ticket.ts";
export type { HeaderTarget } from "./trpc/header-target.ts";

/** A call of one procedure. A batch is several. */
export interface ProcedureCall<Context> {
  readonly ctx: Context;
  /** The procedure's name in its routers: `post.byId`. */
  readonly path: string;
  readonly type: "query" | "mutation" | "subscription";
  /** Undefined unless `.input()` comes before the limit. */
  readonly input: unknown;
  readonly meta: unknown;
}

/** The outcome of a procedure, to charge by it. */
export interface ProcedureAnswer {
  /** tRPC's HTTP status: 200, or that of the error. */
  readonly status: number;
  /** The procedure's result; of a subscription, its start. Undefined if it failed. */
  readonly data: unknown;
}

type ErrorCode = ConstructorParameters<typeof TRPCError>[0]["code"];

/** The app's own error. */
export interface OwnError {
  readonly code?: ErrorCode | undefined;
  readonly message?: string | undefined;
}

export interface TrpcRateLimitOptions<Context>
  extends Omit<RateLimitOptions<ProcedureCall<Context>, ProcedureAnswer>, "refuse"> {
  /** Where headers go. Default: the context's `resHeaders` or `res` if it has one, else nowhere. */
  readonly response?: ((call: ProcedureCall<Context>) => HeaderTarget | undefined) | undefined;
  /** Another code or message. Fields it omits keep their values. */
  readonly refuse?: ((body: RefusalBody, call: ProcedureCall<Context>) => OwnError | undefined) | undefined;
}

/** A middleware for tRPC 10 and 11 that leaves the procedure's types unchanged. */
export type LimitedProcedure<Context> = <Result>(
  call: ProcedureCall<Context> & { next(more: { ctx: object }): Promise<Result> },
) => Promise<Result>;

/** Why a call was refused: the `cause` of its `TRPCError`. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly problem: RefusalBody;
  /** Undefined if waiting does not help. */
  readonly retryAfterMs: number | undefined;
  /** Undefined for a bad request. */
  readonly decision: Decision | undefined;

  constructor({ problem, decision }: Pick<Refused, "problem" | "decision">) {
    super(problem.detail);
    this.problem = problem;
    this.retryAfterMs = "retry_after_ms" in problem ? problem.retry_after_ms : undefined;
    this.decision = decision;
  }
}

/** The refusal behind an error, for `errorFormatter` and `onError`. Undefined if the error has another cause. */
export function findRefusal({ cause }: { readonly cause?: unknown }): Refusal | undefined {
  return cause instanceof Refusal ? cause : undefined;
}

/**
 * Middleware for tRPC 10 and 11: `t.procedure.use(rateLimit("100/m"))`. The endpoint is the procedure's path, `/post.byId`;
 * there is no method. The client's address is that of the context's `req`, if it has one: Express's and Fastify's own, else
 * the peer of the connection. A call that passes has its ticket in the context: `ctx.rateLimit`, or `findTicket(ctx)`.
 */
export function rateLimit<Context>(
  limits: Limits,
  options: TrpcRateLimitOptions<Context> = {},
): LimitedProcedure<Context> {
  const { refuse, response, ...gateOptions } = checkedOptions(options, { response: aFunction });
  const gate = createGate<ProcedureCall<Context>, ProcedureAnswer>(reader, limits, gateOptions);
  const sendHeaders = (call: ProcedureCall<Context>, headers: Passed["headers"]): void =>
    setHeaders(response === undefined ? findHeaderTarget(call.ctx) : response(call), headers);
  return (call) => {
    const admit = (verdict: Verdict) => {
      if (verdict.kind === "skipped") return call.next({ ctx: {} });
      sendHeaders(call, verdict.headers);
      if (verdict.kind === "refused") throw errorFrom(verdict, refuse?.(verdict.problem, call));
      const { ticket } = verdict;
      if (ticket === undefined) return call.next({ ctx: {} });
      // tRPC copies the symbol that holds the ticket into the new context, like other properties.
      const added = { rateLimit: ticket };
      attachTicket(added, ticket);
      const answering = call.next({ ctx: added });
      if (!gate.settles) return answering;
      return answering.then((result) => {
        void gate.settle(call, ticket, answerFrom(result));
        return result;
      });
    };
    const verdict = gate.decide(call);
    return verdict instanceof Promise ? verdict.then(admit) : admit(verdict);
  };
}

const codes: Readonly<Record<RefusalBody["status"], ErrorCode>> = {
  400: "BAD_REQUEST",
  429: "TOO_MANY_REQUESTS",
  // tRPC 10 has no better code.
  503: "SERVICE_UNAVAILABLE" in TRPC_ERROR_CODES_BY_KEY ? "SERVICE_UNAVAILABLE" : "INTERNAL_SERVER_ERROR",
};

function errorFrom(refused: Refused, { code, message }: OwnError = {}): TRPCError {
  const { problem } = refused;
  return new TRPCError({
    code: code ?? codes[problem.status],
    message: message ?? problem.detail,
    cause: new Refusal(refused),
  });
}

/** `next` never rejects. It resolves with nothing if a later middleware forgot to return its result. */
function answerFrom(result: unknown): ProcedureAnswer {
  const { ok, data, error } = (result ?? {}) as { ok?: boolean; data?: unknown; error?: TRPCError };
  if (ok === true) return { status: 200, data };
  return { status: error === undefined ? 500 : getHTTPStatusCodeFromError(error), data: undefined };
}

const reader: RequestReader<ProcedureCall<unknown>> = {
  method: () => undefined,
  path: ({ path }) => `/${path}`,
  route: () => undefined,
  peer: ({ ctx }) => findRequest(ctx)?.peer,
  ip: ({ ctx }) => findRequest(ctx)?.ip,
  header: ({ ctx }, name) => findRequest(ctx)?.header(name),
};
