import { Metadata, type StatusObject, status } from "@grpc/grpc-js";
import { SluiceError } from "sluice";
import { parseIp, renderIp } from "sluice/internal";
import type { TraceCarrier } from "../../../../observe/telemetry/tracing.ts";
import type { Caller } from "../../../access/access.ts";
import { idFromText } from "../../idempotency-key.ts";
import { readmit } from "../admit.ts";
import { deadlineFrom } from "../call-deadline.ts";
import { DeadlineOver } from "../errors.ts";
import type { CallInfo, GrpcContext, MessageStream, StreamCallInfo } from "../method.ts";
import type { MethodRunner, UnaryCall } from "../method-runner.ts";
import { announcedHeaders, answerHeaders, okTrailers, statusTrailers } from "./answer-blocks.ts";
import type { CallHost } from "./call-host.ts";
import { MessageReader, type MessageSink } from "./message-reader.ts";
import type { RequestHead } from "./request-head.ts";
import { messageHeadLength, type Stream, type StreamReceiver } from "./stream.ts";

/** What an open call costs beside its messages: its objects here and in its handler. */
export const openCallBytes: number = 4 * 1024;
/** What a message costs that waits for its handler, beside its bytes. */
const messageOverhead = 256;
/** After this many messages of a stream, others may have their turn: one frame holds thousands of small ones. */
const messagesPerStep = 32;
/** Most characters of `grpc-encoding` that an error repeats. */
const maxEncodingLength = 100;

const noId: CallInfo["metadataId"] = {};

/**
 * One call, from its headers to its status.
 *
 *     receiving ──its request is complete──► running ──the handler answers──► over
 *         │                                     │
 *         └─────── refused, too late, cancelled ┴──────────────────────────► over
 *
 * It is what its handler knows of it (`CallInfo`, `MessageStream`), and counts what it holds: its place, its request, and the
 * requests of a stream that its handler has not taken. A cancelled call keeps its place until its handler is done.
 */
export class GrpcCall implements StreamReceiver, MessageSink, UnaryCall, MessageStream, StreamCallInfo {
  readonly caller: Caller;
  readonly runner: MethodRunner;
  readonly stream: Stream;
  isOver = false;
  readonly #head: RequestHead;
  readonly #connection: CallHost;
  readonly #context: GrpcContext;
  readonly #reader: MessageReader;
  readonly #maxMessageBytes: number;
  readonly #deadlineAtMs: number;
  #heldBytes = 0;
  /** When the current message became half received; 0 if none is. */
  #halfSinceMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #headers: Buffer = answerHeaders;
  /** The request of a call that has one, as it waits for the end. */
  #request: Buffer | undefined;
  #isRunning = false;
  #isAnswering = false;
  #remoteEnded = false;
  #overListeners: (() => void)[] = [];
  /** Of a stream: who reads it, what waits to be read, and how much the client may not send yet. */
  #onMessage: ((bytes: Uint8Array) => void) | undefined;
  #onEnd: (() => void) | undefined;
  #isPaused = true;
  #isDelivering = false;
  readonly #inbox: Buffer[] = [];
  #inboxAt = 0;
  #untaken = 0;
  #stepMessages = 0;
  /** Whether what waits is delivered in a later turn. */
  #isYielding = false;

  constructor(
    stream: Stream,
    head: RequestHead,
    runner: MethodRunner,
    caller: Caller,
    connection: CallHost,
    timeoutMs: number,
    maxMessageBytes: number,
  ) {
    this.stream = stream;
    this.#head = head;
    this.runner = runner;
    this.caller = caller;
    this.#connection = connection;
    this.#context = connection.context;
    this.#deadlineAtMs = connection.heardMs + timeoutMs;
    this.#maxMessageBytes = maxMessageBytes;
    this.#reader = new MessageReader(this, maxMessageBytes);
  }

  /** Begins the call. Refuses it if its connection holds as much as it may. */
  begin(): void {
    this.#connection.held.calls += 1;
    if (!this.#hold(openCallBytes + this.#head.bytes)) return;
    if (this.runner.method.kind !== "stream") this.#setHalf(true);
    else this.#start(undefined);
  }

  // What the handler knows.

  get from(): string {
    const ip = parseIp(this.#connection.remoteAddress ?? "");
    return ip === undefined ? "" : renderIp(ip);
  }

  get deadlineMs(): number | undefined {
    return this.#deadlineAtMs === Infinity ? undefined : deadlineFrom(this.#deadlineAtMs - performance.now());
  }

  get metadataId(): CallInfo["metadataId"] {
    return this.#context.idempotencyHeader === true ? idFromText(this.#head.idempotencyKey) : noId;
  }

  get carrier(): TraceCarrier {
    return this.#head;
  }

  announce(metadata: Readonly<Record<string, string>>): void {
    this.#headers = announcedHeaders(metadata);
  }

  admitAgain(): void {
    if (this.#deadlineAtMs !== Infinity) deadlineFrom(this.#deadlineAtMs - performance.now());
    readmit(this.#head, this.runner.method, this.#context);
  }

  // What the client sends.

  data(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    this.#remoteEnded = isLast;
    if (this.isOver) return;
    this.#untaken += end - start;
    const before = this.#reader.heldBytes;
    this.#reader.read(bytes, start, end);
    if (this.isOver) return;
    const grown = this.#reader.heldBytes - before;
    if (grown !== 0 && !this.#hold(grown)) return;
    if (isLast) this.#requestEnded();
    else {
      if (this.runner.method.kind === "stream") this.#setHalf(this.#reader.isHalf);
      this.#takeUntaken();
    }
  }

  message(bytes: Buffer, isCopy: boolean): boolean {
    if (this.runner.method.kind === "stream") return this.#receive(bytes, isCopy);
    if (this.#request !== undefined) {
      const details = "this method takes one message";
      this.#refuseAndCount({ code: status.UNIMPLEMENTED, details, metadata: new Metadata() });
      return false;
    }
    this.#request = isCopy || this.#remoteEnded ? bytes : Buffer.from(bytes);
    return this.#remoteEnded || this.#hold(bytes.length + messageOverhead);
  }

  tooLarge(length: number): void {
    const message = `a message of this method has at most ${this.#maxMessageBytes} bytes, but this one ${length}`;
    this.fail(new SluiceError("body_too_large", message));
  }

  compressed(): void {
    const metadata = new Metadata();
    const { encoding = "identity" } = this.#head;
    if (encoding === "identity") {
      const details = "a message says that it is compressed, and the call does not say how";
      this.#refuseAndCount({ code: status.INTERNAL, details, metadata });
      return;
    }
    metadata.set("grpc-accept-encoding", "identity");
    const named = encoding.slice(0, maxEncodingLength);
    const details = `compressed messages are not accepted; send them as they are, without ${named}`;
    this.#refuseAndCount({ code: status.UNIMPLEMENTED, details, metadata });
  }

  /** Both ends are done, or one of them has left. */
  closed(): void {
    if (!this.isOver) {
      if (!this.#isAnswering) this.runner.count(status.CANCELLED);
      this.#end();
    }
    if (!this.#isRunning) this.#release();
  }

  /** Ends a call whose message takes too long to arrive. A stream that is paused is not to blame. */
  tick(nowMs: number): void {
    const { messageWithinMs } = this.#connection;
    if (this.#halfSinceMs === 0 || nowMs - this.#halfSinceMs < messageWithinMs) return;
    if (this.runner.method.kind === "stream" && this.#isPaused) this.#halfSinceMs = nowMs;
    else this.fail(new DeadlineOver(`the request was not complete after ${messageWithinMs} ms; nothing was decided`));
  }

  #requestEnded(): void {
    this.#setHalf(false);
    if (this.runner.method.kind === "stream") {
      if (this.#reader.isHalf) this.fail(incomplete());
      else this.#deliver();
      return;
    }
    if (this.#request === undefined || this.#reader.isHalf) {
      this.fail(incomplete());
      return;
    }
    // A caller that does not read its answers gets no further ones.
    if (this.#connection.hasRoom) this.proceed();
    else {
      if (!this.#hold(this.#request.length)) return;
      this.#request = Buffer.from(this.#request);
      this.#connection.held.waiting.add(this);
    }
  }

  /** Runs the handler of a call with one request. */
  proceed(): void {
    const request = this.#request;
    if (this.isOver || request === undefined) return;
    if (this.runner.method.kind === "unary") {
      this.#isRunning = true;
      this.runner.runUnary(request, this);
      if (!this.isOver) this.#startTimer();
    } else this.#start(request);
  }

  #start(request: Buffer | undefined): void {
    this.#startTimer();
    this.runner.runStream(this, this, request);
  }

  #startTimer(): void {
    if (this.#deadlineAtMs === Infinity || this.isOver) return;
    // A timer of Node's holds 24 days; no call is that long.
    const leftMs = Math.min(Math.max(this.#deadlineAtMs - performance.now(), 0) + 1, 2 ** 31 - 1);
    this.#timer = setTimeout(() => {
      const refusal = this.runner.statusFrom(new DeadlineOver("the deadline was over before there was an answer"));
      this.#refuseAndCount(refusal);
    }, leftMs);
  }

  // Calls with one answer.

  answer(response: unknown): void {
    if (!this.#writeAnswer(response)) this.#sendAnswer(this.runner.codec.write(response));
    this.#connection.answered();
  }

  /** Writes the answer where it is sent from, if its method can and if there is room. */
  #writeAnswer(response: unknown): boolean {
    const { method } = this.runner;
    if (method.kind !== "unary" || method.writeAnswer === undefined) return false;
    this.#isAnswering = true;
    const written = this.stream.sendWritten(this.#headers, response, method.writeAnswer, okTrailers);
    this.#isAnswering = false;
    if (written) this.#end();
    return written;
  }

  #sendAnswer(bytes: Uint8Array): void {
    const { stream } = this;
    this.#end();
    if (stream.sendWhole(this.#headers, bytes, okTrailers)) return;
    stream.sendHeaders(this.#headers, false);
    stream.sendData(framed(bytes));
    stream.sendTrailers(okTrailers);
  }

  /** Ends the call with a status. What was answered before is sent before it. */
  refuse(refusal: StatusObject): void {
    if (this.isOver) return;
    const { stream } = this;
    this.#end();
    if (stream.headersSent) stream.sendTrailers(statusTrailers(refusal, false));
    else stream.sendHeaders(statusTrailers(refusal, true), true);
  }

  #refuseAndCount(refusal: StatusObject): void {
    if (this.isOver) return;
    this.runner.count(refusal.code);
    this.refuse(refusal);
  }

  settled(): void {
    this.#isRunning = false;
    if (this.stream.over) this.#release();
  }

  // Calls with several answers.

  write(bytes: Uint8Array, sent?: () => void): void {
    if (this.isOver) return;
    this.stream.sendHeaders(this.#headers, false);
    this.stream.sendData(framed(bytes), sent);
  }

  end(): void {
    if (this.isOver) return;
    this.runner.count(status.OK);
    this.stream.sendHeaders(this.#headers, false);
    this.#end();
    this.stream.sendTrailers(okTrailers);
  }

  fail(error: unknown): void {
    this.#refuseAndCount(this.runner.statusFrom(error));
  }

  onOver(listener: () => void): void {
    if (this.isOver) listener();
    else this.#overListeners.push(listener);
  }

  read(onMessage: (bytes: Uint8Array) => void, onEnd: () => void): void {
    this.#onMessage = onMessage;
    this.#onEnd = onEnd;
    this.resume();
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    if (!this.#isPaused || this.isOver) return;
    this.#isPaused = false;
    this.#deliver();
  }

  busy(isBusy: boolean): void {
    this.#isRunning = isBusy;
    if (!isBusy && this.stream.over) this.#release();
  }

  /** A message of a stream: to its handler, or behind those that wait for it. */
  #receive(bytes: Buffer, isCopy: boolean): boolean {
    // The next one has as long again, even if no frame ends with a message.
    this.#setHalf(false);
    if (this.#isPaused || this.#isDelivering || this.#inbox.length > 0 || !this.#mayGoOn()) {
      this.#inbox.push(isCopy ? bytes : Buffer.from(bytes));
      return this.#hold(bytes.length + messageOverhead);
    }
    this.#isDelivering = true;
    this.#onMessage?.(bytes);
    this.#isDelivering = false;
    return !this.isOver;
  }

  #deliver(): void {
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    while (!this.#isPaused && !this.isOver && this.#inbox.length > 0 && this.#mayGoOn()) {
      const bytes = this.#takeMessage();
      this.#hold(-bytes.length - messageOverhead);
      this.#onMessage?.(bytes);
    }
    this.#isDelivering = false;
    if (this.#isPaused || this.isOver || this.#inbox.length > 0) return;
    this.#takeUntaken();
    if (!this.#remoteEnded || this.#reader.isHalf) return;
    const onEnd = this.#onEnd;
    this.#onEnd = undefined;
    onEnd?.();
  }

  /** The oldest message that waits. */
  #takeMessage(): Buffer {
    const inbox = this.#inbox;
    const bytes = inbox[this.#inboxAt]!;
    this.#inboxAt += 1;
    if (this.#inboxAt === inbox.length) {
      inbox.length = 0;
      this.#inboxAt = 0;
    }
    return bytes;
  }

  /** Whether the next message may follow at once. If not, what waits is delivered in a later turn. */
  #mayGoOn(): boolean {
    if (this.#isYielding) return false;
    this.#stepMessages += 1;
    if (this.#stepMessages < messagesPerStep) return true;
    this.#stepMessages = 0;
    const { turns } = this.#connection;
    if (turns.mayGoOn()) return true;
    this.#isYielding = true;
    turns.later(() => {
      this.#isYielding = false;
      if (!this.isOver) this.#deliver();
    });
    return false;
  }

  /** The client may send as much again as was taken: all of a single request, and of a stream what its handler reads. */
  #takeUntaken(): void {
    if (this.#untaken === 0) return;
    if (this.runner.method.kind === "stream" && (this.#isPaused || this.#inbox.length > 0)) return;
    this.stream.take(this.#untaken);
    this.#untaken = 0;
  }

  #setHalf(half: boolean): void {
    if (half !== this.#halfSinceMs > 0) this.#halfSinceMs = half ? this.#connection.heardMs : 0;
  }

  /** Counts bytes. Refuses the call, and returns false, if its connection holds more than it may. */
  #hold(bytes: number): boolean {
    this.#heldBytes += bytes;
    if (this.#connection.hold(bytes) || bytes <= 0 || this.isOver) return !this.isOver;
    const message =
      "this connection holds as many bytes of requests and unread answers as one may; read answers, or send less at once";
    this.fail(new SluiceError("overloaded", message));
    return false;
  }

  /** Nothing more is received or answered. */
  #end(): void {
    if (this.isOver) return;
    this.isOver = true;
    clearTimeout(this.#timer);
    this.#setHalf(false);
    this.#reader.stop();
    this.#inbox.length = 0;
    this.#request = undefined;
    this.#connection.held.waiting.delete(this);
    const listeners = this.#overListeners;
    this.#overListeners = [];
    for (const listener of listeners) listener();
  }

  #release(): void {
    if (this.#heldBytes === 0) return;
    this.#connection.held.calls -= 1;
    this.#connection.hold(-this.#heldBytes);
    this.#heldBytes = 0;
  }
}

/** A message as it is sent. */
export function framed(bytes: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(messageHeadLength + bytes.length);
  frame[0] = 0;
  frame.writeUInt32BE(bytes.length, 1);
  frame.set(bytes, messageHeadLength);
  return frame;
}

function incomplete(): SluiceError {
  return new SluiceError("invalid_request", "the request ended before its message was complete");
}
