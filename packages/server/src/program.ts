import { Command, CommanderError, Option } from "commander";
import { printable, printableLines, renderPath, SluiceError, StoreUnavailable } from "sluice";
import type { HangUp, Signals } from "./boot/early-signals.ts";
import { defaultServer, findServer, type ServerFlags } from "./commands/ask-server.ts";
import type { AskedOf } from "./commands/asker.ts";
import { check } from "./commands/check.ts";
import type { CheckOptions } from "./commands/check-options.ts";
import { askingOptions, type RunOnControlPlane } from "./commands/control/control-command.ts";
import { openControlSession } from "./commands/control/control-session.ts";
import { addOperationCommands } from "./commands/control/operation-commands.ts";
import { addPolicyCommands } from "./commands/control/policy-commands.ts";
import { addTokenCommands } from "./commands/control/token-commands.ts";
import { addTopCommand } from "./commands/control/top-command.ts";
import { explain } from "./commands/explain.ts";
import { flagForField } from "./commands/flag-for-field.ts";
import { type LintOptions, policyLint } from "./commands/policy-lint.ts";
import { type ResetCommandOptions, reset } from "./commands/reset.ts";
import { serve } from "./commands/serve.ts";
import { status } from "./commands/status.ts";
import { CommandError, type ExitCode, type Terminal } from "./commands/terminal.ts";
import { redactText } from "./observe/telemetry/redact-text.ts";
import { renderPolicyProblem } from "./observe/telemetry/render-policy-problem.ts";
import { parseSettings, renderSettingProblems, SettingError, type SettingsReading } from "./settings/parse-settings.ts";
import type { SettingEntry } from "./settings/setting-entry.ts";
import { type Settings, settingSections, settingsTable } from "./settings/settings.ts";
import { version } from "./version.ts";

/** What the outside world is to the program. */
export interface World {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly terminal: Terminal;
  readonly signals: Signals;
  /** Absent: `reload`. */
  readonly hangUp?: HangUp;
}

/** Runs one command line and answers with its exit code. Never throws. */
export async function runProgram(world: World): Promise<ExitCode> {
  let exitCode: ExitCode = 0;
  const program = createProgram(world, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(world.args, { from: "user" });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    world.terminal.stderr.write(renderFailure(error));
    return error instanceof CommandError ? error.exitCode : 2;
  }
}

const exitCodes = `
Exit codes: 0 allowed, or all is well; 1 denied, or policies with errors; 2 wrong usage, or it could not be done.`;

/** Of each command below, what its codes mean to it. */
const failed = "2 wrong usage, or it could not be done.";
const serveCodes = "\nExit codes: 0 stopped by a signal; 2 wrong usage, or it could not be started.";
const explainCodes = `\nExit codes: 0 explained, also if the request is denied; ${failed}`;
const statusCodes = `\nExit codes: 0 ready or degraded; 1 stopping, or with --strict a counter server cannot be reached; ${failed}`;
const resetCodes = `\nExit codes: 0 reset; 1 nothing was reset: no policy counts such a request; ${failed}`;
const lintCodes = `\nExit codes: 0 no errors; 1 errors, or with --strict warnings; ${failed}`;

function createProgram(world: World, finish: (code: ExitCode) => void): Command {
  const { terminal, env } = world;
  const program = new Command("sluice")
    .description("Rate limiting that is exact and explains itself.")
    .version(version, "-V, --version", "print the version")
    .helpOption("-h, --help", "print this")
    .helpCommand("help [command]", "print the help of a command")
    .addHelpText(
      "after",
      `\nStart with: sluice serve --config policies.yaml\n${exitCodes}\nCommands that ask a control plane have more; see their --help.`,
    )
    // What follows a command is its own: `policy get ID --version 3` does not ask for ours.
    .enablePositionalOptions()
    .showHelpAfterError("(see: sluice --help)")
    .configureOutput({
      writeOut: (text) => terminal.stdout.write(text),
      writeErr: (text) => terminal.stderr.write(printableLines(text)),
    })
    .exitOverride();

  const serveCommand = program
    .command("serve")
    .description("Serve decisions over HTTP, gRPC and RESP, from policies that are watched for changes.")
    .addHelpText(
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
${serveCodes}`,
    );
  for (const option of serveOptions.values()) serveCommand.addOption(option);
  for (const [wrong, flag] of misnamedFlags) {
    serveCommand.addOption(new Option(`${wrong} [value]`).hideHelp()).on(`option:${wrong.slice(2)}`, () => {
      throw new CommandError(`there is no option ${wrong}; did you mean ${flag}? (see: sluice serve --help)`);
    });
  }
  serveCommand.action(async (options: Readonly<Record<string, string | true>>) => {
    const { settings, warnings } = settingsFrom(parseSettings(env, flagsOf(options)));
    const source = settings.config === undefined ? undefined : policySource(options.config);
    const serving = serve(settings, warnings, terminal, world.signals, world.hangUp);
    finish(await serving.catch((error: unknown) => throwWithSource(error, source)));
  });

  addCheckOptions(program.command("check <dimension...>").description("Ask a server to decide a check."))
    .option("--preview", "decide without charging")
    .option("--id <id>", "charge once, however often this id is sent")
    .option("--details", "also show the answer of every limit")
    .option("--repeat <times>", "ask this many times (default 1)")
    .addHelpText(
      "after",
      `
${whoDecides}

Examples:
  sluice check user=u1 endpoint=/v1/orders --cost 2
  sluice check user=u1 --server http://127.0.0.1:8080 --json
  sluice check ip=203.0.113.7 endpoint=/login method=POST --repeat 6 --config policies.yaml
${exitCodes}`,
    )
    .action(async (words: string[], options: CheckOptions & { repeat?: string }) =>
      finish(
        await check(words, options, () => findAsked(options, world), terminal).catch((error: unknown) =>
          throwWithSource(error, policySource(options.config)),
        ),
      ),
    );

  addCheckOptions(program.command("explain <dimension...>").description("Show why a check is answered as it is."))
    .addHelpText(
      "after",
      `
Shows which policies match and why, which counters they lead to, and each window's arithmetic. Charges nothing.
${whoDecides}

Examples:
  sluice explain user=u1 endpoint=/v1/orders
  sluice explain user=u1 endpoint=/v1/orders --server http://127.0.0.1:8080
  sluice explain user=u1 endpoint=/v1/orders --config policies.yaml --redis redis://127.0.0.1:6379
${explainCodes}`,
    )
    .action(async (words: string[], options: CheckOptions) =>
      finish(
        await explain(words, options, () => findAsked(options, world), terminal).catch((error: unknown) =>
          throwWithSource(error, policySource(options.config)),
        ),
      ),
    );

  addServerOptions(
    program
      .command("status")
      .description("Show a server's status: policies, counters, connections, queue, rejections.")
      .option("--strict", "exit with code 1 also while a server that holds counters cannot be reached"),
  )
    .addHelpText(
      "after",
      `\nNeeds a token of role viewer, where the server knows tokens.\n\nExample:\n  sluice status --server http://127.0.0.1:8080\n${statusCodes}`,
    )
    .action(async (options: ServerFlags & { strict?: boolean }) =>
      finish(await status(await findServer(options, env, terminal), options, terminal)),
    );

  addServerOptions(
    program
      .command("reset <dimension...>")
      .description("Reset the counters that a request is counted in, on a server, and lift its blocks.")
      .option("--domain <name>", "the domain of the policies (default default)")
      .option("--policy <id>", "only the counters of this policy; may be repeated", collect),
  )
    .addHelpText(
      "after",
      `
Lists the counters that it reset. Give the whole request, with its endpoint: without one, policies for an endpoint do not match.
Every counter of a subject: sluice subject reset user=u1
Needs a token of role operator (sluice token make --role operator).

Example:
  sluice reset user=u1 endpoint=/v1/orders --server http://127.0.0.1:8080
${resetCodes}`,
    )
    .action(async (words: string[], options: ResetCommandOptions) =>
      finish(await reset(words, options, await findServer(options, env, terminal), terminal)),
    );

  const policy = program.command("policy").description("Work with policies: files, and the policy store.");
  policy
    .command("lint <path...>")
    .description("Report everything wrong or surprising in policy files. Each path is a file, or a folder of files.")
    .option("--json", "print JSON")
    .option("--strict", "let warnings fail too")
    .addHelpText("after", `\nExample:\n  sluice policy lint policies.yaml\n${lintCodes}`)
    .action(async (paths: string[], options: LintOptions) => finish(await policyLint(paths, options, terminal)));

  const run: RunOnControlPlane = async (options, work) =>
    finish(await work(await openControlSession(options, env, terminal)));
  addPolicyCommands(policy, run);
  addOperationCommands(program, run);
  addTopCommand(program, world, finish);
  const token = program.command("token").description("Work with bearer tokens: of the policy store, and of files.");
  addTokenCommands(token, run, world, finish);

  nameOwnHelp(program, "sluice");
  return program;
}

/** After wrong usage of a command, its own help is the one to read. A switch with a value is a known option, written wrong. */
function nameOwnHelp(command: Command, name: string): void {
  command.showHelpAfterError(`(see: ${name} --help)`);
  command.configureOutput({
    ...command.configureOutput(),
    outputError(text, write) {
      const [, flag] = /^error: unknown option '(--[\w-]+)=/.exec(text) ?? [];
      const known = command.options.some(({ long, required, optional }) => long === flag && !required && !optional);
      write(known ? `error: option '${flag}' takes no value; write ${flag} alone, or leave it out\n` : text);
    },
  });
  for (const below of command.commands) nameOwnHelp(below, `${name} ${below.name()}`);
}

const whoDecides = `Asks the server of --server or SLUICE_SERVER, by default ${defaultServer}, with its policies and counters. --config FILE or
--local decide in this process instead, and say so in the first line: by the policies in FILE or RATE_LIMIT_CONFIG, else by the
default policy; on the counters of --redis or SLUICE_REDIS_URL, else on ones that start empty.`;

function addCheckOptions(command: Command): Command {
  return addServerOptions(
    command
      .option("--cost <number>", "what the request takes (default 1)")
      .option("--domain <name>", "the domain of the policies (default default)")
      .option("--policy <id>", "ask this policy by id, instead of all that match; may be repeated", collect),
  )
    .addOption(new Option("--local", "decide in this process").conflicts(askingFlags))
    .addOption(
      new Option("--config <path>", "decide in this process, by this policy file or folder").conflicts(askingFlags),
    )
    .addOption(
      new Option(
        "--redis <url>",
        "with --local or --config: decide on the counters there (SLUICE_REDIS_URL)",
      ).conflicts(askingFlags),
    );
}

/** Options that say how to ask a server, and mean nothing without one. */
const askingFlags = ["server", "tokenFile", "ca"];

function addServerOptions(command: Command): Command {
  return askingOptions(
    command.option("--server <url>", `the server to ask (SLUICE_SERVER, default ${defaultServer})`),
  ).option("--json", "print JSON");
}

function collect(value: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, value];
}

/** Settings that have a flag, as options of `serve`, by section. */
const serveOptions: ReadonlyMap<keyof Settings, Option> = new Map(
  settingSections.flatMap(({ heading, names }) =>
    names.flatMap((name) => {
      const entry: SettingEntry<unknown> = settingsTable[name];
      if (entry.flag === undefined) return [];
      const form = entry.value === undefined ? entry.flag : `${entry.flag} ${entry.value}`;
      const help = `${entry.help} [${entry.env}${renderFallback(entry)}]`;
      return [[name, new Option(form, help).helpGroup(`${heading}:`)]];
    }),
  ),
);

/** Flags that a variable's name suggests, where the setting's flag is called otherwise: `--http-port` for `--port`. */
const misnamedFlags: readonly (readonly [string, string])[] = entriesOfTable().flatMap(([, { env, flag }]) => {
  if (flag === undefined || !env.startsWith("SLUICE_")) return [];
  const name = `--${env.slice("SLUICE_".length).toLowerCase().replaceAll("_", "-")}`;
  return name === flag ? [] : [[name, flag] as const];
});

/** Settings that have none, for the help. */
const variables: string = entriesOfTable()
  .filter(([, { flag }]) => flag === undefined)
  .map(([, { env, help }]) => `  ${env.padEnd(32)}${help}`)
  .join("\n");

function entriesOfTable(): readonly (readonly [keyof Settings, SettingEntry<unknown>])[] {
  return Object.entries(settingsTable) as [keyof Settings, SettingEntry<unknown>][];
}

function renderFallback({ value, fallback, fallbackText }: SettingEntry<unknown>): string {
  const text = fallbackText ?? fallback;
  return value === undefined || text === undefined ? "" : `, default ${text}`;
}

/** Options as commander hands them over, under the names of the settings. A switch that is there says `true`. */
function flagsOf(options: Readonly<Record<string, string | true>>): Partial<Record<keyof Settings, string>> {
  const flags: Partial<Record<keyof Settings, string>> = {};
  for (const [name, option] of serveOptions) {
    const given = options[option.attributeName()];
    if (given !== undefined) flags[name] = String(given);
  }
  return flags;
}

function settingsFrom(reading: SettingsReading): Extract<SettingsReading, { kind: "settings" }> {
  if (reading.kind === "problems") throw new CommandError(renderSettingProblems(reading.problems));
  return reading;
}

/** What decides a check: a server, unless the command line says that this process does. */
async function findAsked(options: CheckOptions, world: World): Promise<AskedOf> {
  const { env, terminal } = world;
  if (options.local === true || options.config !== undefined)
    return {
      kind: "local",
      config: options.config ?? (env[settingsTable.config.env] || undefined),
      settings: counterSettings(options, world),
    };
  if (options.redis !== undefined)
    throw new CommandError(
      "--redis says where this process finds counters, and a server decides by its own; add --config FILE or --local",
    );
  const advice = "; or decide without one, by a policy file: --config FILE";
  return { kind: "server", server: { ...(await findServer(options, env, terminal)), advice } };
}

/** Settings about servers that hold counters. Other settings are for `serve`, and not read. */
function counterSettings({ redis }: CheckOptions, { env, terminal }: World): Settings {
  const names = entriesOfTable().filter(([name]) => name.startsWith("redis") || name === "deadlineMs");
  const own = Object.fromEntries(names.map(([, entry]) => [entry.env, env[entry.env]]));
  const { settings, warnings } = settingsFrom(parseSettings(own, { redis }));
  if (warnings.length > 0) terminal.stderr.write(`${renderSettingProblems(warnings)}\n`);
  return settings;
}

/** What names the policies of a command that reads them itself. */
function policySource(flag: string | true | undefined): string {
  return flag === undefined ? settingsTable.config.env : "--config";
}

/** Says what named the policies that cannot be used: a file that only the environment names is not in the command line. */
function throwWithSource(error: unknown, source: string | undefined): never {
  if (source === undefined || !(error instanceof SluiceError) || error.code !== "invalid_policies") throw error;
  if (error.problems.length === 0) throw error;
  throw new CommandError(renderProblems(error, ` in the policies of ${source}`).trimEnd());
}

function renderProblems(error: SluiceError, where = ""): string {
  const count = error.problems.length === 1 ? "1 problem" : `${error.problems.length} problems`;
  const isOfCheck = error.code === "policy_not_found" || error.code === "invalid_request";
  const problems = error.problems.map((problem) =>
    printable(
      // What stands in a file was not typed.
      isOfCheck && problem.place === undefined
        ? `${flagForField(renderPath(problem.path))}: ${problem.message}`
        : renderPolicyProblem(problem),
    ),
  );
  return [...problems, `${count}${where}; nothing was started or decided`, ""].join("\n");
}

/** Messages repeat what was typed, or what a server answered: none of it may command the terminal. */
function renderFailure(error: unknown): string {
  if (error instanceof SluiceError && error.problems.length > 0) return renderProblems(error);
  if (knownErrors.some((kind) => error instanceof kind)) return `${printableLines((error as Error).message)}\n`;
  const unforeseen = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return `${printableLines(redactText(unforeseen, 16_384))}\n`;
}

/** Errors whose message says everything. */
const knownErrors = [SluiceError, CommandError, SettingError, StoreUnavailable];
