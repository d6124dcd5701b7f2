import { Agent, type IncomingMessage, type RequestOptions, request as requestHttp } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { text as readText } from "node:stream/consumers";

export interface SentRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly content?: string | undefined;
  /** Certificates in PEM that vouch for the server, in place of those that Node trusts. */
  readonly ca?: string | undefined;
  /** For the whole answer. */
  readonly withinMs: number;
  /** Of `keepConnection`, for many requests in a row. Absent: a connection for this request alone. */
  readonly agent?: Agent | undefined;
}

export interface HttpAnswer {
  readonly status: number;
  /** The content type; empty where there is none. */
  readonly type: string;
  readonly retryAfter: string | undefined;
  readonly text: string;
}

/**
 * Sends one request. Rejects with an error whose message says why there is no answer. Redirects count as no answer: a token goes
 * to the server that was named, and to no other. Not by `fetch`, which cannot be given certificates.
 */
export async function sendRequest(url: URL, sent: SentRequest): Promise<HttpAnswer> {
  const { method, headers, content, ca, withinMs, agent = false } = sent;
  const signal = AbortSignal.timeout(withinMs);
  const options: RequestOptions = { method, headers: { ...headers, ...lengthOf(content) }, signal, agent };
  try {
    const response = await answerTo(url, options, ca, content);
    const { statusCode: status = 0, headers: answered } = response;
    const text = await readText(response);
    if (status >= 300 && status < 400)
      throw new Error(`it redirects to ${answered.location ?? "another address"}, which is not followed`);
    return { status, type: answered["content-type"] ?? "", retryAfter: answered["retry-after"], text };
  } catch (error) {
    throw new Error(signal.aborted ? `none within ${withinMs / 1000} s` : whyNoAnswer(error as NodeJS.ErrnoException));
  }
}

/** A connection that is used again for the next request to the same server. Who makes it destroys it. */
export function keepConnection({ protocol }: URL): Agent {
  const options = { keepAlive: true, maxSockets: 1 };
  return protocol === "https:" ? new HttpsAgent(options) : new Agent(options);
}

function lengthOf(content: string | undefined): Readonly<Record<string, string>> {
  return content === undefined ? {} : { "content-length": String(Buffer.byteLength(content)) };
}

function answerTo(
  url: URL,
  options: RequestOptions,
  ca: string | undefined,
  content: string | undefined,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = url.protocol === "https:" ? requestHttps(url, { ...options, ca }) : requestHttp(url, options);
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
  if (untrusted.test(code))
    return `its certificate is not trusted (${code}); name the certificate that vouches for it with --ca FILE`;
  return message === "" ? code : message;
}
