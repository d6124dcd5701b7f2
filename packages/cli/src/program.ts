import { Command, CommanderError, Option } from "commander";
import { printableLines, suggest } from "sluice/internal";
import { readPolicyFiles } from "sluice/policy-file";
import { parsePolicyFiles } from "sluice/policy-text";
import { collect } from "./arguments/collect.ts";
import type { ServerFlags } from "./arguments/find-token.ts";
import type { CheckOptions } from "./arguments/parse-check.ts";
import { addAuditCommand } from "./commands/audit.ts";
import { addCapacityCommand } from "./commands/capacity.ts";
import { check } from "./commands/check.ts";
import { addConsoleCommand } from "./commands/console.ts";
import { addDenialsCommand } from "./commands/denials.ts";
import { explain } from "./commands/explain.ts";
import { addHealthcheckCommand } from "./commands/healthcheck.ts";
import { addKillSwitchCommands } from "./commands/kill-switch.ts";
import { addNodesCommand } from "./commands/nodes.ts";
import { addOverrideCommands } from "./commands/overrides.ts";
import { addPlanCommands } from "./commands/plans.ts";
import { addPolicyApply } from "./commands/policy-apply.ts";
import { addPolicyDelete, addPolicyRevert } from "./commands/policy-change.ts";
import { addPolicyDiff } from "./commands/policy-diff.ts";
import { addPolicyDisable } from "./commands/policy-disable.ts";
import { type LintOptions, policyLint } from "./commands/policy-lint.ts";
import { addPolicyExport, addPolicyGet, addPolicyHistory, addPolicyList } from "./commands/policy-read.ts";
import { addPolicyRollout } from "./commands/policy-rollout.ts";
import { addRecordingCommands } from "./commands/recordings.ts";
import { addReplayCommand } from "./commands/replay.ts";
import { type ResetCommandOptions, reset } from "./commands/reset.ts";
import { addServeCommand, wantsServe } from "./commands/serve.ts";
import { addSimulateCommand } from "./commands/simulate.ts";
import { status } from "./commands/status.ts";
import { addSubjectCommands, addTierCommands } from "./commands/subjects.ts";
import { addTokenCommands } from "./commands/token-commands.ts";
import { addTopCommand } from "./commands/top.ts";
import { addUsageCommand } from "./commands/usage.ts";
import { askingOptions, type RunOnControlPlane } from "./control/control-command.ts";
import { openControlSession } from "./control/control-session.ts";
import type { HangUp, Signals } from "./early-signals.ts";
import { findServerCommands, loadServerCommands, runInServer, type ServerCommands } from "./load-server.ts";
import { configVariable, policySource, renderFailure, throwWithSource } from "./render-failure.ts";
import { defaultServer, findServer } from "./server/ask-server.ts";
import type { Decider, LocalDecider } from "./server/asker.ts";
import { CommandError, type ExitCode, type Terminal } from "./terminal/terminal.ts";
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
  try {
    const server = wantsServe(world.args) ? await findServerCommands() : undefined;
    const program = createProgram(world, server, (code) => {
      exitCode = code;
    });
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
const explainCodes = `\nExit codes: 0 explained, also if the request is denied; ${failed}`;
const statusCodes = `\nExit codes: 0 ready or degraded; 1 stopping, or with --strict a counter server cannot be reached; ${failed}`;
const resetCodes = `\nExit codes: 0 reset; 1 nothing was reset: no policy counts such a request; ${failed}`;
const lintCodes = `\nExit codes: 0 no errors; 1 errors, or with --strict warnings; ${failed}`;

/** Commands that ask a control plane, in the order of the help. */
const policyCommands = [
  addPolicyApply,
  addPolicyDiff,
  addPolicyGet,
  addPolicyList,
  addPolicyHistory,
  addPolicyRevert,
  addPolicyDelete,
  addPolicyRollout,
  addPolicyDisable,
  addPolicyExport,
];
const controlCommands = [
  addPlanCommands,
  addOverrideCommands,
  addTierCommands,
  addKillSwitchCommands,
  addSubjectCommands,
  addUsageCommand,
  addDenialsCommand,
  addAuditCommand,
  addNodesCommand,
  addRecordingCommands,
  addConsoleCommand,
];

/** Receives the exit code of the command that ran. */
type Finish = (code: ExitCode) => void;

function createProgram(world: World, server: ServerCommands | undefined, finish: Finish): Command {
  const { terminal, env } = world;
  const program = new Command("sluice")
    .description("Rate limiting that is exact and explains itself.")
    .version(version, "-V, --version", "print the version")
    .helpOption("-h, --help", "print this")
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

  addServeCommand(program, server, world, finish);
  addCheckCommand(program, world, finish);
  addExplainCommand(program, world, finish);
  addStatusCommand(program, world, finish);
  addResetCommand(program, world, finish);
  addHealthcheckCommand(program, world, finish);

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
  for (const add of policyCommands) add(policy, run);
  for (const add of controlCommands) add(program, run, world.signals);
  addTopCommand(program, world, finish);
  addSimulateCommand(program, world, finish);
  addReplayCommand(program, world, finish);
  addCapacityCommand(program, world, finish);
  const token = program.command("token").description("Work with bearer tokens: of the policy store, and of files.");
  addTokenCommands(token, run, world, finish);

  nameOwnHelp(program, "sluice");
  return program;
}

function addCheckCommand(program: Command, world: World, finish: Finish): void {
  const { terminal } = world;
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
        await check(words, options, () => findDecider(options, world), terminal).catch((error: unknown) =>
          throwWithSource(error, policySource(options.config)),
        ),
      ),
    );
}

function addExplainCommand(program: Command, world: World, finish: Finish): void {
  const { terminal } = world;
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
        await explain(words, options, () => findDecider(options, world), terminal).catch((error: unknown) =>
          throwWithSource(error, policySource(options.config)),
        ),
      ),
    );
}

function addStatusCommand(program: Command, { env, terminal }: World, finish: Finish): void {
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
}

function addResetCommand(program: Command, { env, terminal }: World, finish: Finish): void {
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
  if (command.commands.length > 0) addHelpCommand(command);
}

/** Refuses a command that does not exist, where commander's own would print the whole help. */
function addHelpCommand(command: Command): void {
  command
    .helpCommand(false)
    .command("help [command...]")
    .description("print the help of a command")
    .action((words: readonly string[]) => {
      let found = command;
      for (const word of words) {
        const below = found.commands.find((one) => one.name() === word);
        if (below === undefined) {
          const meant = suggest(word, listCommands(found));
          found.error(`error: unknown command '${word}'${meant === undefined ? "" : `\n(Did you mean ${meant}?)`}`);
        } else found = below;
      }
      found.help();
    });
}

function listCommands({ commands }: Command): readonly string[] {
  return commands.map((one) => one.name());
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

/** What decides a check: a server, unless the command line says that this process does. */
async function findDecider(options: CheckOptions, { env, terminal }: World): Promise<Decider> {
  if (options.local === true || options.config !== undefined) return findLocalDecider(options, env, terminal);
  if (options.redis !== undefined)
    throw new CommandError(
      "--redis says where this process finds counters, and a server decides by its own; add --config FILE or --local",
    );
  const advice = "; or decide without one, by a policy file: --config FILE";
  return { kind: "server", server: { ...(await findServer(options, env, terminal)), advice } };
}

/** Variables that name servers which hold counters. */
const counterVariables = ["SLUICE_REDIS_URL", "REDIS_CLUSTER_URL"];

/** Decides in memory, unless servers that hold counters are named: those need `@sluice/server`. */
async function findLocalDecider(
  { config: given, redis }: CheckOptions,
  env: World["env"],
  terminal: Terminal,
): Promise<LocalDecider> {
  const config = given ?? (env[configVariable] || undefined);
  if (redis === undefined && counterVariables.every((name) => !env[name]))
    return {
      kind: "local",
      config,
      loadPolicies: async (path) => parsePolicyFiles(await readPolicyFiles(path)).policySet,
      openCounters: async () => undefined,
    };
  const server = await loadServerCommands("Deciding on counters in Valkey or Redis");
  return {
    kind: "local",
    config,
    loadPolicies: (path) => server.loadPolicySet(path),
    async openCounters() {
      const { warnings, ...opened } = await runInServer(server, () => server.openCounters(env, redis));
      if (warnings !== "") terminal.stderr.write(`${warnings}\n`);
      return opened.counters === undefined ? undefined : { counters: opened.counters, where: opened.where };
    },
  };
}
