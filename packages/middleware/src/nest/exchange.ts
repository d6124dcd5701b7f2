import type { ServerResponse } from "node:http";
import type { ExecutionContext } from "@nestjs/common";
import { Reflector } from "@nestjs/core";
import type { RequestReader } from "../gate.ts";
import { warnAboutTrustedProxies } from "../warn-about-trusted-proxies.ts";

/**
 * The request that is limited: Express's or Fastify's, for GraphQL too; for WebSockets, the client. Its type is the app's
 * choice, as with Nest's own `getRequest()`.
 */
// biome-ignore lint/suspicious/noExplicitAny: two platforms, and any property that guards and plugins add to their requests.
export type NestRequest = Record<string, any>;

/** A response of Express, or a reply of Fastify. */
export type NestResponse = ServerResponse | NestReply;

export interface NestReply {
  readonly raw: ServerResponse;
  status(code: number): this;
  header(name: string, value: string): this;
  send(body: Uint8Array): this;
}

/** The targets of decorators. */
export type HandlerOrClass = ReturnType<ExecutionContext["getHandler"]> | ReturnType<ExecutionContext["getClass"]>;

export type ContextKind = "http" | "graphql" | "ws";

/** One call of a handler, as its kind of context has it. */
export interface Exchange {
  readonly request: NestRequest;
  /** Undefined if there is none, or the app's GraphQL context does not contain it. */
  readonly response: NestResponse | undefined;
}

/** Undefined for unknown contexts, such as those of microservices. */
export function findContextKind(context: ExecutionContext): ContextKind | undefined {
  const type = context.getType<string>();
  return type === "http" || type === "graphql" || type === "ws" ? type : undefined;
}

export function exchangeFromContext(context: ExecutionContext, kind: ContextKind): Exchange {
  const [first, response, shared] = context.getArgs<[NestRequest, NestResponse, GraphqlContext | undefined]>();
  if (kind === "http") return { request: first, response };
  if (kind === "ws") return { request: first, response: undefined };
  const { req, request = req, res = request?.res, reply = res } = shared ?? {};
  // A subscription has no request, only its context.
  return { request: request ?? shared ?? {}, response: isResponse(reply) ? reply : undefined };
}

/** The app defines the context, and may use these names for something else. */
function isResponse(value: unknown): value is NestResponse {
  if (typeof value !== "object" || value === null) return false;
  const { setHeader } = ("raw" in value ? (value.raw ?? {}) : value) as Partial<ServerResponse>;
  return typeof setHeader === "function";
}

/** What apps and drivers put into the GraphQL context. */
interface GraphqlContext {
  readonly req?: NestRequest;
  readonly request?: NestRequest;
  readonly res?: unknown;
  readonly reply?: unknown;
}

export function rawResponse(response: NestResponse): ServerResponse {
  return "raw" in response ? response.raw : response;
}

/**
 * The endpoint of a call, as policies name it: `/graphql/Query/hello` for a field, `/ws/message` for an event; for HTTP
 * only the path the controller declares, because the platform knows the whole route.
 */
export function endpointFromContext(context: ExecutionContext, kind: ContextKind): string {
  if (kind === "graphql") {
    const field = context.getArgByIndex<{ parentType?: { name: string }; fieldName?: string } | undefined>(3);
    return `/graphql/${field?.parentType?.name}/${field?.fieldName ?? context.getHandler().name}`;
  }
  if (kind === "ws") {
    const pattern: unknown = context.switchToWs().getPattern();
    return `/ws/${typeof pattern === "string" ? pattern : JSON.stringify(pattern)}`;
  }
  return `${declaredPath(context.getClass())}${declaredPath(context.getHandler())}`;
}

const reflector = new Reflector();

/** The first path that a controller or its handler declares. */
function declaredPath(target: HandlerOrClass): string {
  const written: unknown = reflector.get("path", target);
  const path: unknown = Array.isArray(written) ? written[0] : written;
  return typeof path === "string" && path !== "" && path !== "/" ? `/${path.replace(/^\/+/, "")}` : "";
}

/** Reads requests of either platform, and WebSocket clients. `endpoint` is used if the platform knows no route. */
export function readerFor(kind: ContextKind, endpoint: string): RequestReader<NestRequest> {
  if (kind === "ws") return { ...clientReader, route: () => endpoint };
  if (kind === "graphql") return { ...requestReader, route: () => endpoint };
  return { ...requestReader, route: (request) => findRoute(request) ?? (endpoint === "" ? undefined : endpoint) };
}

const requestReader: Omit<RequestReader<NestRequest>, "route"> = {
  method: (request) => request.method,
  path: (request) => request.originalUrl ?? request.url,
  peer: (request) => request.socket?.remoteAddress,
  ip: (request) => {
    if (request.app?.get?.("trust proxy") === true) warnAboutTrustedProxies("Express", "trust proxy");
    return request.ip ?? request.socket?.remoteAddress;
  },
  header: (request, name) => request.headers?.[name],
};

/** A client of `ws` has its socket; one of Socket.IO has its handshake, with the headers. */
const clientReader: Omit<RequestReader<NestRequest>, "route"> = {
  method: () => undefined,
  path: () => undefined,
  peer: findPeer,
  ip: findPeer,
  header: (client, name) => client.handshake?.headers?.[name],
};

function findPeer(client: NestRequest): string | undefined {
  return client._socket?.remoteAddress ?? client.conn?.remoteAddress ?? client.handshake?.address;
}

/** The pattern with its prefix and version, from Express or Fastify. */
function findRoute(request: NestRequest): string | undefined {
  const path: unknown = request.route?.path ?? request.routeOptions?.url;
  return typeof path === "string" ? (request.baseUrl ?? "") + path : undefined;
}
