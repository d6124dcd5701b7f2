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
  /** The connection that it came by. */
  readonly socket: { readonly remoteAddress?: string | undefined };
}

export type PathParameters = Readonly<Record<string, string>>;

export type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** A handler's answer. A body that is not a string is sent as JSON; undefined means none. */
export interface HttpResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** Where the answer to one request is written, once. */
export interface AnswerWriter {
  /** Whether it is too late for another answer. */
  readonly hasWritten: boolean;
  /** `close`: asks the client to close the connection. Throws, having written nothing, if a header cannot be sent. */
  write(response: HttpResponse, close: boolean): void;
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
