import type { FastifyPluginCallback, FastifyReply, FastifyRequest, onRequestHookHandler } from "fastify";
import { SluiceError } from "sluice";
import { attachTicket } from "./attach-ticket.ts";
import { createFastifyReader } from "./fastify/create-fastify-reader.ts";
import { type RouteConfig, RouteGates } from "./fastify/route-gates.ts";
import { createGate, type Gate, type Verdict } from "./gate.ts";
import type { Limits } from "./limits.ts";
import { watchResponse } from "./node/watch-response.ts";
import type { RateLimitOptions } from "./rate-limit-options.ts";

export { findTicket } from "./attach-ticket.ts";
export type { RouteLimits } from "./fastify/route-gates.ts";
export type { Limits } from "./limits.ts";
export type { RateLimitOptions, Sent } from "./rate-limit-options.ts";
export type { Ticket } from "./ticket.ts";

/**
 * A plugin for Fastify 5: `app.register(rateLimit("100/m"))`. It limits every route of the instance it is registered on,
 * and requests that match no route. `config: { rateLimit: "5/m" }` gives a route different limits, counted separately;
 * `config: { rateLimit: false }` gives it none.
 *
 * The client's address is Fastify's own (`trustProxy`), unless `trustedProxies` or `ip` is given. The endpoint is the
 * route's pattern, else the path.
 */
export function rateLimit(limits: Limits, options: RateLimitOptions<FastifyRequest> = {}): FastifyPluginCallback {
  refuseInstance(limits);
  const gate: Gate<FastifyRequest> = createGate(createFastifyReader(), limits, options);
  const ofRoutes = new RouteGates(options);
  const plugin: FastifyPluginCallback = (app, _options, done) => {
    // If a route is known early enough, bad limits are refused where they are written.
    app.addHook("onRoute", ({ method, url, config }) => {
      const own = (config as Partial<RouteConfig> | undefined)?.rateLimit;
      if (own !== undefined && own !== false) ofRoutes.create({ method, url }, own);
    });
    app.addHook("onRequest", (request, reply, next) => {
      const config = request.routeOptions.config as Partial<RouteConfig> | undefined;
      if (config?.rateLimit === undefined) return decide(gate, request, reply, next);
      const own = ofRoutes.find(config as RouteConfig);
      return own === undefined ? next() : decide(own, request, reply, next);
    });
    done();
  };
  // Fastify scopes hooks to the plugin that adds them, unless the plugin is marked like this.
  return Object.assign(plugin, {
    [Symbol.for("skip-override")]: true,
    [Symbol.for("fastify.display-name")]: "@sluice/middleware",
  });
}

/** `app.register(rateLimit)` passes the app itself as limits, and `app.register(rateLimit, options)` the plugin options. */
function refuseInstance(limits: unknown): void {
  if (typeof limits !== "object" || limits === null || !("addHook" in limits)) return;
  const message = 'must be given when the plugin is registered: app.register(rateLimit("100/m"))';
  throw new SluiceError("invalid_policies", `the limits ${message}`, [{ path: ["limits"], message }]);
}

/** For a single route: `app.post("/login", { onRequest: limitRoute("5/m") }, handler)`. */
export function limitRoute(limits: Limits, options: RateLimitOptions<FastifyRequest> = {}): onRequestHookHandler {
  const gate: Gate<FastifyRequest> = createGate(createFastifyReader(), limits, options);
  return (request, reply, done) => decide(gate, request, reply, done);
}

function decide(
  gate: Gate<FastifyRequest>,
  request: FastifyRequest,
  reply: FastifyReply,
  done: (error?: Error) => void,
): void {
  const verdict = gate.decide(request);
  if (verdict instanceof Promise) verdict.then((one) => carryOut(gate, request, reply, done, one), done);
  else carryOut(gate, request, reply, done, verdict);
}

function carryOut(
  gate: Gate<FastifyRequest>,
  request: FastifyRequest,
  reply: FastifyReply,
  done: (error?: Error) => void,
  verdict: Verdict,
): void {
  try {
    if (!admit(gate, request, reply, verdict)) return;
  } catch (error) {
    // For example, the app chose a status that does not exist.
    done(error as Error);
    return;
  }
  done();
}

/** Whether the request may go on. If not, it has been answered. */
function admit(gate: Gate<FastifyRequest>, request: FastifyRequest, reply: FastifyReply, verdict: Verdict): boolean {
  if (verdict.kind === "skipped") return true;
  const { headers } = verdict;
  for (const name in headers) reply.header(name, headers[name]);
  if (verdict.kind === "refused") {
    // As bytes, because Fastify adds a charset to the content type of JSON strings.
    reply.code(verdict.status).send(Buffer.from(verdict.body));
    return false;
  }
  const { ticket } = verdict;
  if (ticket === undefined) return true;
  attachTicket(request, ticket);
  if (gate.settles) watchResponse(reply.raw, (sent) => void gate.settle(request, ticket, sent));
  return true;
}
