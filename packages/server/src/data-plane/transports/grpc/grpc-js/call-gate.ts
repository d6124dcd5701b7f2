import { constants, type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { status } from "@grpc/grpc-js";
import type { Turns } from "../../turns.ts";
import { admit } from "../admit.ts";
import { CallBytes, type CallBytesLimits, type HeldConnection } from "../call-bytes.ts";
import { DeadlineOver, isOurs, renderStatus } from "../errors.ts";
import type { GrpcContext, Method } from "../method.ts";
import { tooManyOpenCalls, UnknownCallerCalls, unknownCallers } from "../unknown-callers.ts";
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

/** Every connection and every call passes it before grpc-js sees them. */
export interface CallGate {
  enterConnection(session: ServerHttp2Session, socket: Socket): void;
  /** Refuses a call by its headers, or passes it on to `serve`. */
  enterCall(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, serve: StreamListener): void;
  /** An admitted call, by the value of `callHeader` in its metadata. Undefined once it is over. */
  findCall(id: string): OpenCall | undefined;
  close(): void;
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

export function createCallGate(methods: readonly Method[], context: GrpcContext, options: CallGateOptions): CallGate {
  const held = new CallBytes(options.held, options.turns);
  const byPath = new Map(methods.map((method) => [method.definition.path, method]));
  const connections = new WeakMap<object, GateConnection>();
  const calls = new Map<string, OpenCall>();
  /** Calls with a half-received message, oldest first. */
  const halfReceived = new Set<OpenCall>();
  let lastId = 0;
  let loggedMs = -Infinity;
  const sweep = setInterval(endOverdue, Math.max(options.messageWithinMs / 6, 10)).unref();

  function refuse({ stream, method, handled }: Refused, error: unknown): void {
    if (stream.closed || stream.destroyed) return;
    const name = method.definition.path.slice(1);
    if (isOurs(error)) context.log.error("grpc.call_failed", { err: error, method: name });
    const refusal = renderStatus(error);
    if (!handled) context.metrics.countGrpcCall(name, status[refusal.code]);
    stream.on("error", ignore);
    refuseStream(stream, refusal);
  }

  function forget(call: OpenCall): void {
    halfReceived.delete(call);
    calls.delete(call.id);
  }

  function noteHalfReceived(call: OpenCall, half: boolean): void {
    if (half) halfReceived.add(call);
    else halfReceived.delete(call);
  }

  /** Ends calls whose message takes too long to arrive, except streams that this server has paused. */
  function endOverdue(): void {
    const nowMs = performance.now();
    for (const call of halfReceived) {
      if (nowMs - call.halfSinceMs < options.messageWithinMs) return;
      halfReceived.delete(call);
      if (call.method.kind === "stream" && call.stream.isPaused()) {
        call.halfSinceMs = nowMs;
        halfReceived.add(call);
        continue;
      }
      const withinMs = options.messageWithinMs;
      refuse(call, new DeadlineOver(`the request was not complete after ${withinMs} ms; nothing was decided`));
    }
  }

  function closeConnection(
    session: ServerHttp2Session,
    connection: GateConnection,
    reason: "held_bytes" | "too_many_calls",
  ): void {
    context.metrics.countTurnedAway("grpc", reason);
    const why = reason === "held_bytes" ? "too many bytes" : "too many calls without an identified caller";
    const nowMs = performance.now();
    if (nowMs - loggedMs >= logEveryMs) {
      loggedMs = nowMs;
      const { bytes, calls: open, known } = connection.held;
      context.log.warn("connection.closed_for_share", {
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

  /** Whether a connection without an identified caller may make another call. Closes the connection if not. */
  function mayCall(session: ServerHttp2Session, connection: GateConnection): boolean {
    if (connection.unknown.take()) return true;
    held.close(connection.held);
    closeConnection(session, connection, "too_many_calls");
    return false;
  }

  return {
    enterConnection(session, socket): void {
      const connection: GateConnection = {
        held: held.open(() => closeConnection(session, connection, "held_bytes")),
        socket,
        unknown: new UnknownCallerCalls(),
      };
      connections.set(session, connection);
      session.once("close", () => held.close(connection.held));
    },

    enterCall(stream, headers, serve): void {
      const session = stream.session as ServerHttp2Session | undefined;
      const connection = session && connections.get(session);
      if (session === undefined || connection === undefined || connection.held.closed) {
        stream.on("error", ignore);
        stream.close(constants.NGHTTP2_REFUSED_STREAM);
        return;
      }
      if (!(connection.held.known || mayCall(session, connection))) {
        stream.on("error", ignore);
        return;
      }
      // Node announces the bound, and enforces it for no client that ignores it.
      if (headerListBytes(headers) > maxHeaderListBytes) {
        stream.on("error", ignore);
        stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
        return;
      }
      const method = byPath.get(headers[":path"] ?? "");
      if (method === undefined) {
        serve(stream, headers);
        return;
      }
      try {
        const caller = admit({ authorization: headers.authorization, socket: connection.socket }, method, context);
        if (method.needs !== "nothing") held.identify(connection.held);
        else if (!connection.held.known && connection.held.calls >= unknownCallers.openCalls) throw tooManyOpenCalls();
        const call = new OpenCall({
          id: String(++lastId),
          stream,
          headers,
          method,
          caller,
          held,
          connection: connection.held,
          maxMessageBytes: method.needs === "nothing" ? unknownCallers.maxMessageBytes : options.maxMessageBytes,
          onTooMuch: refuse,
          onHalfReceived: noteHalfReceived,
          onClose: forget,
        });
        if (stream.closed) return;
        calls.set(call.id, call);
        headers[callHeader] = call.id;
        serve(stream, headers);
      } catch (error) {
        refuse({ stream, method, handled: false }, error);
      }
    },

    findCall: (id) => calls.get(id),

    close: () => clearInterval(sweep),
  };
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
