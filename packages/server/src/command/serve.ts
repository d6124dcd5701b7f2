import cluster from "node:cluster";
import { relative } from "node:path";
import { type CheckRequest, createLimiter, ManualClock, MemoryCounters, type PolicySet, type Problem } from "sluice";
import { type Addresses, listEndpoints } from "../boot/create-transports.ts";
import { type Daemon, startDaemon } from "../boot/daemon.ts";
import { exampleCheck } from "../boot/example-check.ts";
import type { HangUp, Signals } from "../boot/signals.ts";
import { checkWorkers, countWorkers } from "../boot/workers/check-workers.ts";
import { joinWorkers } from "../boot/workers/join-workers.ts";
import type { Announcement } from "../boot/workers/messages.ts";
import { startWorkers, type WorkersOptions } from "../boot/workers/start-workers.ts";
import { withFields } from "../boot/workers/with-fields.ts";
import type { FirstToken } from "../control-plane/node/join-store.ts";
import { countPolicies } from "../data-plane/policy-files/count-policies.ts";
import { ListenError } from "../data-plane/transports/door.ts";
import { clearSocketPath } from "../data-plane/transports/door-socket-path.ts";
import { createLogger, type Logger, type TextOutput } from "../observe/telemetry/logger.ts";
import type { WorkerLink } from "../observe/worker-link.ts";
import { protocols } from "../protocol.ts";
import { renderSettingProblems } from "../settings/parse-settings.ts";
import { type Settings, settingsTable } from "../settings/settings.ts";
import { version } from "../version.ts";
import { CommandFailure } from "./command-failure.ts";
import { createNotifier, type NotifyEnvironment } from "./notify-systemd.ts";

/** Where a server writes: its greeting and its log to stdout, what is worse to stderr. */
export interface ServeTerminal {
  readonly stdout: TextOutput & { readonly isTTY?: boolean | undefined };
  readonly stderr: TextOutput;
}

export interface ServeOptions {
  readonly settings: Settings;
  readonly warnings: readonly Problem[];
  readonly terminal: ServeTerminal;
  readonly signals: Signals;
  readonly hangUp?: HangUp | undefined;
  /** What systemd passes to its services. */
  readonly env: NotifyEnvironment;
}

/**
 * `sluice serve`: serves until SIGTERM or SIGINT, or until its terminal is gone; elsewhere SIGHUP reloads. A second signal
 * ends it without waiting. Where several processes are wanted, this one starts them and serves nothing itself.
 */
export async function serve({
  settings,
  warnings,
  terminal,
  signals,
  hangUp = "reload",
  env,
}: ServeOptions): Promise<0 | 2> {
  const log = createLogger({
    level: settings.logLevel,
    format: settings.logFormat,
    hashSubjects: settings.logHashSubjects,
    ...terminal,
  });
  const count = countWorkers(settings);
  const isTerminal = terminal.stdout.isTTY === true;
  if (cluster.isWorker && settings.workers !== 1) return serveAsWorker({ settings, log, isTerminal }, signals);
  const problems = settings.logFormat === "text" ? renderSettingProblems(warnings).split("\n") : warnings;
  if (warnings.length > 0) log.warn("server.setting_warnings", { problems });
  const notifier = createNotifier(settings, env, log);
  const announce = ({ fields, greeting }: Announcement): void => {
    log.info("server.listening", fields);
    notifier.ready(`Sluice ${version}: ${fields.policies} policies, counters in ${fields.counters}`);
    if (settings.logFormat === "text") terminal.stdout.write(greeting);
  };
  const stopping = (): void => notifier.stopping();
  if (count > 1) return serveWithWorkers({ settings, count, log, announce, stopping }, signals, hangUp);
  const signal = await serveHere({ settings, log, announce, stopping, isTerminal }, signals, hangUp);
  log.info("server.stopped", { signal });
  return 0;
}

interface Serving {
  readonly settings: Settings;
  readonly log: Logger;
  readonly announce: (announcement: Announcement) => void;
  /** Called when it was asked to stop, before it does. */
  readonly stopping?: () => void;
  readonly worker?: WorkerLink;
  /** Whether a person sees the greeting, and no file does. */
  readonly isTerminal: boolean;
}

/** Resolves after a signal to stop, once stopped, with that signal. */
async function serveHere(
  { announce, stopping, isTerminal, ...serving }: Serving,
  signals: Signals,
  hangUp: HangUp,
): Promise<NodeJS.Signals> {
  const { settings } = serving;
  let daemon: Daemon | undefined;
  // Listening for signals comes first: one that arrives while policies are loaded is obeyed. `main.ts` minds those before.
  const asked = nextStop(signals, stopSignalsFor(hangUp));
  const reload = (): void => void daemon?.reload();
  if (hangUp === "reload") signals.on("SIGHUP", reload);
  daemon = await startDaemon({ ...serving, processMetrics: true }).catch((error: unknown) => {
    throw asFailure(error, settings);
  });
  announce(renderAnnouncement(daemon, settings, isTerminal));

  const signal = await asked;
  stopping?.();
  // A terminal that is gone is in no hurry, and the process that started us may pass the news on as a SIGTERM.
  await Promise.race(signal === "SIGHUP" ? [daemon.close()] : [daemon.close(), nextStop(signals, stopSignals)]);
  signals.off("SIGHUP", reload);
  return signal;
}

/** The first token and the link are shown in a terminal alone: what is written anywhere else is kept, and read by others. */
function renderAnnouncement(daemon: Daemon, { config }: Settings, isTerminal: boolean): Announcement {
  const { limiter, addresses, countersAt: counters, storeAt: store, firstToken, consoleAt } = daemon;
  const { policySet } = limiter.snapshot;
  const consoleLink = isTerminal ? daemon.makeConsoleLink() : undefined;
  return {
    fields: { ...addresses, policies: countPolicies(policySet), path: config, store, counters, version },
    greeting: renderGreeting(addresses, config, policySet, counters, {
      ...{ store, firstToken, consoleAt, consoleLink, isTerminal },
    }),
  };
}

/** One of several processes. It minds what the first one says; signals of the system reach that one as well. */
async function serveAsWorker(
  { settings, log, isTerminal }: Omit<Serving, "announce" | "worker">,
  signals: Signals,
): Promise<0 | 2> {
  for (const signal of stopSignalsFor("stop")) signals.on(signal, () => {});
  const worker = await joinWorkers();
  const { announce } = worker;
  await serveHere(
    { settings, log: withFields(log, { worker: worker.number }), announce, worker, isTerminal },
    worker.signals,
    "reload",
  );
  worker.leave();
  return 0;
}

async function serveWithWorkers(
  options: WorkersOptions & Pick<Serving, "stopping">,
  signals: Signals,
  hangUp: HangUp,
): Promise<0 | 2> {
  const { settings, count, log, announce, stopping } = options;
  const asked = nextStop(signals, stopSignalsFor(hangUp));
  await checkWorkers(settings);
  // Sockets are made by this process, and this is what they are made with: owner and group may connect.
  process.umask(0o117);
  for (const protocol of protocols) {
    for (const endpoint of listEndpoints(protocol, settings)) {
      if (endpoint.kind !== "socket") continue;
      await clearSocketPath(endpoint.path).catch((error: unknown) => {
        throw asFailure(new ListenError(protocol, endpoint, error), settings);
      });
    }
  }
  const workers = startWorkers({
    settings,
    count,
    log,
    announce: ({ fields, greeting }) => announce({ fields: { ...fields, workers: count }, greeting }),
  });
  const reload = (): void => workers.reload();
  if (hangUp === "reload") signals.on("SIGHUP", reload);
  let signal: NodeJS.Signals | undefined;
  void asked.then(async (first) => {
    signal = first;
    stopping?.();
    workers.stop(first);
    if (first === "SIGHUP") return;
    workers.stop(await nextStop(signals, stopSignals));
    workers.stop(await nextStop(signals, stopSignals));
  });
  const end = await workers.ended;
  signals.off("SIGHUP", reload);
  if (end.kind === "stopped") log.info("server.stopped", { signal });
  if (end.kind === "given up")
    throw new CommandFailure("the workers end as soon as they start, and are not started again; see above for why");
  return end.kind === "failed at start" ? 2 : 0;
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

function stopSignalsFor(hangUp: HangUp): readonly NodeJS.Signals[] {
  return hangUp === "stop" ? [...stopSignals, "SIGHUP"] : stopSignals;
}

interface GreetingOptions {
  readonly store?: string | undefined;
  readonly firstToken?: FirstToken | undefined;
  readonly consoleAt?: string | undefined;
  /** A link that signs in to the console once. */
  readonly consoleLink?: string | undefined;
  /** Whether the token itself may be shown. */
  readonly isTerminal?: boolean;
}

/** What a newcomer needs to know: where it listens, where policies come from, and something to try. */
export function renderGreeting(
  addresses: Addresses,
  config: string | undefined,
  policySet: PolicySet,
  counters: string = "memory",
  { store, firstToken, consoleAt, consoleLink, isTerminal = false }: GreetingOptions = {},
): string {
  const lines = [["policies", renderSource(config, store, policySet)]];
  if (counters !== "memory") lines.push(["counters", counters]);
  // What a browser and curl can reach first; a unix socket is not a URL.
  const url = addresses.http.find((address) => address.startsWith("http"));
  if (url !== undefined)
    lines.push(
      ["decide", `POST ${url}/v1/check`],
      ["explain", `POST ${url}/v1/explain`],
      ["look", `GET  ${url}/v1/policies  /v1/status  /readyz  /livez  /metrics  /openapi.json`],
    );
  if (addresses.admin[0] !== undefined) lines.push(["control", `${addresses.admin[0]}/api/v1/policies`]);
  if (consoleAt !== undefined) lines.push(["console", consoleAt]);
  const others = [...addresses.grpc, ...addresses.resp, ...addresses.http.filter((address) => address !== url)];
  if (others.length > 0) lines.push(["also", others.join("  ")]);
  const example = url?.startsWith("http:")
    ? `
Ask it something:

  ${renderCurl(`${url}/v1/check`, exampleCheck(policySet))}
${renderHint(policySet)}`
    : "";
  return `
Sluice ${version} listens on ${url ?? others[0] ?? "nothing"}

${lines.map(([name = "", text]) => `  ${name.padEnd(11)}${text}`).join("\n")}
${consoleLink === undefined ? "" : renderConsoleLink(consoleLink)}${firstToken === undefined ? "" : renderFirstToken(firstToken, isTerminal)}${example}
`;
}

function renderSource(config: string | undefined, store: string | undefined, policySet: PolicySet): string {
  const count = countPolicies(policySet);
  const places = [
    ...(config === undefined ? [] : [`${shortPath(config)}, watched for changes`]),
    ...(store === undefined ? [] : [`the policy store ${store.replace(/(?<=^sqlite:)\/.+/, shortPath)}`]),
  ];
  if (places.length === 0) return "the default policy alone; name a policy file with --config";
  return `${count === 1 ? "1 policy" : `${count} policies`} from ${places.join(", and from ")}`;
}

function renderConsoleLink(link: string): string {
  return `
Open the console with this link. It signs you in once, within five minutes; sluice console prints another:

  ${link}
`;
}

function renderFirstToken({ token, file }: FirstToken, isTerminal: boolean): string {
  if (!isTerminal)
    return `
The first admin token of the control plane is in ${shortPath(file)}, which only the owner of this process can read.
It is not shown here, because this is not a terminal. To use it:

  export SLUICE_TOKEN=$(cat ${shellWord(shortPath(file))})
`;
  return `
This is the first admin token of the control plane. It is not shown again, and is kept in ${shortPath(file)}:

  ${token}
`;
}

/** As a shell reads it back. */
function shellWord(text: string): string {
  return /^[\w./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** How long a window must be for a person who sends requests by hand to meet its denial. */
const shortestHintedMs = 60_000;
const mostHinted = 20;

/** Where a few requests are enough to be denied, a newcomer may like to see that. It is tried before it is promised. */
function renderHint(policySet: PolicySet): string {
  const clock = new ManualClock();
  const limiter = createLimiter({ policies: policySet, clock, counters: new MemoryCounters({ clock, strong: true }) });
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

/** Why it cannot listen, in a sentence. Any other error as it is. */
function asFailure(error: unknown, { host }: Settings): unknown {
  if (!(error instanceof ListenError)) return error;
  const { protocol, endpoint, code, message } = error;
  if (endpoint.kind === "socket") {
    const reason = code === "path" ? message : (socketErrors[code] ?? `it fails with ${code || message}`);
    return new CommandFailure(`cannot listen on ${endpoint.path}: ${reason}`);
  }
  const { flag, env } = settingsTable[portSettings[protocol]];
  const another = `choose another with ${flag} or ${env} (0 takes any free one)`;
  const reason = listenErrors[code]?.(another) ?? `it fails with ${code || message}`;
  return new CommandFailure(`cannot listen on port ${endpoint.port} of ${host}: ${reason}`);
}

const portSettings = { http: "httpPort", grpc: "grpcPort", resp: "respPort", admin: "adminPort" } as const;

const listenErrors: Readonly<Record<string, (another: string) => string>> = {
  EADDRINUSE: (another) => `something else listens there already. Stop it, or ${another}`,
  EACCES: (another) => `ports below 1024 need a privilege that this process lacks; ${another}`,
  EADDRNOTAVAIL: () => "this machine has no such address; choose one with --host or SLUICE_HOST",
  ENOTFOUND: () => "there is no such host; choose one with --host or SLUICE_HOST",
};

const socketErrors: Readonly<Record<string, string>> = {
  EACCES: "this process may not make a file there",
  ENOENT: "there is no such folder",
  EADDRINUSE: "another process listens there already; stop it, or choose another path",
};
