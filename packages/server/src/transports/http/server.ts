import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type FastifyError, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import { SluiceError } from "sluice";
import { answerClientError, maxHeaderBytes, maxHeaders } from "./client-errors.ts";
import { type ErrorBody, errorResponse, problemType, renderError, renderErrorBody } from "./errors.ts";
import type { HttpContext, HttpResponse } from "./exchange.ts";
import { maxBodyBytes, parseJsonBody, tooLarge } from "./json-body.ts";
import type { Route } from "./route.ts";
import { routes } from "./routes.ts";

export interface HttpServerOptions {
  readonly host: string;
  readonly port: number;
  readonly maxConnections: number;
  /** How long a client may leave its answer unread. Absent: 30 s. */
  readonly unreadMs?: number;
}

export interface HttpServer {
  /** Starts listening and answers with the server's address: `http://127.0.0.1:8080`. */
  listen(): Promise<string>;
  /**
   * Stops accepting, lets requests in flight finish and closes their connections after them. What has not finished by
   * then is cut off; resolves with how many connections that were.
   */
  close(withinMs: number): Promise<number>;
}

const headersWithinMs = 10_000;
const requestWithinMs = 30_000;
const logDropsEveryMs = 60_000;
/** Longer than the usual 60 s of load balancers, so that it is they who hang up. */
const keepAliveMs = 72_000;

/** HTTP/1.1 over the route table. Knows of bytes, headers and connections; handlers know of nothing else. */
export function createHttpServer(context: HttpContext, options: HttpServerOptions): HttpServer {
  let closing = false;

  const app = fastify({
    logger: false,
    http: {
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: headersWithinMs,
      connectionsCheckingInterval: 1_000,
      // A missing Host is refused below, in our own words.
      requireHostHeader: false,
    },
    // While an answer is being sent; between requests `keepAliveTimeout` takes its place.
    connectionTimeout: options.unreadMs ?? 30_000,
    bodyLimit: maxBodyBytes,
    requestTimeout: requestWithinMs,
    keepAliveTimeout: keepAliveMs,
    maxRequestsPerSocket: 1_000_000,
    // A request that comes over a connection we are about to close is answered, not turned away.
    return503OnClosing: false,
    clientErrorHandler: answerClientError,
    frameworkErrors: (error, request, reply) => sendError(error, request, reply),
  });
  app.server.maxConnections = options.maxConnections;
  app.server.maxHeadersCount = maxHeaders;
  app.server.on("checkExpectation", (_request: IncomingMessage, response: ServerResponse) => {
    const { status, body } = errorResponse(
      renderErrorBody(417, "invalid_request", "the only Expect that is understood is 100-continue"),
    );
    response.writeHead(status, { "content-type": problemType, connection: "close" }).end(JSON.stringify(body));
  });

  let dropped = 0;
  let dropsLoggedMs = -Infinity;
  app.server.on("drop", () => {
    dropped++;
    context.metrics.countDroppedConnection();
    const nowMs = performance.now();
    if (nowMs - dropsLoggedMs < logDropsEveryMs) return;
    context.log.warn(
      { dropped, maxConnections: options.maxConnections },
      "connections are turned away: too many are open",
    );
    dropsLoggedMs = nowMs;
    dropped = 0;
  });

  app.removeAllContentTypeParsers();
  // Parsed by the handler: an error in here would make Fastify close the connection, although the body was read.
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, body, done) => done(null, body));

  function send(reply: FastifyReply, response: HttpResponse): FastifyReply {
    reply.code(response.status);
    const text = typeof response.body === "string" ? response.body : JSON.stringify(response.body);
    reply.headers({ "content-type": "application/json; charset=utf-8", "cache-control": "no-store" });
    if (response.headers !== undefined) reply.headers(response.headers);
    if (closing) reply.header("connection", "close");
    return reply.send(text);
  }

  function sendError(error: FastifyError | Error, request: FastifyRequest, reply: FastifyReply): void {
    const body = bodyOfError(error, request);
    // That counters are away is said once, by who looks after them.
    const away = body.code === "store_unavailable";
    if (body.status >= 500 && !away) context.log.error({ err: error, route: routeOf(request) }, "a request failed");
    send(reply, errorResponse(body));
  }

  app.setErrorHandler(sendError);
  app.addHook("onRequest", (request, reply, done) => {
    // Before any body is read: what is wrong with a body nobody asked for is of no interest.
    if (request.headers.host === undefined && request.raw.httpVersion === "1.1") send(reply, withoutHost);
    else if (request.is404) send(reply, answerUnrouted(request));
    else done();
  });
  app.addHook("onResponse", (request, reply, done) => {
    context.metrics.countHttpRequest(request.method, routeOf(request), reply.statusCode);
    done();
  });
  for (const route of routes) {
    app.route({
      method: route.method,
      url: route.path,
      bodyLimit: route.maxBodyBytes ?? maxBodyBytes,
      handler: (request, reply) => {
        const buffer = request.body as Buffer | undefined;
        const body = buffer === undefined || route.bodies === undefined ? undefined : parseJsonBody(buffer);
        const answer = route.handle({ body, bodyBytes: buffer?.length ?? 0, headers: request.headers }, context);
        if (answer instanceof Promise) return answer.then((response) => send(reply, response));
        return send(reply, answer);
      },
    });
  }

  /** Every connection, and how many of its requests are not answered yet. */
  const unanswered = new Map<Socket, number>();
  app.server.on("connection", (socket: Socket) => {
    unanswered.set(socket, 0);
    socket.once("close", () => unanswered.delete(socket));
  });
  app.server.prependListener("request", ({ socket }: IncomingMessage, response: ServerResponse) => {
    const add = (change: number): void => {
      const count = unanswered.get(socket);
      if (count !== undefined) unanswered.set(socket, count + change);
    };
    add(1);
    response.once("close", () => add(-1));
  });

  return {
    async listen(): Promise<string> {
      // Fastify would bind `localhost` twice, and only one of the two would have our bounds.
      const host = options.host === "localhost" ? "127.0.0.1" : options.host.replace(/^\[(.*)\]$/, "$1");
      await app.listen({ host, port: options.port, listenTextResolver: () => "" });
      const { address, port, family } = app.server.address() as AddressInfo;
      return `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
    },
    async close(withinMs: number): Promise<number> {
      closing = true;
      // Node takes a connection that said nothing yet, or half a request line, for a busy one.
      for (const [socket, count] of unanswered) if (count === 0) socket.destroy();
      let cut = 0;
      const bound = setTimeout(() => {
        cut = unanswered.size;
        app.server.closeAllConnections();
      }, withinMs);
      await app.close();
      clearTimeout(bound);
      return cut;
    },
  };
}

const withoutHost: HttpResponse = errorResponse(
  renderErrorBody(400, "invalid_request", "the header Host is missing, which every HTTP/1.1 request has"),
);

function routeOf(request: FastifyRequest): string {
  return request.is404 ? "unmatched" : (request.routeOptions.url ?? "unmatched");
}

function answerUnrouted(request: FastifyRequest): HttpResponse {
  const path = request.url.replace(/[?#].*$/s, "");
  const methods = routes.filter((route) => route.path === path).flatMap(methodsOf);
  if (methods.length === 0) {
    const paths = [...new Set(routes.map((route) => route.path))].join(", ");
    return errorResponse(renderErrorBody(404, "not_found", `there is nothing at this path; there is ${paths}`));
  }
  const allow = methods.join(", ");
  return errorResponse(renderErrorBody(405, "not_found", `this path answers ${allow} only`), { allow });
}

function methodsOf(route: Route): readonly string[] {
  return route.method === "GET" ? ["GET", "HEAD"] : [route.method];
}

function bodyOfError(error: FastifyError | Error, request: FastifyRequest): ErrorBody {
  if (error instanceof SluiceError) return renderError(error);
  const { code = "", statusCode = 500 } = error as Partial<FastifyError>;
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") {
    const bytes = Number(request.headers["content-length"]);
    const most = request.routeOptions.bodyLimit ?? maxBodyBytes;
    return renderError(tooLarge(Number.isNaN(bytes) ? undefined : bytes, most));
  }
  if (statusCode === 415) {
    const given = request.headers["content-type"];
    const said = given === undefined ? "has no content-type" : `is ${JSON.stringify(given)}`;
    return renderErrorBody(415, "invalid_request", `the body ${said}; send JSON, with content-type: application/json`);
  }
  if (statusCode >= 400 && statusCode < 500) return renderErrorBody(statusCode, "invalid_request", error.message);
  return renderError(error);
}
