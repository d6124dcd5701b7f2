import { connect, type Socket } from "node:net";

export type Argument = string | number | Buffer;

/** What the server says with `-`, such as `WRONGTYPE Operation against a key …`. */
export class ReplyError extends Error {}

/** Sends commands in order over one Unix socket and hands each its reply, in RESP2. */
export class RespConnection {
  readonly #socket: Socket;
  readonly #waiting: { resolve(reply: unknown): void; reject(error: Error): void }[] = [];
  #received: Buffer = Buffer.alloc(0);
  #closed = false;

  constructor(socketPath: string) {
    this.#socket = connect(socketPath);
    this.#socket.on("data", (chunk) => this.#receive(chunk));
    let reason = "it was closed";
    this.#socket.on("error", (error) => {
      reason = error.message;
    });
    this.#socket.on("close", () => {
      this.#closed = true;
      for (const { reject } of this.#waiting.splice(0)) reject(new Error(`No reply over ${socketPath}: ${reason}`));
    });
  }

  get closed(): boolean {
    return this.#closed;
  }

  send(args: readonly Argument[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#socket.write(encodeCommand(args));
    });
  }

  close(): void {
    this.#closed = true;
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk]);
    for (;;) {
      const reply = decodeReply(this.#received, 0);
      if (reply === undefined) return;
      this.#received = this.#received.subarray(reply.end);
      const waiting = this.#waiting.shift();
      if (reply.value instanceof ReplyError) waiting?.reject(reply.value);
      else waiting?.resolve(reply.value);
    }
  }
}

export function encodeCommand(args: readonly Argument[]): Buffer {
  const parts = args.flatMap((arg) => {
    const bytes = Buffer.isBuffer(arg) ? arg : Buffer.from(String(arg));
    return [Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from("\r\n")];
  });
  return Buffer.concat([Buffer.from(`*${args.length}\r\n`), ...parts]);
}

/** The reply that starts at `start`, and the start of the next one; undefined until it is complete. */
export function decodeReply(bytes: Buffer, start: number): { value: unknown; end: number } | undefined {
  const lineEnd = bytes.indexOf("\r\n", start);
  if (lineEnd < 0) return undefined;
  const line = bytes.toString("utf8", start + 1, lineEnd);
  const end = lineEnd + 2;
  switch (String.fromCharCode(bytes[start] ?? 0)) {
    case "+":
      return { value: line, end };
    case "-":
      return { value: new ReplyError(line), end };
    case ":":
      return { value: Number(line), end };
    case "$":
      return decodeBulk(bytes, end, Number(line));
    case "*":
      return decodeArray(bytes, end, Number(line));
    default:
      throw new Error(`This is no RESP2 reply: ${bytes.toString("utf8", start, lineEnd)}`);
  }
}

function decodeBulk(bytes: Buffer, start: number, length: number): { value: unknown; end: number } | undefined {
  if (length < 0) return { value: null, end: start };
  const end = start + length + 2;
  return end > bytes.length ? undefined : { value: bytes.toString("utf8", start, start + length), end };
}

function decodeArray(bytes: Buffer, start: number, count: number): { value: unknown; end: number } | undefined {
  if (count < 0) return { value: null, end: start };
  const items: unknown[] = [];
  let end = start;
  for (let index = 0; index < count; index += 1) {
    const item = decodeReply(bytes, end);
    if (item === undefined) return undefined;
    items.push(item.value);
    end = item.end;
  }
  return { value: items, end };
}
