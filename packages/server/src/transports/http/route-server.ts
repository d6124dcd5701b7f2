import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type FastifyError, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import { type ErrorCode, SluiceError } from "sluice";
import type { Caller } from "../../access/access.ts";
import { RateLimited } from "../../service/rate-limited.ts";
import type { Service } from "../../service/service.ts";
import type { RequestSpan, TraceCarrier } from "../../telemetry/tracing.ts";
import type { Protocol, Transport } from "../transport.ts";
import { answerClientError, maxHeaderBytes, maxHeaders } from "./client-errors.ts";
import { followConnections } from "./connections.ts";
import { type ErrorBody, errorResponse, renderError, renderErrorBody } from "./errors.ts";
import type { HttpResponse, PathParameters } from "./exchange.ts";
import { maxBodyBytes, parseJsonBody, parseTextBody } from "./json-body.ts";
import { type BodyType, readBody } from "./read-body.ts";
import type { Route } from "./route.ts";
import { writeResponse } from "./write-response.ts";

/** Who asks, and what is told them beside any answer. */
export interface Admission {
  readonly caller: Caller;
  readonly headers?: HttpResponse["headers"] | undefined;
}

/** Lets a request come to its handler, before its body is read, or throws. */
export type Admit<R> = (request: IncomingMessage, route: R, params: PathParameters) => Admission;

export interface RouteServerOptions<Context extends Service, R extends Route<Context, string>> extends Patience {
  readonly protocol: Protocol;
  readonly routes: readonly R[];
  readonly context: Context;
  readonly admit: Admit<R>;
  /** Headers of every answer of a route, whatever it is; undefined: of answers to what is no route. */
  readonly headersOf?: ((route: R | undefined) => HttpResponse["headers"]) | undefined;
}

/** How long clients are waited for. */
export interface Patience {
  /** How long a client may leave its answer unread. Absent: 30 s. */
  readonly unreadMs?: number;
  /** How long a request may take to arrive: its headers, and the whole of it. Absent: 10 s, 30 s. */
  readonly headersWithinMs?: number;
  readonly requestWithinMs?: number;
}

/** Longer than the usual 60 s of load balancers, so that it is they who hang up. */
const keepAliveMs = 72_000;

/** HTTP/1.1 over a route table. Knows of bytes, headers and connections; handlers know of nothing else. */
export async function createRouteServer<Context extends Service, R extends Route<Context, string>>(
  options: RouteServerOptions<Context, R>,
): Promise<Transport> {
  const { protocol, routes, context, admit, headersOf } = options;
  const { unreadMs = 30_000, headersWithinMs = 10_000, requestWithinMs = 30_000 } = options;
  const app = fastify({
    logger: false,
    http: {
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: headersWithinMs,
      connectionsCheckingInterval: Math.min(1_000, headersWithinMs),
      // A missing Host is refused below, in our own words.
      requireHostHeader: false,
    },
    // While an answer is being sent; between requests `keepAliveTimeout` takes its place.
    connectionTimeout: unreadMs,
    requestTimeout: requestWithinMs,
    keepAliveTimeout: keepAliveMs,
    maxRequestsPerSocket: 1_000_000,
    // A request that comes over a connection we are about to close is answered, not turned away.
    return503OnClosing: false,
    exposeHeadRoutes: false,
    // What is too long for a handler is refused by it, and is not a path that is not there.
    routerOptions: { maxParamLength: maxHeaderBytes },
    clientErrorHandler: answerClientError,
    frameworkErrors: (error, request, reply) => sendError(error, request, reply),
  });
  app.server.maxHeadersCount = maxHeaders;
  app.server.on("checkExpectation", (_request: IncomingMessage, response: ServerResponse) => {
    const body = renderErrorBody(417, "invalid_request", "the only Expect that is understood is 100-continue");
    writeResponse(response, errorResponse(body), true);
  });

  const connections = followConnections(app.server);

  function send(route: string, { raw, request }: FastifyReply, answered: HttpResponse, close = false): void {
    const { besideAnswer } = request;
    const response =
      besideAnswer === undefined ? answered : { ...answered, headers: { ...besideAnswer, ...answered.headers } };
    // Who keeps a connection to a server that is about to stop is told to open the next one elsewhere.
    writeResponse(raw, response, close || connections.draining || !context.accepting());
    // What is no URL is refused before anything else, and at once.
    const seconds = request.sinceMs === 0 ? 0 : (performance.now() - request.sinceMs) / 1_000;
    context.metrics.countHttpRequest(raw.req.method ?? "", route, response.status, seconds);
    request.span?.end({ status: response.status, ...(response.status === 500 && { error: "internal" }) });
  }

  function sendError(error: FastifyError | Error, request: FastifyRequest, reply: FastifyReply): void {
    const body = bodyOfError(error);
    const route = routeOf(request);
    // That counters are away is said once, by who looks after them, and what is shed is counted.
    const foreseen = foreseenOutages.has(body.code);
    if (body.status >= 500 && !foreseen) context.log.error({ err: error, route }, "a request failed");
    if (reply.raw.headersSent) {
      reply.raw.destroy();
      return;
    }
    send(route, reply, errorResponse(body, error instanceof RateLimited ? error.headers : undefined));
  }

  app.setErrorHandler(sendError);
  app.decorateRequest("caller");
  app.decorateRequest("span");
  app.decorateRequest("sinceMs", 0);
  app.decorateRequest("besideAnswer");
  const besideUnrouted = headersOf?.(undefined);
  app.addHook("onRequest", (request, reply, done) => {
    request.sinceMs = performance.now();
    request.besideAnswer = besideUnrouted;
    // Before any body is read: what is wrong with a body nobody asked for is of no interest.
    if (request.headers.host === undefined && request.raw.httpVersion === "1.1")
      send(routeOf(request), reply, withoutHost);
    else if (request.is404) send("unmatched", reply, answerUnrouted(request, routes));
    else done();
  });
  for (const route of routes) {
    const { path, handle, bodies, bodyTypes, bodyAsText, maxBodyBytes: maxBytes = maxBodyBytes } = route;
    const spanName = `${route.method} ${path}`;
    const besideAnswers = headersOf?.(route);

    function isText(type: BodyType): boolean {
      return type === "yaml" || bodyAsText === true;
    }

    function answer(request: FastifyRequest, reply: FastifyReply, buffer: Buffer | undefined, type: BodyType): void {
      const { raw, caller, span } = request;
      try {
        const asked = {
          url: raw.url ?? "",
          params: request.params as PathParameters,
          body: buffer === undefined || isText(type) ? undefined : parseJsonBody(buffer),
          yaml: buffer === undefined || !isText(type) ? undefined : parseTextBody(buffer),
          bodyBytes: buffer?.length ?? 0,
          headers: raw.headers,
          rawHeaders: raw.rawHeaders,
          caller,
          socket: raw.socket,
        };
        const traced = span === undefined ? context : { ...context, decide: span.around(context.decide) };
        const answered = handle(asked, traced);
        // A body that nobody reads may never come, and what comes next would be taken for it.
        const close = bodies === undefined && announcesBody(raw.headers);
        if (!(answered instanceof Promise)) send(path, reply, answered, close);
        else
          answered
            .then((response) => send(path, reply, response, close))
            .catch((error: Error) => sendError(error, request, reply));
      } catch (error) {
        sendError(error as Error, request, reply);
      }
    }

    app.route({
      method: [...methodsOf(route)],
      url: path.replaceAll(/\{(\w+)\}/g, ":$1"),
      // Before the body is read: strangers are not listened to.
      onRequest: (request, reply) => {
        if (context.tracing !== undefined)
          request.span = context.tracing.start(protocol, spanName, carrierOf(request.headers));
        request.besideAnswer = besideAnswers;
        const { caller, headers } = admit(request.raw, route, request.params as PathParameters);
        request.caller = caller;
        if (headers !== undefined) request.besideAnswer = { ...besideAnswers, ...headers };
        if (bodies === undefined) answer(request, reply, undefined, "json");
        else
          readBody(
            request.raw,
            maxBytes,
            (read) => {
              if (read.kind === "read") answer(request, reply, read.body, read.type);
              else send(path, reply, errorResponse(read.error), read.close);
            },
            bodyTypes,
          );
      },
      // All is answered before.
      handler: () => {},
    });
  }

  await app.ready();
  // Node looks for slow requests from the moment that a server listens, which a door does for this one.
  app.server.emit("listening");

  return {
    accept(socket: Socket): void {
      app.server.emit("connection", socket);
    },
    async drain(withinMs: number): Promise<number> {
      const cut = await connections.drain(withinMs);
      await app.close();
      return cut;
    },
  };
}

declare module "fastify" {
  interface FastifyRequest {
    caller: Caller;
    /** When it began. */
    sinceMs: number;
    /** Undefined where it is not recorded. */
    span: RequestSpan | undefined;
    /** Headers of its answer, whatever that is. */
    besideAnswer: HttpResponse["headers"] | undefined;
  }
}

/** Where in a trace the request was sent. */
function carrierOf({ traceparent, tracestate }: IncomingHttpHeaders): TraceCarrier {
  return { traceparent, tracestate };
}

function announcesBody(headers: IncomingHttpHeaders): boolean {
  const { "content-length": length, "transfer-encoding": encoding } = headers;
  return encoding !== undefined || (length !== undefined && length !== "0");
}

const withoutHost: HttpResponse = errorResponse(
  renderErrorBody(400, "invalid_request", "the header Host is missing, which every HTTP/1.1 request has"),
);

function routeOf(request: FastifyRequest): string {
  const { url } = request.routeOptions;
  return request.is404 || url === undefined ? "unmatched" : url.replaceAll(/:(\w+)/g, "{$1}");
}

/** Most paths that are named to who asked for one that is not there. */
const maxNamedPaths = 20;

function answerUnrouted(
  request: FastifyRequest,
  routes: readonly Pick<Route, "method" | "alsoMethods" | "path">[],
): HttpResponse {
  const path = request.url.replace(/[?#].*$/s, "");
  const methods = routes.filter((route) => isAtPath(route.path, path)).flatMap(methodsOf);
  if (methods.length === 0) {
    const paths = [...new Set(routes.map((route) => route.path))];
    const there =
      paths.length > maxNamedPaths ? "GET /openapi.json lists what there is" : `there is ${paths.join(", ")}`;
    return errorResponse(renderErrorBody(404, "not_found", `there is nothing at this path; ${there}`));
  }
  const allow = methods.join(", ");
  return errorResponse(renderErrorBody(405, "not_found", `this path answers ${allow} only`), { allow });
}

/** Whether a path is one of those that a route's path, with `{id}` in it, stands for. */
function isAtPath(pattern: string, path: string): boolean {
  const [steps, taken] = [pattern.split("/"), path.split("/")];
  return (
    steps.length === taken.length &&
    steps.every((step, at) => (step.startsWith("{") ? taken[at] !== "" : step === taken[at]))
  );
}

function methodsOf({ method, alsoMethods = [] }: Pick<Route, "method" | "alsoMethods">): readonly string[] {
  return method === "GET" ? ["GET", "HEAD", ...alsoMethods] : [method, ...alsoMethods];
}

/** Outages that are told once, by who looks after what is away. */
const foreseenOutages: ReadonlySet<ErrorCode> = new Set([
  "store_unavailable",
  "policy_store_unavailable",
  "overloaded",
]);

function bodyOfError(error: FastifyError | Error): ErrorBody {
  if (error instanceof SluiceError) return renderError(error);
  const { statusCode = 500 } = error as Partial<FastifyError>;
  if (statusCode >= 400 && statusCode < 500) return renderErrorBody(statusCode, "invalid_request", error.message);
  return renderError(error);
}
