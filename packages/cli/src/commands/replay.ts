import { connect } from "@sluice/client/http";
import type { SimulatedRequest } from "@sluice/simulate";
import {
  type LogFormat,
  type LogSource,
  LogUnreadable,
  parseFieldMap,
  type ReadLogs,
  readLogs,
} from "@sluice/simulate/logs";
import { renderCount, renderShare } from "@sluice/simulate/report";
import type { Command } from "commander";
import { isLoopback, printable, systemClock } from "sluice/internal";
import type { Environment, ServerFlags } from "../arguments/find-token.ts";
import { parseDurationFlag } from "../arguments/parse-time.ts";
import { askingOptions } from "../control/control-command.ts";
import type { Signals } from "../early-signals.ts";
import { findServer, type ServerOptions } from "../server/ask-server.ts";
import { createProgressLine } from "../terminal/progress-line.ts";
import { renderSpan } from "../terminal/render-time.ts";
import { CommandError, type ExitCode, type Terminal } from "../terminal/terminal.ts";
import { renderJson } from "../terminal/write-json.ts";
import { addLogOptions, openLogs } from "./open-logs.ts";
import { type PlayedTraffic, TrafficPlayer } from "./traffic-player.ts";

export interface ReplayOptions extends ServerFlags {
  readonly speed?: string;
  readonly allowRemote?: string;
  readonly maxInFlight?: string;
  readonly maxRate?: string;
  readonly maxRequests?: string;
  readonly for?: string;
  readonly format?: LogFormat;
  readonly map?: readonly string[];
  readonly domain?: string;
  readonly dryRun?: boolean;
}

export interface ReplayWorld {
  readonly env: Environment;
  readonly terminal: Terminal;
  readonly signals: Signals;
}

const stopSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** Replays are for measuring: an answer that takes longer than callers would wait is still counted. */
const deadlineMs = 10_000;

/** `sluice replay`: sends recorded requests to a live server, in their time. */
export async function replayTraffic(
  logs: readonly string[],
  options: ReplayOptions,
  world: ReplayWorld,
): Promise<ExitCode> {
  const { terminal, env } = world;
  const bounds = readBounds(options);
  const server = await findServer(options, env, terminal);
  refuseRemote(server, options.allowRemote);
  const sources = await openLogs(logs, terminal);
  try {
    if (options.dryRun === true) return await planReplay(sources, options, bounds.speed, server, terminal);
    const { played, read } = await play(sources, options, bounds, server, world);
    if (options.json === true) terminal.stdout.write(`${renderJson({ server: server.server, ...played }, 2)}\n`);
    else terminal.stdout.write(renderPlayed(played, read));
    return played.ended === "interrupted" ? 1 : 0;
  } catch (error) {
    if (error instanceof RangeError || error instanceof LogUnreadable) throw new CommandError(error.message);
    throw error;
  }
}

interface Bounds {
  readonly speed: number;
  readonly maxInFlight: number;
  readonly maxPerSecond: number;
  readonly maxRequests: number;
  readonly maxMs: number;
}

function readBounds(options: ReplayOptions): Bounds {
  const { speed = "1x", maxInFlight = "256", maxRate = "10000", maxRequests = "10000000" } = options;
  return {
    speed: parseSpeed(speed),
    maxInFlight: parseWhole("--max-in-flight", maxInFlight, 10_000),
    maxPerSecond: parseWhole("--max-rate", maxRate, 1_000_000),
    maxRequests: parseWhole("--max-requests", maxRequests, 1_000_000_000),
    maxMs: parseDurationFlag("--for", options.for ?? "1h", { leastMs: 1_000, mostMs: 7 * 86_400_000 }),
  };
}

function parseSpeed(text: string): number {
  if (text === "max") return Number.POSITIVE_INFINITY;
  const speed = /^\d+(\.\d+)?x$/.test(text) ? Number(text.slice(0, -1)) : Number.NaN;
  if (speed >= 0.001 && speed <= 100_000) return speed;
  throw new CommandError(`--speed is ${JSON.stringify(text)}; it should be such as 1x, 10x or 0.5x, or max`);
}

function parseWhole(flag: string, text: string, most: number): number {
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (number >= 1 && number <= most) return number;
  throw new CommandError(`${flag} is ${JSON.stringify(text)}; it should be a whole number from 1 to ${most}`);
}

/** A replay spends real limits. Beyond this machine, the caller writes out whose. */
function refuseRemote({ server }: ServerOptions, allowed: string | undefined): void {
  const host = URL.canParse(server) ? new URL(server).hostname : "";
  if (host === "")
    throw new CommandError(`--server ${JSON.stringify(server)} should be a URL such as http://127.0.0.1:8080`);
  if (isLoopback(host)) return;
  if (allowed === host) return;
  const said = allowed === undefined ? "" : ` --allow-remote says ${allowed}.`;
  throw new CommandError(
    `${server} is not on this machine.${said} A replay spends the limits of the recorded callers, and loads the server; if you mean it, add --allow-remote ${host}`,
  );
}

async function play(
  sources: readonly LogSource[],
  { format, map, domain, json }: ReplayOptions,
  bounds: Bounds,
  { server, token, ca }: ServerOptions,
  { terminal, signals }: ReplayWorld,
): Promise<{ readonly played: PlayedTraffic; readonly read: ReadLogs }> {
  const ending = new AbortController();
  const stop = (): void => ending.abort();
  for (const signal of stopSignals) signals.on(signal, stop);
  const limiter = connect(server, {
    ...{ token, deadlineMs, leases: false, maxWaiting: bounds.maxInFlight },
    ...(ca !== undefined && { tls: { ca } }),
  });
  const line = createProgressLine(terminal.stderr);
  const isShown = terminal.stderr.isTTY === true && json !== true;
  const player = new TrafficPlayer({
    ...bounds,
    check: ({ dimensions, cost, domain: own = domain, policies }) =>
      limiter.check({ dimensions, ...(cost !== undefined && { cost }), domain: own, policies }),
    clock: systemClock,
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    signal: ending.signal,
    onProgress: isShown ? (played) => line.show(renderProgress(played)) : undefined,
  });
  try {
    const playing = player.play();
    const add = (request: SimulatedRequest): void => {
      // Requests that were decided together are sent one by one: a check is about one.
      for (const part of request.together ?? [request]) player.add({ ...part, wasDenied: request.wasDenied });
    };
    const reading = { format, map: parseFieldMap(map ?? []), whenReady: () => player.whenReady() };
    const read = await readLogs(sources, add, reading).finally(() => player.finish());
    return { played: await playing, read };
  } finally {
    for (const signal of stopSignals) signals.off(signal, stop);
    ending.abort();
    await limiter.close();
    if (isShown) line.end();
  }
}

/** What would be sent, without sending it. */
async function planReplay(
  sources: readonly LogSource[],
  { format, map, json }: ReplayOptions,
  speed: number,
  { server }: ServerOptions,
  { stdout }: Terminal,
): Promise<ExitCode> {
  let [requests, firstMs, lastMs, second, inSecond, peak] = [0, 0, 0, Number.NaN, 0, 0];
  await readLogs(
    sources,
    ({ timeMs, together }) => {
      if (requests === 0) firstMs = timeMs;
      lastMs = timeMs;
      requests += together?.length ?? 1;
      const at = Math.floor(timeMs / 1000);
      inSecond = at === second ? inSecond + 1 : 1;
      second = at;
      peak = Math.max(peak, inSecond);
    },
    { format, map: parseFieldMap(map ?? []) },
  );
  const span_ms = Math.round(lastMs - firstMs);
  const takes_ms = speed === Number.POSITIVE_INFINITY ? 0 : Math.round(span_ms / speed);
  const peak_per_second = speed === Number.POSITIVE_INFINITY ? undefined : Math.round(peak * speed);
  if (json === true)
    stdout.write(`${renderJson({ server, dry_run: true, requests, span_ms, takes_ms, peak_per_second }, 2)}\n`);
  else
    stdout.write(
      `${renderCount(requests)} requests over ${renderSpan(span_ms)} would be sent to ${printable(server)}${
        peak_per_second === undefined
          ? " as fast as the bounds allow"
          : ` in ${renderSpan(takes_ms)}, up to ${renderCount(peak_per_second)} a second`
      }. Nothing was sent.\n`,
    );
  return 0;
}

function renderProgress({ sent, allowed, denied, late, elapsed_ms }: PlayedTraffic): string {
  return `${renderCount(sent)} sent in ${renderSpan(elapsed_ms)}: ${renderCount(allowed)} allowed, ${renderCount(denied)} denied, ${renderCount(late)} late`;
}

const endings: Readonly<Record<PlayedTraffic["ended"], string>> = {
  "all sent": "Everything was sent",
  interrupted: "Interrupted: this was sent so far",
  count: "Ended at --max-requests",
  time: "Ended at --for",
};

function renderPlayed(played: PlayedTraffic, { unreadable, late }: ReadLogs): string {
  const { sent, allowed, denied, degraded, failed, lag_ms, latency_ms, compared, agreed, elapsed_ms } = played;
  const rate = elapsed_ms === 0 ? 0 : (sent * 1000) / elapsed_ms;
  const lines = [
    `${endings[played.ended]}: ${renderCount(sent)} requests in ${renderSpan(elapsed_ms)}, ${renderCount(rate)} a second`,
    `allowed ${renderCount(allowed)}, denied ${renderCount(denied)} (${renderShare(denied, sent)})`,
    `latency p50 ${latency_ms.p50} ms, p90 ${latency_ms.p90} ms, p99 ${latency_ms.p99} ms, most ${latency_ms.max} ms`,
    `lag ${lag_ms.mean} ms on average, ${lag_ms.max} ms at most; ${renderCount(played.late)} were sent more than 100 ms late`,
    ...(compared === 0
      ? []
      : [`decided as recorded: ${renderCount(agreed)} of ${renderCount(compared)} (${renderShare(agreed, compared)})`]),
    ...(degraded === 0
      ? []
      : [`${renderCount(degraded)} were answered without counters, because those could not be asked`]),
    ...(failed === 0
      ? []
      : [`${renderCount(failed)} were refused; the first: ${printable(played.first_failure ?? "")}`]),
    ...(unreadable + late === 0
      ? []
      : [`${renderCount(unreadable + late)} lines could not be read, or were too far out of order`]),
  ];
  return `${lines.join("\n")}\n`;
}

export function addReplayCommand(program: Command, world: ReplayWorld, finish: (code: ExitCode) => void): void {
  const command = program
    .command("replay <log...>")
    .description("Send recorded requests to a live server, in their time: for load tests and game days.")
    .option("--server <url>", "the server to send them to (default http://127.0.0.1:8080, or SLUICE_SERVER)")
    .option("--speed <factor>", "how fast: 1x as recorded, 10x, 0.5x, or max (default 1x)")
    .option("--allow-remote <host>", "send to this host, which is not this machine; it must be that of --server")
    .option("--max-in-flight <number>", "how many requests wait for an answer at most (default 256)")
    .option("--max-rate <number>", "how many requests are sent in a second at most (default 10000)")
    .option("--max-requests <number>", "end after this many requests (default 10000000)")
    .option("--for <duration>", "end after this long (default 1h)");
  addLogOptions(command)
    .option("--domain <name>", "the domain that requests ask in, if the recording does not say")
    .option("--dry-run", "show what would be sent, and send nothing");
  askingOptions(command)
    .option("--json", "print one JSON document")
    .addHelpText("after", help)
    .action(async (logs: string[], options: ReplayOptions) => finish(await replayTraffic(logs, options, world)));
}

const help = `
Each log is a recording of sluice serve --record or an access log, as for sluice simulate. The server decides and charges
as for any other caller. Ctrl-C ends, and prints what was sent.

Examples:
  sluice replay requests.rec --server http://127.0.0.1:8080 --speed 10x
  sluice replay requests.rec --server https://staging.example --allow-remote staging.example --max-rate 2000
  sluice replay access.log.gz --speed max --dry-run

Exit codes: 0 done; 1 interrupted; 2 wrong usage, or it could not be done.`;
