import type { Command } from "commander";
import { CommandError, type ExitCode, type Terminal } from "../terminal.ts";
import { type TokenMakeOptions, tokenMake } from "../token-make.ts";
import { controlCommand, type RunOnControlPlane, withExamples } from "./control-command.ts";
import type { ControlOptions } from "./control-session.ts";
import {
  listTokens,
  makeStoredToken,
  revokeToken,
  type TokenListOptions,
  type TokenRevokeOptions,
  type TokenWishOptions,
} from "./tokens.ts";

type TokenOptions = TokenWishOptions & TokenMakeOptions & ControlOptions & { readonly entry?: boolean };

/** `sluice token …`: of the policy store, and of files. */
export function addTokenCommands(
  token: Command,
  run: RunOnControlPlane,
  terminal: Terminal,
  finish: (code: ExitCode) => void,
): void {
  withExamples(
    controlCommand(token, "make", "Make a token, shown this once: in the policy store, or for a file of tokens.")
      .requiredOption("--name <name>", "who will use it; stands in logs and in the audit")
      .requiredOption("--role <role>", "check, viewer, editor, operator or admin")
      .option("--expires <while>", "when it ends: 90d, 12h, or a date")
      .option("--team <team>", "whose policies an editor may change")
      .option("--why <text>", "why, for the history")
      .option("--dry-run", "tell whether it could be made, and make nothing")
      .option(
        "--file <path>",
        "add it to this file of tokens, which is made where there is none; asks no control plane",
      )
      .option("--entry", "print its entry for a file of tokens; asks no control plane"),
    `There are two places for tokens:
  the policy store   every node knows the token at once, and it can be revoked: what is made without --file and --entry
  a file of tokens   for servers that are started with --tokens FILE: what is made with --file FILE, or by hand with --entry`,
    "sluice token make --name ci --role editor --team identity --expires 90d",
    "sluice token make --name gateway --role check --file tokens.yaml",
  ).action(async (options: TokenOptions) => {
    if (options.file === undefined && options.entry !== true)
      return run(options, (session) => makeStoredToken(options, session));
    const stored = (["admin", "tokenFile", "why", "dryRun", "json"] as const).find((name) => options[name]);
    if (stored !== undefined)
      throw new CommandError(
        `--${stored.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} is for tokens in the policy store; leave out --file and --entry, or it`,
      );
    finish(await tokenMake(options, terminal));
  });

  withExamples(
    controlCommand(token, "list", "List the tokens in the policy store; what they are themselves is not kept.").option(
      "--all",
      "also those that were revoked or have ended",
    ),
    "",
    "sluice token list",
  ).action((options: TokenListOptions) => run(options, (session) => listTokens(options, session)));

  withExamples(
    controlCommand(token, "revoke <id-or-name>", "Refuse a token in the policy store from now on.")
      .option("--dry-run", "tell what would be done, and do nothing")
      .option("--why <text>", "why, for the history")
      .option("--yes", "do it without asking"),
    "",
    'sluice token revoke ci --why "leaked"',
  ).action((which: string, options: TokenRevokeOptions) =>
    run(options, (session) => revokeToken(which, options, session)),
  );
}
