import { type HeldBody, holdBody } from "../caller/hold-body.ts";
import { isReadOnce } from "../retry/is-read-once.ts";
import { isReplayableBody } from "../retry/retry-rules.ts";

type FetchInput = Parameters<typeof globalThis.fetch>[0];
type FetchInit = Parameters<typeof globalThis.fetch>[1];

/** A request before it is sent: the parts that rules read. */
export interface RequestOutline {
  readonly url: URL;
  readonly method: string;
  readonly headers: Headers;
}

/** The arguments of `fetch`, for code that may have to send them more than once. */
export class OutgoingRequest implements RequestOutline {
  readonly url: URL;
  readonly method: string;
  readonly signal: AbortSignal | null | undefined;
  /** Whether the request can be sent a second time. */
  readonly replayable: boolean;
  readonly #input: FetchInput;
  readonly #init: FetchInit;
  /** The request whose body sending would use up, if there is one. */
  readonly #embodied: Request | undefined;
  readonly #held: HeldBody;
  #headers: Headers | undefined;

  constructor(url: URL, input: FetchInput, init: FetchInit) {
    const request = findRequest(input);
    const body = init?.body;
    this.url = url;
    this.method = String(init?.method ?? request?.method ?? "GET");
    this.signal = init?.signal === undefined ? request?.signal : init.signal;
    this.replayable = isReplayableBody(body);
    this.#input = input;
    // Headers that can be read only once are read here, and sent from the copy.
    if (isReadOnce(init?.headers)) this.#headers = new Headers(init?.headers);
    this.#init = this.#headers === undefined ? init : { ...init, headers: this.#headers };
    this.#held = holdBody(body);
    this.#embodied = (body === undefined || body === null) && request?.body ? request : undefined;
  }

  get headers(): Headers {
    this.#headers ??= new Headers(this.#init?.headers ?? findRequest(this.#input)?.headers);
    return this.#headers;
  }

  /** Sends it. A request with a body is cloned, unless this is the last time. */
  send(fetch: typeof globalThis.fetch, last: boolean): Promise<Response> {
    this.#held.release();
    return fetch(last || this.#embodied === undefined ? this.#input : this.#embodied.clone(), this.#init);
  }

  /** It failed. If it was never sent, its body is discarded here. */
  fail(reason: unknown): void {
    this.#held.discard(reason);
  }

  /** It will not be sent again: the caller's request is used up, as after `fetch`, and holds no copy of its body. */
  finish(): void {
    const body = this.#embodied?.body;
    if (body && !body.locked) body.cancel().catch(() => undefined);
  }
}

/** The URL of a call over HTTP; undefined for anything else `fetch` may be called with. */
export function findUrl(input: FetchInput): URL | undefined {
  try {
    const url = new URL(findRequest(input)?.url ?? String(input));
    return url.protocol === "http:" || url.protocol === "https:" ? url : undefined;
  } catch {
    return undefined;
  }
}

/** A `Request` of any implementation. */
function findRequest(input: FetchInput): Request | undefined {
  return typeof input === "object" && "url" in input && "method" in input ? input : undefined;
}
