import { type Command, Option } from "commander";
import type { Environment } from "../arguments/find-token.ts";
import { type CapacityInput, transports } from "../capacity/capacity-input.ts";
import { transportFigures } from "../capacity/default-figures.ts";
import { compareEstimates } from "../capacity/earlier-estimates.ts";
import { planByLoad } from "../capacity/plan-by-load.ts";
import { planCapacity } from "../capacity/plan-capacity.ts";
import { loadServerCommands, runInServer } from "../load-server.ts";
import { paintFor } from "../terminal/paint.ts";
import { createProgressLine } from "../terminal/progress-line.ts";
import { CommandError, type ExitCode, type Terminal } from "../terminal/terminal.ts";
import { writeJson } from "../terminal/write-json.ts";
import { type CapacityFlags, type MeasuredFigures, numberOptions, readCapacityInput } from "./capacity-options.ts";
import { renderCapacity, renderEstimates, renderLoadPlot, renderMeasured } from "./render-capacity.ts";

interface CapacityWorld {
  readonly env: Environment;
  readonly terminal: Terminal;
}

/** What `--measure` measured, as it is printed. */
type Measured = Awaited<ReturnType<Awaited<ReturnType<typeof loadServerCommands>>["measureCapacity"]>>;

/** `sluice capacity`: what a fleet needs for given traffic. */
export async function capacity(flags: CapacityFlags, { env, terminal }: CapacityWorld): Promise<ExitCode> {
  for (const option of ["quick", "redis"])
    if (flags[option] !== undefined && flags.measure !== true)
      throw new CommandError(`--${option} is about measuring; add --measure, or leave it out`);
  // Everything that may be misspelt is read before anything is measured, which takes a minute.
  readCapacityInput(flags, undefined);
  const measured = flags.measure === true ? await measure(flags, env, terminal) : undefined;
  const input = readCapacityInput(flags, measured && figuresOf(measured));
  try {
    print(input, measured, flags, { env, terminal });
    return 0;
  } catch (error) {
    if (error instanceof RangeError) throw new CommandError(error.message);
    throw error;
  }
}

function print(
  input: CapacityInput,
  measured: Measured | undefined,
  flags: CapacityFlags,
  { env, terminal }: CapacityWorld,
): void {
  const plan = planCapacity(input);
  const load = planByLoad(input);
  const estimates = flags.estimates === true ? compareEstimates(input) : undefined;
  if (flags.json === true) {
    writeJson({ terminal }, { input, plan, load, measured, estimates });
    return;
  }
  const { stdout } = terminal;
  const view = { width: stdout.isTTY === true ? stdout.columns : undefined, paint: paintFor(stdout, env) };
  if (measured !== undefined) stdout.write(`${renderMeasured(measured, view)}\n`);
  stdout.write(`${renderCapacity(input, plan, view)}\n${renderLoadPlot(load, input, view)}`);
  if (estimates !== undefined) stdout.write(`\n${renderEstimates(estimates, view)}`);
}

/** Long enough for the compiler to be done, and for what else the machine does to meet all loads. */
const loadMs = 2_000;
const quickMs = 50;
const counters = 100_000;

async function measure(flags: CapacityFlags, env: Environment, terminal: Terminal): Promise<Measured> {
  const server = await loadServerCommands("sluice capacity --measure");
  const progress = createProgressLine(terminal.stderr);
  const redis = typeof flags.redis === "string" ? flags.redis : env.SLUICE_REDIS_URL;
  const size = flags.quick === true ? { loadMs: quickMs, counters: counters / 100 } : { loadMs, counters };
  try {
    return await runInServer(server, () =>
      server.measureCapacity({ redis: redis || undefined, ...size, onStep: (what) => progress.show(what) }),
    );
  } finally {
    progress.end();
  }
}

function figuresOf({
  server_us_per_check,
  client_bytes_per_check,
  server_us_per_limit,
  store,
}: Measured): MeasuredFigures {
  const byTransport = Object.fromEntries(
    transports.map((one) => [
      one,
      { server_us_per_check: server_us_per_check[one], client_bytes_per_check: client_bytes_per_check[one] },
    ]),
  ) as unknown as MeasuredFigures["byTransport"];
  if (store === undefined) return { byTransport, figures: { server_us_per_limit } };
  const { product: _, replication_bytes_per_take, ...ofStore } = store;
  const replication = replication_bytes_per_take === undefined ? {} : { replication_bytes_per_take };
  return { byTransport, figures: { server_us_per_limit, ...ofStore, ...replication } };
}

export function addCapacityCommand(program: Command, world: CapacityWorld, finish: (code: ExitCode) => void): void {
  const command = program
    .command("capacity")
    .description("Compute the servers, counter servers, network and money that given traffic needs.")
    .addOption(
      new Option("--transport <name>", "how clients ask (default grpc)").choices([...transports]).helpGroup("Traffic:"),
    );
  for (const { form, usual, help, section } of numberOptions) {
    const text = usual === undefined ? help : `${help} (default ${usual})`;
    command.addOption(new Option(form, text).helpGroup(`${section}:`));
  }
  command
    .option("--measure", "measure figures on this machine first, which takes a minute")
    .option("--quick", "with --measure: in seconds, and roughly")
    .option(
      "--redis <url>",
      "with --measure: measure this store, where it leaves keys for a minute (SLUICE_REDIS_URL, default: one is started)",
    )
    .option("--estimates", "also compare estimates of earlier designs")
    .option("--json", "print one JSON document")
    .addHelpText("after", help)
    .action(async (flags: CapacityFlags) => finish(await capacity(flags, world)));
}

const help = `
Numbers may be written 250, 100k, 1.5M or 2G; shares 80% or 0.8; sizes 512MiB or 8GiB.
docs/capacity.md explains the model. CPU time of a check by transport, in µs: ${transports
  .map((one) => `${one} ${transportFigures[one].server_us_per_check}`)
  .join(", ")}.

Examples:
  sluice capacity --rate 20k --limits 2 --subjects 500k
  sluice capacity --rate 1M --limits 3 --leases 80% --zones 3 --regions 2 --json
  sluice capacity --rate 50k --transport http --measure --redis redis://127.0.0.1:6379

Exit codes: 0 computed; 2 wrong usage, or it could not be done.`;
