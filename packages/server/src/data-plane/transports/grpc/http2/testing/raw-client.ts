import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { FrameReader } from "../frame-reader.ts";
import { Flag, FrameType, frameHeadLength, preface, readUint31, readUint32, writeFrameHead } from "../frames.ts";
import { HpackDecoder } from "../hpack/decoder.ts";
import { encodeHeaders } from "../hpack/encode-headers.ts";

/** What a server said about one stream. */
export interface RawAnswer {
  headers: Record<string, string>;
  bytes: number;
  ended: boolean;
  /** The code of RST_STREAM, if there was one. */
  reset: number | undefined;
}

/** A frame of any kind, well-formed or not. */
export function frame(type: number, flags: number, streamId: number, payload: Uint8Array = noBytes): Buffer {
  const bytes = Buffer.alloc(frameHeadLength + payload.length);
  bytes.set(payload, writeFrameHead(bytes, 0, payload.length, type, flags, streamId));
  return bytes;
}

const noBytes = new Uint8Array();

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

/** The header block of a call. */
export function requestBlock(path: string, more: readonly (readonly [string, string])[] = []): Buffer {
  return encodeHeaders([
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
    ...more,
  ]);
}

/** A message as gRPC frames it. */
export function message(bytes: Uint8Array): Buffer {
  const framed = Buffer.alloc(5 + bytes.length);
  framed.writeUInt32BE(bytes.length, 1);
  framed.set(bytes, 5);
  return framed;
}

/** A client that sends any frames a test asks for, and records what the server answers. */
export class RawClient {
  readonly socket: Socket;
  readonly answers: Map<number, RawAnswer> = new Map();
  /** The code of the last GOAWAY, if there was one. */
  goAway: number | undefined;
  /** The last stream that each GOAWAY named. */
  readonly lastIds: number[] = [];
  closed = false;
  pings = 0;
  /** What the server's last PING held. */
  lastPing: Buffer = Buffer.alloc(0);
  settings = 0;
  readonly #decoder = new HpackDecoder();
  readonly #reader: FrameReader;

  /** `ca`: the authority that vouches for the server. Absent: in clear text. */
  constructor(port: number, ca?: Buffer) {
    const host = "127.0.0.1";
    this.socket = ca === undefined ? connect(port, host) : connectTls({ port, host, ca, ALPNProtocols: ["h2"] });
    this.#reader = new FrameReader({
      frame: (type, flags, streamId, bytes, start, end) => {
        this.#hear(type, flags, streamId, bytes.subarray(start, end));
        return true;
      },
    });
    this.socket.on("error", () => {});
    this.socket.on("close", () => {
      this.closed = true;
    });
    this.socket.on("data", (chunk: Buffer) => this.#reader.read(chunk, 0));
  }

  /** Opens a connection and greets the server. */
  static async open(port: number, settings?: Uint8Array): Promise<RawClient> {
    const client = new RawClient(port);
    await client.greet(settings);
    return client;
  }

  /** Sends what a client of HTTP/2 sends first, once the connection is there. */
  async greet(settings: Uint8Array = noBytes): Promise<void> {
    await new Promise((resolve) => this.socket.once("connect", resolve));
    this.send(preface, frame(FrameType.settings, 0, 0, settings), frame(FrameType.settings, Flag.acknowledge, 0));
  }

  /** Sends bytes as they are. Those after the server hung up are lost. */
  send(...parts: readonly Uint8Array[]): void {
    if (!this.socket.destroyed) this.socket.write(Buffer.concat(parts));
  }

  /** The same, and waits until the kernel has taken them or the connection is closed. */
  async sendAll(bytes: Uint8Array): Promise<void> {
    if (this.socket.destroyed || this.closed) return;
    await new Promise<void>((resolve) => {
      // Called with an error if the server hangs up.
      this.socket.write(bytes, () => resolve());
    });
  }

  answer(streamId: number): RawAnswer {
    const known = this.answers.get(streamId);
    if (known !== undefined) return known;
    const answer: RawAnswer = { headers: {}, bytes: 0, ended: false, reset: undefined };
    this.answers.set(streamId, answer);
    return answer;
  }

  destroy(): void {
    this.socket.destroy();
  }

  #hear(type: number, flags: number, streamId: number, payload: Buffer): void {
    if (type === FrameType.goAway) {
      this.goAway = readUint32(payload, 4);
      this.lastIds.push(readUint31(payload, 0));
    } else if (type === FrameType.ping) {
      this.pings += 1;
      this.lastPing = Buffer.from(payload);
    } else if (type === FrameType.settings) this.settings += 1;
    else if (type === FrameType.resetStream) this.answer(streamId).reset = readUint31(payload, 0);
    else if (type === FrameType.data) this.answer(streamId).bytes += payload.length;
    else if (type === FrameType.headers) {
      const { headers } = this.answer(streamId);
      const field = (name: string, value: string): void => {
        headers[name] = value;
      };
      this.#decoder.decode(payload, 0, payload.length, { field });
    }
    const carriesEnd = type === FrameType.data || type === FrameType.headers;
    if (carriesEnd && (flags & Flag.endStream) !== 0) this.answer(streamId).ended = true;
  }
}
