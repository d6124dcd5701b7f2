/** What a client may be unable to do. Each adapter says which, and why. */
export type Need =
  /** Reads a stream of answers. */
  | "server streams"
  /** Sends and reads at the same time. */
  | "bidirectional streams"
  /** Ends a call early, and keeps the connection. */
  | "cancellation"
  /** Makes many calls at once over one connection. */
  | "one connection"
  /** Opens another connection when the server says GOAWAY. */
  | "reconnects"
  /** Reads the rest of an answer that had begun when the server said GOAWAY. */
  | "answers past GOAWAY"
  | "unix sockets"
  /** Refuses a server whose certificate nobody it trusts has signed. */
  | "server verification"
  /** Sends a request that is answered before all of it has been sent, and reads that answer. */
  | "early answers"
  /** Compresses messages with gzip. */
  | "gzip"
  /** Sends any headers and any bytes, and shows the answer as it is. */
  | "raw requests"
  /** Chooses frames: padding, window sizes, header tables. */
  | "frames";

/** Where to call, and how to get there. */
export interface Target {
  /** `127.0.0.1:34567`, or `unix:/path`. */
  readonly address: string;
  readonly tls?: {
    /** Files in PEM: the authority to trust, and the certificate to show. */
    readonly ca: string;
    readonly cert?: string;
    readonly key?: string;
  };
}

export type CallKind = "unary" | "server stream" | "bidirectional";

export interface Call {
  /** `/sluice.v1.RateLimiter/Check` */
  readonly method: string;
  /** Absent: unary. */
  readonly kind?: CallKind;
  /** Encoded messages. */
  readonly requests: readonly Uint8Array[];
  readonly metadata?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  /** The client cancels after this number of answers. */
  readonly cancelAfter?: number;
  /** The client does not end its side of a bidirectional call before the server does. */
  readonly holdOpen?: boolean;
  readonly gzip?: boolean;
  /**
   * The server answers by the headers alone. Clients that lack "early answers" then send no message, because they would
   * lose the answer.
   */
  readonly headersSuffice?: boolean;
  readonly frames?: Frames;
}

/** Legal but unusual ways to send the same request. */
export type Frames = "padding" | "small windows" | "no header table" | "request trailers" | "weights";

/** How a call ended. */
export interface Outcome {
  /** The gRPC status. -1 if there was none: the call was reset, or the connection closed. */
  readonly code: number;
  /** Decoded. */
  readonly message: string;
  readonly responses: readonly Uint8Array[];
  /** Names in lower case; values of names in `-bin` in base64. */
  readonly headers: Fields;
  readonly trailers: Fields;
  /** Whether the answer was one block of headers. Absent if the client does not show it. */
  readonly trailersOnly?: boolean;
}

export type Fields = Readonly<Record<string, string>>;

/** A request of HTTP/2 as it is. */
export interface RawRequest {
  /** Absent: POST. */
  readonly httpMethod?: string;
  readonly path: string;
  readonly headers: Fields;
  readonly body?: Uint8Array;
}

export interface RawAnswer {
  /** The HTTP status; 0 if there was no answer. */
  readonly status: number;
  readonly headers: Fields;
  readonly body: Uint8Array;
  /** Empty if the answer was one block of headers. */
  readonly trailers: Fields;
}

/** A client of gRPC that is not ours. It repeats a call only if the server says that it has not seen it. */
export interface ContractClient {
  /** Resolves with how the call ended, however it did. Rejects if the client itself fails. */
  call(target: Target, call: Call): Promise<Outcome>;
  /** Makes the same call this number of times at once, over one connection. */
  callTogether(target: Target, call: Call, times: number): Promise<readonly Outcome[]>;
  send(target: Target, request: RawRequest): Promise<RawAnswer>;
  close(): Promise<void>;
}

/** One client, ready to be started. */
export interface ClientAdapter {
  readonly name: string;
  /** What it cannot do, and why. */
  readonly lacks: Readonly<Partial<Record<Need, string>>>;
  /** Resolves with its version. */
  version(): Promise<string>;
  open(): Promise<ContractClient>;
}

/** Refuses what an adapter lacks; the table of cases does not ask for it. */
export function unable(name: string, what: Need): Promise<never> {
  return Promise.reject(new Error(`${name} does not do this: ${what}`));
}
