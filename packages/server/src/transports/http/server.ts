import type { AddressInfo, Socket } from "node:net";
import { type FastifyError, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import { SluiceError } from "sluice";
import { type ErrorBody, errorResponse, problemType, renderError, renderErrorBody } from "./errors.ts";
import type { HttpContext, HttpResponse } from "./exchange.ts";
import { type JsonBody, maxBodyBytes, parseJsonBody, tooLarge } from "./json-body.ts";
import type { Route } from "./route.ts";
import { routes } from "./routes.ts";

export interface HttpServerOptions {
  readonly host: string;
  readonly port: number;
  readonly maxConnections: number;
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
/** Longer than the usual 60 s of load balancers, so that it is they who hang up. */
const keepAliveMs = 72_000;

/** HTTP/1.1 over the route table. Knows of bytes, headers and connections; handlers know of nothing else. */
export function createHttpServer(context: HttpContext, options: HttpServerOptions): HttpServer {
  let closing = false;

  const app = fastify({
    logger: false,
    http: { maxHeaderSize: 16 * 1024, headersTimeout: headersWithinMs, connectionsCheckingInterval: 1_000 },
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
  app.server.maxHeadersCount = 100;

  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, body, done) => {
    try {
      done(null, parseJsonBody(body as Buffer));
    } catch (error) {
      done(error as Error);
    }
  });

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
    if (body.status >= 500) context.log.error({ err: error, route: routeOf(request) }, "a request failed");
    send(reply, errorResponse(body));
  }

  app.setErrorHandler(sendError);
  app.addHook("onRequest", (request, reply, done) => {
    // Before any body is read: what is wrong with a body nobody asked for is of no interest.
    if (request.is404) send(reply, answerUnrouted(request));
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
        const body = request.body as JsonBody | undefined;
        const answer = route.handle(
          { body: body?.value, bodyBytes: body?.bytes ?? 0, headers: request.headers },
          context,
        );
        if (answer instanceof Promise) return answer.then((response) => send(reply, response));
        return send(reply, answer);
      },
    });
  }

  const sockets = new Set<Socket>();
  app.server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
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
      // Node takes a connection that never said anything for a busy one.
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
      let cut = 0;
      const bound = setTimeout(() => {
        cut = sockets.size;
        app.server.closeAllConnections();
      }, withinMs);
      await app.close();
      clearTimeout(bound);
      return cut;
    },
  };
}

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

/** Answers what never became a request: malformed, too long or too slow. */
function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, detail] = clientErrors[error.code ?? ""] ?? [400, "this is not an HTTP/1.1 request"];
  const { title, ...rest } = renderErrorBody(status, "invalid_request", detail);
  const body = JSON.stringify({ title, ...rest });
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\ncontent-type: ${problemType}\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}

const clientErrors: Readonly<Record<string, readonly [status: number, detail: string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, "the request did not arrive in time"],
  HPE_HEADER_OVERFLOW: [431, "the request line and headers may have 16 KiB together"],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, "the chunk extensions are too large"],
};
