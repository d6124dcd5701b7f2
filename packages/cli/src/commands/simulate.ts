import { writeFile } from "node:fs/promises";
import {
  type IdentityReport,
  IdentityRun,
  type SimulatedRequest,
  Simulation,
  type SimulationReport,
} from "@sluice/simulate";
import {
  findSampledBy,
  type LogFormat,
  type LogSource,
  LogUnreadable,
  parseFieldMap,
  type ReadLogs,
  readLogs,
} from "@sluice/simulate/logs";
import { type FailCondition, judge, parseFailIf, renderHtml } from "@sluice/simulate/report";
import { type Command, Option } from "commander";
import { type PolicySet, SluiceError } from "sluice";
import { printable } from "sluice/internal";
import { readPolicyFiles } from "sluice/policy-file";
import { parsePolicyFiles, parsePolicyText } from "sluice/policy-text";
import { collect } from "../arguments/collect.ts";
import type { Environment, ServerFlags } from "../arguments/find-token.ts";
import { parseDurationFlag } from "../arguments/parse-time.ts";
import { askingOptions } from "../control/control-command.ts";
import { askServer, findServer } from "../server/ask-server.ts";
import { paintFor } from "../terminal/paint.ts";
import { CommandError, type ExitCode, type Terminal } from "../terminal/terminal.ts";
import { renderJson } from "../terminal/write-json.ts";
import { addLogOptions, openLogs } from "./open-logs.ts";
import { renderSimulation } from "./render-simulation.ts";
import { showReading } from "./show-reading.ts";

export interface SimulateOptions extends ServerFlags {
  readonly policies: string;
  readonly now?: string;
  readonly format?: LogFormat;
  readonly map?: readonly string[];
  readonly deniedStatus?: string;
  readonly reorder?: string;
  readonly domain?: string;
  readonly findLimit?: string;
  readonly failIf?: readonly string[];
  readonly html?: string;
}

export interface SimulateWorld {
  readonly env: Environment;
  readonly terminal: Terminal;
}

/** `sluice simulate`: what policies would have done to the requests of access logs. */
export async function simulateLogs(
  logs: readonly string[],
  options: SimulateOptions,
  world: SimulateWorld,
): Promise<ExitCode> {
  const { terminal, env } = world;
  try {
    // Everything that may be misspelt is read before the logs, which may take minutes.
    const conditions = (options.failIf ?? []).map(parseFailIf);
    const candidate = await loadPolicies(options.policies, "--policies");
    const now = await loadNow(options, world);
    const sources = await openLogs(logs, terminal);
    const replayed = await replay(sources, candidate, now, options, terminal);
    if (replayed.report.requests === 0) throw new CommandError(renderNothing(replayed.read));
    return await writeResult(replayed, conditions, logs, options, terminal, env);
  } catch (error) {
    if (error instanceof RangeError || error instanceof LogUnreadable) throw new CommandError(error.message);
    throw error;
  }
}

/** What was read, and what it says. */
interface Replayed {
  readonly report: SimulationReport;
  readonly read: ReadLogs;
  /** Undefined without a recording. */
  readonly identity: IdentityReport | undefined;
}

async function replay(
  sources: readonly LogSource[],
  candidate: PolicySet,
  now: PolicySet | undefined,
  options: SimulateOptions,
  terminal: Terminal,
): Promise<Replayed> {
  const { domain, findLimit } = options;
  const progress = showReading(sources, terminal);
  const begin = (carried: readonly string[], sampledBy?: string): Simulation =>
    new Simulation({
      ...{ candidate, now, carried, domain, sampledBy },
      ...(findLimit !== undefined && { findLimit: { policy: findLimit } }),
    });
  // A policy that is not there is found out before the first line.
  let simulation = begin([]);
  let identity: IdentityRun | undefined;
  const onRequest = (request: SimulatedRequest): void => {
    identity?.add(request);
    simulation.add(request);
  };
  const read = await readLogs(sources, onRequest, {
    format: options.format,
    map: parseFieldMap(options.map ?? []),
    deniedStatuses: parseStatuses(options.deniedStatus),
    windowSeconds: Math.ceil(parseDurationFlag("--reorder", options.reorder ?? "10s", reorderBounds) / 1000),
    onProgress: progress.show,
    onCarried: (carried, recordings) => {
      const sampledBy = findSampledBy(recordings);
      simulation = begin(carried, sampledBy);
      if (recordings.length > 0) identity = new IdentityRun({ recordings, sampledBy });
    },
  }).finally(() => progress.end());
  return { report: simulation.finish(), read, identity: identity?.finish() };
}

const reorderBounds = { leastMs: 1_000, mostMs: 3_600_000 };

async function writeResult(
  { report, read, identity }: Replayed,
  conditions: readonly FailCondition[],
  logs: readonly string[],
  options: SimulateOptions,
  { stdout }: Terminal,
  env: Environment,
): Promise<ExitCode> {
  const verdicts = conditions.map((condition) => judge(condition, report));
  const logNotes = listLogNotes(read);
  if (options.html !== undefined) {
    const title = `${logs.join(", ")} under ${options.policies}`;
    await writeFile(options.html, renderHtml(report, { title, notes: logNotes, identity })).catch((error: Error) => {
      throw new CommandError(`--html ${JSON.stringify(options.html)} cannot be written: ${error.message}`);
    });
  }
  if (options.json === true) {
    const { lines, unreadable, late, formats, examples } = read;
    const logsRead = { lines, unreadable, late, formats, examples };
    const document = { logs: logsRead, identity, result: report, fail_if: verdicts };
    stdout.write(`${renderJson(document, 2)}\n`);
  } else {
    const width = stdout.isTTY === true ? stdout.columns : undefined;
    stdout.write(renderSimulation(report, { width, paint: paintFor(stdout, env), logNotes, verdicts, identity }));
  }
  return verdicts.some(({ failed }) => failed) ? 1 : 0;
}

function listLogNotes({ lines, unreadable, late, examples }: ReadLogs): readonly string[] {
  const notes: string[] = [];
  if (unreadable > 0) {
    const first = examples.map(({ file, line, text }) => `${file}:${line} ${text}`).join(" | ");
    notes.push(`${unreadable} of ${lines} lines could not be read, and were left out. The first: ${first}`);
  }
  if (late > 0)
    notes.push(
      `${late} lines were too far out of order, and were left out. A longer --reorder puts them in their place.`,
    );
  return notes;
}

function renderNothing({ lines, formats, examples }: ReadLogs): string {
  if (lines === 0) return "the logs are empty";
  const [first] = examples;
  const example = first === undefined ? "" : ` The first line is ${printable(JSON.stringify(first.text))}.`;
  const form = [...new Set(formats.filter((format) => format !== undefined))].join(", ");
  return `none of ${lines} lines could be read as ${form}.${example} Name the format with --format, or where things are with --map`;
}

async function loadPolicies(path: string, flag: string): Promise<PolicySet> {
  try {
    return parsePolicyFiles(await readPolicyFiles(path)).policySet;
  } catch (error) {
    if (!(error instanceof SluiceError) || error.problems.length > 0) throw error;
    throw new CommandError(`${flag}: ${error.message}`);
  }
}

/** The policies to compare with. Undefined: what the logs say. */
async function loadNow(options: SimulateOptions, { env, terminal }: SimulateWorld): Promise<PolicySet | undefined> {
  if (options.now !== undefined) return loadPolicies(options.now, "--now");
  if (options.server === undefined) return undefined;
  const text = await askServer(await findServer(options, env, terminal), "v1/policies");
  const { generation: _, ...file } = JSON.parse(text) as Record<string, unknown>;
  return parsePolicyText(JSON.stringify(file), { file: options.server }).policySet;
}

function parseStatuses(text: string = "429"): ReadonlySet<number> {
  const statuses = text.split(",").map((one) => (/^\s*\d{3}\s*$/.test(one) ? Number(one) : Number.NaN));
  if (statuses.some(Number.isNaN))
    throw new CommandError(`--denied-status is ${JSON.stringify(text)}; it should be statuses such as 429 or 429,503`);
  return new Set(statuses);
}

export function addSimulateCommand(program: Command, world: SimulateWorld, finish: (code: ExitCode) => void): void {
  const command = program
    .command("simulate <log...>")
    .description("Show what policies would have done to recorded requests, before you apply them.")
    .requiredOption("--policies <path>", "the policies to try: a file, or a folder of files")
    .option("--now <path>", "compare with these policies (default: with what the logs say was denied)")
    .addOption(new Option("--server <url>", "compare with the policies of this server").conflicts("now"));
  addLogOptions(command)
    .option("--denied-status <codes>", "statuses of requests that were denied (default 429)")
    .option("--reorder <duration>", "how far lines may be out of order (default 10s)")
    .option("--domain <name>", "the domain that the requests ask in (default default)")
    .option("--find-limit <policy>", "try the limits of this policy at sizes from a tenth to ten times as large")
    .option(
      "--fail-if <condition>",
      'exit with code 1 if this is so, such as "denied > 0.1%"; may be repeated',
      collect,
    )
    .option("--html <path>", "also write the report as one HTML file");
  askingOptions(command)
    .option("--json", "print one JSON document")
    .addHelpText("after", help)
    .action(async (logs: string[], options: SimulateOptions) => finish(await simulateLogs(logs, options, world)));
}

const help = `
Each log is an access log or a recording of sluice serve --record: a file, compressed with gzip or zstd or not, or - for
standard input. Several are merged by time. A recording is first replayed under its own policies, and the report says
whether that reproduces its decisions.
Conditions are of denied, newly-denied and subjects-hurt, compared by > or >= with a count or a percentage of requests.

Examples:
  sluice simulate access.log --policies candidate.yaml
  sluice simulate access.log access.log.1.gz --now policies.yaml --policies candidate.yaml --html report.html
  sluice simulate envoy.json.zst --policies candidate.yaml --map tenant=header:x-tenant --find-limit api
  sluice simulate requests.rec --policies candidate.yaml
  sluice simulate - --policies candidate.yaml --fail-if "newly-denied > 0.1%" --json < access.log

Exit codes: 0 done, and no --fail-if is so; 1 a --fail-if is so; 2 wrong usage, or it could not be done.`;
