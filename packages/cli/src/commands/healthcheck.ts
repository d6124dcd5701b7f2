import { type SentRequest, sendRequest } from "@sluice/client/internal";
import type { ReadyBody } from "@sluice/protocol/http";
import type { Command } from "commander";
import { isLoopback, printable } from "sluice/internal";
import { type Environment, findCa } from "../arguments/find-token.ts";
import { parseDurationFlag } from "../arguments/parse-time.ts";
import { parseServer } from "../server/ask-server.ts";
import { CommandError, type ExitCode, type Terminal } from "../terminal/terminal.ts";

export interface HealthcheckOptions {
  readonly server?: string;
  /** Path of the server's unix socket for HTTP. */
  readonly socket?: string;
  readonly ca?: string;
  readonly live?: boolean;
  readonly strict?: boolean;
  readonly timeout?: string;
}

interface HealthWorld {
  readonly env: Environment;
  readonly terminal: Pick<Terminal, "stdout">;
}

const defaultTimeout = "5s";

const help = `
Asks the server that runs with the same variables: at SLUICE_HTTP_SOCKET, else at SLUICE_HTTP_PORT of SLUICE_HOST, with TLS if
SLUICE_TLS_CERT is set. Options win. It sends no token. On this machine it accepts any certificate, because the certificate names
the service and not the loopback address; elsewhere it verifies it. Where clients need certificates, ask at a unix socket.

Examples:
  sluice healthcheck
  sluice healthcheck --socket /run/sluice/http.sock --live
  sluice healthcheck --server https://sluice.internal:8080 --ca ca.crt

Exit codes: 0 ready or degraded (with --live: alive); 1 not, or no answer; 2 wrong usage.`;

/** `sluice healthcheck`: for containers and service managers, which look at the exit code. */
export function addHealthcheckCommand(program: Command, world: HealthWorld, finish: (code: ExitCode) => void): void {
  program
    .command("healthcheck")
    .description("Check whether a server is ready, by the exit code.")
    .option("--server <url>", "the server to ask (default: by the variables of sluice serve)")
    .option("--socket <path>", "its unix socket for HTTP (SLUICE_HTTP_SOCKET)")
    .option("--ca <path>", "trust the certificates in this file, in PEM, for https:// (SLUICE_CA)")
    .option("--live", "only ask whether it is alive (/livez)")
    .option("--strict", "also fail while a server that holds counters cannot be reached")
    .option("--timeout <duration>", `how long to wait for an answer (default ${defaultTimeout})`)
    .addHelpText("after", help)
    .action(async (options: HealthcheckOptions) => finish(await healthcheck(options, world)));
}

export async function healthcheck(options: HealthcheckOptions, { env, terminal }: HealthWorld): Promise<ExitCode> {
  if (options.live === true && options.strict === true)
    throw new CommandError("--live asks nothing that --strict could be strict about; leave one of them out");
  const withinMs = parseDurationFlag("--timeout", options.timeout ?? defaultTimeout);
  const { url, where, ...place } = await findPlace(options, env);
  const path = options.live === true ? "livez" : options.strict === true ? "readyz?strict" : "readyz";
  const headers = { accept: "application/json" };
  const answer = await sendRequest(new URL(path, url), { method: "GET", headers, withinMs, ...place }).catch(
    (error: Error) => error.message,
  );
  if (typeof answer === "string") return end(terminal, 1, `no answer at ${where}: ${answer}`);
  const isFine = answer.status === 200;
  return end(terminal, isFine ? 0 : 1, describe(answer.status, answer.text));
}

function end({ stdout }: Pick<Terminal, "stdout">, code: 0 | 1, text: string): ExitCode {
  stdout.write(`${printable(text)}\n`);
  return code;
}

function describe(status: number, text: string): string {
  try {
    const { status: word, detail } = JSON.parse(text) as Partial<ReadyBody>;
    if (typeof word === "string") return detail === undefined ? word : `${word}: ${detail}`;
  } catch {
    // Another program's answer, described below.
  }
  return `answered ${status}: ${text.slice(0, 200)}`;
}

interface Place extends Pick<SentRequest, "ca" | "socketPath" | "trustsAny"> {
  readonly url: URL;
  /** For messages. */
  readonly where: string;
}

async function findPlace(options: HealthcheckOptions, env: Environment): Promise<Place> {
  const { server, socket } = options;
  if (server !== undefined && socket !== undefined)
    throw new CommandError("--server and --socket both say where to ask; leave one of them out");
  const socketPath = socket ?? (server === undefined ? env.SLUICE_HTTP_SOCKET || undefined : undefined);
  if (socketPath !== undefined) return { url: new URL("http://localhost/"), where: socketPath, socketPath };
  const url = server === undefined ? ownAddress(env) : parseServer(server);
  const ca = await findCa(options, env, url.href);
  const isHere = server === undefined || isLoopback(url.hostname);
  const trustsAny = ca === undefined && isHere;
  return { url, where: url.origin, ca, trustsAny };
}

/** Where a server listens that was started with the same variables. */
function ownAddress(env: Environment): URL {
  const port = env.SLUICE_HTTP_PORT || "8080";
  if (!/^[1-9]\d{0,4}$/.test(port))
    throw new CommandError(
      `SLUICE_HTTP_PORT is ${port}, which names no port to ask at; name one with --server or --socket`,
    );
  const scheme = env.SLUICE_TLS_CERT ? "https" : "http";
  return parseServer(`${scheme}://${reachable(env.SLUICE_HOST || "127.0.0.1")}:${port}`, {
    name: "SLUICE_HOST",
    example: "127.0.0.1",
  });
}

/** An address that stands for all of a machine's is asked at loopback. */
function reachable(host: string): string {
  const bare = host.replace(/^\[|\]$/g, "");
  if (bare === "0.0.0.0") return "127.0.0.1";
  if (bare === "::") return "[::1]";
  return bare.includes(":") ? `[${bare}]` : bare;
}
