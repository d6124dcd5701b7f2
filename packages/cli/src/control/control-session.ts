import { setTimeout as sleep } from "node:timers/promises";
import { type AdminClient, createAdminClient } from "@sluice/client/admin";
import { findFirstTokenFile } from "../arguments/find-first-token-file.ts";
import { type AskingOptions, type Environment, findCa, findToken } from "../arguments/find-token.ts";
import { isInTheClear, parseServer, renderBearer, type ServerFlag } from "../server/ask-server.ts";
import { type Paint, paintFor } from "../terminal/paint.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { explainAdminError } from "./refused-request.ts";

/** What every command takes that asks a control plane. */
export interface ControlOptions extends AskingOptions {
  readonly admin?: string;
}

/** What commands that ask a control plane work with. */
export interface ControlSession {
  /** Rejects with a `CommandError` that says what to do. */
  readonly api: AdminClient;
  readonly terminal: Terminal;
  readonly json: boolean;
  readonly paint: Paint;
  /** Of a line on stdout; undefined when it is not a terminal. */
  readonly width: number | undefined;
  /** The command that people edit texts with. */
  readonly editor: string | undefined;
  nowMs(): number;
  sleep(ms: number): Promise<unknown>;
}

const defaultAdmin = "http://127.0.0.1:8090";
const adminFlag: ServerFlag = { name: "--admin", example: defaultAdmin };

export async function openControlSession(
  options: ControlOptions,
  env: Environment,
  terminal: Terminal,
): Promise<ControlSession> {
  const admin = options.admin ?? (env.SLUICE_ADMIN_URL || defaultAdmin);
  const flag = options.admin === undefined ? { ...adminFlag, name: "SLUICE_ADMIN_URL" } : adminFlag;
  const clear = isInTheClear(admin, flag);
  const { token, source } = await findToken(options, env);
  const ca = await findCa(options, env, admin);
  if (token !== undefined && clear)
    terminal.stderr.write(
      `The token in ${source} travels in the clear to ${admin}, and others can read it on the way; use https:// instead.\n`,
    );
  return {
    api: openAdminClient({
      ...{ admin, flag, token, ca },
      tokenSource: source,
      tokenFile: token === undefined ? await findFirstTokenFile(env) : undefined,
      write: (text) => terminal.stderr.write(text),
    }),
    terminal,
    json: options.json === true,
    paint: paintFor(terminal.stdout, env),
    width: terminal.stdout.isTTY === true ? terminal.stdout.columns : undefined,
    editor: env.VISUAL || env.EDITOR || undefined,
    nowMs: Date.now,
    sleep,
  };
}

export interface OpenAdminOptions {
  readonly admin: string;
  /** What named it. Absent: `--admin`. */
  readonly flag?: ServerFlag | undefined;
  readonly token?: string | undefined;
  /** Where the token comes from. Absent: `SLUICE_TOKEN`. */
  readonly tokenSource?: string | undefined;
  readonly ca?: string | undefined;
  /** A file with the first token of a server here, to be named if there is no other token. */
  readonly tokenFile?: string | undefined;
  /** Is notified of waiting. */
  readonly write?: ((text: string) => unknown) | undefined;
}

/** A client whose errors are ones of this command. */
export function openAdminClient(options: OpenAdminOptions): AdminClient {
  const { admin, flag = adminFlag, token, tokenSource = "SLUICE_TOKEN", ca, tokenFile, write } = options;
  const { origin } = parseServer(admin, flag);
  if (token !== undefined) renderBearer(token, tokenSource);
  const source = {
    tokenSource: token === undefined ? undefined : tokenSource,
    tokenHint:
      tokenFile === undefined
        ? undefined
        : `The first token of a server here is in ${tokenFile}; use it with --token-file ${tokenFile}, or put a token into SLUICE_TOKEN.`,
  };
  return createAdminClient({
    server: admin,
    token,
    ca,
    onWait: (waitMs) => write?.(`The control plane asks to wait ${waitMs / 1_000} s before more is asked of it.\n`),
    asError: (error) => explainAdminError(error, origin, source),
  });
}
