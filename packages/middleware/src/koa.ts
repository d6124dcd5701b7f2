import type { Context, Middleware } from "koa";
import { createGate, type Gate, type Refused, type RequestReader, type Verdict } from "./gate.ts";
import type { Limits } from "./limits.ts";
import { admitNodeRequest } from "./node/admit-node-request.ts";
import type { RateLimitOptions } from "./rate-limit-options.ts";
import { warnOncePerMinute } from "./warn-once-per-minute.ts";

export { findTicket } from "./attach-ticket.ts";
export type { Limits } from "./limits.ts";
export type { RateLimitOptions, Sent } from "./rate-limit-options.ts";
export type { Ticket } from "./ticket.ts";

/**
 * Middleware for Koa 2 and 3: `app.use(rateLimit("100/m"))`, or before a single route of a router. The endpoint is the route's
 * pattern if @koa/router has matched one, else the path.
 *
 * The client's address is that of the connection, unless `trustedProxies` or `ip` is given. Koa's own `ctx.ip` is not
 * used: with `app.proxy` it is the leftmost address of `X-Forwarded-For`, which the client chooses. Only if
 * `app.maxIpsCount` is set as well does Koa count that many proxies from the right, and its address is trusted.
 */
export function rateLimit(limits: Limits, options: RateLimitOptions<Context> = {}): Middleware {
  const gate: Gate<Context> = createGate(reader, limits, options);
  return (context, next) => {
    const carryOut = (verdict: Verdict): Promise<unknown> | undefined => {
      if (verdict.kind === "refused") {
        refuse(context, verdict);
        return undefined;
      }
      admitNodeRequest(gate, context, context.res, verdict);
      if (verdict.kind === "passed") keepHeadersOfErrors(context, verdict.headers);
      return next();
    };
    const verdict = gate.decide(context);
    return verdict instanceof Promise ? verdict.then(carryOut) : carryOut(verdict);
  };
}

/** Answers through Koa's context, so that middleware before this one can still add to it. */
function refuse(context: Context, { status, headers, body }: Refused): void {
  context.set({ ...headers });
  context.status = status;
  context.body = body;
}

/** Koa removes every header field before it answers an error. This keeps the rate limit headers. */
function keepHeadersOfErrors(context: Context, headers: Readonly<Record<string, string>>): void {
  const { onerror } = context;
  context.onerror = (error) => {
    const { res } = context;
    // Koa reads this at the end of every answer.
    if (res.headersSent) {
      onerror.call(context, error);
      return;
    }
    const { removeHeader } = res;
    const rateLimitHeaders = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
    res.removeHeader = (name) => {
      if (!rateLimitHeaders.has(name.toLowerCase())) removeHeader.call(res, name);
    };
    try {
      onerror.call(context, error);
    } finally {
      res.removeHeader = removeHeader;
    }
  };
}

const reader: RequestReader<Context> = {
  method: (context) => context.method,
  path: (context) => context.originalUrl,
  route: findRoute,
  peer: (context) => context.req.socket.remoteAddress,
  ip: (context) => {
    const { proxy, maxIpsCount } = context.app;
    if (!proxy) return context.req.socket.remoteAddress;
    if (maxIpsCount > 0) return context.ip;
    warnOncePerMinute(
      "SLUICE_PROXY_NOT_BELIEVED",
      "with `app.proxy` alone Koa trusts an address that the client wrote, so limits count by the connection's address, " +
        "which is a proxy's; set `trustedProxies` or `app.maxIpsCount`",
    );
    return context.req.socket.remoteAddress;
  },
  header: (context, name) => context.req.headers[name],
};

/** Set on the context by @koa/router: every layer that matches the path, and the path of the one that runs. */
interface RoutedContext {
  readonly matched?: readonly { readonly path: unknown; readonly methods: readonly string[] }[];
  readonly routerPath?: unknown;
}

/** A layer without methods is middleware. The first other layer answers, unless a later one is running already. */
function findRoute(context: Context): string | undefined {
  const { matched, routerPath } = context as RoutedContext;
  const routes = matched?.filter(({ methods }) => methods.includes(context.method));
  const path = (routes?.find((layer) => layer.path === routerPath) ?? routes?.[0])?.path;
  return typeof path === "string" ? path : undefined;
}
