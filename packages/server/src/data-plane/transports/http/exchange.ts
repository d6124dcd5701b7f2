import type { IncomingMessage } from "node:http";
import type { Caller } from "../../access/access.ts";
import type { Service } from "../../service/service.ts";

/** A request as it came, by Node's parser or by ours. */
export type RawRequest = Pick<IncomingMessage, "method" | "url" | "headers" | "rawHeaders" | "socket">;

/** A handler's view of a request. Header names are lower case. */
export interface HttpRequest {
  /** Path and query, as received. */
  readonly url: string;
  /** The values of `{id}` and the like in the path, percent-decoded. */
  readonly params: PathParameters;
  /** JSON, parsed. */
  readonly body: unknown;
  /** A body in YAML, as received; undefined if it is JSON, or there is none. */
  readonly yaml: string | undefined;
  readonly bodyBytes: number;
  readonly headers: RequestHeaders;
  /** Alternating names and values, line by line: `headers` joins lines of the same name. */
  readonly rawHeaders: readonly string[];
  readonly caller: Caller;
  /** How the caller was identified; undefined if it was not. */
  readonly credential?: Credential | undefined;
  /** The connection that it came by. */
  readonly socket: RequestSocket;
}

/** What handlers may know of a connection. `encrypted` is set if it speaks TLS. */
export interface RequestSocket {
  readonly remoteAddress?: string | undefined;
  readonly localAddress?: string | undefined;
  readonly encrypted?: boolean | undefined;
}

/** What a caller proved its identity with. */
export interface Credential {
  readonly by: "bearer" | "cookie";
  /** The token. Never put it into a log, the audit or an answer. */
  readonly token: string;
  /** The caller now. Throws `unauthenticated` if the token was revoked or has expired since. */
  identify(): Caller;
}

export type PathParameters = Readonly<Record<string, string>>;

export type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * A handler's answer. A body that is neither a string nor bytes is sent as JSON; undefined means none. `cache-control` is
 * `no-store` unless `headers` say something else.
 */
export interface HttpResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
  /** Called once the head is sent, in place of a body: the answer goes on until it ends the stream. */
  readonly stream?: ((stream: AnswerStream) => void) | undefined;
}

/** An answer that is sent bit by bit. */
export interface AnswerStream {
  write(text: string): void;
  /** Bytes that the client has not taken yet. */
  readonly unreadBytes: number;
  end(): void;
  /** Ends the connection at once. */
  destroy(): void;
  /** Called once, when the answer is over, on either side. */
  onClose(listener: () => void): void;
}

/** Where the answer to one request is written, once. */
export interface AnswerWriter {
  /** Whether it is too late for another answer. */
  readonly hasWritten: boolean;
  /** `close`: asks the client to close the connection. Throws, having written nothing, if a header cannot be sent. */
  write(response: HttpResponse, close: boolean): void;
  /** Writes the head of a response with a `stream`, and hands that over. Absent: streams cannot be written here. */
  writeStream?(response: HttpResponse): void;
  /** Closes the connection. */
  destroy(): void;
}

/** What handlers can use. */
export interface HttpContext extends Service {
  readonly idempotencyHeader: boolean;
  /** Jitter of `Retry-After`, 0 … 1; undefined for none. */
  readonly random: (() => number) | undefined;
  /** Whether answers of POST /json have headers for Envoy to add. */
  readonly envoyHeaders?: boolean | undefined;
  /** Which headers of a sub-request become which dimensions, names in lower case. Absent: only the usual ones. */
  readonly authorizeDimensions?: Readonly<Record<string, string>> | undefined;
}

export type Handler<Context = HttpContext> = (
  request: HttpRequest,
  context: Context,
) => HttpResponse | Promise<HttpResponse>;
