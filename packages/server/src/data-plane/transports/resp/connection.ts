import type { Socket } from "node:net";
import type { HeldBytes, Holding } from "../held-bytes.ts";
import type { Turns } from "../turns.ts";
import type { CommandContext } from "./command.ts";
import { CommandReader, maxCommandBytes, maxStrangerBytes } from "./command-reader.ts";
import type { Dispatch } from "./dispatch.ts";
import { ProtocolError } from "./protocol-error.ts";
import { failure } from "./replies.ts";

/** Bounds of one connection. */
export interface ConnectionBounds {
  /** The most commands that wait for their answer; further ones are read after these. */
  readonly maxInFlight: number;
  /** How long a client may leave its replies unread, and a command half sent. */
  readonly unreadMs: number;
  readonly halfwayMs: number;
  /** How long a client may stay without authenticating, if that is required. */
  readonly strangerMs: number;
  /** How long to keep reading from a connection that we closed, so that the client gets our last reply. */
  readonly lingerMs: number;
}

/** What all connections of the process share. */
export interface ConnectionShared {
  readonly turns: Turns;
  readonly held: HeldBytes;
}

/** Replies that wait behind one that is not there yet, which is undefined. */
interface Waiting {
  reply: string | undefined;
}

/** How much is collected before it is written, and how much may wait behind a missing answer. */
const maxCollected = 64 * 1024;

/** How many commands run in one step; others have their turn in between. */
const commandsPerStep = 16;
/** Anything larger was sent ahead, and waits for its turn. */
const ordinaryBytes = 4_096;

/**
 * One client. Commands are read as they arrive and answered in order, all that arrived together in one write. A reply
 * that is not there at once waits in a line, and so does everything behind it.
 *
 *     reading ─ QUIT, no protocol, an end ─► finishing ─ all answered ─► lingering ─► closed
 */
export class Connection {
  readonly #socket: Socket;
  readonly #context: CommandContext;
  readonly #dispatch: Dispatch;
  readonly #bounds: ConnectionBounds;
  readonly #turns: Turns;
  readonly #holding: Holding;
  readonly #reader = new CommandReader();
  readonly #line: Waiting[] = [];
  #collected = "";
  /** Characters in the line. */
  #waitingLength = 0;
  #flushing = false;
  #waitsForTurn = false;
  #phase: "reading" | "finishing" | "lingering" = "reading";
  /** The client will send nothing more, or nothing that we read. */
  #isEnded = false;
  /** Since when the client has not read, has half a command sent, or has had our last reply. */
  #unreadSinceMs = Number.POSITIVE_INFINITY;
  #halfwaySinceMs = Number.POSITIVE_INFINITY;
  #lingerSinceMs = Number.POSITIVE_INFINITY;
  /** Characters written so far; and how many of them the client must have read half a minute later. */
  #writtenLength = 0;
  #dueLength = 0;
  #dueSinceMs = Number.POSITIVE_INFINITY;

  constructor(
    socket: Socket,
    context: CommandContext,
    dispatch: Dispatch,
    bounds: ConnectionBounds,
    { turns, held }: ConnectionShared,
  ) {
    this.#socket = socket;
    this.#turns = turns;
    this.#holding = held.hold("resp", () => socket.destroy());
    this.#context = context;
    this.#dispatch = dispatch;
    this.#bounds = bounds;
    // A client that has sent everything still gets the answers.
    socket.allowHalfOpen = true;
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.on("drain", () => {
      this.#unreadSinceMs = Number.POSITIVE_INFINITY;
      this.#read();
    });
    socket.on("end", () => {
      this.#isEnded = true;
      this.#settle();
    });
    // Answers no longer reach the client.
    socket.on("close", () => {
      this.#phase = "lingering";
      this.#holding.bytes = 0;
    });
    socket.on("error", () => socket.destroy());
  }

  /** Whether received commands may be unread for lack of room. */
  get #isHeldBack(): boolean {
    return this.#phase === "reading" && this.#reader.isHalfway && !this.#mayRead;
  }

  get #mayRead(): boolean {
    return this.#hasRoom && !this.#waitsForTurn;
  }

  get #hasRoom(): boolean {
    return (
      this.#line.length < this.#bounds.maxInFlight &&
      this.#waitingLength <= maxCollected &&
      this.#unreadSinceMs === Number.POSITIVE_INFINITY
    );
  }

  /** Answers what was received, and closes. What arrives later is ignored. */
  drain(): void {
    this.#isEnded = true;
    this.#settle();
  }

  /** Whether the client has every reply, and only has to hang up. */
  get isAnswered(): boolean {
    return this.#lingerSinceMs !== Number.POSITIVE_INFINITY;
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Closes the connection if its client keeps it waiting for too long. Called now and then. */
  closeIfStuck(nowMs: number): void {
    const { unreadMs, halfwayMs, strangerMs, lingerMs } = this.#bounds;
    const { session } = this.#context;
    // A client that never sent anything was never asked for a token.
    if (nowMs - session.strangerSinceMs > strangerMs) session.refresh(nowMs);
    if (
      nowMs - session.strangerSinceMs > strangerMs ||
      nowMs - this.#unreadSinceMs > unreadMs ||
      this.#isUnread(nowMs) ||
      nowMs - this.#halfwaySinceMs > halfwayMs ||
      nowMs - this.#lingerSinceMs > lingerMs
    )
      this.#socket.destroy();
  }

  /** Whether what was written half a minute ago is still unread, however much is read now and then. */
  #isUnread(nowMs: number): boolean {
    const readLength = this.#writtenLength - this.#socket.writableLength;
    if (readLength < this.#dueLength) return nowMs - this.#dueSinceMs > this.#bounds.unreadMs;
    this.#dueLength = this.#writtenLength;
    this.#dueSinceMs = nowMs;
    return false;
  }

  #receive(chunk: Buffer): void {
    // What comes after the last command is ignored.
    if (this.#phase !== "reading") return;
    this.#reader.push(chunk);
    if (chunk.length > ordinaryBytes && !this.#turns.mayGoOn()) this.#wait();
    this.#read();
  }

  /** Continues reading in a later turn of the event loop. */
  #wait(): void {
    if (this.#waitsForTurn) return;
    this.#waitsForTurn = true;
    this.#turns.later(() => {
      this.#waitsForTurn = false;
      this.#read();
    });
  }

  /** Reads and answers as much as there is, and as there is room for. */
  #read(): void {
    const reader = this.#reader;
    const { session } = this.#context;
    const nowMs = performance.now();
    session.refresh(nowMs);
    let isProgress = false;
    let isMore = true;
    let commands = 0;
    while (this.#phase === "reading" && this.#mayRead) {
      isMore = this.#next();
      if (!isMore) break;
      isProgress = true;
      this.#answer(this.#dispatch.run(reader, this.#context));
      if (session.isOver) this.#phase = "finishing";
      if (this.#collected.length >= maxCollected) this.#write();
      commands += 1;
      if (commands % commandsPerStep === 0 && !this.#turns.mayGoOn()) this.#wait();
    }
    this.#write();
    this.#dispatch.tellMetrics(nowMs);
    if (!reader.isHalfway || isMore) this.#halfwaySinceMs = Number.POSITIVE_INFINITY;
    else if (isProgress || this.#halfwaySinceMs === Number.POSITIVE_INFINITY) this.#halfwaySinceMs = nowMs;
    this.#settle();
    this.#measure();
  }

  #measure(): void {
    const { readableLength, writableLength, destroyed } = this.#socket;
    if (!destroyed)
      this.#holding.bytes = this.#reader.heldBytes + this.#waitingLength + readableLength + writableLength;
  }

  /** Whether there is another command. A protocol error ends the conversation. */
  #next(): boolean {
    try {
      const isStranger = this.#context.session.caller === undefined;
      return this.#reader.next(isStranger ? maxStrangerBytes : maxCommandBytes);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#answer(failure("ERR", `Protocol error: ${error.message}`));
      this.#phase = "finishing";
      return false;
    }
  }

  #answer(reply: string | Promise<string>): void {
    if (typeof reply === "string") {
      if (this.#line.length === 0) this.#collected += reply;
      else {
        this.#line.push({ reply });
        this.#waitingLength += reply.length;
      }
      return;
    }
    const waiting: Waiting = { reply: undefined };
    this.#line.push(waiting);
    void reply.then((text) => {
      waiting.reply = text;
      this.#waitingLength += text.length;
      // Answers that come together are written together: those of one call to the counters all do.
      if (this.#flushing || this.#line[0] !== waiting) return;
      this.#flushing = true;
      queueMicrotask(() => this.#flush());
    });
  }

  /** Writes what is at the front of the line, and continues reading. */
  #flush(): void {
    this.#flushing = false;
    const line = this.#line;
    let through = 0;
    for (; through < line.length; through++) {
      const { reply } = line[through]!;
      if (reply === undefined) break;
      this.#collected += reply;
      this.#waitingLength -= reply.length;
    }
    line.splice(0, through);
    this.#read();
  }

  #write(): void {
    if (this.#collected === "") return;
    const text = this.#collected;
    this.#collected = "";
    if (!this.#socket.writable) return;
    this.#writtenLength += text.length;
    if (!this.#socket.write(text, "latin1")) this.#unreadSinceMs = Math.min(this.#unreadSinceMs, performance.now());
  }

  /** Continues reading, waits, or closes. */
  #settle(): void {
    const socket = this.#socket;
    if (socket.destroyed) return;
    if (this.#phase === "reading" && this.#isEnded && !this.#isHeldBack) this.#phase = "finishing";
    if (this.#phase === "finishing" && this.#line.length === 0) {
      this.#phase = "lingering";
      this.#unreadSinceMs = Math.min(this.#unreadSinceMs, performance.now());
      socket.end(() => {
        this.#unreadSinceMs = Number.POSITIVE_INFINITY;
        this.#lingerSinceMs = performance.now();
      });
    }
    if (this.#phase === "reading" && !this.#mayRead) socket.pause();
    else if (socket.isPaused()) socket.resume();
  }
}
