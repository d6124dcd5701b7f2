import { setTimeout as sleep } from "node:timers/promises";
import { createLimiter, type Limiter, MemoryCounters, parsePolicies } from "sluice";
import { createDecide } from "./decide.ts";
import { type LoadedPolicies, loadPolicies } from "./policy-files.ts";
import { createPolicyReloader, logWarnings, type PolicyReloader } from "./policy-reloader.ts";
import type { Settings } from "./settings.ts";
import type { Logger } from "./telemetry/logger.ts";
import { createMetrics } from "./telemetry/metrics.ts";
import { createHttpServer } from "./transports/http/server.ts";
import { version } from "./version.ts";
import type { WatchOptions } from "./watch-policy-files.ts";

/** A running server. */
export interface Daemon {
  /** Where it listens: `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly limiter: Limiter;
  /** Reads the policy files again, as after SIGHUP. */
  reload(): Promise<void>;
  /**
   * Is not ready any more, after `drainMs` stops accepting, finishes what is in flight, and closes everything. Asked
   * again, it is the same closing.
   */
  close(): Promise<void>;
}

export interface DaemonOptions {
  readonly settings: Settings;
  readonly log: Logger;
  readonly watch?: WatchOptions;
  /** Whether metrics tell of the process as well. */
  readonly processMetrics?: boolean;
  /** How long requests in flight may take to finish. */
  readonly closeWithinMs?: number;
  /** Waits for so many milliseconds. Absent: by the machine's clock. */
  readonly pause?: (ms: number) => Promise<unknown>;
}

/** Loads policies, builds the limiter and listens. Throws `invalid_policies` with every problem, or why it cannot listen. */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const { settings, log, closeWithinMs = 10_000, pause = sleep } = options;
  const loaded = settings.config === undefined ? withoutFiles() : await loadPolicies(settings.config);
  const counters = new MemoryCounters({ maxCounters: settings.maxCounters, maxBytes: settings.maxCounterBytes });
  const limiter = createLimiter({
    policies: loaded.policySet,
    counters,
    ipv6PrefixBits: settings.ipv6PrefixBits,
    ...previewCacheOf(loaded),
  });
  const metrics = createMetrics({
    version,
    process: options.processMetrics ?? false,
    sources: {
      counters: () => ({ ...counters.stats, maxCounters: settings.maxCounters }),
      generation: () => limiter.snapshot.generation,
    },
  });
  metrics.usePolicies(loaded.policySet);
  let accepting = true;
  let reloader: PolicyReloader | undefined;
  const http = createHttpServer(
    {
      limiter,
      decide: createDecide(limiter, metrics),
      metrics,
      log,
      accepting: () => accepting,
      policyStatus: () => reloader?.status ?? { state: "current", problems: [] },
      idempotencyHeader: settings.idempotencyHeader,
      random: settings.retryJitter ? Math.random : undefined,
      version,
    },
    { host: settings.host, port: settings.httpPort, maxConnections: settings.maxConnections },
  );

  async function close(): Promise<void> {
    accepting = false;
    // Load balancers see /readyz fail and send their requests elsewhere before connections do fail.
    if (settings.drainMs > 0) await pause(settings.drainMs);
    reloader?.close();
    const cut = await http.close(closeWithinMs);
    if (cut > 0) log.warn({ connections: cut }, "some requests did not finish in time and were cut off");
    await limiter.close();
  }

  const url = await http.listen();
  if (settings.config !== undefined) {
    const { config: path } = settings;
    logWarnings(log, path, loaded.warnings);
    logIdleSettings(log, path, loaded);
    const watch = options.watch === undefined ? {} : { watch: options.watch };
    reloader = await createPolicyReloader({ path, loaded, limiter, log, metrics, ...watch });
  }
  let closing: Promise<void> | undefined;
  return {
    url,
    limiter,
    reload: async () => reloader?.reload(),
    close: () => (closing ??= close()),
  };
}

/** Nothing but the default policy. */
function withoutFiles(): LoadedPolicies {
  return { policySet: parsePolicies({ policies: [] }), warnings: [], dialects: [], digest: "" };
}

/** A file in the rate_limits format may switch the read cache off. */
function previewCacheOf({ runtime }: LoadedPolicies): { readonly previewCacheMs?: number } {
  return runtime?.enableReadCache === false ? { previewCacheMs: 0 } : {};
}

/** Settings for counters elsewhere mean nothing while counters are in memory; who wrote them should know. */
function logIdleSettings(log: Logger, path: string, { runtime }: LoadedPolicies): void {
  const idle = (["redis", "healthCheck"] as const).filter((name) => runtime?.[name] !== undefined);
  if (idle.length > 0)
    log.warn({ path, settings: idle }, "counters are in this process's memory, so these have no effect");
}
