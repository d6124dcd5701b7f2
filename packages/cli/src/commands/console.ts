import type { Command } from "commander";
import { controlCommand, type RunOnControlPlane, withExamples } from "../control/control-command.ts";
import type { ControlOptions, ControlSession } from "../control/control-session.ts";
import { renderInstant } from "../terminal/render-time.ts";
import { CommandError, type ExitCode } from "../terminal/terminal.ts";
import { writeJson } from "../terminal/write-json.ts";

/** `sluice console`: a link that signs in once. What is not a terminal may be kept, so it gets the link only on request. */
export async function printConsoleLink(session: ControlSession): Promise<ExitCode> {
  const { api, terminal, json } = session;
  if (!json && terminal.stdout.isTTY !== true)
    throw new CommandError(
      "anyone who opens the link first is signed in, so it is printed only to a terminal; --json prints it anyway",
    );
  const { code, expires_ms: expiresMs } = await api.session.makeCode();
  const link = `${api.server}/#code=${code}`;
  if (json) writeJson(session, { link, expires_ms: expiresMs });
  else {
    terminal.stderr.write(`This link signs you in once, until ${renderInstant(expiresMs)}:\n\n`);
    terminal.stdout.write(`${link}\n`);
  }
  return 0;
}

/** `sluice console` */
export function addConsoleCommand(program: Command, run: RunOnControlPlane): void {
  withExamples(
    controlCommand(
      program,
      "console",
      "Print a link that signs you in to the console, once, with your token's rights.",
    ),
    `The link is good for five minutes, at the server that made it. The session has the rights of the token that you ask with.`,
    "sluice console",
    "sluice console --admin https://sluice.example:8090 --token-file token",
  ).action((options: ControlOptions) => run(options, printConsoleLink));
}
