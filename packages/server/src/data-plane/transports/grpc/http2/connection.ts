import type { Socket } from "node:net";
import type { Turns } from "../../turns.ts";
import type { ConnectionLimits } from "./connection-limits.ts";
import { connectionWindow, FrameHandler } from "./frame-handler.ts";
import { FrameReader } from "./frame-reader.ts";
import { FrameWriter } from "./frame-writer.ts";
import { ConnectionError, ErrorCode, preface } from "./frames.ts";
import { OpenStreams } from "./open-streams.ts";
import { Output } from "./output.ts";
import type { RequestHead } from "./request-head.ts";
import type { Stream } from "./stream.ts";

/** What a connection reports to gRPC, which is behind it. */
export interface ConnectionHost {
  /** A request has begun. It is given a receiver, or answered, or reset. */
  request(stream: Stream, head: RequestHead): void;
  /** Bytes of answers wait to be sent; below 0 once they are. */
  owe(stream: Stream, bytes: number): void;
  /** Bytes are held for the connection itself; below 0 once they are not. */
  hold(bytes: number): void;
  /** The client broke a rule, or used up a budget. The connection is about to be closed. */
  failed(error: ConnectionError): void;
  /** Something in this process failed. */
  crashed(error: unknown): void;
  /** Called once. */
  closed(): void;
}

export interface ConnectionOptions {
  readonly socket: Socket;
  readonly limits: ConnectionLimits;
  readonly turns: Turns;
  readonly createHost: (connection: Connection) => ConnectionHost;
  /** Flushes the connection at the end of this turn of the event loop. */
  readonly flushLater: (connection: Connection) => void;
}

const drainPing = Buffer.from("draining", "latin1");
const alivePing = Buffer.from("are you?", "latin1");

const http1Body = "This port speaks gRPC, which needs HTTP/2.\n";
const http1Answer =
  "HTTP/1.1 505 HTTP Version Not Supported\r\nconnection: close\r\ncontent-type: text/plain\r\n" +
  `content-length: ${http1Body.length}\r\n\r\n${http1Body}`;

/**
 * One connection of HTTP/2 (RFC 9113), as a server: its bytes, its times and its end.
 *
 *     open ──drain, age, idleness: GOAWAY for streams to come──► leaving
 *       │                                                           │ PING answered, or a second: GOAWAY with the last stream
 *       │ an error: GOAWAY                                          ▼
 *       └──────────────► closed ◄──────the last stream ends────── left
 *
 * What arrives is read in turns with other connections, and only while answers are taken. What is written leaves once per turn
 * of the event loop.
 */
export class Connection {
  readonly #socket: Socket;
  readonly #limits: ConnectionLimits;
  readonly #turns: Turns;
  readonly #host: ConnectionHost;
  readonly #flushLater: (connection: Connection) => void;
  readonly #output: Output;
  readonly #writer: FrameWriter;
  readonly #streams: OpenStreams;
  readonly #frames: FrameHandler;
  readonly #reader: FrameReader;
  readonly #openedMs: number;
  /** When something was last heard, when the last call ended, and when the client was asked whether it is there (0: not). */
  #heardMs: number;
  #calledMs: number;
  #pingedMs = 0;
  #prefaceLeft = preface.length;
  #state: "open" | "leaving" | "left" | "closed" = "open";
  #leavingMs = 0;
  #isReading = false;
  /** What has arrived and is not read yet, because others have their turn or because answers are not taken. */
  #rest: Buffer | undefined;
  #heldBytes = 0;
  /** How many bytes the kernel had taken at last, and when that number last changed. */
  #written = 0;
  #writtenMs: number;

  constructor({ socket, limits, turns, createHost, flushLater }: ConnectionOptions) {
    const nowMs = performance.now();
    this.#socket = socket;
    this.#limits = limits;
    this.#turns = turns;
    this.#flushLater = flushLater;
    this.#openedMs = nowMs;
    this.#heardMs = nowMs;
    this.#calledMs = nowMs;
    this.#writtenMs = nowMs;
    const host = createHost(this);
    this.#host = host;
    this.#output = new Output(socket);
    const writer = new FrameWriter(this.#output);
    this.#writer = writer;
    const streams = new OpenStreams({
      writer,
      touch: () => this.#touch(),
      owe: (stream, bytes) => this.#owe(stream, bytes),
      onIdle: () => this.#idle(),
    });
    this.#streams = streams;
    this.#frames = new FrameHandler({
      streams,
      writer,
      limits,
      turns,
      onRequest: (stream, head) => host.request(stream, head),
      onPong: (payload) => {
        if (this.#state === "leaving" && drainPing.equals(payload)) this.#refuseMore();
      },
    });
    this.#reader = new FrameReader(this.#frames);
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.on("drain", () => this.#drained());
    socket.on("end", () => this.#left());
    socket.once("close", () => this.#close());
    writer.greeting(limits.maxConcurrentStreams, connectionWindow);
    this.flush();
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  /** When something was last heard: the time of the frames that are being read. */
  get heardMs(): number {
    return this.#heardMs;
  }

  get isClosed(): boolean {
    return this.#state === "closed";
  }

  /** An answer was sent: its client may acknowledge it. */
  answered(): void {
    this.#frames.answered();
  }

  /** Sends what was written in this turn. */
  flush(): void {
    if (this.isClosed) return;
    this.#streams.resetAnsweredEarly();
    this.#output.flush();
    if (this.#state === "left" && this.#streams.size === 0) {
      // The last answers may still be here, and have as long as all others.
      this.#end(this.#limits.unreadMs);
      return;
    }
    this.#countHeld();
  }

  #countHeld(): void {
    const unread = this.#frames.heldBytes + this.#reader.heldBytes + (this.#rest?.length ?? 0);
    const held = unread + this.#streams.heldBytes + this.#output.heldBytes;
    if (held === this.#heldBytes) return;
    const change = held - this.#heldBytes;
    this.#heldBytes = held;
    this.#host.hold(change);
  }

  /** Asks the client to go elsewhere; calls that it has made, or is just making, are answered. */
  leave(): void {
    if (this.#state !== "open") return;
    this.#state = "leaving";
    this.#leavingMs = performance.now();
    // The client's first stream may be on its way, and is answered: only the second GOAWAY says which was the last.
    this.#writer.goAway(ErrorCode.noError, "");
    this.#writer.ping(drainPing, 0);
    this.flush();
  }

  /** Closes the connection because of what its client did. */
  fail(error: ConnectionError): void {
    if (this.isClosed) return;
    this.#host.failed(error);
    this.expel(error, false);
  }

  /** Closes the connection because of what it holds or asks for. `atOnce`: without waiting for what it has not read. */
  expel({ code, message }: ConnectionError, atOnce: boolean): void {
    if (this.isClosed) return;
    this.#writer.goAway(code, message, this.#frames.lastStreamId);
    this.#output.flush();
    this.#end();
    if (atOnce) setImmediate(() => this.#socket.destroy());
  }

  /** Closes the connection at once, and with it all that it holds. */
  destroy(): void {
    this.#close();
    this.#socket.destroy();
  }

  /** Looks at the clock. */
  tick(nowMs: number): void {
    if (this.isClosed) return;
    const { helloWithinMs, silentMs, replyMs, idleMs, maxAgeMs, unreadMs, lastCallsMs } = this.#limits;
    if (!this.#frames.settingsAcknowledged && nowMs - this.#openedMs > helloWithinMs) {
      this.fail(new ConnectionError(ErrorCode.settingsTimeout, "SETTINGS were not exchanged in time"));
    } else if (this.#isStuck(nowMs - unreadMs)) this.destroy();
    else if (this.#pingedMs > 0 && nowMs - this.#pingedMs > replyMs && !this.#output.isFull) this.destroy();
    else if (this.#state === "leaving" && nowMs - this.#leavingMs > lastCallsMs) this.#refuseMore();
    else {
      if (this.#pingedMs === 0 && nowMs - this.#heardMs > silentMs) this.#askWhetherAlive(nowMs);
      this.#streams.tick(nowMs, unreadMs);
      // The kernel may have taken bytes since.
      this.#countHeld();
      const isIdle = this.#streams.size === 0 && nowMs - this.#calledMs > idleMs;
      if (isIdle || nowMs - this.#openedMs > maxAgeMs) this.leave();
    }
  }

  #askWhetherAlive(nowMs: number): void {
    this.#pingedMs = nowMs;
    this.#writer.ping(alivePing, 0);
    this.flush();
  }

  /** Whether the kernel has had bytes to take since then, and has taken none. */
  #isStuck(sinceMs: number): boolean {
    const { bytesWritten, writableLength } = this.#socket;
    const taken = bytesWritten - writableLength;
    if (writableLength === 0 || taken !== this.#written) {
      this.#written = taken;
      this.#writtenMs = performance.now();
    }
    return this.#writtenMs < sinceMs;
  }

  #receive(chunk: Buffer): void {
    if (this.isClosed) return;
    this.#heardMs = performance.now();
    this.#pingedMs = 0;
    // Only if the socket had read further before it was paused.
    if (this.#rest !== undefined) this.#rest = Buffer.concat([this.#rest, chunk]);
    else this.#read(chunk);
  }

  #read(chunk: Buffer): void {
    this.#rest = undefined;
    this.#isReading = true;
    let at = 0;
    try {
      if (this.#prefaceLeft > 0) at = this.#readPreface(chunk);
      if (this.#prefaceLeft === 0) at = this.#reader.read(chunk, at);
    } catch (error) {
      this.#isReading = false;
      this.#failWith(error);
      return;
    }
    this.#isReading = false;
    if (this.isClosed) return;
    if (at < chunk.length) this.#rest = chunk.subarray(at);
    this.flush();
    if (this.#rest === undefined && !this.#output.isFull) return;
    this.#socket.pause();
    // If answers are not taken, `drain` goes on.
    if (!this.#output.isFull) this.#turns.later(() => this.#goOn());
  }

  #goOn(): void {
    if (this.isClosed || this.#output.isFull) return;
    if (this.#rest !== undefined) this.#read(this.#rest);
    if (this.#rest === undefined && !this.#output.isFull) this.#socket.resume();
  }

  #drained(): void {
    if (this.isClosed) return;
    // While it was slow to read, nothing was read from it either, not even an answer to PING.
    this.#pingedMs = 0;
    this.#streams.pumpBlocked();
    this.flush();
    this.#goOn();
  }

  #failWith(error: unknown): void {
    if (!(error instanceof ConnectionError)) this.#host.crashed(error);
    this.fail(
      error instanceof ConnectionError
        ? error
        : new ConnectionError(ErrorCode.internalError, "something failed in this server"),
    );
  }

  /** Returns where the first frame begins. */
  #readPreface(chunk: Buffer): number {
    const done = preface.length - this.#prefaceLeft;
    const part = Math.min(chunk.length, this.#prefaceLeft);
    if (preface.compare(chunk, 0, part, done, done + part) === 0) {
      this.#prefaceLeft -= part;
      return part;
    }
    if (done === 0 && /^[A-Z]+ [^\r\n]* HTTP\/1\.\d\r?\n/.test(chunk.toString("latin1", 0, 1024))) {
      this.#socket.write(http1Answer);
      this.#end();
      return chunk.length;
    }
    throw new ConnectionError(ErrorCode.protocolError, "the connection does not begin as one of HTTP/2 does");
  }

  /** The client sends no more, and takes no more either: clients of HTTP/2 close both ways together. */
  #left(): void {
    if (this.isClosed) return;
    this.flush();
    this.#end();
  }

  #touch(): void {
    if (!this.#isReading) this.#flushLater(this);
  }

  #owe(stream: Stream, bytes: number): void {
    if (bytes < 0) this.#frames.answered();
    this.#host.owe(stream, bytes);
  }

  #idle(): void {
    if (this.isClosed) return;
    this.#calledMs = this.#heardMs;
    if (this.#state === "left") this.#flushLater(this);
  }

  /** The client knows that it should go: streams that it opens from here on are not answered. */
  #refuseMore(): void {
    this.#state = "left";
    this.#frames.refusing = true;
    this.#writer.goAway(ErrorCode.noError, "", this.#frames.lastStreamId);
    this.flush();
  }

  /** Closes the connection after what was written. The kernel has `withinMs` to take that, and then the client a moment to read it. */
  #end(withinMs: number = this.#limits.lingerMs): void {
    this.#close();
    const socket = this.#socket;
    const destroy = (): void => void socket.destroy();
    let timer = setTimeout(destroy, withinMs).unref();
    socket.once("close", () => clearTimeout(timer));
    socket.end(() => {
      clearTimeout(timer);
      if (!socket.destroyed) timer = setTimeout(destroy, this.#limits.lingerMs).unref();
    });
  }

  #close(): void {
    if (this.isClosed) return;
    this.#state = "closed";
    this.#frames.stopped = true;
    this.#rest = undefined;
    // First, so that calls which wait for others are not begun when those end.
    this.#host.closed();
    this.#streams.closeAll();
    this.#output.discard();
  }
}
