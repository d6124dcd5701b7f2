import { printable } from "sluice";
import { isLoopback } from "../settings/parse-settings.ts";
import type { ErrorBody } from "../transports/http/errors.ts";
import { CommandError } from "./terminal.ts";

/** Which server a command asks, and as whom. */
export interface ServerOptions {
  readonly server: string;
  /** Sent as a bearer token. */
  readonly token?: string | undefined;
}

export interface ServerQuestion {
  /** Absent: GET. */
  readonly body?: unknown;
  readonly accept?: string;
  /** Statuses of problem bodies that are answers all the same. */
  readonly answers?: readonly number[];
  /** Whether nothing but a status is expected. */
  readonly empty?: boolean;
}

const answerWithinMs = 10_000;

/** Asks a server over HTTP; anything but an answer is a `CommandError` that says what is wrong. */
export async function askServer(
  { server, token }: ServerOptions,
  path: string,
  { body, accept = "application/json", answers = [], empty = false }: ServerQuestion = {},
): Promise<string> {
  const base = parseServer(server);
  const authorization = token === undefined ? undefined : bearerOf(token);
  const noAnswer = (error: Error): never => {
    throw new CommandError(
      `no answer from ${base}: ${reasonOf(error)}. Does a server run there? Start one with: sluice serve`,
    );
  };
  const response = await fetch(new URL(path, base), {
    method: body === undefined ? "GET" : "POST",
    headers: {
      accept,
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(authorization !== undefined && { authorization }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(answerWithinMs),
  }).catch(noAnswer);
  // An answer may break off after it began.
  const text = await response.text().catch(noAnswer);
  if (empty ? response.status === 204 : isAnswer(response, accept, answers)) return text;
  throw new CommandError(refusalOf(response.status, text));
}

/** Says nothing of a token that cannot be sent: what it says ends up in logs. */
export function bearerOf(token: string, source: string = "SLUICE_TOKEN"): string {
  const sent = token.trim();
  if (/^[!-~]+$/.test(sent)) return `Bearer ${sent}`;
  throw new CommandError(`${source} holds something that no token has, such as a space or a line break`);
}

/** Whether others on the network can read what is sent there. */
export function isInTheClear(server: string, flag?: ServerFlag): boolean {
  const { protocol, hostname } = parseServer(server, flag);
  return protocol === "http:" && !isLoopback(hostname);
}

/** By which option a server is named, and what may stand there. */
export interface ServerFlag {
  readonly name: string;
  readonly example: string;
}

const serverFlag: ServerFlag = { name: "--server", example: "http://127.0.0.1:8080" };

export function parseServer(server: string, { name, example }: ServerFlag = serverFlag): URL {
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url !== undefined && (url.username !== "" || url.password !== ""))
    throw new CommandError(`${name} must not hold a user and a password; put a token into SLUICE_TOKEN`);
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new CommandError(`${name} is ${JSON.stringify(server)}; it should be a URL such as ${example}`);
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url;
}

function isAnswer({ status, headers }: Response, accept: string, answers: readonly number[]): boolean {
  const type = headers.get("content-type") ?? "";
  if (status === 200) return type.startsWith(accept);
  return answers.includes(status) && type.startsWith("application/problem+json");
}

/** Why there is no answer. */
export function reasonOf(error: Error, withinMs: number = answerWithinMs): string {
  if (error.name === "TimeoutError") return `none within ${withinMs / 1000} s`;
  const { cause } = error as { cause?: { code?: string; message?: string } };
  return cause?.code === "ECONNREFUSED" ? "the connection was refused" : (cause?.message ?? error.message);
}

export function refusalOf(status: number, text: string): string {
  const { detail, code, problems = [] } = parseRefusal(text);
  if (detail === undefined)
    return `the server answered ${status}, not as Sluice does: ${printable(text.slice(0, 200))}`;
  const hint = code === "unauthenticated" ? "; put a token into SLUICE_TOKEN" : "";
  if (problems.length === 0) return `the server refused (${code}): ${printable(detail)}${hint}`;
  return [
    `the server refused (${code}):`,
    ...problems.map((one) => `  ${printable(`${one.field}: ${one.message}`)}`),
  ].join("\n");
}

function parseRefusal(text: string): Partial<ErrorBody> {
  try {
    return (JSON.parse(text) as Partial<ErrorBody> | null) ?? {};
  } catch {
    return {};
  }
}
