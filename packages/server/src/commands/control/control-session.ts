import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { isInTheClear } from "../ask-server.ts";
import { CommandError, type Terminal } from "../terminal.ts";
import { AdminApi } from "./admin-api.ts";
import { adminFlag, createAdminClient } from "./admin-client.ts";
import { findFirstTokenFile } from "./find-first-token-file.ts";
import { type Paint, paintFor } from "./paint.ts";

/** What every command takes that asks a control plane. */
export interface ControlOptions {
  readonly admin?: string;
  readonly tokenFile?: string;
  readonly json?: boolean;
}

/** What commands that ask a control plane work with. */
export interface ControlSession {
  readonly api: AdminApi;
  readonly terminal: Terminal;
  readonly json: boolean;
  readonly paint: Paint;
  /** Of a line on stdout; undefined where nobody looks. */
  readonly width: number | undefined;
  nowMs(): number;
  sleep(ms: number): Promise<unknown>;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const defaultAdmin = "http://127.0.0.1:8090";

export async function openControlSession(
  options: ControlOptions,
  env: Environment,
  terminal: Terminal,
): Promise<ControlSession> {
  const admin = options.admin ?? (env.SLUICE_ADMIN_URL || defaultAdmin);
  const { token, source } = await findToken(options, env);
  if (token !== undefined && isInTheClear(admin, adminFlag))
    terminal.stderr.write(
      `The token travels in the clear to ${admin}, and others can read it on the way; use https:// instead.\n`,
    );
  const tokenHint = token === undefined ? await findFirstTokenFile(env) : undefined;
  const client = createAdminClient({
    admin,
    token,
    tokenSource: source,
    tokenHint:
      tokenHint === undefined
        ? undefined
        : `The first token of a server here is in ${tokenHint}; use it with --token-file ${tokenHint}, or put a token into SLUICE_TOKEN.`,
    tell: (text) => terminal.stderr.write(`${text}\n`),
  });
  return {
    api: new AdminApi(client),
    terminal,
    json: options.json === true,
    paint: paintFor(terminal.stdout, env),
    width: terminal.stdout.isTTY === true ? terminal.stdout.columns : undefined,
    nowMs: Date.now,
    sleep,
  };
}

/** Tokens have no place on a command line, which everybody on the machine can read. */
export async function findToken(
  { tokenFile }: ControlOptions,
  env: Environment,
): Promise<{ readonly token: string | undefined; readonly source: string }> {
  if (tokenFile === undefined) return { token: env.SLUICE_TOKEN || undefined, source: "SLUICE_TOKEN" };
  const text = await readFile(tokenFile, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(`the token in ${tokenFile} cannot be read: ${error.code ?? error.message}`);
  });
  return { token: text.trim(), source: tokenFile };
}
