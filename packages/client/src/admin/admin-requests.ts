import { setTimeout as sleep } from "node:timers/promises";
import type { PageBody } from "@sluice/protocol/admin";
import { AdminError, AdminUnavailable } from "./admin-error.ts";
import { Listing } from "./listing.ts";
import { type HttpAnswer, sendRequest } from "./send-request.ts";

/** How a control plane is asked. */
export interface AdminClientOptions {
  /** Its URL: `https://sluice.example:8090`. */
  readonly server: string;
  /** A bearer token, whose role decides what is allowed. */
  readonly token?: string | undefined;
  /** Certificates in PEM that vouch for the server, in place of those that Node trusts. */
  readonly ca?: string | undefined;
  /** How long to wait for each answer. Absent: 30 s. */
  readonly timeoutMs?: number | undefined;
  /**
   * How often a request is sent again after 429, when the control plane is asked too often. Such a request did nothing, so this is
   * safe for changes as well. Absent: 5. Nothing else is sent again.
   */
  readonly retries?: number | undefined;
  /** Hears how long it waits before a request is sent again. */
  readonly onWait?: ((waitMs: number) => void) | undefined;
  /** What to throw instead of an `AdminError` or an `AdminUnavailable`, for programs with errors of their own. */
  readonly asError?: ((error: AdminError | AdminUnavailable) => Error) | undefined;
}

/** What every method takes. */
export interface CallOptions {
  /** Gives up, and throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Instead of the client's own. */
  readonly timeoutMs?: number | undefined;
}

/** What every change takes. */
export interface ChangeOptions extends CallOptions {
  /** Answers as if it were done, with every refusal there would be, and does nothing. */
  readonly dryRun?: boolean | undefined;
  /** For the history and the audit. */
  readonly why?: string | undefined;
}

/** What changes take that overwrite something. */
export interface VersionedOptions extends ChangeOptions {
  /**
   * The version that you saw; 0: there was none. If it is another by now, nothing is done, and the call fails with
   * `version_conflict`.
   */
  readonly expected?: number | undefined;
}

/** What such changes take where it may not matter what is there. */
export interface OverwriteOptions extends ChangeOptions {
  /** Like that of others; `any`: whatever is there. */
  readonly expected?: number | "any" | undefined;
}

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export interface AdminQuestion {
  readonly query?: Query | undefined;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as it is. */
  readonly text?: { readonly type: string; readonly content: string } | undefined;
  readonly options?: OverwriteOptions | undefined;
}

type Method = "GET" | "POST" | "PUT" | "DELETE";

const answerWithinMs = 30_000;
const usualRetries = 5;
/** Limits of the control plane are per minute. */
const longestWaitMs = 61_000;
const root = "api/v1";

/** Sends requests to one control plane, and reads its answers. */
export class AdminRequests {
  readonly server: URL;
  readonly #options: AdminClientOptions;
  readonly #authorization: string | undefined;

  /** Throws a `TypeError` for a URL or a token that cannot be used. */
  constructor(options: AdminClientOptions) {
    this.server = parseServer(options.server);
    this.#options = options;
    this.#authorization = options.token === undefined ? undefined : renderBearer(options.token);
  }

  /** Resolves with the body of the answer. */
  async ask<T>(method: Method, path: string, question: AdminQuestion = {}): Promise<T> {
    const { status, type, text } = await this.#sendPatiently(method, path, "application/json", question);
    if (status === 204) return {} as T;
    if (isOk(status) && /^application\/json\b/.test(type)) return JSON.parse(text) as T;
    throw this.#asError(new AdminError(status, text));
  }

  async askText(path: string, accept: string, options: CallOptions | undefined): Promise<string> {
    const { status, type, text } = await this.#sendPatiently("GET", path, accept, { options });
    if (isOk(status) && type.startsWith(accept)) return text;
    throw this.#asError(new AdminError(status, text));
  }

  list<Item>(path: string, query: Query, options: CallOptions | undefined): Listing<Item> {
    return new Listing((page) => this.ask<PageBody<Item>>("GET", path, { query: { ...query, ...page }, options }));
  }

  /** A request that was refused with 429 did nothing, so sending it again does nothing twice. */
  async #sendPatiently(method: Method, path: string, accept: string, question: AdminQuestion): Promise<HttpAnswer> {
    const { retries = usualRetries, onWait } = this.#options;
    for (let retry = 0; ; retry += 1) {
      const answer = await this.#send(method, path, accept, question);
      const waitMs = Number(answer.retryAfter ?? Number.NaN) * 1_000;
      if (answer.status !== 429 || retry >= retries || !(waitMs <= longestWaitMs)) return answer;
      onWait?.(waitMs);
      const signal = question.options?.signal;
      await sleep(waitMs, undefined, signal === undefined ? {} : { signal }).catch(() => signal?.throwIfAborted());
    }
  }

  async #send(method: Method, path: string, accept: string, question: AdminQuestion): Promise<HttpAnswer> {
    const { query = {}, body, text, options = {} } = question;
    const url = new URL(`${root}/${path}`, this.server);
    for (const [name, value] of Object.entries({ ...query, dry_run: options.dryRun, why: options.why }))
      if (value !== undefined) url.searchParams.set(name, String(value));
    const type = text?.type ?? (body === undefined ? undefined : "application/json");
    try {
      return await sendRequest(url, {
        method,
        headers: {
          accept,
          ...(type !== undefined && { "content-type": type }),
          ...(this.#authorization !== undefined && { authorization: this.#authorization }),
          ...renderCondition(options.expected),
        },
        content: text?.content ?? (body === undefined ? undefined : JSON.stringify(body)),
        ca: this.#options.ca,
        withinMs: options.timeoutMs ?? this.#options.timeoutMs ?? answerWithinMs,
        signal: options.signal,
      });
    } catch (error) {
      options.signal?.throwIfAborted();
      throw this.#asError(new AdminUnavailable(this.server.origin, error as Error));
    }
  }

  #asError(error: AdminError | AdminUnavailable): Error {
    return this.#options.asError?.(error) ?? error;
  }
}

/** One part of a path, whatever it contains. */
export function pathPart(text: string): string {
  return encodeURIComponent(text);
}

function isOk(status: number): boolean {
  return status >= 200 && status < 300;
}

function renderCondition(expected: number | "any" | undefined): Readonly<Record<string, string>> {
  if (expected === undefined) return {};
  if (expected === "any") return { "if-match": "*" };
  return expected === 0 ? { "if-none-match": "*" } : { "if-match": `"${expected}"` };
}

function parseServer(server: string): URL {
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new TypeError(`server is ${JSON.stringify(server)}; it should be a URL such as https://sluice.example:8090`);
  if (url.username !== "" || url.password !== "")
    throw new TypeError("server must not contain a user and a password; pass a token instead");
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url;
}

/** Does not repeat a token that cannot be sent: errors end up in logs. */
function renderBearer(token: string): string {
  const sent = token.trim();
  if (/^[!-~]+$/.test(sent)) return `Bearer ${sent}`;
  throw new TypeError("token contains a character that no token has, such as a space or a line break");
}
