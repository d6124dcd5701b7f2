import { idempotencyHeaderName } from "../../idempotency-key.ts";
import type { FieldSink } from "./hpack/decoder.ts";
import { entryOverhead } from "./hpack/dynamic-table.ts";

/** Most bytes of a request's headers, as HTTP/2 counts them: names, values, and 32 for each field. */
export const maxHeaderListBytes: number = 16 * 1024;

/** What a request's headers say, as far as gRPC looks at them. Immutable, and shared by all calls with the same block. */
export class RequestHead {
  method: string | undefined;
  scheme: string | undefined;
  path: string | undefined;
  authority: string | undefined;
  contentType: string | undefined;
  /** As it was written. */
  timeout: string | undefined;
  /** How messages are compressed that say they are. */
  encoding: string | undefined;
  authorization: string | undefined;
  traceparent: string | undefined;
  tracestate: string | undefined;
  idempotencyKey: string | undefined;
  /** Bytes that the body is said to have. */
  contentLength: number | undefined;
  /** Whether it breaks a rule of HTTP/2 (RFC 9113 §8), so that the stream is reset. */
  malformed = false;
  /** What the server makes of it, for all calls with the same head. */
  route: unknown;
  /** Names and values, and the overhead that HTTP/2 counts. */
  bytes = 0;

  get tooLarge(): boolean {
    return this.bytes > maxHeaderListBytes;
  }
}

const namePattern = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
const badValuePattern = /[\0\r\n]|^[ \t]|[ \t]$/;

/** Reads fields into a `RequestHead`. What it has no use for is checked and not kept. */
export class RequestHeadReader implements FieldSink {
  #head = new RequestHead();
  #regular = false;

  start(): void {
    this.#head = new RequestHead();
    this.#regular = false;
  }

  finish(): RequestHead {
    const head = this.#head;
    const { method, scheme, path } = head;
    if (method === undefined || scheme === undefined || path === undefined || path === "") head.malformed = true;
    return head;
  }

  field(name: string, value: string): void {
    const head = this.#head;
    head.bytes += name.length + value.length + entryOverhead;
    // The rest is decoded for the table of the connection alone.
    if (head.bytes > maxHeaderListBytes) return;
    if (value !== "" && badValuePattern.test(value)) head.malformed = true;
    if (name.charCodeAt(0) === 0x3a) {
      if (this.#regular || !this.#pseudoField(name, value)) head.malformed = true;
      return;
    }
    this.#regular = true;
    this.#regularField(name, value);
  }

  /** Returns false for one that is unknown, or comes twice. */
  #pseudoField(name: string, value: string): boolean {
    const head = this.#head;
    let first = false;
    switch (name) {
      case ":method":
        first = head.method === undefined;
        head.method = value;
        return first;
      case ":scheme":
        first = head.scheme === undefined;
        head.scheme = value;
        return first;
      case ":path":
        first = head.path === undefined;
        head.path = value;
        return first;
      case ":authority":
        first = head.authority === undefined;
        head.authority = value;
        return first;
      default:
        return false;
    }
  }

  #regularField(name: string, value: string): void {
    const head = this.#head;
    switch (name) {
      case "content-type":
        head.contentType ??= value;
        break;
      case "te":
        if (value !== "trailers") head.malformed = true;
        break;
      case "grpc-timeout":
        head.timeout ??= value;
        break;
      case "grpc-encoding":
        head.encoding ??= value;
        break;
      case "authorization":
        head.authorization ??= value;
        break;
      case "traceparent":
        head.traceparent ??= value;
        break;
      case "tracestate":
        head.tracestate ??= value;
        break;
      case "content-length":
        this.#contentLength(value);
        break;
      // Fields of one connection of HTTP/1.1 mean nothing here, and could mean something to a proxy.
      case "connection":
      case "keep-alive":
      case "proxy-connection":
      case "transfer-encoding":
      case "upgrade":
        head.malformed = true;
        break;
      case idempotencyHeaderName:
        head.idempotencyKey ??= value;
        break;
      default:
        if (!namePattern.test(name)) head.malformed = true;
    }
  }

  #contentLength(value: string): void {
    const head = this.#head;
    const length = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
    if (Number.isNaN(length) || (head.contentLength ?? length) !== length) head.malformed = true;
    head.contentLength = length;
  }
}

/** Reads what follows after a request's body. Nothing in it is of use; it is checked. */
export class TrailerReader implements FieldSink {
  malformed = false;

  start(): void {
    this.malformed = false;
  }

  field(name: string, value: string): void {
    if (!namePattern.test(name) || badValuePattern.test(value)) this.malformed = true;
  }
}
