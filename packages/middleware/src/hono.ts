import type { IncomingMessage, ServerResponse } from "node:http";
import type { Context, Env, MiddlewareHandler } from "hono";
import type { RouterRoute } from "hono/types";
import { findTargetHandler } from "hono/utils/handler";
import type { StatusCode } from "hono/utils/http-status";
import { aFunction } from "sluice/internal";
import { attachTicket } from "./attach-ticket.ts";
import { checkedOptions } from "./check-options.ts";
import { pathFromUrl } from "./fetch/path-from-url.ts";
import { watchAnswer } from "./fetch/watch-answer.ts";
import { withHeaders } from "./fetch/with-headers.ts";
import { createGate, type Gate, type Verdict } from "./gate.ts";
import type { Limits } from "./limits.ts";
import { watchResponse } from "./node/watch-response.ts";
import type { RateLimitOptions, Sent } from "./rate-limit-options.ts";

export { findTicket } from "./attach-ticket.ts";
export type { Limits } from "./limits.ts";
export type { RateLimitOptions, Sent } from "./rate-limit-options.ts";
export type { Ticket } from "./ticket.ts";

export interface HonoOptions<E extends Env> extends RateLimitOptions<Context<E>> {
  /**
   * The address at the other end of the connection: `(c) => getConnInfo(c).remote.address`, by the `getConnInfo` of the
   * runtime. It is the client's, unless it is one of the `trustedProxies`. Default: as @hono/node-server reports it.
   */
  readonly peer?: ((c: Context<E>) => string | undefined) | undefined;
}

// biome-ignore lint/suspicious/noExplicitAny: Hono's own middleware is typed this way, to fit every app.
type AnyEnv = any;

/**
 * Middleware for Hono 4: `app.use(rateLimit("100/m"))`, or before a single route. The endpoint is the pattern of the route that
 * will answer, else the path. The client's address is that of the connection, unless `trustedProxies` or `ip` is given. If
 * Hono does not run on Node, give `peer` or `ip`.
 */
export function rateLimit<E extends Env = AnyEnv>(limits: Limits, options: HonoOptions<E> = {}): MiddlewareHandler<E> {
  const { peer, ...gateOptions } = checkedOptions(options, { peer: aFunction });
  const readPeer = peer ?? peerOnNode;
  const gate: Gate<Context<E>> = createGate<Context<E>>(
    {
      method: (c) => c.req.method,
      path: (c) => pathFromUrl(c.req.url),
      route: findRoute,
      peer: readPeer,
      ip: readPeer,
      header: (c, name) => c.req.header(name),
    },
    limits,
    gateOptions,
  );
  return async (c, next) => {
    const decided = gate.decide(c);
    const verdict: Verdict = decided instanceof Promise ? await decided : decided;
    if (verdict.kind === "skipped") return next();
    if (verdict.kind === "refused") {
      const { status, headers, body } = verdict;
      return c.newResponse(body === "" ? null : body, status as StatusCode, { ...headers });
    }
    const { ticket, headers } = verdict;
    if (ticket !== undefined) attachTicket(c, ticket);
    const settle = gate.settles && ticket !== undefined ? (sent: Sent) => gate.settle(c, ticket, sent) : undefined;
    const outgoing = settle && (c.env as Partial<NodeBindings> | undefined)?.outgoing;
    if (outgoing !== undefined) watchResponse(outgoing, settle!);
    try {
      await next();
    } catch (error) {
      // Hono has already answered errors that handlers throw, unless the value is not an `Error` or there was no handler.
      setHeaders(c, headers);
      if (outgoing === undefined) void settle?.({ status: 500, bytes: 0 });
      throw error;
    }
    setHeaders(c, headers);
    if (settle !== undefined && outgoing === undefined) watchOffNode(c, settle);
    return undefined;
  };
}

/** `c.env` of @hono/node-server. A WebSocket handshake has no `outgoing`. */
interface NodeBindings {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse | undefined;
}

function peerOnNode(c: Context): string | undefined {
  return (c.env as Partial<NodeBindings> | undefined)?.incoming?.socket?.remoteAddress;
}

function setHeaders(c: Context, headers: Readonly<Record<string, string>>): void {
  if (!c.finalized) for (const name in headers) c.header(name, headers[name]!);
  else replaceAnswer(c, withHeaders(c.res, headers));
}

function watchOffNode(c: Context, settle: (sent: Sent) => Promise<void>): void {
  if (!c.finalized) {
    void settle({ status: 500, bytes: 0 });
    return;
  }
  const settled = new Promise<void>((resolve) => {
    replaceAnswer(
      c,
      watchAnswer(c.req.raw, c.res, (sent) => resolve(settle(sent))),
    );
  });
  try {
    c.executionCtx.waitUntil(settled);
  } catch {
    // Only Workers have a context with `waitUntil`.
  }
}

function replaceAnswer(c: Context, answer: Response): void {
  if (answer === c.res) return;
  // Otherwise Hono would copy the old answer's header fields onto the new one, which has them already.
  c.res = undefined;
  c.res = answer;
}

/**
 * The pattern of the route that will answer: the first after this middleware that does not take `next`, else the last that
 * is not for all methods. A wildcard for all methods is middleware, or says no more than the path does.
 */
function findRoute(c: Context): string | undefined {
  // Not with the function of `hono/route`: an app that loads Hono with `require` has another copy, which that one cannot read.
  const routes = c.req.matchedRoutes
    .slice(c.req.routeIndex + 1)
    .filter(({ method, path }) => !(method === "ALL" && path.endsWith("*")) && path !== "/*");
  const route = routes.find(answers) ?? routes.findLast(({ method }) => method !== "ALL");
  return route?.path;
}

function answers({ handler }: RouterRoute): boolean {
  return findTargetHandler(handler).length < 2;
}
