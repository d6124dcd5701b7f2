import type { Agent, IncomingMessage, RequestOptions } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { text as readText } from "node:stream/consumers";
import { nodeHttp } from "../http/node-http.ts";

export interface SentRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly content?: string | undefined;
  /** Certificates in PEM that vouch for the server, in place of those that Node trusts. */
  readonly ca?: string | undefined;
  /** Whether any certificate will do. Never send a token then. */
  readonly trustsAny?: boolean | undefined;
  /** The unix socket to ask at. The URL then only names the host and the path. */
  readonly socketPath?: string | undefined;
  /** For the whole answer. */
  readonly withinMs: number;
  /** Gives up early. Its reason is thrown. */
  readonly signal?: AbortSignal | undefined;
  /** From `keepConnection`, for many requests in a row. Absent: a connection for this request alone. */
  readonly agent?: Agent | undefined;
}

export interface HttpAnswer {
  readonly status: number;
  /** The content type; empty if there is none. */
  readonly type: string;
  readonly retryAfter: string | undefined;
  readonly text: string;
}

/**
 * Sends one request. Rejects with an error whose message says why there is no answer. A redirect counts as no answer: a token goes
 * to the server that was named, and to no other. Not by `fetch`, which does not accept certificates.
 */
export async function sendRequest(url: URL, sent: SentRequest): Promise<HttpAnswer> {
  const { method, headers, content, ca, withinMs, agent = false } = sent;
  sent.signal?.throwIfAborted();
  const timeout = AbortSignal.timeout(withinMs);
  const signal = sent.signal === undefined ? timeout : AbortSignal.any([timeout, sent.signal]);
  const length = content === undefined ? {} : { "content-length": String(Buffer.byteLength(content)) };
  const { socketPath, trustsAny = false } = sent;
  const options: RequestOptions = { method, headers: { ...headers, ...length }, signal, agent, socketPath };
  try {
    const response = await awaitResponse(url, options, { ca, rejectUnauthorized: !trustsAny }, content);
    const { statusCode: status = 0, headers: answered } = response;
    const text = await readText(response);
    if (status >= 300 && status < 400)
      throw new Error(`it redirects to ${answered.location ?? "another address"}, which is not followed`);
    return { status, type: answered["content-type"] ?? "", retryAfter: answered["retry-after"], text };
  } catch (error) {
    sent.signal?.throwIfAborted();
    const reason = timeout.aborted ? `none within ${withinMs / 1000} s` : whyNoAnswer(error as NodeJS.ErrnoException);
    throw new Error(reason, { cause: error });
  }
}

/** A connection that is used again for the next request to the same server. Destroy it when you are done. */
export function keepConnection({ protocol }: URL): Agent {
  const options = { keepAlive: true, maxSockets: 1 };
  return protocol === "https:" ? new HttpsAgent(options) : new (nodeHttp().Agent)(options);
}

function awaitResponse(
  url: URL,
  options: RequestOptions,
  tls: { readonly ca: string | undefined; readonly rejectUnauthorized: boolean },
  content: string | undefined,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const isTls = url.protocol === "https:";
    const request = isTls ? requestHttps(url, { ...options, ...tls }) : nodeHttp().request(url, options);
    request.on("response", resolve).on("error", reject);
    request.end(content);
  });
}

/** Codes of OpenSSL for certificates that nothing vouches for. */
const untrusted = /^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_SELF_SIGNED_)/;

function whyNoAnswer(error: NodeJS.ErrnoException): string {
  const { code = "", message } = error;
  if (code === "ECONNREFUSED") return "the connection was refused";
  if (code === "ECONNRESET")
    return "the connection was closed; a port for https:// closes one that begins with http://";
  if (code === "EPROTO") return "it does not speak TLS there, or another version of it; is it http://?";
  if (untrusted.test(code)) return `its certificate is not trusted (${code})`;
  return message === "" ? code : message;
}
