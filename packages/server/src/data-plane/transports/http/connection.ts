import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Protocol } from "../../../protocol.ts";
import type { HeldBytes, Holding } from "../held-bytes.ts";
import type { Turns } from "../turns.ts";
import { answerClientError, behindUpgrade, type ClientError } from "./client-errors.ts";
import type { AnswerWriter, HttpResponse } from "./exchange.ts";
import { renderAnswer } from "./render-answer.ts";
import { measureRequest } from "./whole-request.ts";

/** Answers one request. */
export type AnswerRequest = (request: IncomingMessage, response: ServerResponse) => void;

/** Answers a piece that is one whole request, of those that are asked most. Returns false if it is anything else. */
export type AnswerWhole = (piece: Buffer, socket: Socket, writer: AnswerWriter) => boolean;

/** What all connections of a server share. */
export interface ConnectionShared {
  readonly protocol: Protocol;
  readonly answer: AnswerRequest;
  readonly answerWhole: AnswerWhole;
  readonly turns: Turns;
  readonly held: HeldBytes;
  /** How long a client may leave an answer unread, on top of the time that its length is worth. */
  readonly unreadMs: number;
  /** What answers say about how long a connection is kept: `Keep-Alive`. */
  readonly keptFor: string;
  /** How many requests a connection is kept for. */
  readonly maxRequests: number;
  readonly onAnswered: (connection: Connection) => void;
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/**
 * How much is parsed at a time. Node's parser turns all that it is handed into requests without a pause: the 64 KiB of
 * one read may make more than three thousand. This much makes 56 at most, in less than a millisecond.
 */
const pieceBytes = 1024;

/** What a request that waits behind another counts as, with everything that Node allocates for it. */
const bytesPerRequest = 4_096;

/** A client that reads more slowly than this, after its `unreadMs`, is not waited for. */
const minReadBytesPerMs = 64;

/**
 * One client. Requests are answered one after the other, the next when the client's side has accepted the previous
 * answer, and nothing is parsed meanwhile: what a client sends ahead waits in the socket, and then in the kernel, until
 * the client itself has to stop sending.
 *
 * What is asked most usually arrives in one piece, and is answered without Node's parser and response if nothing else
 * is going on; the connection itself is the writer then. The first request goes by Node, which ends its wait for one.
 */
export class Connection implements AnswerWriter {
  readonly #socket: Socket;
  readonly #parse: (piece: Buffer) => void;
  readonly #shared: ConnectionShared;
  readonly #holding: Holding;
  #current: ServerResponse | undefined;
  /** How far the answer is to a request that arrived whole. */
  #whole: "none" | "asked" | "written" = "none";
  #wholeCount = 0;
  /** How many bytes Node's parser needs for the rest of a request: 0 between two requests. Undefined if not known. */
  #bytesToCome: number | undefined = 0;
  /** Node's listener for the end of what the client sends, if it waits for an answer. */
  #end: (() => void) | undefined;
  /** Requests of the same piece that wait for the current one. */
  readonly #queue: Exchange[] = [];
  /** The request that was parsed last. */
  #latest: IncomingMessage | undefined;
  /** Bytes of a request that has not arrived completely. */
  #partialBytes = 0;
  /** Whether received bytes are waiting to be parsed. */
  #isPaused = false;
  #waitsForTurn = false;
  #failure: ClientError | undefined;
  #unreadSinceMs = Number.POSITIVE_INFINITY;
  /** Bytes of the answer when it was first found unread. */
  #unreadBytes = 0;

  /** Takes over the handling of received bytes from Node. */
  constructor(socket: Socket, shared: ConnectionShared) {
    this.#socket = socket;
    this.#shared = shared;
    this.#holding = shared.held.hold(shared.protocol, () => socket.destroy());
    const [parse] = socket.listeners("data") as ((piece: Buffer) => void)[];
    this.#parse = parse!;
    socket.removeListener("data", parse!);
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    this.#postponeEnd();
    socket.once("close", () => {
      this.#queue.length = 0;
      this.#holding.bytes = 0;
    });
  }

  /** Whether nothing waits to be answered. */
  get isIdle(): boolean {
    return this.#current === undefined && this.#whole === "none" && this.#queue.length === 0 && !this.#isPaused;
  }

  /** Answers a parsed request, or keeps it until those before it are answered. */
  take(request: IncomingMessage, response: ServerResponse): void {
    this.#latest = request;
    response.on("close", this.#onClose);
    if (this.#current !== undefined) {
      this.#queue.push({ request, response });
      return;
    }
    this.#current = response;
    this.#shared.answer(request, response);
  }

  /**
   * Answers what is not a request, after the requests before it: otherwise it would look like the answer to one of
   * them.
   */
  fail(error: ClientError): void {
    this.#failure = error;
    // Its rest will not come.
    if (this.#queue.at(-1)?.request.complete === false) this.#queue.pop();
    if (this.#socket.destroyed || this.#isFree || this.#current?.req.complete === false)
      answerClientError(error, this.#socket);
  }

  /** Notes how much of an answer is unsent. */
  onSent(): void {
    if (this.#socket.writableLength > 0) this.#measure();
  }

  closeIfIdle(): void {
    // Written answers are still sent.
    if (this.isIdle) this.#socket.destroySoon();
  }

  /** Closes the connection if its client leaves an answer unread, or reads it too slowly. Called now and then. */
  closeIfUnread(nowMs: number): void {
    const { writableLength } = this.#socket;
    if (writableLength === 0) this.#unreadSinceMs = Number.POSITIVE_INFINITY;
    else if (this.#unreadSinceMs === Number.POSITIVE_INFINITY) {
      this.#unreadSinceMs = nowMs;
      this.#unreadBytes = writableLength;
    } else if (nowMs - this.#unreadSinceMs > this.#shared.unreadMs + this.#unreadBytes / minReadBytesPerMs)
      this.#socket.destroy();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Whether the answer to a request that arrived whole was written. */
  get hasWritten(): boolean {
    return this.#whole !== "asked";
  }

  /** Answers a request that arrived whole. */
  write(response: HttpResponse, close: boolean): void {
    const isLast = close || this.#wholeCount >= this.#shared.maxRequests;
    const text = renderAnswer(response, isLast ? undefined : this.#shared.keptFor, Date.now());
    this.#whole = "written";
    // If it is gone, the callback comes with an error.
    this.#socket.write(text, this.#onWritten);
    if (isLast) this.#socket.destroySoon();
  }

  /** Whether no request is being answered. */
  get #isFree(): boolean {
    return this.#current === undefined && this.#whole === "none";
  }

  /** Whether received bytes may be parsed: nothing is ahead of them except the request that they belong to. */
  get #mayParse(): boolean {
    if (this.#waitsForTurn || this.#failure !== undefined || this.#socket.destroyed) return false;
    return this.#isFree || (this.#queue.length === 0 && this.#latest?.complete === false);
  }

  #receive(chunk: Buffer): void {
    if (chunk.length <= pieceBytes && this.#answerWhole(chunk)) return;
    const { turns } = this.#shared;
    let at = 0;
    while (at < chunk.length && this.#mayParse) {
      // What fits into a piece is an ordinary request, and has priority over larger input.
      if (chunk.length > pieceBytes && !turns.mayGoOn()) {
        this.#wait();
        break;
      }
      const piece = chunk.length <= pieceBytes ? chunk : chunk.subarray(at, at + pieceBytes);
      at += piece.length;
      this.#parsePiece(piece);
      // Node drops what follows such a request in the same piece, and would mistake the middle of the next one for its
      // beginning.
      if (at < chunk.length && this.#latest?.complete === true && this.#latest.headers.upgrade !== undefined)
        this.fail({ code: behindUpgrade });
    }
    if (this.#socket.destroyed) return;
    // What follows a failure is read and dropped: closing a connection with bytes unread may reach the client before
    // the answer.
    const isLeft = at < chunk.length && this.#failure === undefined;
    if (isLeft || this.#queue.length > 0) {
      this.#isPaused = true;
      this.#socket.pause();
      if (isLeft) this.#socket.unshift(chunk.subarray(at));
    }
    if (this.#isPaused || this.#partialBytes > 0 || this.#holding.bytes > 0) this.#measure();
  }

  /** Answers a piece that is one whole request, of those that are asked most. Returns false if it is anything else. */
  #answerWhole(piece: Buffer): boolean {
    if (this.#bytesToCome !== 0 || this.#latest === undefined || this.#queue.length > 0) return false;
    if (!this.#isFree || !this.#mayParse) return false;
    this.#whole = "asked";
    if (!this.#shared.answerWhole(piece, this.#socket, this)) {
      this.#whole = "none";
      return false;
    }
    this.#wholeCount += 1;
    if (this.#holding.bytes > 0) this.#measure();
    return true;
  }

  /** Node would close the connection at the end of what the client sends: it does not know of such a request. */
  #postponeEnd(): void {
    const socket = this.#socket;
    const end = socket.listeners("end").at(-1) as (() => void) | undefined;
    if (end === undefined) return;
    socket.removeListener("end", end);
    socket.on("end", () => {
      if (this.#whole === "none") end();
      else this.#end = end;
    });
  }

  #parsePiece(piece: Buffer): void {
    const before = this.#latest;
    const wasWhole = before === undefined || before.complete;
    const toCome = this.#bytesToCome === 0 ? measureRequest(piece) : this.#bytesToCome;
    this.#parse(piece);
    const latest = this.#latest;
    // Bytes beyond a request may be the beginning of another.
    this.#bytesToCome = toCome === undefined || toCome < piece.length ? undefined : toCome - piece.length;
    if (this.#bytesToCome === 0 && latest?.complete !== true) this.#bytesToCome = undefined;
    if (latest !== undefined && !latest.complete) this.#partialBytes += piece.length;
    else if (latest !== before || !wasWhole) this.#partialBytes = 0;
    // Headers of the next request.
    else this.#partialBytes += piece.length;
  }

  /** The answer to a request that arrived whole is over. */
  readonly #onWritten = (): void => {
    this.#whole = "none";
    this.#onAnswered();
    this.#end?.();
    this.#end = undefined;
  };

  /** A response is over: sent, or given up. */
  readonly #onClose = (): void => {
    this.#current = undefined;
    this.#onAnswered();
  };

  #onAnswered(): void {
    this.#unreadSinceMs = Number.POSITIVE_INFINITY;
    this.#shared.onAnswered(this);
    if (this.#isPaused || this.#failure !== undefined) {
      if (this.#shared.turns.mayGoOn()) this.#goOn();
      else this.#wait();
    } else if (this.#holding.bytes > 0) this.#measure();
  }

  #wait(): void {
    if (this.#waitsForTurn) return;
    this.#waitsForTurn = true;
    this.#shared.turns.later(() => {
      this.#waitsForTurn = false;
      this.#goOn();
    });
  }

  /** Answers the next request, or continues parsing. */
  #goOn(): void {
    if (this.#socket.destroyed) return;
    const next = this.#isFree ? this.#queue.shift() : undefined;
    if (next !== undefined) {
      this.#current = next.response;
      this.#shared.answer(next.request, next.response);
    } else if (this.#failure !== undefined && this.#isFree) {
      answerClientError(this.#failure, this.#socket);
      this.#socket.resume();
    }
    this.#parseOn();
    this.#measure();
  }

  /** Parses what waits in the socket, a piece in each step. */
  #parseOn(): void {
    const socket = this.#socket;
    while (this.#isPaused && this.#mayParse) {
      const { readableLength } = socket;
      if (readableLength === 0) {
        this.#isPaused = false;
        socket.resume();
        return;
      }
      // The socket hands it to `#receive`.
      socket.read(Math.min(pieceBytes, readableLength));
      if (this.#mayParse && !this.#shared.turns.mayGoOn()) this.#wait();
    }
  }

  #measure(): void {
    const { readableLength, writableLength, destroyed } = this.#socket;
    if (destroyed) return;
    this.#holding.bytes = readableLength + writableLength + this.#partialBytes + this.#queue.length * bytesPerRequest;
  }
}
