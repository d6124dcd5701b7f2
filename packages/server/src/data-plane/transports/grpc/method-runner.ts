import { type StatusObject, status } from "@grpc/grpc-js";
import type { TraceCarrier } from "../../../observe/telemetry/tracing.ts";
import { isOurs, renderStatus } from "./errors.ts";
import type {
  AnswerStream,
  CallInfo,
  GrpcContext,
  MessageStream,
  Method,
  StreamCallInfo,
  StreamCodec,
} from "./method.ts";
import { readMessage } from "./read-message.ts";

/** A call with one answer, as an engine carries it. */
export interface UnaryCall extends CallInfo {
  /** Whether the caller has left, or has an answer that it is too late. The engine has counted the call then. */
  readonly isOver: boolean;
  readonly carrier: TraceCarrier;
  /** Sends the answer, and ends the call. Throws, with nothing sent, if it cannot be encoded. */
  answer(response: unknown): void;
  refuse(refusal: StatusObject): void;
  /** The handler is done with it, also if the call was over before. */
  settled(): void;
}

/** Runs one method for every engine: engines know connections and calls, this knows what a call means. */
export class MethodRunner {
  readonly method: Method;
  /** `sluice.v1.RateLimiter/Check`, for metrics, traces and logs. */
  readonly name: string;
  readonly codec: StreamCodec<unknown, unknown>;
  readonly #context: GrpcContext;

  constructor(method: Method, context: GrpcContext) {
    this.method = method;
    this.name = method.definition.path.slice(1);
    this.#context = context;
    const { requestDeserialize, responseSerialize } = method.definition;
    this.codec = { read: (bytes) => readMessage(requestDeserialize, bytes), write: responseSerialize };
  }

  /** Counts a call that has ended. */
  count(code: status, startedMs?: number): void {
    const seconds = startedMs === undefined ? undefined : (performance.now() - startedMs) / 1_000;
    this.#context.metrics.countGrpcCall(this.name, status[code], seconds);
  }

  /** An error as what a call ends with; one of ours is logged. */
  statusFrom(error: unknown): StatusObject {
    if (isStatus(error)) return error;
    if (isOurs(error)) this.#context.log.error("grpc.call_failed", { err: error, method: this.name });
    return renderStatus(error);
  }

  runUnary(bytes: Uint8Array, call: UnaryCall): void {
    if (this.method.kind !== "unary") return;
    const startedMs = performance.now();
    const context = this.#context;
    const span = context.tracing?.start("grpc", this.name, call.carrier);
    const succeed = (response: unknown): void => {
      if (!call.isOver) {
        call.answer(response);
        this.count(status.OK, startedMs);
      }
      call.settled();
      span?.end({ status: "OK" });
    };
    const fail = (error: unknown): void => {
      const refusal = this.statusFrom(error);
      if (!call.isOver) {
        this.count(refusal.code, startedMs);
        call.refuse(refusal);
      }
      call.settled();
      span?.end({ status: status[refusal.code], error: isOurs(error) ? "internal" : undefined });
    };
    try {
      const traced = span === undefined ? context : { ...context, decide: span.around(context.decide) };
      refuseLate(call);
      const response = this.method.handle(this.codec.read(bytes), traced, call);
      if (response instanceof Promise) response.then(succeed).catch(fail);
      else succeed(response);
    } catch (error) {
      fail(error);
    }
  }

  /** Begins a call with several answers. Whatever is thrown ends it. */
  runStream(stream: AnswerStream | MessageStream, call: StreamCallInfo, request: Uint8Array | undefined): void {
    try {
      refuseLate(call);
      if (this.method.kind === "watch" && request !== undefined)
        this.method.handle(this.codec.read(request), stream, this.codec, this.#context, call);
      else if (this.method.kind === "stream")
        this.method.handle(stream as MessageStream, this.codec, this.#context, call);
    } catch (error) {
      stream.fail(error);
    }
  }
}

/** Throws if the caller waits no longer: looking at what is left of its patience does. */
function refuseLate({ deadlineMs: _ }: CallInfo): void {}

function isStatus(error: unknown): error is StatusObject {
  return typeof error === "object" && error !== null && !(error instanceof Error) && "code" in error;
}
