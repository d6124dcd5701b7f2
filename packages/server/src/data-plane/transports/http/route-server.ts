import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ErrorCode } from "sluice";
import type { RequestSpan, TraceCarrier } from "../../../observe/telemetry/tracing.ts";
import type { Protocol } from "../../../protocol.ts";
import { type Caller, unasked } from "../../access/access.ts";
import { RateLimited } from "../../access/rate-limited.ts";
import type { Service } from "../../service/service.ts";
import { HeldBytes } from "../held-bytes.ts";
import type { Transport } from "../transport.ts";
import { Turns } from "../turns.ts";
import { type ClientError, maxHeaderBytes, maxHeaders } from "./client-errors.ts";
import { followConnections } from "./connections.ts";
import { errorResponse, renderError, renderErrorBody } from "./errors.ts";
import type { HttpResponse, PathParameters } from "./exchange.ts";
import { maxBodyBytes, parseJsonBody, parseTextBody } from "./json-body.ts";
import { PathTable } from "./path-table.ts";
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

/** How long clients are waited for, and how much of theirs is held meanwhile. */
export interface Patience {
  /** How long a client may leave its answer unread. Absent: 30 s. */
  readonly unreadMs?: number;
  /** How long a request may take to arrive: its headers, and the whole of it. Absent: 10 s, 30 s. */
  readonly headersWithinMs?: number;
  readonly requestWithinMs?: number;
  /** Shared with the other transports of the process. Absent: its own. */
  readonly turns?: Turns | undefined;
  readonly held?: HeldBytes | undefined;
}

// Imported by its name, `node:http` also loads the HTTP client that `fetch` uses, and that leaves its mark on globalThis.
const { createServer } = process.getBuiltinModule("node:http");

/** Longer than the usual 60 s of load balancers, so that it is they who hang up. */
const keepAliveMs = 72_000;

/** A request on its way to its answer. */
interface Asked {
  readonly raw: IncomingMessage;
  readonly response: ServerResponse;
  /** When it began. */
  readonly sinceMs: number;
  /** A path of the route table, or `unmatched`. */
  path: string;
  params: PathParameters;
  caller: Caller;
  /** Undefined if it is not recorded. */
  span: RequestSpan | undefined;
  /** Headers of its answer, whatever that is. */
  besideAnswer: HttpResponse["headers"] | undefined;
}

/** HTTP/1.1 over a route table. Knows of bytes, headers and connections; handlers know of nothing else. */
export async function createRouteServer<Context extends Service, R extends Route<Context, string>>(
  options: RouteServerOptions<Context, R>,
): Promise<Transport> {
  const { protocol, routes, context, admit, headersOf } = options;
  const { unreadMs = 30_000, headersWithinMs = 10_000, requestWithinMs = 30_000 } = options;
  const { turns = new Turns(), held = new HeldBytes() } = options;
  const server: Server & { httpAllowHalfOpen?: boolean } = createServer({
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: headersWithinMs,
    requestTimeout: requestWithinMs,
    keepAliveTimeout: keepAliveMs,
    connectionsCheckingInterval: Math.min(1_000, headersWithinMs),
    // A missing Host is refused below, in our own words.
    requireHostHeader: false,
  });
  server.maxHeadersCount = maxHeaders;
  server.maxRequestsPerSocket = 1_000_000;
  // A client that has sent everything still hears the answers.
  server.httpAllowHalfOpen = true;
  // While an answer is being sent; between requests `keepAliveTimeout` takes its place.
  server.timeout = unreadMs;

  const connections = followConnections(server, { protocol, answer, turns, held, unreadMs });
  const take = (raw: IncomingMessage, response: ServerResponse): void => connections.take(raw, response);
  server.on("request", take);
  server.on("checkExpectation", take);
  server.on("clientError", (error: ClientError, socket) => connections.fail(error, socket as Socket));

  function send(asked: Asked, answered: HttpResponse, close = false): void {
    const { raw, response, besideAnswer, sinceMs, path, span } = asked;
    const whole =
      besideAnswer === undefined ? answered : { ...answered, headers: { ...besideAnswer, ...answered.headers } };
    // Who keeps a connection to a server that is about to stop is told to open the next one elsewhere.
    writeResponse(response, whole, close || connections.draining || !context.accepting());
    connections.onSent(raw.socket);
    const seconds = (performance.now() - sinceMs) / 1_000;
    context.metrics.countHttpRequest(raw.method ?? "", path, whole.status, seconds);
    span?.end({ status: whole.status, ...(whole.status === 500 && { error: "internal" }) });
  }

  function sendError(error: unknown, asked: Asked): void {
    const body = renderError(error);
    // That counters are away is said once, by who looks after them, and what is shed is counted.
    const foreseen = foreseenOutages.has(body.code);
    if (body.status >= 500 && !foreseen) context.log.error({ err: error, route: asked.path }, "a request failed");
    if (asked.response.headersSent) asked.response.destroy();
    else send(asked, errorResponse(body, error instanceof RateLimited ? error.headers : undefined));
  }

  const besideUnrouted = headersOf?.(undefined);

  function answer(raw: IncomingMessage, response: ServerResponse): void {
    const asked: Asked = {
      raw,
      response,
      sinceMs: performance.now(),
      path: "unmatched",
      params: noParams,
      caller: unasked,
      span: undefined,
      besideAnswer: besideUnrouted,
    };
    try {
      const found = table.find(raw.url ?? "");
      const serve = found?.byMethod.get(raw.method ?? "");
      if (found !== undefined && serve !== undefined) {
        asked.params = found.params;
        asked.path = serve.path;
      }
      // Before any body is read: what is wrong with a body nobody asked for is of no interest.
      if (raw.headers.expect !== undefined && !/100-continue/i.test(raw.headers.expect)) send(asked, unexpected, true);
      else if (raw.headers.host === undefined && raw.httpVersion === "1.1") send(asked, withoutHost);
      else if (serve === undefined) send(asked, answerUnrouted(found?.byMethod, routes));
      else serve.begin(asked);
    } catch (error) {
      sendError(error, asked);
    }
  }

  const table = new PathTable<{ readonly path: string; readonly begin: (asked: Asked) => void }>();
  for (const route of routes) {
    const { path, handle, bodies, bodyTypes, bodyAsText, maxBodyBytes: maxBytes = maxBodyBytes } = route;
    const spanName = `${route.method} ${path}`;
    const besideAnswers = headersOf?.(route);

    function isText(type: BodyType): boolean {
      return type === "yaml" || bodyAsText === true;
    }

    function finish(asked: Asked, buffer: Buffer | undefined, type: BodyType): void {
      const { raw, caller, span, params } = asked;
      try {
        const request = {
          url: raw.url ?? "",
          params,
          body: buffer === undefined || isText(type) ? undefined : parseJsonBody(buffer),
          yaml: buffer === undefined || !isText(type) ? undefined : parseTextBody(buffer),
          bodyBytes: buffer?.length ?? 0,
          headers: raw.headers,
          rawHeaders: raw.rawHeaders,
          caller,
          socket: raw.socket,
        };
        const traced = span === undefined ? context : { ...context, decide: span.around(context.decide) };
        const answered = handle(request, traced);
        // A body that nobody reads may never come, and what comes next would be taken for it.
        const close = bodies === undefined && announcesBody(raw.headers);
        if (!(answered instanceof Promise)) send(asked, answered, close);
        else
          answered.then((response) => send(asked, response, close)).catch((error: unknown) => sendError(error, asked));
      } catch (error) {
        sendError(error, asked);
      }
    }

    function begin(asked: Asked): void {
      const { raw, params } = asked;
      if (context.tracing !== undefined) asked.span = context.tracing.start(protocol, spanName, carrierOf(raw.headers));
      asked.besideAnswer = besideAnswers;
      // Before the body is read: strangers are not listened to.
      const { caller, headers } = admit(raw, route, params);
      asked.caller = caller;
      if (headers !== undefined) asked.besideAnswer = { ...besideAnswers, ...headers };
      if (bodies === undefined) finish(asked, undefined, "json");
      else
        readBody(
          raw,
          maxBytes,
          (read) => {
            if (read.kind === "read") finish(asked, read.body, read.type);
            else send(asked, errorResponse(read.error), read.close);
          },
          bodyTypes,
        );
    }

    table.add(path, methodsOf(route), { path, begin });
  }

  // Node looks for slow requests from the moment that a server listens, which a door does for this one.
  server.emit("listening");

  return {
    accept: (socket: Socket) => connections.accept(socket),
    async drain(withinMs: number): Promise<number> {
      const cut = await connections.drain(withinMs);
      server.close();
      return cut;
    },
  };
}

const noParams: PathParameters = {};

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

const unexpected: HttpResponse = errorResponse(
  renderErrorBody(417, "invalid_request", "the only Expect that is understood is 100-continue"),
);

/** Most paths that are named to who asked for one that is not there. */
const maxNamedPaths = 20;

function answerUnrouted(
  byMethod: ReadonlyMap<string, unknown> | undefined,
  routes: readonly Pick<Route, "path">[],
): HttpResponse {
  if (byMethod === undefined) {
    const paths = [...new Set(routes.map((route) => route.path))];
    const there =
      paths.length > maxNamedPaths ? "GET /openapi.json lists what there is" : `there is ${paths.join(", ")}`;
    return errorResponse(renderErrorBody(404, "not_found", `there is nothing at this path; ${there}`));
  }
  const allow = [...byMethod.keys()].join(", ");
  return errorResponse(renderErrorBody(405, "not_found", `this path answers ${allow} only`), { allow });
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
