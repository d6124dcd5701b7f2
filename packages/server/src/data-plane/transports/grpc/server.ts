import { setMaxListeners } from "node:events";
import type { ServerHttp2Session, ServerOptions } from "node:http2";
import type { Socket } from "node:net";
import {
  Metadata,
  Server,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type StatusObject,
  type sendUnaryData,
  status,
  type UntypedHandleCall,
} from "@grpc/grpc-js";
import { maxDeadlineMs, parseIp, renderIp } from "sluice";
import type { TraceCarrier } from "../../../observe/telemetry/tracing.ts";
import { limitOwnApi } from "../../access/limit-own-api.ts";
import { countChecks } from "../../service/count-checks.ts";
import type { Service } from "../../service/service.ts";
import { idempotencyHeaderName, idFromText } from "../idempotency-key.ts";
import type { Transport } from "../transport.ts";
import { readmit } from "./admit.ts";
import { type CallGate, callHeader, createCallGate } from "./call-gate.ts";
import { DeadlineOver, isOurs, renderStatus } from "./errors.ts";
import { createHealthFeed } from "./health.ts";
import type { HeldBytesLimits } from "./held-bytes.ts";
import { openHttp2Server } from "./http2-server.ts";
import type { CallInfo, GrpcContext, Method, StreamCallInfo, StreamCodec } from "./method.ts";
import { nativeMethods } from "./methods.ts";
import type { Answers, OpenCall } from "./open-call.ts";
import { readMessage } from "./read-message.ts";
import { StreamShares } from "./stream-shares.ts";

/** Most bytes of a message; a batch of 1 000 checks is well below. */
export const maxMessageBytes: number = 1024 * 1024;

const mebibyte = 1024 * 1024;

/** What clients may make this process hold. */
const heldLimits: HeldBytesLimits = {
  perConnection: 64 * mebibyte,
  unknownCallers: 32 * mebibyte,
  knownCallers: 256 * mebibyte,
};

const limits = {
  "grpc.max_receive_message_length": maxMessageBytes,
  // Answers are bounded by what is asked: 1 000 checks, each with the details of its limits.
  "grpc.max_send_message_length": 16 * mebibyte,
  "grpc.max_connection_idle_ms": 30 * 60_000,
  "grpc.enable_channelz": 0,
} as const;

const http2Limits: ServerOptions = {
  // Node refuses new calls above this number, and still counts cancelled calls that it reads in the same go. After a pause
  // of 0.3 s, 5 000 of them may arrive together. The number of calls that are really open is bounded by their bytes.
  settings: { maxConcurrentStreams: 5_000, maxHeaderListSize: 16 * 1024 },
  maxSessionRejectedStreams: 10_000,
  // Calls that one connection may cancel, at once and per second. While counters are stalled, Envoy cancels every call after
  // 20 ms, and a connection above this bound loses its healthy calls too. A call takes 60 µs, so a process answers at
  // most 17 000 a second: a client that was served before the stall stays below.
  streamResetBurst: 40_000,
  streamResetRate: 20_000,
  // Megabytes, as Node counts them: a second line of defence behind `heldLimits`.
  maxSessionMemory: 128,
};

export interface GrpcServerOptions {
  /** Absent: `nativeMethods`. */
  readonly methods?: readonly Method[] | undefined;
  /** How long a connection may be silent before it is asked whether it is there. Absent: a minute. */
  readonly silentMs?: number;
  /** How long it may take to say so; then it is closed. Absent: 20 s. */
  readonly replyMs?: number;
  /** How long a message may be half received; then its call ends. Absent: 30 s. */
  readonly messageWithinMs?: number;
  /** Absent: 64 MiB per connection, 256 MiB per process, and 32 MiB for all unidentified callers together. */
  readonly held?: HeldBytesLimits;
}

/** gRPC over the method table. Knows of calls, metadata and connections; handlers know of messages. */
export function createGrpcServer(
  service: Service & Pick<GrpcContext, "envoyHeaders" | "idempotencyHeader"> & Partial<Pick<GrpcContext, "ownLimits">>,
  options: GrpcServerOptions = {},
): Transport {
  const stopping = new AbortController();
  setMaxListeners(0, stopping.signal);
  const decide = countChecks(service.decide, service.metrics.checksOf("grpc"));
  const draining = stopping.signal;
  const context: GrpcContext = {
    ...service,
    decide,
    draining,
    shares: new StreamShares(),
    health: createHealthFeed({ ...service, draining }),
    ownLimits: service.ownLimits ?? limitOwnApi(),
  };
  const server = new Server({
    ...limits,
    // Who is gone without a word is noticed, and so is who never says anything.
    "grpc.keepalive_time_ms": options.silentMs ?? 60_000,
    "grpc.keepalive_timeout_ms": options.replyMs ?? 20_000,
  });
  const { methods = nativeMethods, messageWithinMs = 30_000, held = heldLimits } = options;
  const gate = createCallGate(methods, context, { held, maxMessageBytes, messageWithinMs });
  for (const method of methods) register(server, method, context, gate);
  const inner = openHttp2Server(server, http2Limits, (stream, headers) => gate.enterCall(stream, headers, inner.serve));

  const open = new Set<Socket>();
  let whenGone: (() => void) | undefined;

  return {
    accept(socket: Socket): void {
      open.add(socket);
      socket.once("close", () => {
        open.delete(socket);
        if (open.size === 0) whenGone?.();
      });
      // The session is announced within `inject`. A connection that does not speak HTTP/2 has none.
      const enter = (session: ServerHttp2Session): void => gate.enterConnection(session, socket);
      inner.http2.once("session", enter);
      inner.inject(socket);
      inner.http2.off("session", enter);
    },

    async drain(withinMs: number): Promise<number> {
      const gone = new Promise<void>((resolve) => {
        whenGone = resolve;
        if (open.size === 0) resolve();
      });
      // Calls in flight go on; no new ones are begun on these connections.
      server.tryShutdown(() => {});
      stopping.abort();
      let cut = 0;
      const bound = setTimeout(() => {
        cut = open.size;
        server.forceShutdown();
        for (const socket of open) socket.destroy();
      }, withinMs);
      await gone;
      clearTimeout(bound);
      gate.close();
      server.forceShutdown();
      return cut;
    },
  };
}

function register(server: Server, method: Method, context: GrpcContext, gate: CallGate): void {
  const { path, responseSerialize, requestDeserialize } = method.definition;
  const name = path.slice(1);
  const codec: StreamCodec<unknown, unknown> = {
    read: (bytes) => readMessage(requestDeserialize, bytes),
    write: responseSerialize,
    tell,
  };

  function end(code: status, startedMs?: number): void {
    const seconds = startedMs === undefined ? undefined : (performance.now() - startedMs) / 1_000;
    context.metrics.countGrpcCall(name, status[code], seconds);
  }

  function tell(error: unknown): StatusObject {
    if (isStatus(error)) return error;
    if (isOurs(error)) context.log.error("grpc.call_failed", { err: error, method: name });
    return renderStatus(error);
  }

  function handleUnary(call: ServerUnaryCall<Uint8Array, Uint8Array>, answer: sendUnaryData<Uint8Array>): void {
    if (method.kind !== "unary") return;
    const open = openCallOf(call, gate);
    if (open === undefined) {
      // The caller left before its request was complete.
      end(status.CANCELLED);
      return;
    }
    open.handled = true;
    const startedMs = performance.now();
    const span = context.tracing?.start("grpc", name, carrierOf(call.metadata));
    const traced = span === undefined ? context : { ...context, decide: span.around(context.decide) };
    const succeed = (response: unknown): void => {
      const bytes = codec.write(response);
      end(status.OK, startedMs);
      span?.end({ status: "OK" });
      open.owe(bytes.length);
      answer(null, bytes);
    };
    const fail = (error: unknown): void => {
      const told = tell(error);
      end(told.code, startedMs);
      span?.end({ status: status[told.code], error: isOurs(error) ? "internal" : undefined });
      answer(told);
    };
    // A caller that does not read its answers gets no further ones.
    open.whenRoom(() => {
      try {
        const response = method.handle(codec.read(call.request), traced, infoOf(call, open, context));
        if (response instanceof Promise) response.then(succeed).catch(fail);
        else succeed(response);
      } catch (error) {
        fail(error);
      }
    });
  }

  function handleStream(
    call: ServerWritableStream<Uint8Array, Uint8Array> | ServerDuplexStream<Uint8Array, Uint8Array>,
  ): void {
    // Whichever comes first: our end, an error of ours, or the caller's leaving.
    let counted = false;
    const once = (code: status): void => {
      if (!counted) end(code);
      counted = true;
    };
    call.on("finish", () => once(status.OK));
    call.on("error", (error: unknown) => once(isStatus(error) ? error.code : status.INTERNAL));
    call.on("cancelled", () => once(status.CANCELLED));
    const open = openCallOf(call, gate);
    if (open === undefined) {
      once(status.CANCELLED);
      return;
    }
    open.handled = true;
    open.countAnswers(call as Answers);
    try {
      const admitAgain = (): void => {
        leftOf(call.getDeadline());
        readmit({ authorization: call.metadata.get("authorization")[0]?.toString() }, method, context);
      };
      const info: StreamCallInfo = Object.assign(infoOf(call, open, context), { admitAgain });
      if (method.kind === "watch") {
        const watching = call as ServerWritableStream<Uint8Array, Uint8Array>;
        method.handle(codec.read(watching.request), watching, codec, context, info);
      } else if (method.kind === "stream") {
        call.on("data", () => open.taken());
        method.handle(call as ServerDuplexStream<Uint8Array, Uint8Array>, codec, context, info);
      }
    } catch (error) {
      call.emit("error", tell(error));
    }
  }

  const handler = method.kind === "unary" ? handleUnary : handleStream;
  const type = { unary: "unary", watch: "serverStream", stream: "bidi" }[method.kind];
  // Messages are decoded by the handlers, so one that waits in grpc-js takes no more room than on the wire.
  server.register(path, handler as UntypedHandleCall, asTheyAre, asTheyAre, type);
}

function asTheyAre(bytes: Buffer): Buffer {
  return bytes;
}

type Asking = {
  readonly metadata: Metadata;
  getDeadline(): Date | number;
  getPeer(): string;
  sendMetadata(metadata: Metadata): void;
};

function openCallOf({ metadata }: Asking, gate: CallGate): OpenCall | undefined {
  const [id] = metadata.get(callHeader);
  return gate.findCall(String(id));
}

/** Throws if the deadline is over. */
function infoOf(call: Asking, { caller }: OpenCall, { idempotencyHeader = false }: GrpcContext): CallInfo {
  const deadline = call.getDeadline();
  leftOf(deadline);
  return {
    caller,
    get from(): string {
      return addressOf(call.getPeer());
    },
    get deadlineMs(): number | undefined {
      return leftOf(deadline);
    },
    get metadataId(): CallInfo["metadataId"] {
      return idempotencyHeader ? idFromText(call.metadata.get(idempotencyHeaderName)[0]) : noId;
    },
    announce(fields): void {
      const metadata = new Metadata();
      for (const [name, value] of Object.entries(fields)) metadata.set(name, value);
      call.sendMetadata(metadata);
    },
  };
}

const noId: CallInfo["metadataId"] = {};

/** Where in a trace the call was sent. */
function carrierOf(metadata: Metadata): TraceCarrier {
  const [traceparent] = metadata.get("traceparent");
  const [tracestate] = metadata.get("tracestate");
  return { traceparent: traceparent?.toString(), tracestate: tracestate?.toString() };
}

/** The address of `127.0.0.1:34567` or `[::1]:34567`; empty where it is none. */
function addressOf(peer: string): string {
  const ip = parseIp(peer.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1"));
  return ip === undefined ? "" : renderIp(ip);
}

/** Left for the way back, so that an answer by `on_failure` arrives before the caller gives up. */
const wayBackMs = 5;

function leftOf(deadline: Date | number): number | undefined {
  const atMs = Number(deadline);
  if (atMs === Infinity) return undefined;
  const leftMs = atMs - Date.now();
  if (leftMs <= 0) throw new DeadlineOver("the deadline was over before anything was decided; nothing was charged");
  return Math.min(Math.max(1, Math.floor(leftMs - Math.min(wayBackMs, leftMs / 4))), maxDeadlineMs);
}

function isStatus(error: unknown): error is StatusObject {
  return typeof error === "object" && error !== null && !(error instanceof Error) && "code" in error;
}
