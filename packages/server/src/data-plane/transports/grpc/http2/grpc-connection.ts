import { Metadata, type StatusObject, status } from "@grpc/grpc-js";
import { SluiceError } from "sluice";
import type { Turns } from "../../turns.ts";
import { admit } from "../admit.ts";
import type { CallBytes, HeldConnection } from "../call-bytes.ts";
import type { EngineLimits } from "../engine.ts";
import type { GrpcContext, Method } from "../method.ts";
import type { MethodRunner } from "../method-runner.ts";
import { tooManyOpenCalls, UnknownCallerCalls, unknownCallers } from "../unknown-callers.ts";
import { headersTooLarge, notGrpc, notPost, notPostHead, type PlainAnswer, statusTrailers } from "./answer-blocks.ts";
import type { CallHost } from "./call-host.ts";
import type { Connection, ConnectionHost } from "./connection.ts";
import { ConnectionError, ErrorCode } from "./frames.ts";
import { GrpcCall } from "./grpc-call.ts";
import { parseGrpcTimeout } from "./grpc-timeout.ts";
import { PlainRequest } from "./plain-request.ts";
import type { RequestHead } from "./request-head.ts";
import type { Stream } from "./stream.ts";

/** Why a connection was closed by this server. */
export type ClosedFor = "held_bytes" | "too_many_calls" | "flood";

/** What all connections of a server share. */
export interface GrpcConnections {
  readonly context: GrpcContext;
  /** By their paths. */
  readonly runners: ReadonlyMap<string, MethodRunner>;
  readonly limits: EngineLimits;
  readonly held: CallBytes;
  readonly turns: Turns;
  onClosedFor(why: ClosedFor, connection: GrpcConnection): void;
  onClosed(connection: Connection): void;
}

/** What the headers of a call come to, for every caller. */
type Route =
  | { readonly kind: "call"; readonly runner: MethodRunner; readonly timeoutMs: number }
  | { readonly kind: "plain"; readonly answer: PlainAnswer }
  | { readonly kind: "refused"; readonly count: () => void; readonly trailers: Buffer };

/** Methods that are not ours, in metrics: their names are the caller's. */
const unknownMethod = "unknown";

const grpcContent = /^application\/grpc($|[+;])/;

/**
 * Calls on one connection: which method, by whom, and whether it is admitted. All of that is known by the headers, before a byte of
 * a message is kept.
 */
export class GrpcConnection implements ConnectionHost, CallHost {
  readonly held: HeldConnection;
  readonly #connection: Connection;
  readonly #shared: GrpcConnections;
  readonly #unknown = new UnknownCallerCalls();

  constructor(connection: Connection, shared: GrpcConnections) {
    this.#connection = connection;
    this.#shared = shared;
    this.held = shared.held.open(() => this.#closeFor("held_bytes"));
  }

  get context(): GrpcContext {
    return this.#shared.context;
  }

  get turns(): Turns {
    return this.#shared.turns;
  }

  get remoteAddress(): string | undefined {
    return this.#connection.remoteAddress;
  }

  get heardMs(): number {
    return this.#connection.heardMs;
  }

  get messageWithinMs(): number {
    return this.#shared.limits.messageWithinMs;
  }

  get hasRoom(): boolean {
    return this.held.hasRoom;
  }

  #maxBytesFor({ needs }: Method): number {
    return needs === "nothing" ? unknownCallers.maxMessageBytes : this.#shared.limits.maxMessageBytes;
  }

  request(stream: Stream, head: RequestHead): void {
    if (this.held.closed) return;
    if (!this.held.known && !this.#unknown.take()) {
      this.#closeFor("too_many_calls");
      return;
    }
    head.route ??= this.#findRoute(head);
    const route = head.route as Route;
    if (route.kind === "call") this.#admit(stream, head, route.runner, route.timeoutMs);
    else if (route.kind === "refused") {
      route.count();
      stream.sendHeaders(route.trailers, true);
    } else stream.receiver = new PlainRequest(stream, route.answer, this);
  }

  hold(bytes: number): boolean {
    return this.#shared.held.add(this.held, bytes);
  }

  answered(): void {
    this.#connection.answered();
  }

  owe(stream: Stream, bytes: number): void {
    this.held.unsentBytes += bytes;
    const fits = this.hold(bytes);
    if (bytes < 0) this.held.proceedWaiting();
    // What is decided may be charged, so no status may say that it was not.
    else if (!fits) stream.reset(ErrorCode.enhanceYourCalm);
  }

  failed({ code, message }: ConnectionError): void {
    if (code === ErrorCode.enhanceYourCalm) this.#shared.onClosedFor("flood", this);
    this.context.log.debug("connection.failed", { code, why: message, address: this.remoteAddress });
  }

  crashed(error: unknown): void {
    this.context.log.error("grpc.call_failed", { err: error, method: "unknown" });
  }

  closed(): void {
    this.#shared.held.close(this.held);
    this.#shared.onClosed(this.#connection);
  }

  #findRoute({ method, path = "", contentType = "", timeout, tooLarge }: RequestHead): Route {
    if (tooLarge) return { kind: "plain", answer: headersTooLarge };
    if (method !== "POST") return { kind: "plain", answer: method === "HEAD" ? notPostHead : notPost };
    if (!grpcContent.test(contentType)) return { kind: "plain", answer: notGrpc };
    const runner = this.#shared.runners.get(path);
    if (runner === undefined) {
      const details = `the server does not implement the method ${path.slice(0, 200)}`;
      const refusal = { code: status.UNIMPLEMENTED, details, metadata: new Metadata() };
      return refused(refusal, () => this.context.metrics.countGrpcCall(unknownMethod, status[refusal.code]));
    }
    const timeoutMs = timeout === undefined ? Infinity : parseGrpcTimeout(timeout);
    if (timeoutMs !== undefined) return { kind: "call", runner, timeoutMs };
    const message = "grpc-timeout must be up to eight digits and one of H, M, S, m, u and n";
    const refusal = runner.statusFrom(new SluiceError("invalid_request", message));
    return refused(refusal, () => runner.count(refusal.code));
  }

  #admit(stream: Stream, head: RequestHead, runner: MethodRunner, timeoutMs: number): void {
    const { method } = runner;
    const { held } = this;
    try {
      const asking = { authorization: head.authorization, socket: this.#connection };
      const caller = admit(asking, method, this.context);
      if (method.needs !== "nothing") this.#shared.held.identify(held);
      else if (!held.known && held.calls >= unknownCallers.openCalls) throw tooManyOpenCalls();
      const call = new GrpcCall(stream, head, runner, caller, this, timeoutMs, this.#maxBytesFor(method));
      stream.receiver = call;
      call.begin();
    } catch (error) {
      const refusal = runner.statusFrom(error);
      runner.count(refusal.code);
      stream.sendHeaders(statusTrailers(refusal, true), true);
    }
  }

  #closeFor(why: ClosedFor): void {
    this.#shared.onClosedFor(why, this);
    const message = why === "held_bytes" ? "too many bytes are held" : "too many calls without an identified caller";
    this.#connection.expel(new ConnectionError(ErrorCode.enhanceYourCalm, message), why === "held_bytes");
  }
}

function refused(refusal: StatusObject, count: () => void): Route {
  return { kind: "refused", count, trailers: statusTrailers(refusal, true) };
}
