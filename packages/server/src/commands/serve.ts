import { relative } from "node:path";
import { type CheckRequest, createLimiter, ManualClock, type PolicySet, type Problem } from "sluice";
import { type Daemon, startDaemon } from "../daemon.ts";
import type { HangUp, Signals } from "../early-signals.ts";
import { exampleCheck } from "../example-check.ts";
import type { Settings } from "../settings.ts";
import { createLogger } from "../telemetry/logger.ts";
import { version } from "../version.ts";
import { CommandError, type ExitCode, type Terminal } from "./terminal.ts";

/**
 * `sluice serve`: serves until SIGTERM or SIGINT, or until its terminal is gone; elsewhere SIGHUP reloads. A second signal
 * ends it without waiting.
 */
export async function serve(
  settings: Settings,
  warnings: readonly Problem[],
  terminal: Terminal,
  signals: Signals,
  hangUp: HangUp = "reload",
): Promise<ExitCode> {
  const log = createLogger({ level: settings.logLevel, format: settings.logFormat, ...terminal });
  if (warnings.length > 0) log.warn({ problems: warnings }, "the settings are legal, but may surprise");
  let daemon: Daemon | undefined;
  // Listening for signals comes first: one that arrives while policies are loaded is obeyed. `main.ts` minds those before.
  const asked = nextStop(signals, hangUp === "stop" ? [...stopSignals, "SIGHUP"] : stopSignals);
  const reload = (): void => void daemon?.reload();
  if (hangUp === "reload") signals.on("SIGHUP", reload);
  daemon = await startDaemon({ settings, log, processMetrics: true }).catch((error: unknown) => {
    throw asListenError(error, settings);
  });
  const { policySet } = daemon.limiter.snapshot;
  const { url, countersAt: counters } = daemon;
  log.info({ url, policies: policySet.policies.length, path: settings.config, counters, version }, "listening");
  if (settings.logFormat === "text") terminal.stdout.write(renderGreeting(url, settings.config, policySet, counters));

  const signal = await asked;
  // Nobody is in a hurry in a terminal that is gone, and what started us may hand the news on as a SIGTERM.
  await Promise.race(signal === "SIGHUP" ? [daemon.close()] : [daemon.close(), nextStop(signals, stopSignals)]);
  signals.off("SIGHUP", reload);
  log.info({ signal }, "stopped");
  return 0;
}

/** Resolves at the next of these signals, with the signal. */
function nextStop(signals: Signals, names: readonly NodeJS.Signals[]): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    const listen =
      (signal: NodeJS.Signals): (() => void) =>
      () => {
        for (const [name, listener] of listeners) signals.off(name, listener);
        resolve(signal);
      };
    const listeners = names.map((signal) => [signal, listen(signal)] as const);
    for (const [name, listener] of listeners) signals.on(name, listener);
  });
}

const stopSignals: readonly NodeJS.Signals[] = ["SIGTERM", "SIGINT"];

/** What a newcomer needs to know: where it listens, where policies come from, and something to try. */
export function renderGreeting(
  url: string,
  config: string | undefined,
  policySet: PolicySet,
  counters: string = "memory",
): string {
  const count = policySet.policies.length === 1 ? "1 policy" : `${policySet.policies.length} policies`;
  const source =
    config === undefined
      ? "the default policy alone; name a policy file with --config"
      : `${count} from ${shortPath(config)}, watched for changes`;
  return `
Sluice ${version} listens on ${url}

  policies   ${source}${counters === "memory" ? "" : `\n  counters   ${counters}`}
  decide     POST ${url}/v1/check
  explain    POST ${url}/v1/explain
  look       GET  ${url}/v1/policies  /readyz  /livez  /metrics  /openapi.json

Ask it something:

  ${renderCurl(`${url}/v1/check`, exampleCheck(policySet))}
${renderHint(policySet)}
`;
}

/** So long must a window be for its denial to be met by who sends requests by hand. */
const shortestHintedMs = 60_000;
const mostHinted = 20;

/** Where a few requests are enough to be denied, a newcomer may like to see that. It is tried before it is promised. */
function renderHint(policySet: PolicySet): string {
  const limiter = createLimiter({ policies: policySet, clock: new ManualClock() });
  const check = exampleCheck(policySet);
  for (let times = 0; times <= mostHinted; times++) {
    const { allowed, window } = limiter.checkSync(check);
    if (allowed) continue;
    if (times === 0 || window === undefined) return "";
    if (window.per.kind === "ms" && window.per.ms < shortestHintedMs) return "";
    return `\nAfter ${times === 1 ? "once" : `${times} times`} it is denied, with 429 and the reason.\n`;
  }
  return "";
}

export function renderCurl(url: string, check: CheckRequest): string {
  const body = JSON.stringify(check).replaceAll("'", "'\\''");
  return `curl -i ${url} -H 'content-type: application/json' \\\n    -d '${body}'`;
}

function shortPath(path: string): string {
  const short = relative("", path);
  return short === "" || short.startsWith("..") ? path : short;
}

function asListenError(error: unknown, { host, httpPort }: Settings): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (syscall !== "listen" && syscall !== "getaddrinfo") return error;
  const reason = listenErrors[code ?? ""] ?? `it fails with ${code}`;
  return new CommandError(`cannot listen on port ${httpPort} of ${host}: ${reason}`);
}

const another = "choose another with --port or SLUICE_HTTP_PORT (0 takes any free one)";

const listenErrors: Readonly<Record<string, string>> = {
  EADDRINUSE: `something else listens there already. Stop it, or ${another}`,
  EACCES: `ports below 1024 need a privilege that this process lacks; ${another}`,
  EADDRNOTAVAIL: "this machine has no such address; choose one with --host or SLUICE_HOST",
  ENOTFOUND: "there is no such host; choose one with --host or SLUICE_HOST",
};
