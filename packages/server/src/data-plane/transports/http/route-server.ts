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
import type { AnswerWhole } from "./connection.ts";
import { type Connections, followConnections } from "./connections.ts";
import { errorResponse, renderError } from "./errors.ts";
import type { AnswerWriter, Credential, HttpResponse, PathParameters, RawRequest } from "./exchange.ts";
import { maxBodyBytes, parseJsonBody, parseTextBody } from "./json-body.ts";
import { PathTable } from "./path-table.ts";
import { type BodyType, expectBody, readBody } from "./read-body.ts";
import { ResponseWriter } from "./response-writer.ts";
import type { Route } from "./route.ts";
import { answerUnrouted, unexpected, withoutHost } from "./unrouted.ts";
import { readWholeRequest } from "./whole-request.ts";

/** The caller, and headers for any answer to it. */
export interface Admission {
  readonly caller: Caller;
  readonly credential?: Credential | undefined;
  readonly headers?: HttpResponse["headers"] | undefined;
}

/** Lets a request through to its handler, before its body is read, or throws. */
export type Admit<R> = (request: RawRequest, route: R, params: PathParameters) => Admission;

export interface RouteServerOptions<Context extends Service, R extends Route<Context, string>> extends Patience {
  readonly protocol: Protocol;
  readonly routes: readonly R[];
  readonly context: Context;
  readonly admit: Admit<R>;
  /** Headers of every answer of a route; with undefined, of answers outside of any route. */
  readonly headersFor?: ((route: R | undefined) => HttpResponse["headers"]) | undefined;
  /** Answers requests to paths that are not in the table; undefined if it has no answer either. */
  readonly answerOther?: ((request: RawRequest) => HttpResponse | Promise<HttpResponse> | undefined) | undefined;
}

/** How long clients are waited for, and how much of their data is held meanwhile. */
export interface Patience {
  /** How long a client may leave its answer unread. Absent: 30 s. */
  readonly unreadMs?: number;
  /** How long a request may take to arrive: its headers, and all of it. Absent: 10 s, 30 s. */
  readonly headersWithinMs?: number;
  readonly requestWithinMs?: number;
  /** Shared with the other transports of the process. Absent: a separate one. */
  readonly turns?: Turns | undefined;
  readonly held?: HeldBytes | undefined;
}

// Importing `node:http` also loads the HTTP client that `fetch` uses, which leaves its mark on globalThis.
const { createServer } = process.getBuiltinModule("node:http");

/** Longer than the usual 60 s of load balancers, so that they hang up first. */
const keepAliveMs = 72_000;

/** How many requests a connection is kept for. */
const maxRequests = 1_000_000;

/** A request on its way to its answer. */
interface OpenRequest {
  readonly raw: RawRequest;
  readonly writer: AnswerWriter;
  /** When it began. */
  readonly sinceMs: number;
  /** A path of the route table, or `unmatched`. */
  path: string;
  params: PathParameters;
  caller: Caller;
  credential: Credential | undefined;
  /** Undefined if it is not recorded. */
  span: RequestSpan | undefined;
  /** Headers of its answer, whatever that is. */
  extraHeaders: HttpResponse["headers"] | undefined;
}

/** A route, and what is the same for each of its requests. */
interface Served<R> {
  readonly route: R;
  readonly spanName: string;
  readonly extraHeaders: HttpResponse["headers"] | undefined;
}

/** HTTP/1.1 over a route table. It deals with bytes, headers and connections, so that handlers need not. */
export async function createRouteServer<Context extends Service, R extends Route<Context, string>>(
  options: RouteServerOptions<Context, R>,
): Promise<Transport> {
  return new RouteServer(options);
}

/**
 * The life of a request, whose answer is sent by whichever step has it:
 *
 *     answer ──found──► begin ──admitted──► (body read) ──► finish ──► handler ──► send
 *        │ no such path or method   │ refused     │ too large, malformed  │ throws
 *        └──────────────────────────┴─────────────┴───────────────────────┴──► send, or sendError
 */
class RouteServer<Context extends Service, R extends Route<Context, string>> implements Transport {
  readonly #options: RouteServerOptions<Context, R>;
  readonly #context: Context;
  readonly #server: Server;
  readonly #connections: Connections;
  readonly #table = new PathTable<Served<R>>();
  /** What is asked most, by its whole request line. */
  readonly #hot = new Map<string, Served<R>>();
  /** Headers of answers outside of any route. */
  readonly #unroutedHeaders: HttpResponse["headers"] | undefined;

  constructor(options: RouteServerOptions<Context, R>) {
    const { protocol, routes, context, headersFor } = options;
    const { unreadMs = 30_000, turns = new Turns(), held = new HeldBytes() } = options;
    this.#options = options;
    this.#context = context;
    this.#unroutedHeaders = headersFor?.(undefined);
    for (const route of routes) {
      const served = { route, spanName: `${route.method} ${route.path}`, extraHeaders: headersFor?.(route) };
      this.#table.add(route.path, listMethods(route), served);
      if (route.isHot === true) this.#hot.set(`${route.method} ${route.path} HTTP/1.1`, served);
    }
    const server = createNodeServer(unreadMs, options);
    this.#server = server;
    const answer = (raw: IncomingMessage, response: ServerResponse): void => this.#answer(raw, response);
    const answerWhole: AnswerWhole = (piece, socket, writer) => this.#answerWhole(piece, socket, writer);
    const bounds = { unreadMs, maxRequests, keptFor: `timeout=${keepAliveMs / 1_000}, max=${maxRequests}` };
    const connections = followConnections(server, { protocol, answer, answerWhole, turns, held, ...bounds });
    this.#connections = connections;
    const take = (raw: IncomingMessage, response: ServerResponse): void => connections.take(raw, response);
    server.on("request", take);
    server.on("checkExpectation", take);
    server.on("clientError", (error: ClientError, socket) => connections.fail(error, socket as Socket));
    // Node starts looking for slow requests when a server listens, which a door does for this one.
    server.emit("listening");
  }

  accept(socket: Socket): void {
    this.#connections.accept(socket);
  }

  async drain(withinMs: number): Promise<number> {
    const cut = await this.#connections.drain(withinMs);
    this.#server.close();
    return cut;
  }

  #open(raw: RawRequest, writer: AnswerWriter): OpenRequest {
    return {
      raw,
      writer,
      sinceMs: performance.now(),
      path: "unmatched",
      params: noParams,
      caller: unasked,
      credential: undefined,
      span: undefined,
      extraHeaders: this.#unroutedHeaders,
    };
  }

  /** Answers what is asked most, if it arrived in one piece. Returns false if Node's parser has to read it. */
  #answerWhole(piece: Buffer, socket: Socket, writer: AnswerWriter): boolean {
    const request = readWholeRequest(piece, this.#hot);
    if (request === undefined) return false;
    const { found: served, headers, rawHeaders, body } = request;
    const { method, path: url } = served.route;
    const asked = this.#open({ method, url, headers, rawHeaders, socket }, writer);
    asked.path = url;
    try {
      const { route } = served;
      this.#admit(asked, served);
      const type = expectBody(headers, route.maxBodyBytes ?? maxBodyBytes, route.bodyTypes);
      if (typeof type !== "string") this.#send(asked, errorResponse(type.error), type.close);
      else if (type === "nothing") this.#finish(asked, route, undefined, "json");
      else this.#finish(asked, route, body, type);
    } catch (error) {
      this.#sendError(error, asked);
    }
    return true;
  }

  #answer(raw: IncomingMessage, response: ServerResponse): void {
    const asked = this.#open(raw, new ResponseWriter(response));
    try {
      const found = this.#table.find(raw.url ?? "");
      const served = found?.byMethod.get(raw.method ?? "");
      if (found !== undefined && served !== undefined) {
        asked.params = found.params;
        asked.path = served.route.path;
      }
      const { expect, host } = raw.headers;
      // Before any body is read: problems with an unwanted body do not matter.
      if (expect !== undefined && !/100-continue/i.test(expect)) this.#send(asked, unexpected, true);
      else if (host === undefined && raw.httpVersion === "1.1") this.#send(asked, withoutHost);
      else if (served === undefined) this.#answerUnrouted(asked, found?.byMethod);
      else this.#begin(asked, raw, served);
    } catch (error) {
      this.#sendError(error, asked);
    }
  }

  #answerUnrouted(asked: OpenRequest, byMethod: ReadonlyMap<string, unknown> | undefined): void {
    const { raw } = asked;
    const answered = byMethod === undefined ? this.#options.answerOther?.(raw) : undefined;
    if (answered === undefined) this.#send(asked, answerUnrouted(byMethod, this.#options.routes));
    else this.#sendWhenThere(asked, answered, announcesBody(raw.headers));
  }

  #begin(asked: OpenRequest, raw: IncomingMessage, served: Served<R>): void {
    const { route } = served;
    // Before the body is read: unauthenticated clients are not listened to.
    this.#admit(asked, served);
    if (route.bodies === undefined) {
      this.#finish(asked, route, undefined, "json");
      return;
    }
    readBody(
      raw,
      route.maxBodyBytes ?? maxBodyBytes,
      (read) => {
        if (read.kind === "read") this.#finish(asked, route, read.body, read.type);
        else this.#send(asked, errorResponse(read.error), read.close);
      },
      route.bodyTypes,
    );
  }

  #admit(asked: OpenRequest, { route, spanName, extraHeaders }: Served<R>): void {
    const { raw, params } = asked;
    const { tracing } = this.#context;
    if (tracing !== undefined)
      asked.span = tracing.start(this.#options.protocol, spanName, readTraceCarrier(raw.headers));
    asked.extraHeaders = extraHeaders;
    const { caller, credential, headers } = this.#options.admit(raw, route, params);
    asked.caller = caller;
    asked.credential = credential;
    if (headers !== undefined) asked.extraHeaders = { ...extraHeaders, ...headers };
  }

  #finish(asked: OpenRequest, route: R, buffer: Buffer | undefined, type: BodyType): void {
    const { raw, caller, credential, span, params } = asked;
    const isText = type === "yaml" || route.bodyAsText === true;
    try {
      const request = {
        url: raw.url ?? "",
        params,
        body: buffer === undefined || isText ? undefined : parseJsonBody(buffer),
        yaml: buffer === undefined || !isText ? undefined : parseTextBody(buffer),
        bodyBytes: buffer?.length ?? 0,
        headers: raw.headers,
        rawHeaders: raw.rawHeaders,
        caller,
        credential,
        socket: raw.socket,
      };
      const context = this.#context;
      const traced = span === undefined ? context : { ...context, decide: span.around(context.decide) };
      const answered = route.handle(request, traced);
      // A body that is not read may never come, and whatever comes next would be mistaken for it.
      const close = route.bodies === undefined && announcesBody(raw.headers);
      this.#sendWhenThere(asked, answered, close);
    } catch (error) {
      this.#sendError(error, asked);
    }
  }

  #sendWhenThere(asked: OpenRequest, answered: HttpResponse | Promise<HttpResponse>, close: boolean): void {
    if (!(answered instanceof Promise)) this.#send(asked, answered, close);
    else
      answered
        .then((response) => this.#send(asked, response, close))
        .catch((error: unknown) => this.#sendError(error, asked));
  }

  #send(asked: OpenRequest, answered: HttpResponse, close = false): void {
    const { raw, writer, extraHeaders, sinceMs, path, span } = asked;
    const whole =
      extraHeaders === undefined ? answered : { ...answered, headers: { ...extraHeaders, ...answered.headers } };
    // A client that keeps a connection to a stopping server is asked to open the next one to another.
    if (whole.stream !== undefined && writer.writeStream !== undefined) writer.writeStream(whole);
    else writer.write(whole, close || this.#connections.draining || !this.#context.accepting());
    this.#connections.onSent(raw.socket);
    const seconds = (performance.now() - sinceMs) / 1_000;
    this.#context.metrics.countHttpRequest(raw.method ?? "", path, whole.status, seconds);
    span?.end({ status: whole.status, ...(whole.status === 500 && { error: "internal" }) });
  }

  #sendError(error: unknown, asked: OpenRequest): void {
    const body = renderError(error);
    // Unavailable counters are logged once, by the code that watches them, and shed checks are counted.
    const foreseen = foreseenOutages.has(body.code);
    if (body.status >= 500 && !foreseen)
      this.#context.log.error("http.request_failed", { err: error, route: asked.path });
    if (asked.writer.hasWritten) asked.writer.destroy();
    else this.#send(asked, errorResponse(body, error instanceof RateLimited ? error.headers : undefined));
  }
}

function createNodeServer(unreadMs: number, { headersWithinMs = 10_000, requestWithinMs = 30_000 }: Patience): Server {
  const server: Server & { httpAllowHalfOpen?: boolean } = createServer({
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: headersWithinMs,
    requestTimeout: requestWithinMs,
    keepAliveTimeout: keepAliveMs,
    connectionsCheckingInterval: Math.min(1_000, headersWithinMs),
    // We refuse a missing Host ourselves, in our own words.
    requireHostHeader: false,
  });
  server.maxHeadersCount = maxHeaders;
  server.maxRequestsPerSocket = maxRequests;
  // A client that has sent everything still gets the answers.
  server.httpAllowHalfOpen = true;
  // While an answer is being sent; between requests `keepAliveTimeout` takes its place.
  server.timeout = unreadMs;
  return server;
}

const noParams: PathParameters = {};

/** The request's place in a trace. */
function readTraceCarrier({ traceparent, tracestate }: IncomingHttpHeaders): TraceCarrier {
  return { traceparent, tracestate };
}

function announcesBody(headers: IncomingHttpHeaders): boolean {
  const { "content-length": length, "transfer-encoding": encoding } = headers;
  return encoding !== undefined || (length !== undefined && length !== "0");
}

function listMethods({ method, alsoMethods = [] }: Pick<Route, "method" | "alsoMethods">): readonly string[] {
  return method === "GET" ? ["GET", "HEAD", ...alsoMethods] : [method, ...alsoMethods];
}

/** Outages that are logged once, by the code that watches what is unavailable. */
const foreseenOutages: ReadonlySet<ErrorCode> = new Set([
  "store_unavailable",
  "policy_store_unavailable",
  "overloaded",
]);
