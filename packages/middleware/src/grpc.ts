import {
  Metadata,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  type ServerListener,
  type ServerMethodDefinition,
  status,
} from "@grpc/grpc-js";
import { attachTicket, rateLimitOf as ticketOf } from "./attach-ticket.ts";
import { checkedOptions } from "./check-options.ts";
import { createGate, type Gate, type Refused, type RequestReader, type Verdict } from "./gate.ts";
import { addressOfPeer } from "./grpc/address-of-peer.ts";
import { encodeStatusDetails } from "./grpc/encode-status-details.ts";
import { statusFromError } from "./grpc/status-from-error.ts";
import type { Limits } from "./limits.ts";
import type { RateLimitOptions } from "./rate-limit-options.ts";
import type { RefusalBody } from "./refusal.ts";
import { reportError } from "./report-error.ts";
import type { Ticket } from "./ticket.ts";

export type { Limits } from "./limits.ts";
export type { Ticket } from "./ticket.ts";

/** A call before its handler and any of its messages are looked at. */
export interface GrpcCall {
  /** Its `path` is `/package.Service/Method`. */
  readonly method: Pick<ServerMethodDefinition<unknown, unknown>, "path" | "requestStream" | "responseStream">;
  readonly metadata: Metadata;
  /** The address at the other end of the connection. Undefined on a Unix socket. */
  readonly peer: string | undefined;
  /** What else gRPC knows: the deadline, the host, the certificate of the peer. */
  readonly call: ServerInterceptingCallInterface;
}

/** What went out to the caller, for charging by it. */
export interface SentCall {
  /** Of gRPC: 0 is OK. CANCELLED where the call ended before its handler ended it: hung up, or out of time. */
  readonly status: number;
  readonly messages: number;
  /** Of all messages. They are encoded once more to find out, and only where something is charged or given back. */
  readonly bytes: number;
}

export interface GrpcRateLimitOptions extends Omit<RateLimitOptions<GrpcCall, SentCall>, "refuse"> {
  /** Another status than RESOURCE_EXHAUSTED, UNAVAILABLE or INVALID_ARGUMENT, or another message. What it leaves out stays. */
  readonly refuse?:
    | ((
        body: RefusalBody,
        call: GrpcCall,
      ) => { readonly code?: number | undefined; readonly message?: string | undefined } | undefined)
    | undefined;
}

/**
 * Interceptor for servers of `@grpc/grpc-js`: `new Server({ interceptors: [rateLimit("100/m")] })`. Decides before the handler
 * sees anything of the call. The endpoint is `/package.Service/Method`; there is no method. Where the call passes, headers
 * are initial metadata, or trailers where the handler answers with a status alone; a refusal is a status with
 * `google.rpc.RetryInfo`. gRPC itself answers calls to methods that do not exist, and nobody counts them.
 */
export function rateLimit(limits: Limits, options: GrpcRateLimitOptions = {}): ServerInterceptor {
  const { refuse: _, ...gateOptions } = checkedOptions(options, {});
  const gate = createGate<GrpcCall, SentCall>(reader, limits, gateOptions);
  return (method, inner) => limitCall(gate, options, method, inner);
}

/** The ticket of a call that a limit let in, for its handler: `rateLimitOf(call)?.charge(5)`. */
export function rateLimitOf(call: { readonly metadata: Metadata }): Ticket | undefined {
  return ticketOf(call.metadata);
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
    const call: GrpcCall = { method, metadata, peer: addressOfPeer(inner.getPeer()), call: inner };
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
          // Who hung up while counters were asked has been charged for, and its handler is not going to run.
          if (ended) settle?.();
        }
      }
      next(metadata);
    };
    const fail = (error: unknown): void => {
      const { code, details, metadata: trailers, meant } = statusFromError(error);
      endCall(inner, code, details, trailers);
      if (meant) return;
      reportError(onError, error, call, "SLUICE_APP_FAILED", "a call failed in a function given to its limit");
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
    // Comes at the end of every call, however it ended, and once.
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
      // Version 1.10 sends a message without metadata that an interceptor sees.
      if (!headersSent) inner.sendMetadata(withHeaders(undefined, headers));
      headersSent = true;
      if (settle !== undefined) {
        sent.messages += 1;
        sent.bytes += lengthOf(method, message);
      }
      next(message);
    },
    sendStatus: (ending, next) => {
      sent.status = ending.code ?? status.UNKNOWN;
      // Without initial metadata a client may still retry the call, so none are sent for the headers' sake.
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
  // These describe a body, and there is none.
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
  // gRPC escapes the message in a way that throws for halves of surrogate pairs.
  call.sendStatus({ code, details: message.replaceAll(/\p{Surrogate}/gu, "\ufffd"), metadata });
}

/** A copy, because a handler may use its metadata for many calls. What it says itself stays. */
function withHeaders(metadata: Metadata | null | undefined, headers: Readonly<Record<string, string>>): Metadata {
  const all = metadata?.clone() ?? new Metadata();
  for (const name in headers) if (all.get(name).length === 0) all.set(name, headers[name]!);
  return all;
}

/** A message that cannot be encoded is not sent; gRPC answers in its place. */
function lengthOf({ responseSerialize }: ServerMethodDefinition<unknown, unknown>, message: unknown): number {
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
