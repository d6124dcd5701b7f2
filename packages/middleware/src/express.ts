import type { Request, RequestHandler } from "express";
import { createGate, type Gate, type RequestReader, type Verdict } from "./gate.ts";
import type { Limits } from "./limits.ts";
import { admitNodeRequest } from "./node/admit-node-request.ts";
import type { RateLimitOptions } from "./rate-limit-options.ts";
import { warnAboutTrustedProxies } from "./warn-about-trusted-proxies.ts";

export { findTicket } from "./attach-ticket.ts";
export type { Limits } from "./limits.ts";
export type { RateLimitOptions, Sent } from "./rate-limit-options.ts";
export type { Ticket } from "./ticket.ts";

/**
 * Middleware for Express 4 and 5: `app.use(rateLimit("100/m"))`, or before a single route. The client's address is Express's
 * own (`trust proxy`), unless `trustedProxies` or `ip` is given. The endpoint is the route's pattern if the middleware is
 * attached to a route, else the path.
 */
export function rateLimit(limits: Limits, options: RateLimitOptions<Request> = {}): RequestHandler {
  const gate: Gate<Request> = createGate(reader, limits, options);
  return (request, response, next) => {
    const admit = (verdict: Verdict): void => {
      try {
        if (!admitNodeRequest(gate, request, response, verdict)) return;
      } catch (error) {
        next(error);
        return;
      }
      next();
    };
    let verdict: Verdict | Promise<Verdict>;
    try {
      verdict = gate.decide(request);
    } catch (error) {
      next(error);
      return;
    }
    if (verdict instanceof Promise) verdict.then(admit, next);
    else admit(verdict);
  };
}

const reader: RequestReader<Request> = {
  method: (request) => request.method,
  path: (request) => request.originalUrl,
  route: (request) => {
    const path: unknown = request.route?.path;
    return typeof path === "string" ? request.baseUrl + path : undefined;
  },
  peer: (request) => request.socket.remoteAddress,
  ip: (request) => {
    if (request.app.get("trust proxy") === true) warnAboutTrustedProxies("Express", "trust proxy");
    return request.ip;
  },
  header: (request, name) => request.headers[name],
};
