import type { Command } from "commander";
import type { Environment } from "../arguments/find-token.ts";
import { controlCommand, type RunOnControlPlane, withExamples, withWhy } from "../control/control-command.ts";
import type { ControlOptions } from "../control/control-session.ts";
import { loadServerCommands, runInServer } from "../load-server.ts";
import { CommandError, type ExitCode, type Terminal } from "../terminal/terminal.ts";
import { type TokenMakeOptions, tokenMake } from "./token-make.ts";
import {
  listTokens,
  makeStoredToken,
  type NewTokenOptions,
  parseNewToken,
  revokeToken,
  type TokenListOptions,
  type TokenRevokeOptions,
  writeToken,
} from "./tokens.ts";

type TokenOptions = NewTokenOptions &
  TokenMakeOptions &
  ControlOptions & {
    readonly entry?: boolean;
    /** `true`: the one that the environment names. */
    readonly store?: string | true;
    readonly storePasswordFile?: string;
  };

/** `sluice token …`: of the policy store, and of files. */
export function addTokenCommands(
  token: Command,
  run: RunOnControlPlane,
  { terminal, env }: { readonly terminal: Terminal; readonly env: Environment },
  finish: (code: ExitCode) => void,
): void {
  withExamples(
    withWhy(
      controlCommand(token, "make", "Make a token, shown this once: in the policy store, or for a file of tokens."),
    )
      .requiredOption("--name <name>", "who will use it; shown in logs and in the audit; required")
      .requiredOption("--role <role>", "check, viewer, editor, operator or admin; required")
      .option(
        "--expires <when>",
        "when it ends: 90d, 12h, or a date (default: 90d in the policy store, never in a file)",
      )
      .option("--team <team>", "whose policies an editor may change; required for an editor")
      .option("--dry-run", "show whether it could be made, and make nothing")
      .option(
        "--store [url]",
        "make it at the policy store itself (SLUICE_STORE_URL), for when no token is left; asks no control plane",
      )
      .option(
        "--store-password-file <path>",
        "with --store: file with its password, if the address has none (SLUICE_STORE_PASSWORD_FILE)",
      )
      .option(
        "--file <path>",
        "add it to this file of tokens, which is made where there is none; asks no control plane",
      )
      .option("--entry", "print its entry for a file of tokens; asks no control plane"),
    `There are two places for tokens:
  the policy store   every node knows the token at once, and it can be revoked: what is made without --file and --entry.
                     Lost the last admin token? Make one with --store, if you may write to the database
  a file of tokens   for servers that are started with --tokens FILE: what is made with --file FILE, or by hand with --entry`,
    "sluice token make --name ci --role editor --team identity --expires 90d",
    "sluice token make --name gateway --role check --file tokens.yaml",
    "sluice token make --name rescue --role admin --expires 1d --store sqlite:.sluice/policies.db",
  ).action(async (options: TokenOptions) => {
    const { store } = options;
    if (store !== undefined) {
      refuseBeside("--store asks no control plane and no file", options, ["admin", "tokenFile", "ca", "file", "entry"]);
      const url = store === true ? env.SLUICE_STORE_URL : store;
      if (!url) throw new CommandError("--store needs the address of the policy store, there or in SLUICE_STORE_URL");
      const passwordFile = options.storePasswordFile ?? (env.SLUICE_STORE_PASSWORD_FILE || undefined);
      return finish(await makeTokenAtStore({ url, passwordFile }, options, terminal));
    }
    refuseBeside("only --store has a password", options, ["storePasswordFile"]);
    if (options.file === undefined && options.entry !== true)
      return run(options, (session) => makeStoredToken(options, session));
    if (options.file !== undefined) refuseBeside("--file adds the entry itself", options, ["entry"]);
    refuseBeside("a file of tokens is no policy store", options, ["admin", "tokenFile", "ca", "why", "dryRun"]);
    finish(await tokenMake(options, terminal));
  });

  withExamples(
    controlCommand(token, "list", "List the tokens in the policy store (secrets are never stored).").option(
      "--all",
      "also those that were revoked or have ended",
    ),
    "",
    "sluice token list",
  ).action((options: TokenListOptions) => run(options, (session) => listTokens(options, session)));

  withExamples(
    withWhy(controlCommand(token, "revoke <id-or-name>", "Refuse a token in the policy store from now on."))
      .option("--dry-run", "show what would be done, and do nothing")
      .option("--yes", "do it without asking"),
    "",
    'sluice token revoke ci --why "leaked"',
  ).action((which: string, options: TokenRevokeOptions) =>
    run(options, (session) => revokeToken(which, options, session)),
  );
}

/** For when no token is left: everyone who can write to the database may make one. */
async function makeTokenAtStore(
  store: { readonly url: string; readonly passwordFile: string | undefined },
  options: TokenOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const request = parseNewToken(options, Date.now());
  const server = await loadServerCommands("sluice token make --store");
  const { why, dryRun } = options;
  const body = await runInServer(server, () => server.makeTokenAtStore(store, { ...request, why, dryRun }));
  const { token = "", expires_ms: expiresMs } = body.token;
  writeToken({ request, token, expiresMs, body }, options, terminal);
  return 0;
}

function refuseBeside(why: string, options: TokenOptions, names: readonly (keyof TokenOptions)[]): void {
  const found = names.find((name) => options[name] !== undefined);
  if (found === undefined) return;
  const flag = found.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw new CommandError(`${why}: leave out --${flag}`);
}
