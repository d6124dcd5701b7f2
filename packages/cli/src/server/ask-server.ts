import type { Agent } from "node:http";
import { sendRequest } from "@sluice/client/internal";
import type { ErrorBody } from "@sluice/protocol/http";
import { isLoopback, printable } from "sluice/internal";
import { type Environment, findCa, findToken, type ServerFlags } from "../arguments/find-token.ts";
import { flagForField } from "../arguments/flag-for-field.ts";
import { CommandError, type Terminal } from "../terminal/terminal.ts";

/** Which server a command asks, and as whom. */
export interface ServerOptions {
  readonly server: string;
  /** What named it, for messages. Absent: `--server`. */
  readonly source?: ServerSource | undefined;
  /** Sent as a bearer token. */
  readonly token?: string | undefined;
  /** Where the token comes from. Absent: `SLUICE_TOKEN`. */
  readonly tokenSource?: string | undefined;
  /** Certificates in PEM that vouch for the server. */
  readonly ca?: string | undefined;
  /** Of `keepConnection`. */
  readonly agent?: Agent | undefined;
  /** What else can be done where no server answers. */
  readonly advice?: string | undefined;
}

export type ServerSource = "--server" | "SLUICE_SERVER" | "default";

export const defaultServer = "http://127.0.0.1:8080";

/** The server that a command asks: of `--server`, else of `SLUICE_SERVER`, else the one on this machine. */
export async function findServer(
  flags: ServerFlags,
  env: Environment,
  { stderr }: Pick<Terminal, "stderr">,
): Promise<ServerOptions> {
  const [server, source]: [string, ServerSource] =
    flags.server !== undefined
      ? [flags.server, "--server"]
      : env.SLUICE_SERVER
        ? [env.SLUICE_SERVER, "SLUICE_SERVER"]
        : [defaultServer, "default"];
  const clear = isInTheClear(server, serverFlag(source));
  const { token, source: tokenSource } = await findToken(flags, env);
  const ca = await findCa(flags, env, server);
  if (token !== undefined && clear)
    stderr.write(
      `The token in ${tokenSource} travels in the clear to ${server}, and others can read it on the way; use https:// instead.\n`,
    );
  return { server, source, token, tokenSource, ca };
}

export interface ServerQuestion {
  /** Absent: GET. */
  readonly body?: unknown;
  readonly accept?: string;
  /** Statuses of problem bodies that are answers all the same. */
  readonly answers?: readonly number[];
}

const answerWithinMs = 10_000;

/** Asks a server over HTTP; anything but an answer is a `CommandError` that says what is wrong. */
export async function askServer(
  { server, source = "--server", token, tokenSource, ca, agent, advice = "" }: ServerOptions,
  path: string,
  { body, accept = "application/json", answers = [] }: ServerQuestion = {},
): Promise<string> {
  const base = parseServer(server, serverFlag(source));
  const authorization = token === undefined ? undefined : renderBearer(token, tokenSource);
  const answer = await sendRequest(new URL(path, base), {
    method: body === undefined ? "GET" : "POST",
    headers: {
      accept,
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(authorization !== undefined && { authorization }),
    },
    content: body === undefined ? undefined : JSON.stringify(body),
    ca,
    agent,
    withinMs: answerWithinMs,
  }).catch((error: Error) => {
    throw new CommandError(
      `no answer from ${base.origin}${namedBy[source]}: ${withCaAdvice(error.message)}. Is a server running there? Start one with: sluice serve${advice}`,
    );
  });
  if (isAnswer(answer.status, answer.type, accept, answers)) return answer.text;
  throw new CommandError(renderRefusal(answer.status, answer.text, { token, tokenSource }));
}

/** Why there is no answer, and what to do about a certificate. */
export function withCaAdvice(reason: string): string {
  const isUntrusted = reason.startsWith("its certificate is not trusted");
  return isUntrusted ? `${reason}; name the certificate that vouches for it with --ca FILE` : reason;
}

const namedBy: Readonly<Record<ServerSource, string>> = {
  "--server": "",
  SLUICE_SERVER: " (SLUICE_SERVER)",
  default: " (where nothing else is named by --server or SLUICE_SERVER)",
};

/** Says nothing of a token that cannot be sent: what it says ends up in logs. */
export function renderBearer(token: string, source: string = "SLUICE_TOKEN"): string {
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

/** What to call the server in messages. */
export function serverFlag(source: ServerSource = "--server"): ServerFlag {
  return { name: source === "SLUICE_SERVER" ? source : "--server", example: defaultServer };
}

export function parseServer(server: string, { name, example }: ServerFlag = serverFlag()): URL {
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url !== undefined && (url.username !== "" || url.password !== ""))
    throw new CommandError(`${name} must not hold a user and a password; put a token into SLUICE_TOKEN`);
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new CommandError(`${name} is ${JSON.stringify(server)}; it should be a URL such as ${example}`);
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url;
}

function isAnswer(status: number, type: string, accept: string, answers: readonly number[]): boolean {
  if (status === 200) return type.startsWith(accept);
  return answers.includes(status) && type.startsWith("application/problem+json");
}

export function renderRefusal(
  status: number,
  text: string,
  sent: Pick<ServerOptions, "token" | "tokenSource"> = {},
): string {
  const { detail, code, problems = [] } = parseRefusal(text);
  if (detail === undefined)
    return `the server answered ${status}, not as Sluice does: ${printable(text.slice(0, 200))}`;
  if (code === "unauthenticated" && sent.token !== undefined)
    return `the server does not accept the token in ${sent.tokenSource ?? "SLUICE_TOKEN"} (${code}): ${printable(detail)}`;
  const hint =
    code === "unauthenticated"
      ? "; put a token into SLUICE_TOKEN, or name a file that holds one with --token-file"
      : code === "not_found"
        ? ". Is this the HTTP port of a server (8080 by default), and not its admin port?"
        : code === "permission_denied" && detail.includes("needs role")
          ? "; ask with a token of that role (SLUICE_TOKEN or --token-file)"
          : "";
  if (problems.length === 0) return `the server refused (${code}): ${printable(detail)}${hint}`;
  return [
    `the server refused (${code}):`,
    ...problems.map((one) => `  ${printable(`${flagForField(one.field)}: ${one.message}`)}`),
  ].join("\n");
}

function parseRefusal(text: string): Partial<ErrorBody> {
  try {
    return (JSON.parse(text) as Partial<ErrorBody> | null) ?? {};
  } catch {
    return {};
  }
}
