import { type Command, Option } from "commander";
import type { HangUp, Signals } from "../early-signals.ts";
import { loadServerCommands, runInServer, type ServerCommands, whatToInstall } from "../load-server.ts";
import { configVariable, policySource, throwWithSource } from "../render-failure.ts";
import { CommandError, type ExitCode, type Terminal } from "../terminal/terminal.ts";

interface ServeWorld {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly terminal: Terminal;
  readonly signals: Signals;
  readonly hangUp?: HangUp;
}

/** Whether a command line is about `serve`: then the server is loaded, because its settings are the options. */
export function wantsServe(args: readonly string[]): boolean {
  return args[0] === "serve" || (args[0] === "help" && args[1] === "serve");
}

const exitCodes = "\nExit codes: 0 stopped by a signal; 2 wrong usage, or it could not be started.";

/** `sluice serve`. Without the server it says what to install, whatever its options are. */
export function addServeCommand(
  program: Command,
  server: ServerCommands | undefined,
  world: ServeWorld,
  finish: (code: ExitCode) => void,
): void {
  const command = program
    .command("serve")
    .description("Serve decisions over HTTP, gRPC and RESP, from policies that are watched for changes.");
  if (server !== undefined) {
    addOptions(command, server, world, finish);
    return;
  }
  command
    .allowUnknownOption()
    .allowExcessArguments()
    .addHelpText("after", `\nThe server and its options are in @sluice/server. ${whatToInstall}\n${exitCodes}`)
    .action(async () => {
      await loadServerCommands("sluice serve");
    });
}

function addOptions(
  command: Command,
  server: ServerCommands,
  { env, terminal, signals, hangUp }: ServeWorld,
  finish: (code: ExitCode) => void,
): void {
  const { options: described, misnamedFlags, variables } = server.describeServe();
  command.addHelpText(
    "after",
    `
Every option has an environment variable; the option wins. Variables without an option:
${variables}
SIGHUP reloads the policies; in a terminal, where it means that the terminal is gone, it stops the server.
SIGTERM and SIGINT let requests in flight finish and end with exit code 0.

Examples:
  sluice serve --config policies.yaml
  sluice serve --config /etc/sluice/policies.d --port 9090 --log-format json
  SLUICE_HTTP_PORT=0 RATE_LIMIT_CONFIG=policies.yaml sluice serve
${exitCodes}`,
  );
  const options = Object.entries(described).map(
    ([name, { form, help, section }]) => [name, new Option(form, help).helpGroup(`${section}:`)] as const,
  );
  for (const [, option] of options) command.addOption(option);
  for (const [wrong, flag] of misnamedFlags) {
    command.addOption(new Option(`${wrong} [value]`).hideHelp()).on(`option:${wrong.slice(2)}`, () => {
      throw new CommandError(`there is no option ${wrong}; did you mean ${flag}? (see: sluice serve --help)`);
    });
  }
  command.action(async (given: Readonly<Record<string, string | true>>) => {
    // A switch that is there says `true`.
    const flags = options.flatMap(([name, option]) => {
      const value = given[option.attributeName()];
      return value === undefined ? [] : [[name, String(value)] as const];
    });
    const request = { env, flags: Object.fromEntries(flags), terminal, signals, hangUp };
    const source = given.config === undefined && !env[configVariable] ? undefined : policySource(given.config);
    const serving = runInServer(server, () => server.runServe(request));
    finish(await serving.catch((error: unknown) => throwWithSource(error, source)));
  });
}
