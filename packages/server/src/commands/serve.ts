import { relative } from "node:path";
import type { CheckRequest, PolicySet } from "sluice";
import { type Daemon, startDaemon } from "../daemon.ts";
import { exampleCheck, isExemplary } from "../example-check.ts";
import type { Settings } from "../settings.ts";
import { createLogger } from "../telemetry/logger.ts";
import { version } from "../version.ts";
import { CommandError, type ExitCode, type Terminal } from "./terminal.ts";

/** The part of `process` that tells of signals. */
export interface Signals {
  on(signal: NodeJS.Signals, listener: () => void): unknown;
  off(signal: NodeJS.Signals, listener: () => void): unknown;
}

/** `sluice serve`: serves until SIGTERM or SIGINT; SIGHUP reloads. A second signal ends it without waiting. */
export async function serve(settings: Settings, terminal: Terminal, signals: Signals): Promise<ExitCode> {
  const log = createLogger({ level: settings.logLevel, format: settings.logFormat, ...terminal });
  let daemon: Daemon | undefined;
  // Listening for signals comes first: one that arrives while we start is obeyed, not died of.
  const asked = nextStop(signals);
  const reload = (): void => void daemon?.reload();
  signals.on("SIGHUP", reload);
  daemon = await startDaemon({ settings, log, processMetrics: true }).catch((error: unknown) => {
    throw asListenError(error, settings);
  });
  const { policySet } = daemon.limiter.snapshot;
  log.info({ url: daemon.url, policies: policySet.policies.length, path: settings.config, version }, "listening");
  if (settings.logFormat === "text") terminal.stdout.write(renderGreeting(daemon.url, settings.config, policySet));

  const signal = await asked;
  await Promise.race([daemon.close(), nextStop(signals)]);
  signals.off("SIGHUP", reload);
  log.info({ signal }, "stopped");
  return 0;
}

/** Resolves at the next signal to stop, with the signal. */
function nextStop(signals: Signals): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    const listen =
      (signal: NodeJS.Signals): (() => void) =>
      () => {
        for (const [name, listener] of listeners) signals.off(name, listener);
        resolve(signal);
      };
    const listeners = stopSignals.map((signal) => [signal, listen(signal)] as const);
    for (const [name, listener] of listeners) signals.on(name, listener);
  });
}

const stopSignals = ["SIGTERM", "SIGINT"] as const;

/** What a newcomer needs to know: where it listens, where policies come from, and something to try. */
export function renderGreeting(url: string, config: string | undefined, policySet: PolicySet): string {
  const count = policySet.policies.length === 1 ? "1 policy" : `${policySet.policies.length} policies`;
  const source =
    config === undefined
      ? "the default policy alone; name a policy file with --config"
      : `${count} from ${shortPath(config)}, watched for changes`;
  return `
Sluice ${version} listens on ${url}

  policies   ${source}
  decide     POST ${url}/v1/check
  explain    POST ${url}/v1/explain
  look       GET  ${url}/v1/policies  /readyz  /livez  /metrics  /openapi.json

Ask it something:

  ${renderCurl(`${url}/v1/check`, exampleCheck(policySet))}
${renderHint(policySet)}
`;
}

/** Where a few requests are enough to be denied, a newcomer may like to see that. */
function renderHint({ policies }: PolicySet): string {
  const smallest = policies.find(isExemplary)?.limits.flatMap(({ windows }) => windows.map(({ burst }) => burst)) ?? [];
  const most = Math.floor(Math.min(...smallest));
  return most <= 20 ? `\nAfter ${most === 1 ? "once" : `${most} times`} it is denied, with 429 and the reason.\n` : "";
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
