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
import { parseIp, renderIp } from "sluice/internal";
import type { TraceCarrier } from "../../../../observe/telemetry/tracing.ts";
import { idempotencyHeaderName, idFromText } from "../../idempotency-key.ts";
import { readmit } from "../admit.ts";
import { deadlineFrom } from "../call-deadline.ts";
import type { Engine, EngineOptions } from "../engine.ts";
import type { CallInfo, GrpcContext, MessageStream, StreamCallInfo } from "../method.ts";
import { MethodRunner, type UnaryCall } from "../method-runner.ts";
import { CallGate, callHeader, maxHeaderListBytes } from "./call-gate.ts";
import { openHttp2Server } from "./http2-server.ts";
import type { Answers, OpenCall } from "./open-call.ts";

const mebibyte = 1024 * 1024;

const limits = {
  // Answers are bounded by what is asked: 1 000 checks, each with the details of its limits.
  "grpc.max_send_message_length": 16 * mebibyte,
  "grpc.max_connection_idle_ms": 30 * 60_000,
  "grpc.enable_channelz": 0,
} as const;

const http2Limits: ServerOptions = {
  // Node refuses new calls above this number, and still counts cancelled calls that it reads in the same go. After a pause
  // of 0.3 s, 5 000 of them may arrive together. The number of calls that are really open is bounded by their bytes.
  settings: { maxConcurrentStreams: 5_000, maxHeaderListSize: maxHeaderListBytes },
  maxSessionRejectedStreams: 10_000,
  // Calls that one connection may cancel, at once and per second. While counters are stalled, Envoy cancels every call after
  // 20 ms, and a connection above this bound loses its healthy calls too. A call takes 60 µs, so a process answers at
  // most 17 000 a second: a client that was served before the stall stays below.
  streamResetBurst: 40_000,
  streamResetRate: 20_000,
  // Megabytes, as Node counts them: a second line of defence behind `heldLimits`.
  maxSessionMemory: 128,
};

/** gRPC over the method table on grpc-js, with a gate in front of it. */
export function createGrpcJsEngine({ methods, context, limits: bounds, turns }: EngineOptions): Engine {
  const { maxMessageBytes, messageWithinMs, held } = bounds;
  const server = new Server({
    ...limits,
    "grpc.max_receive_message_length": maxMessageBytes,
    // Who is gone without a word is noticed, and so is who never says anything.
    "grpc.keepalive_time_ms": bounds.silentMs,
    "grpc.keepalive_timeout_ms": bounds.replyMs,
    ...(bounds.maxAgeMs === Infinity ? {} : { "grpc.max_connection_age_ms": bounds.maxAgeMs }),
  });
  const gate = new CallGate(methods, context, { held, maxMessageBytes, messageWithinMs, turns });
  for (const method of methods) register(server, new MethodRunner(method, context), context, gate);
  const inner = openHttp2Server(server, http2Limits, (stream, headers) => gate.enterCall(stream, headers, inner.serve));
  return {
    accept(socket: Socket): void {
      // The session is announced within `inject`. A connection that does not speak HTTP/2 has none.
      const enter = (session: ServerHttp2Session): void => gate.enterConnection(session, socket);
      inner.http2.once("session", enter);
      inner.inject(socket);
      inner.http2.off("session", enter);
    },
    leave(): void {
      // Calls in flight go on; no new ones are begun on these connections.
      server.tryShutdown(() => {});
    },
    close(): void {
      gate.close();
      server.forceShutdown();
    },
  };
}

function register(server: Server, runner: MethodRunner, context: GrpcContext, gate: CallGate): void {
  const { method } = runner;

  function handleUnary(call: ServerUnaryCall<Uint8Array, Uint8Array>, answer: sendUnaryData<Uint8Array>): void {
    const open = findOpenCall(call, gate);
    if (open === undefined) {
      // The caller left before its request was complete.
      runner.count(status.CANCELLED);
      return;
    }
    open.handled = true;
    // A caller that does not read its answers gets no further ones.
    open.whenRoom(() => runner.runUnary(call.request, createUnaryCall(call, open, runner, context, answer)));
  }

  function handleStream(
    call: ServerWritableStream<Uint8Array, Uint8Array> | ServerDuplexStream<Uint8Array, Uint8Array>,
  ): void {
    // Whichever comes first: our end, an error of ours, or the caller's leaving.
    let counted = false;
    const once = (code: status): void => {
      if (!counted) runner.count(code);
      counted = true;
    };
    call.on("finish", () => once(status.OK));
    call.on("error", (error: unknown) => once((error as Partial<StatusObject>).code ?? status.INTERNAL));
    call.on("cancelled", () => once(status.CANCELLED));
    const open = findOpenCall(call, gate);
    if (open === undefined) {
      once(status.CANCELLED);
      return;
    }
    open.handled = true;
    open.countAnswers(call as Answers);
    const stream = createStream(call as ServerDuplexStream<Uint8Array, Uint8Array>, open, runner);
    try {
      const admitAgain = (): void => {
        findTimeLeft(call);
        readmit({ authorization: call.metadata.get("authorization")[0]?.toString() }, method, context);
      };
      const info: StreamCallInfo = Object.assign(createCallInfo(call, open, context), { admitAgain });
      runner.runStream(stream, info, (call as ServerWritableStream<Uint8Array, Uint8Array>).request);
    } catch (error) {
      stream.fail(error);
    }
  }

  const handler = method.kind === "unary" ? handleUnary : handleStream;
  const type = { unary: "unary", watch: "serverStream", stream: "bidi" }[method.kind];
  // Messages are decoded by the handlers, so one that waits in grpc-js takes no more room than on the wire.
  server.register(method.definition.path, handler as UntypedHandleCall, asTheyAre, asTheyAre, type);
}

function asTheyAre(bytes: Buffer): Buffer {
  return bytes;
}

function createStream(
  call: ServerDuplexStream<Uint8Array, Uint8Array>,
  open: OpenCall,
  runner: MethodRunner,
): MessageStream {
  return {
    write: (bytes, sent) => void call.write(bytes, () => sent?.()),
    end: () => void call.end(),
    fail: (error) => void call.emit("error", runner.statusFrom(error)),
    onOver(listener) {
      let heard = false;
      const once = (): void => {
        if (!heard) listener();
        heard = true;
      };
      for (const event of ["cancelled", "close", "error"]) call.on(event, once);
    },
    read(onMessage, onEnd) {
      call.on("data", (bytes: Uint8Array) => {
        open.taken();
        onMessage(bytes);
      });
      call.on("end", onEnd);
    },
    pause: () => void call.pause(),
    resume: () => void call.resume(),
    busy(): void {},
  };
}

function createUnaryCall(
  call: ServerUnaryCall<Uint8Array, Uint8Array>,
  open: OpenCall,
  runner: MethodRunner,
  context: GrpcContext,
  answer: sendUnaryData<Uint8Array>,
): UnaryCall {
  const unary: UnaryCall = Object.assign(createCallInfo(call, open, context), {
    // grpc-js ignores what comes too late.
    isOver: false,
    carrier: readTraceCarrier(call.metadata),
    answer(response: unknown): void {
      const bytes = runner.codec.write(response);
      open.owe(bytes.length);
      answer(null, bytes);
    },
    refuse: (refusal: StatusObject): void => answer(refusal),
    settled(): void {},
  });
  return unary;
}

type Asking = {
  readonly metadata: Metadata;
  getDeadline(): Date | number;
  getPeer(): string;
  sendMetadata(metadata: Metadata): void;
};

function findOpenCall({ metadata }: Asking, gate: CallGate): OpenCall | undefined {
  const [id] = metadata.get(callHeader);
  return gate.findCall(String(id));
}

function createCallInfo(call: Asking, { caller }: OpenCall, { idempotencyHeader = false }: GrpcContext): CallInfo {
  return {
    caller,
    get from(): string {
      return readPeerAddress(call.getPeer());
    },
    get deadlineMs(): number | undefined {
      return findTimeLeft(call);
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
function readTraceCarrier(metadata: Metadata): TraceCarrier {
  const [traceparent] = metadata.get("traceparent");
  const [tracestate] = metadata.get("tracestate");
  return { traceparent: traceparent?.toString(), tracestate: tracestate?.toString() };
}

/** The address of `127.0.0.1:34567` or `[::1]:34567`; empty where it is none. */
function readPeerAddress(peer: string): string {
  const ip = parseIp(peer.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1"));
  return ip === undefined ? "" : renderIp(ip);
}

function findTimeLeft(call: Asking): number | undefined {
  return deadlineFrom(Number(call.getDeadline()) - Date.now());
}
