import {
  type GrpcMethod,
  type GrpcService,
  grpcService,
  type RequestOf,
  type ResponseOf,
  type ServiceDefinition,
} from "@sluice/protocol";
import type { CheckRequest } from "sluice";
import type { Caller } from "../../access/access.ts";
import type { OwnLimits } from "../../access/limit-own-api.ts";
import type { Permission } from "../../access/roles.ts";
import type { Service } from "../../service/service.ts";
import type { Draining } from "./draining.ts";
import type { HealthFeed } from "./health.ts";
import type { PlainWriter } from "./in-place-writer.ts";
import type { StreamShares } from "./stream-shares.ts";

/** What handlers may ask. */
export interface GrpcContext extends Service {
  /** Begins when the server stops: streams that would go on for ever end themselves. */
  readonly draining: Draining;
  /** How far streams are read ahead of their decisions. */
  readonly shares: StreamShares;
  readonly health: HealthFeed;
  /** Sluice's limits on those methods that change or tell what is stored. */
  readonly ownLimits: OwnLimits;
  /** Whether Envoy is given headers to add to its answers. */
  readonly envoyHeaders?: boolean | undefined;
  /** Whether the metadata `x-idempotency-key` gives a check its id if the message has none. Absent: no. */
  readonly idempotencyHeader?: boolean | undefined;
}

/** Who calls, and how long they wait. */
export interface CallInfo {
  readonly caller: Caller;
  /** The peer's address; empty where it has none. */
  readonly from: string;
  /**
   * What is left of the caller's patience at this moment, for `CheckRequest.deadlineMs`. Undefined where it has no end;
   * throws `DeadlineOver` where nothing is left.
   */
  readonly deadlineMs: number | undefined;
  /** The id that the call's metadata gives a check whose message has none. Empty: none. */
  readonly metadataId: Pick<CheckRequest, "id" | "idTtlMs">;
  /** Adds metadata to the answer, once and before it is sent. */
  announce(metadata: Readonly<Record<string, string>>): void;
}

/** The same of a stream, which may outlast the caller's token. */
export interface StreamCallInfo extends CallInfo {
  /** Throws if the caller is no longer permitted. */
  admitAgain(): void;
}

/** Request → answer. What it throws becomes a status. */
export type UnaryHandler<Req, Res> = (request: Req, context: GrpcContext, call: CallInfo) => Res | Promise<Res>;

/** Where a call with several answers sends them, whichever engine carries it. */
export interface AnswerStream {
  /** Sends an answer, after those before it. `sent` is called when it has left; never if the call ends first. */
  write(bytes: Uint8Array, sent?: () => void): void;
  /** Ends the call, after its answers. */
  end(): void;
  /** Ends the call with an error, after its answers. An error of ours is logged. */
  fail(error: unknown): void;
  /** Hears that the call is over, however that came about. Heard once, and at once if it is over already. */
  onOver(listener: () => void): void;
}

/** The same of a call that also has several requests. It is paused until `read`. */
export interface MessageStream extends AnswerStream {
  /** Begins to read: requests in order, then that there are no more. */
  read(onMessage: (bytes: Uint8Array) => void, onEnd: () => void): void;
  /** Receives no request until `resume`. What the client sends meanwhile is bounded by flow control. */
  pause(): void;
  resume(): void;
  /** Reports whether decisions are under way for it. A call that is over keeps its place until they are made. */
  busy(isBusy: boolean): void;
}

/** One request, many answers. It ends the stream itself. */
export type WatchHandler<Req, Res> = (
  request: Req,
  stream: AnswerStream,
  codec: StreamCodec<Req, Res>,
  context: GrpcContext,
  call: StreamCallInfo,
) => void;

/** Many requests, many answers. It ends the stream itself. */
export type StreamHandler<Req, Res> = (
  stream: MessageStream,
  codec: StreamCodec<Req, Res>,
  context: GrpcContext,
  call: StreamCallInfo,
) => void;

/** Streams carry bytes: what waits in one takes no more room than it has on the wire. */
export interface StreamCodec<Req, Res> {
  /** Throws `invalid_request` where the bytes are no such message. */
  read(bytes: Uint8Array): Req;
  write(message: Res): Uint8Array;
}

/** How a method is known to the control plane. */
export interface MethodAudit {
  /** `policy.put`; the part before the dot is what it is done to. */
  readonly action: string;
  /** What it counts as among those calls of a token that Sluice limits. Absent: it is not limited. */
  readonly access?: "read" | "write" | undefined;
}

/** A row of the method table. */
export type Method = {
  readonly definition: GrpcMethod<unknown, unknown>;
  readonly needs: Permission | "nothing";
  /** Set where refusals are in the audit. */
  readonly audit?: MethodAudit | undefined;
} & (
  | {
      readonly kind: "unary";
      readonly handle: UnaryHandler<unknown, unknown>;
      /** Writes an answer as its codec does, for engines that can write it where it is sent from. */
      readonly writeAnswer?: ((response: unknown, writer: PlainWriter) => void) | undefined;
    }
  | { readonly kind: "watch"; readonly handle: WatchHandler<unknown, unknown> }
  | { readonly kind: "stream"; readonly handle: StreamHandler<unknown, unknown> }
);

export function unary<D extends ServiceDefinition, M extends keyof D["methods"]>(
  service: D,
  method: M,
  needs: Method["needs"],
  handle: UnaryHandler<RequestOf<D, M>, ResponseOf<D, M>>,
  audit?: MethodAudit,
  writeAnswer?: (response: ResponseOf<D, M>, writer: PlainWriter) => void,
): Method {
  return {
    definition: findDefinition(service, method),
    needs,
    audit,
    kind: "unary",
    handle: handle as UnaryHandler<unknown, unknown>,
    writeAnswer: writeAnswer as ((response: unknown, writer: PlainWriter) => void) | undefined,
  };
}

export function watch<D extends ServiceDefinition, M extends keyof D["methods"]>(
  service: D,
  method: M,
  needs: Method["needs"],
  handle: WatchHandler<RequestOf<D, M>, ResponseOf<D, M>>,
  audit?: MethodAudit,
): Method {
  return {
    definition: findDefinition(service, method),
    needs,
    audit,
    kind: "watch",
    handle: handle as WatchHandler<unknown, unknown>,
  };
}

export function stream<D extends ServiceDefinition, M extends keyof D["methods"]>(
  service: D,
  method: M,
  needs: Method["needs"],
  handle: StreamHandler<RequestOf<D, M>, ResponseOf<D, M>>,
): Method {
  return {
    definition: findDefinition(service, method),
    needs,
    kind: "stream",
    handle: handle as StreamHandler<unknown, unknown>,
  };
}

function findDefinition<D extends ServiceDefinition, M extends keyof D["methods"]>(
  service: D,
  method: M,
): GrpcMethod<unknown, unknown> {
  const methods: GrpcService<D> = grpcService(service);
  // The handlers beside it are of the same types: the three functions above see to it.
  return methods[method] as GrpcMethod<unknown, unknown>;
}
