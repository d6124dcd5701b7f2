import { setMaxListeners } from "node:events";
import type { Socket } from "node:net";
import {
  type Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type StatusObject,
  type sendUnaryData,
  status,
  type UntypedHandleCall,
} from "@grpc/grpc-js";
import { maxDeadlineMs, parseIp, renderIp } from "sluice";
import { type Caller, demand, unasked } from "../../access/access.ts";
import { bearerTokenOf } from "../../access/bearer-token.ts";
import type { Permission } from "../../access/roles.ts";
import { limitOwnApi } from "../../control/limit-own-api.ts";
import type { Service } from "../../service/service.ts";
import { countChecks } from "../../telemetry/count-checks.ts";
import type { TraceCarrier } from "../../telemetry/tracing.ts";
import type { Transport } from "../transport.ts";
import { DeadlineOver, isOurs, renderStatus } from "./errors.ts";
import { createHealthFeed } from "./health.ts";
import type { CallInfo, GrpcContext, Method, MethodAudit, StreamCallInfo, StreamCodec } from "./method.ts";
import { methods } from "./methods.ts";
import { readMessage } from "./read-message.ts";
import { StreamShares } from "./stream-shares.ts";

/** Most bytes of a message; a batch of 1 000 checks is well below. */
export const maxMessageBytes: number = 1024 * 1024;

const limits = {
  "grpc.max_receive_message_length": maxMessageBytes,
  // Answers are bounded by what is asked: 1 000 checks, each with the details of its limits.
  "grpc.max_send_message_length": 16 * 1024 * 1024,
  "grpc.max_concurrent_streams": 1_000,
  // Megabytes that a connection may hold: who does not read its answers loses it.
  "grpc-node.max_session_memory": 64,
  "grpc.max_connection_idle_ms": 30 * 60_000,
  "grpc.enable_channelz": 0,
} as const;

export interface GrpcServerOptions {
  /** How long a connection may be silent before it is asked whether it is there. Absent: a minute. */
  readonly silentMs?: number;
  /** How long it may take to say so; then it is closed. Absent: 20 s. */
  readonly replyMs?: number;
}

/** gRPC over the method table. Knows of calls, metadata and connections; handlers know of messages. */
export function createGrpcServer(
  service: Service & Pick<GrpcContext, "envoyHeaders"> & Partial<Pick<GrpcContext, "ownLimits">>,
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
  for (const method of methods) register(server, method, context);
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());

  const open = new Set<Socket>();
  let whenGone: (() => void) | undefined;

  return {
    accept(socket: Socket): void {
      open.add(socket);
      socket.once("close", () => {
        open.delete(socket);
        if (open.size === 0) whenGone?.();
      });
      injector.injectConnection(socket);
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
      server.forceShutdown();
      return cut;
    },
  };
}

function register(server: Server, method: Method, context: GrpcContext): void {
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
    if (isOurs(error)) context.log.error({ err: error, method: name }, "a call failed");
    return renderStatus(error);
  }

  function handleUnary(call: ServerUnaryCall<Uint8Array, Uint8Array>, answer: sendUnaryData<Uint8Array>): void {
    if (method.kind !== "unary") return;
    const startedMs = performance.now();
    const span = context.tracing?.start("grpc", name, carrierOf(call.metadata));
    const traced = span === undefined ? context : { ...context, decide: span.around(context.decide) };
    const succeed = (response: unknown): void => {
      const bytes = codec.write(response);
      end(status.OK, startedMs);
      span?.end({ status: "OK" });
      answer(null, bytes);
    };
    const fail = (error: unknown): void => {
      const told = tell(error);
      end(told.code, startedMs);
      span?.end({ status: status[told.code], error: isOurs(error) ? "internal" : undefined });
      answer(told);
    };
    try {
      const info = admit(call, method, context);
      const response = method.handle(codec.read(call.request), traced, info);
      if (response instanceof Promise) response.then(succeed).catch(fail);
      else succeed(response);
    } catch (error) {
      fail(error);
    }
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
    try {
      const admitAgain = (): void => readmit(call, method, context);
      const info: StreamCallInfo = Object.assign(admit(call, method, context), { admitAgain });
      if (method.kind === "watch") {
        const watching = call as ServerWritableStream<Uint8Array, Uint8Array>;
        method.handle(codec.read(watching.request), watching, codec, context, info);
      } else if (method.kind === "stream") {
        method.handle(call as ServerDuplexStream<Uint8Array, Uint8Array>, codec, context, info);
      }
    } catch (error) {
      call.emit("error", tell(error));
    }
  }

  const handler = method.kind === "unary" ? handleUnary : handleStream;
  const type = { unary: "unary", watch: "serverStream", stream: "bidi" }[method.kind];
  // Messages are read here and not by grpc-js, which would do so before anybody knows who asks.
  server.register(path, handler as UntypedHandleCall, asTheyAre, asTheyAre, type);
}

function asTheyAre(bytes: Buffer): Buffer {
  return bytes;
}

type Asking = { readonly metadata: Metadata; getDeadline(): Date | number; getPeer(): string };

/** Throws where nobody waits for the answer any more, or the caller may not ask. */
function admit(call: Asking, method: Method, context: GrpcContext): CallInfo {
  const deadline = call.getDeadline();
  leftOf(deadline);
  return {
    caller: method.needs === "nothing" ? unasked : identify(call, method.needs, method.audit, context),
    get from(): string {
      return addressOf(call.getPeer());
    },
    get deadlineMs(): number | undefined {
      return leftOf(deadline);
    },
  };
}

/** Throws where a caller that was let in may not ask any more. It is one call all the same, and counted once. */
function readmit(call: Asking, { needs }: Method, { access }: GrpcContext): void {
  leftOf(call.getDeadline());
  if (needs !== "nothing") demand(access.identify(tokenOf(call)), needs);
}

function tokenOf({ metadata }: Asking): string | undefined {
  const [authorization] = metadata.get("authorization");
  return bearerTokenOf({ authorization: authorization?.toString() });
}

/** Who calls what is in the audit is limited as over HTTP: by their address until they are known, then by their token. */
function identify(call: Asking, needs: Permission, audit: MethodAudit | undefined, context: GrpcContext): Caller {
  const { access, control, ownLimits } = context;
  const token = tokenOf(call);
  if (audit === undefined) {
    const caller = access.identify(token);
    demand(caller, needs);
    return caller;
  }
  const { action } = audit;
  const from = addressOf(call.getPeer());
  const refused = (caller: Caller, error: unknown): unknown => {
    const kind = action.slice(0, action.indexOf("."));
    control?.audit.refused({ caller, from }, action, kind, "", (error as Error).message);
    return error;
  };
  let caller: Caller;
  try {
    caller = access.identify(token);
  } catch (error) {
    ownLimits.countFailedLogin(from);
    throw refused(unasked, error);
  }
  if (audit.access !== undefined) ownLimits.take(caller, audit.access);
  try {
    demand(caller, needs);
  } catch (error) {
    throw refused(caller, error);
  }
  return caller;
}

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
