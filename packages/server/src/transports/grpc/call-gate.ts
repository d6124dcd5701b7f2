import { constants, type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { status } from "@grpc/grpc-js";
import { parseIp, renderIp, SluiceError } from "sluice";
import { admit } from "./admit.ts";
import { DeadlineOver, isOurs, renderStatus } from "./errors.ts";
import { HeldBytes, type HeldBytesLimits, type HeldConnection } from "./held-bytes.ts";
import type { StreamListener } from "./http2-server.ts";
import type { GrpcContext, Method } from "./method.ts";
import { OpenCall } from "./open-call.ts";
import { refuseStream } from "./refuse-stream.ts";

export interface CallGateOptions {
  readonly held: HeldBytesLimits;
  readonly maxMessageBytes: number;
  /** How long a message may be half received. */
  readonly messageWithinMs: number;
}

/** Every connection and every call goes through it before grpc-js sees them. */
export interface CallGate {
  enterConnection(session: ServerHttp2Session, socket: Socket): void;
  /** Refuses a call by its headers, or lets it through to `serve`. */
  enterCall(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, serve: StreamListener): void;
  /** A call that was let in, by the value of `callHeader` in its metadata. Undefined when it is over. */
  findCall(id: string): OpenCall | undefined;
  /** What all connections hold, in bytes. */
  readonly heldBytes: number;
  close(): void;
}

/** How grpc-js hands on which call is meant. What a client sends under this name is overwritten. */
export const callHeader = "sluice-call";

/**
 * What a connection may do before a caller is identified on it: so many calls open at once, so many calls a second, and
 * messages that are as long as questions about health and reflection are. Only those are answered to such callers.
 */
const unknown = { openCalls: 100, burstCalls: 1_000, callsPerSecond: 100, maxMessageBytes: 16 * 1024 } as const;

const logEveryMs = 60_000;

interface GateConnection {
  readonly held: HeldConnection;
  readonly socket: Socket;
  /** Calls by unknown callers that may still come, as of `atMs`. */
  callsLeft: number;
  atMs: number;
}

export function createCallGate(methods: readonly Method[], context: GrpcContext, options: CallGateOptions): CallGate {
  const held = new HeldBytes(options.held);
  const byPath = new Map(methods.map((method) => [method.definition.path, method]));
  const connections = new WeakMap<object, GateConnection>();
  const calls = new Map<string, OpenCall>();
  /** Calls with a half-received message, the one that began first in front. */
  const halfReceived = new Set<OpenCall>();
  let lastId = 0;
  let loggedMs = -Infinity;
  const sweep = setInterval(endOverdue, Math.max(options.messageWithinMs / 6, 10)).unref();

  function refuse({ stream, method }: Pick<OpenCall, "stream" | "method">, error: unknown): void {
    const name = method.definition.path.slice(1);
    if (isOurs(error)) context.log.error({ err: error, method: name }, "a call failed");
    const refusal = renderStatus(error);
    context.metrics.countGrpcCall(name, status[refusal.code]);
    refuseStream(stream, refusal);
  }

  function noteHalfReceived(call: OpenCall, half: boolean): void {
    if (half) halfReceived.add(call);
    else halfReceived.delete(call);
  }

  /** Calls whose message does not come to an end. One that this server does not read on has time. */
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

  function closeConnection(session: ServerHttp2Session, connection: GateConnection, why: string): void {
    const nowMs = performance.now();
    if (nowMs - loggedMs >= logEveryMs) {
      loggedMs = nowMs;
      const { bytes, calls: open, known } = connection.held;
      context.log.warn({ why, bytes, calls: open, known, address: connection.socket.remoteAddress }, closedMessage);
    }
    session.destroy(new Error(why), constants.NGHTTP2_ENHANCE_YOUR_CALM);
    // A client that reads nothing would keep what is on its way to it.
    setImmediate(() => connection.socket.destroy());
  }

  /** Whether a connection without known callers may make one more call. It is closed where it may not. */
  function mayCall(session: ServerHttp2Session, connection: GateConnection): boolean {
    const nowMs = performance.now();
    const earned = ((nowMs - connection.atMs) / 1_000) * unknown.callsPerSecond;
    connection.callsLeft = Math.min(connection.callsLeft + earned, unknown.burstCalls) - 1;
    connection.atMs = nowMs;
    if (connection.callsLeft >= 0) return true;
    held.close(connection.held);
    closeConnection(session, connection, "too many calls by unknown callers");
    return false;
  }

  return {
    enterConnection(session, socket): void {
      const connection: GateConnection = {
        held: held.open(() => closeConnection(session, connection, "too many bytes")),
        socket,
        callsLeft: unknown.burstCalls,
        atMs: performance.now(),
      };
      connections.set(session, connection);
      session.once("close", () => held.close(connection.held));
    },

    enterCall(stream, headers, serve): void {
      const session = stream.session as ServerHttp2Session | undefined;
      const connection = session && connections.get(session);
      if (session === undefined || connection === undefined || connection.held.closed) {
        stream.close(constants.NGHTTP2_REFUSED_STREAM);
        return;
      }
      stream.on("error", ignore);
      if (!(connection.held.known || mayCall(session, connection))) return;
      const method = byPath.get(headers[":path"] ?? "");
      if (method === undefined) {
        serve(stream, headers);
        return;
      }
      try {
        const caller = admit(askingOf(headers, connection.socket), method, context);
        if (method.needs !== "nothing") held.identify(connection.held);
        else if (!connection.held.known && connection.held.calls >= unknown.openCalls)
          throw new SluiceError("overloaded", tooManyOpen);
        const call = new OpenCall({
          stream,
          headers,
          method,
          caller,
          held,
          connection: connection.held,
          maxMessageBytes: method.needs === "nothing" ? unknown.maxMessageBytes : options.maxMessageBytes,
          onTooMuch: refuse,
          onHalfReceived: noteHalfReceived,
        });
        if (stream.closed) return;
        const id = String(++lastId);
        calls.set(id, call);
        stream.once("close", () => calls.delete(id));
        headers[callHeader] = id;
        serve(stream, headers);
      } catch (error) {
        refuse({ stream, method }, error);
      }
    },

    findCall: (id) => calls.get(id),

    get heldBytes(): number {
      return held.bytes;
    },

    close: () => clearInterval(sweep),
  };
}

const tooManyOpen = `a connection without a token may have ${unknown.openCalls} calls open at once`;
const closedMessage = "closed a gRPC connection that took more than its share of this process";

function ignore(): void {}

function askingOf(headers: IncomingHttpHeaders, socket: Socket): Parameters<typeof admit>[0] {
  return {
    authorization: headers.authorization,
    get from(): string {
      const ip = parseIp(socket.remoteAddress ?? "");
      return ip === undefined ? "" : renderIp(ip);
    },
  };
}
