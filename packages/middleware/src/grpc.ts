import {
  Metadata,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  type ServerListener,
  type ServerMethodDefinition,
  status,
} from "@grpc/grpc-js";
import { attachTicket, findTicket as findAttachedTicket } from "./attach-ticket.ts";
import { checkedOptions } from "./check-options.ts";
import { createGate, type Gate, type Refused, type RequestReader, type Verdict } from "./gate.ts";
import { addressFromPeer } from "./grpc/address-from-peer.ts";
import { encodeStatusDetails } from "./grpc/encode-status-details.ts";
import { statusFromError } from "./grpc/status-from-error.ts";
import type { Limits } from "./limits.ts";
import type { RateLimitOptions } from "./rate-limit-options.ts";
import type { RefusalBody } from "./refusal.ts";
import { reportError } from "./report-error.ts";
import type { Ticket } from "./ticket.ts";

export type { Limits } from "./limits.ts";
export type { Ticket } from "./ticket.ts";

/** A call, before its handler and its messages are read. */
export interface GrpcCall {
  /** Its `path` is `/package.Service/Method`. */
  readonly method: Pick<ServerMethodDefinition<unknown, unknown>, "path" | "requestStream" | "responseStream">;
  readonly metadata: Metadata;
  /** The address at the other end of the connection. Undefined on a Unix socket. */
  readonly peer: string | undefined;
  /** The rest: deadline, host, the peer's certificate. */
  readonly call: ServerInterceptingCallInterface;
}

/** What was sent to the caller, to charge by it. */
export interface SentCall {
  /** The gRPC status: 0 is OK. CANCELLED if the caller hung up or the deadline passed before the handler finished. */
  readonly status: number;
  readonly messages: number;
  /** The size of all messages. They are encoded a second time to measure it, only if `charge` or `giveBack` is given. */
  readonly bytes: number;
}

export interface GrpcRateLimitOptions extends Omit<RateLimitOptions<GrpcCall, SentCall>, "refuse"> {
  /** Another status than RESOURCE_EXHAUSTED, UNAVAILABLE or INVALID_ARGUMENT, or another message. Fields it omits keep their values. */
  readonly refuse?:
    | ((
        body: RefusalBody,
        call: GrpcCall,
      ) => { readonly code?: number | undefined; readonly message?: string | undefined } | undefined)
    | undefined;
}

/**
 * Interceptor for servers of `@grpc/grpc-js`: `new Server({ interceptors: [rateLimit("100/m")] })`. Decides before the handler
 * sees anything of the call. The endpoint is `/package.Service/Method`; there is no method. If the call passes, headers
 * are sent as initial metadata, or as trailers if the handler answers with a status alone. A refusal is a status with
 * `google.rpc.RetryInfo`. gRPC itself answers calls to methods that do not exist; they are not counted.
 */
export function rateLimit(limits: Limits, options: GrpcRateLimitOptions = {}): ServerInterceptor {
  const { refuse: _, ...gateOptions } = checkedOptions(options, {});
  const gate = createGate<GrpcCall, SentCall>(reader, limits, gateOptions);
  return (method, inner) => limitCall(gate, options, method, inner);
}

/** The ticket of a call that a limit let in, for its handler: `findTicket(call)?.charge(5)`. */
export function findTicket(call: { readonly metadata: Metadata }): Ticket | undefined {
  return findAttachedTicket(call.metadata);
}

function limitCall(
  gate: Gate<GrpcCall, SentCall>,
  { refuse, onError }: GrpcRateLimitOptions,
  method: ServerMethodDefinition<unknown, unknown>,
  inner: ServerInterceptingCallInterface,
): ServerInterceptingCall {
  let headers: Readonly<Record<string, string>> = {};
  let headersSent = false;
  let ended = false;
  let settle: (() => void) | undefined;
  const sent = { status: status.CANCELLED as number, messages: 0, bytes: 0 };

  function decide(metadata: Metadata, next: (metadata: Metadata) => void): void {
    const call: GrpcCall = { method, metadata, peer: addressFromPeer(inner.getPeer()), call: inner };
    const admit = (verdict: Verdict): void => {
      if (verdict.kind === "refused") {
        refuseCall(inner, verdict, refuse?.(verdict.problem, call));
        return;
      }
      if (verdict.kind === "passed") {
        ({ headers } = verdict);
        const { ticket } = verdict;
        if (ticket !== undefined) {
          attachTicket(metadata, ticket);
          if (gate.settles) settle = () => void gate.settle(call, ticket, { ...sent });
          // The caller hung up during the check: the call was charged, and its handler will not run.
          if (ended) settle?.();
        }
      }
      next(metadata);
    };
    const fail = (error: unknown): void => {
      const { code, details, metadata: trailers, meant } = statusFromError(error);
      endCall(inner, code, details, trailers);
      if (meant) return;
      reportError(
        onError,
        error,
        call,
        "SLUICE_APP_FAILED",
        "a function in the rate limit options failed, and so did the call",
      );
    };
    try {
      const verdict = gate.decide(call);
      if (verdict instanceof Promise) verdict.then(admit).catch(fail);
      else admit(verdict);
    } catch (error) {
      fail(error);
    }
  }

  const listener: ServerListener = {
    onReceiveMetadata: decide,
    // Called once, at the end of every call, however it ended.
    onCancel: () => {
      ended = true;
      settle?.();
    },
  };
  return new ServerInterceptingCall(inner, {
    start: (next) => next(listener),
    sendMetadata: (metadata, next) => {
      headersSent = true;
      next(withHeaders(metadata, headers));
    },
    sendMessage: (message, next) => {
      // Version 1.10 sends a message without metadata that interceptors can see.
      if (!headersSent) inner.sendMetadata(withHeaders(undefined, headers));
      headersSent = true;
      if (settle !== undefined) {
        sent.messages += 1;
        sent.bytes += encodedLength(method, message);
      }
      next(message);
    },
    sendStatus: (ending, next) => {
      sent.status = ending.code ?? status.UNKNOWN;
      // Without initial metadata a client may still retry the call, so none is sent just for the headers.
      next(headersSent ? ending : { ...ending, metadata: withHeaders(ending.metadata, headers) });
    },
  });
}

const codes: Readonly<Record<RefusalBody["status"], number>> = {
  400: status.INVALID_ARGUMENT,
  429: status.RESOURCE_EXHAUSTED,
  503: status.UNAVAILABLE,
};

function refuseCall(
  call: ServerInterceptingCallInterface,
  { problem, headers }: Refused,
  own: { readonly code?: number | undefined; readonly message?: string | undefined } = {},
): void {
  const { code = codes[problem.status], message = problem.detail } = own;
  const metadata = withHeaders(undefined, headers);
  // These describe a body, and a gRPC status has none.
  metadata.remove("content-type");
  metadata.remove("cache-control");
  metadata.set("grpc-status-details-bin", encodeStatusDetails(code, message, problem));
  endCall(call, code, message, metadata);
}

function endCall(
  call: ServerInterceptingCallInterface,
  code: number,
  message: string,
  metadata: Metadata | null,
): void {
  // gRPC's escaping throws on lone surrogates.
  call.sendStatus({ code, details: message.replaceAll(/\p{Surrogate}/gu, "\ufffd"), metadata });
}

/** A copy, because a handler may reuse its metadata for many calls. Fields the handler set are kept. */
function withHeaders(metadata: Metadata | null | undefined, headers: Readonly<Record<string, string>>): Metadata {
  const all = metadata?.clone() ?? new Metadata();
  for (const name in headers) if (all.get(name).length === 0) all.set(name, headers[name]!);
  return all;
}

/** A message that cannot be encoded is not sent; gRPC answers with an error instead. */
function encodedLength({ responseSerialize }: ServerMethodDefinition<unknown, unknown>, message: unknown): number {
  try {
    return responseSerialize(message).byteLength;
  } catch {
    return 0;
  }
}

const reader: RequestReader<GrpcCall> = {
  method: () => undefined,
  path: ({ method }) => method.path,
  route: () => undefined,
  peer: ({ peer }) => peer,
  ip: ({ peer }) => peer,
  header: ({ metadata }, name) => metadata.get(name).map(String),
};
