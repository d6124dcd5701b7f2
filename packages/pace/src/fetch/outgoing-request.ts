import { type HeldBody, holdBody } from "../caller/hold-body.ts";
import { isReadOnce } from "../retry/is-read-once.ts";
import { isReplayableBody } from "../retry/retry-rules.ts";

type FetchInput = Parameters<typeof globalThis.fetch>[0];
type FetchInit = Parameters<typeof globalThis.fetch>[1];

/** A request to be, as far as rules look at it. */
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
  /** Whether there is something to send a second time. */
  readonly replayable: boolean;
  readonly #input: FetchInput;
  readonly #init: FetchInit;
  /** The request whose body would be used up by sending it, where there is one. */
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
    // Headers that can be read once are read here, and sent from there.
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

  /** It failed. Where it was never sent, nobody else looks after its body. */
  fail(reason: unknown): void {
    this.#held.discard(reason);
  }

  /** Nobody sends it any more: the caller's request is used up, as `fetch` leaves it, and holds no copy of its body. */
  finish(): void {
    const body = this.#embodied?.body;
    if (body && !body.locked) body.cancel().catch(() => undefined);
  }
}

/** The address of a call over HTTP; undefined for whatever else `fetch` may be called with. */
export function findUrl(input: FetchInput): URL | undefined {
  try {
    const url = new URL(findRequest(input)?.url ?? String(input));
    return url.protocol === "http:" || url.protocol === "https:" ? url : undefined;
  } catch {
    return undefined;
  }
}

/** A `Request` of whichever implementation. */
function findRequest(input: FetchInput): Request | undefined {
  return typeof input === "object" && "url" in input && "method" in input ? input : undefined;
}
