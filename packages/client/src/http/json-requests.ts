import type { ClientRequest, IncomingMessage, Agent as PlainAgent } from "node:http";
import { Agent as TlsAgent, request as tlsRequest } from "node:https";
import { ExchangeError } from "../exchange.ts";
import type { Address } from "../parse-addresses.ts";
import type { ConnectOptions } from "../remote-limiter.ts";
import { nodeHttp } from "./node-http.ts";

/** Servers close connections that were idle for five seconds or more; a question sent at that moment would be lost. */
const idleMs = 4_000;
/** Far more than a batch of decisions with all their limits. */
const maxAnswerBytes = 16 * 1024 * 1024;

export interface JsonResponse {
  readonly status: number;
  /** Undefined if it is not JSON. */
  readonly body: unknown;
  /** The server closes the connection after it. */
  readonly closes: boolean;
}

export interface JsonRequest {
  /** Rejects with an `ExchangeError`: `not_asked` if there was no connection yet. */
  readonly response: Promise<JsonResponse>;
  abort(why: string): void;
}

export interface JsonRequestsOptions {
  readonly address: Address;
  readonly options: ConnectOptions;
  readonly maxConnections: number;
  /** A connection failed, or broke; not called if it was aborted here, or is older than `renew`. */
  readonly onBroken: (why: string) => void;
}

/** Requests to one server, on persistent connections. None is opened before the first request. */
export class JsonRequests {
  readonly #options: JsonRequestsOptions;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #open = new Set<ClientRequest>();
  #agent: PlainAgent | TlsAgent | undefined;

  constructor(options: JsonRequestsOptions) {
    this.#options = options;
    const { token } = options.options;
    this.#headers = {
      "content-type": "application/json",
      accept: "application/json, application/problem+json",
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    };
  }

  send(method: "GET" | "POST", path: string, text?: string): JsonRequest {
    const body = text === undefined ? undefined : Buffer.from(text);
    const { place, tls, basePath } = this.#options.address;
    this.#agent ??= this.#createAgent();
    const agent = this.#agent;
    const request = (tls ? tlsRequest : nodeHttp().request)({
      ...(place.kind === "socket" ? { socketPath: place.path } : { host: place.host, port: place.port }),
      agent,
      method,
      path: basePath + path,
      headers: body === undefined ? this.#headers : { ...this.#headers, "content-length": String(body.length) },
    });
    let aborted = false;
    let connected = false;
    this.#open.add(request);
    const response = new Promise<JsonResponse>((resolve, reject) => {
      const fail = (error: NodeJS.ErrnoException): void => {
        const why = error.code ?? error.message;
        reject(new ExchangeError(connected ? "lost" : "not_asked", why));
        if (!aborted && agent === this.#agent) this.#options.onBroken(why);
      };
      request.on("socket", (socket) => {
        // The timer of the waiting caller keeps the process alive.
        socket.unref();
        connected = !socket.connecting;
        if (connected) return;
        socket.once(tls ? "secureConnect" : "connect", () => {
          connected = true;
        });
      });
      request.on("error", fail);
      request.on("response", (incoming) => readResponse(incoming).then(resolve, fail));
      request.on("close", () => this.#open.delete(request));
    });
    request.end(body);
    return {
      response,
      abort(why) {
        aborted = true;
        request.destroy(new Error(why));
      },
    };
  }

  /** Closes idle connections, which may be dead. The next request opens a new one; requests in flight continue. */
  renew(): void {
    const agent = this.#agent;
    if (agent === undefined) return;
    this.#agent = undefined;
    // Connections in use end afterwards.
    agent.maxFreeSockets = 0;
    for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
  }

  /** Ends every connection. The next request opens new ones. */
  close(): void {
    const agent = this.#agent;
    this.#agent = undefined;
    for (const request of this.#open) request.destroy(new Error("the connection was closed"));
    agent?.destroy();
  }

  #createAgent(): PlainAgent | TlsAgent {
    const { address, options, maxConnections } = this.#options;
    const settings = { keepAlive: true, maxSockets: maxConnections, timeout: idleMs, scheduling: "lifo" } as const;
    if (!address.tls) return new (nodeHttp().Agent)(settings);
    const { ca, cert, key, serverName } = options.tls ?? {};
    return new TlsAgent({
      ...settings,
      ...(ca !== undefined && { ca: pem(ca) }),
      ...(cert !== undefined && { cert: pem(cert) }),
      ...(key !== undefined && { key: pem(key) }),
      ...(serverName !== undefined && { servername: serverName }),
    });
  }
}

async function readResponse(incoming: IncomingMessage): Promise<JsonResponse> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxAnswerBytes) throw new Error("the answer is too long");
    chunks.push(chunk);
  }
  const body = parseJson(Buffer.concat(chunks).toString());
  return { status: incoming.statusCode ?? 0, body, closes: incoming.headers.connection === "close" };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function pem(text: string | Uint8Array): string | Buffer {
  return typeof text === "string" ? text : Buffer.from(text);
}
