import { setTimeout as sleep } from "node:timers/promises";
import { isInTheClear } from "../ask-server.ts";
import { type AskingOptions, type Environment, findCa, findToken } from "../find-token.ts";
import type { Terminal } from "../terminal.ts";
import { AdminApi } from "./admin-api.ts";
import { adminFlag, createAdminClient } from "./admin-client.ts";
import { findFirstTokenFile } from "./find-first-token-file.ts";
import { type Paint, paintFor } from "./paint.ts";

/** What every command takes that asks a control plane. */
export interface ControlOptions extends AskingOptions {
  readonly admin?: string;
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

const defaultAdmin = "http://127.0.0.1:8090";

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
  const tokenHint = token === undefined ? await findFirstTokenFile(env) : undefined;
  const client = createAdminClient({
    admin,
    flag,
    token,
    tokenSource: source,
    ca,
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
