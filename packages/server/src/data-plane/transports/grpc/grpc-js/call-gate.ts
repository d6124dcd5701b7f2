import { constants, type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { status } from "@grpc/grpc-js";
import type { Turns } from "../../turns.ts";
import { admit } from "../admit.ts";
import { CallBytes, type CallBytesLimits, type HeldConnection } from "../call-bytes.ts";
import { isOurs, renderStatus } from "../errors.ts";
import type { GrpcContext, Method } from "../method.ts";
import { tooManyOpenCalls, UnknownCallerCalls, unknownCallers } from "../unknown-callers.ts";
import { HalfReceivedCalls } from "./half-received-calls.ts";
import type { StreamListener } from "./http2-server.ts";
import { OpenCall } from "./open-call.ts";
import { refuseStream } from "./refuse-stream.ts";

export interface CallGateOptions {
  readonly held: CallBytesLimits;
  readonly maxMessageBytes: number;
  /** How long a message may be half received. */
  readonly messageWithinMs: number;
  readonly turns: Turns;
}

/** Carries a call's id through grpc-js. A value that a client sends is overwritten. */
export const callHeader = "sluice-call";

/** Most bytes of a call's headers, as HTTP/2 counts them. */
export const maxHeaderListBytes: number = 16 * 1024;

const logEveryMs = 60_000;

type Refused = Pick<OpenCall, "stream" | "method" | "handled">;

interface GateConnection {
  readonly held: HeldConnection;
  readonly socket: Socket;
  /** Calls of unidentified callers. */
  readonly unknown: UnknownCallerCalls;
}

/** Every connection and every call passes it before grpc-js sees them. */
export class CallGate {
  readonly #context: GrpcContext;
  readonly #options: CallGateOptions;
  readonly #held: CallBytes;
  readonly #methods: ReadonlyMap<string, Method>;
  readonly #connections = new WeakMap<object, GateConnection>();
  readonly #calls = new Map<string, OpenCall>();
  readonly #halfReceived: HalfReceivedCalls;
  #lastId = 0;
  #loggedMs = -Infinity;

  constructor(methods: readonly Method[], context: GrpcContext, options: CallGateOptions) {
    this.#context = context;
    this.#options = options;
    this.#held = new CallBytes(options.held, options.turns);
    this.#methods = new Map(methods.map((method) => [method.definition.path, method]));
    this.#halfReceived = new HalfReceivedCalls(options.messageWithinMs, (call, error) => this.#refuse(call, error));
  }

  enterConnection(session: ServerHttp2Session, socket: Socket): void {
    const connection: GateConnection = {
      held: this.#held.open(() => this.#closeConnection(session, connection, "held_bytes")),
      socket,
      unknown: new UnknownCallerCalls(),
    };
    this.#connections.set(session, connection);
    session.once("close", () => this.#held.close(connection.held));
  }

  /** Refuses a call by its headers, or passes it on to `serve`. */
  enterCall(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, serve: StreamListener): void {
    const session = stream.session as ServerHttp2Session | undefined;
    const connection = session && this.#connections.get(session);
    if (session === undefined || connection === undefined || connection.held.closed) {
      stream.on("error", ignore);
      stream.close(constants.NGHTTP2_REFUSED_STREAM);
      return;
    }
    if (!(connection.held.known || this.#mayCall(session, connection))) {
      stream.on("error", ignore);
      return;
    }
    // Node announces the bound, and enforces it for no client that ignores it.
    if (headerListBytes(headers) > maxHeaderListBytes) {
      stream.on("error", ignore);
      stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
      return;
    }
    const method = this.#methods.get(headers[":path"] ?? "");
    if (method === undefined) {
      serve(stream, headers);
      return;
    }
    try {
      const call = this.#admit(stream, headers, method, connection);
      if (stream.closed) return;
      this.#calls.set(call.id, call);
      headers[callHeader] = call.id;
      serve(stream, headers);
    } catch (error) {
      this.#refuse({ stream, method, handled: false }, error);
    }
  }

  /** An admitted call, by the value of `callHeader` in its metadata. Undefined once it is over. */
  findCall(id: string): OpenCall | undefined {
    return this.#calls.get(id);
  }

  close(): void {
    this.#halfReceived.close();
  }

  #admit(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    method: Method,
    { held, socket }: GateConnection,
  ): OpenCall {
    const caller = admit({ authorization: headers.authorization, socket }, method, this.#context);
    if (method.needs !== "nothing") this.#held.identify(held);
    else if (!held.known && held.calls >= unknownCallers.openCalls) throw tooManyOpenCalls();
    return new OpenCall({
      id: String(++this.#lastId),
      stream,
      headers,
      method,
      caller,
      held: this.#held,
      connection: held,
      maxMessageBytes: method.needs === "nothing" ? unknownCallers.maxMessageBytes : this.#options.maxMessageBytes,
      onTooMuch: (call, error) => this.#refuse(call, error),
      onHalfReceived: (call, half) => this.#halfReceived.note(call, half),
      onClose: (call) => this.#forget(call),
    });
  }

  #forget(call: OpenCall): void {
    this.#halfReceived.note(call, false);
    this.#calls.delete(call.id);
  }

  #refuse({ stream, method, handled }: Refused, error: unknown): void {
    if (stream.closed || stream.destroyed) return;
    const { log, metrics } = this.#context;
    const name = method.definition.path.slice(1);
    if (isOurs(error)) log.error("grpc.call_failed", { err: error, method: name });
    const refusal = renderStatus(error);
    if (!handled) metrics.countGrpcCall(name, status[refusal.code]);
    stream.on("error", ignore);
    refuseStream(stream, refusal);
  }

  /** Whether a connection without an identified caller may make another call. Closes the connection if not. */
  #mayCall(session: ServerHttp2Session, connection: GateConnection): boolean {
    if (connection.unknown.take()) return true;
    this.#held.close(connection.held);
    this.#closeConnection(session, connection, "too_many_calls");
    return false;
  }

  #closeConnection(
    session: ServerHttp2Session,
    connection: GateConnection,
    reason: "held_bytes" | "too_many_calls",
  ): void {
    const { log, metrics } = this.#context;
    metrics.countTurnedAway("grpc", reason);
    const why = reason === "held_bytes" ? "too many bytes" : "too many calls without an identified caller";
    const nowMs = performance.now();
    if (nowMs - this.#loggedMs >= logEveryMs) {
      this.#loggedMs = nowMs;
      const { bytes, calls: open, known } = connection.held;
      log.warn("connection.closed_for_share", {
        why,
        bytes,
        calls: open,
        known,
        address: connection.socket.remoteAddress,
      });
    }
    session.destroy(new Error(why), constants.NGHTTP2_ENHANCE_YOUR_CALM);
    // Without this, a client that reads nothing would keep its unsent answers in memory.
    setImmediate(() => connection.socket.destroy());
  }
}

/** The size that `SETTINGS_MAX_HEADER_LIST_SIZE` bounds: names, values, and 32 bytes for each. */
function headerListBytes(headers: IncomingHttpHeaders): number {
  let bytes = 0;
  for (const [name, value] of Object.entries(headers)) {
    for (const one of Array.isArray(value) ? value : [value ?? ""]) bytes += name.length + one.length + 32;
  }
  return bytes;
}

function ignore(): void {}
