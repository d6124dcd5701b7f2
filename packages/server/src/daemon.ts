import { setTimeout as sleep } from "node:timers/promises";
import { createLimiter, type Limiter, parsePolicies } from "sluice";
import type { ParsedPolicyFiles } from "sluice/policy-text";
import { openCounters } from "./counters/open-counters.ts";
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
  /** Where counters are: `memory`, or the servers' address without user and password. */
  readonly countersAt: string;
  /** Reads the policy files again, and certificates for counter servers, as after SIGHUP. */
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

/**
 * Loads policies, opens counters, builds the limiter and listens. Throws `invalid_policies` with every problem, a
 * `SettingError`, or why it cannot listen. Counter servers that cannot be reached do not keep it from starting.
 */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const { settings, log, closeWithinMs = 10_000, pause = sleep } = options;
  const loaded = settings.config === undefined ? withoutFiles() : await loadPolicies(settings.config);
  let { runtime } = loaded;
  const counters = await openCounters({ settings, runtime, log });
  const limiter = createLimiter({
    policies: loaded.policySet,
    counters: counters.store,
    ipv6PrefixBits: settings.ipv6PrefixBits,
    ...previewCacheOf(loaded, counters.store.local),
  });
  const metrics = createMetrics({
    version,
    process: options.processMetrics ?? false,
    sources: { ...counters.figures, generation: () => limiter.snapshot.generation },
  });
  metrics.usePolicies(loaded.policySet);
  let accepting = true;
  let reloader: PolicyReloader | undefined;
  let refreshing: Promise<void> | undefined;
  const http = createHttpServer(
    {
      limiter,
      decide: createDecide(limiter, metrics),
      metrics,
      log,
      accepting: () => accepting,
      policyStatus: () => reloader?.status ?? { state: "current", problems: [] },
      countersStatus: () => counters.status(),
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
    counters.stop();
    await limiter.close();
  }

  const url = await http.listen().catch(async (error: unknown) => {
    counters.stop();
    await limiter.close();
    throw error;
  });
  if (settings.config !== undefined) {
    const { config: path } = settings;
    logWarnings(log, path, loaded.warnings);
    const watch = options.watch === undefined ? {} : { watch: options.watch };
    const onTakenUp = (parsed: ParsedPolicyFiles): void => {
      runtime = parsed.runtime;
      refreshing = counters.refresh(runtime);
    };
    reloader = await createPolicyReloader({ path, loaded, limiter, log, metrics, onTakenUp, ...watch });
  }
  let closing: Promise<void> | undefined;
  return {
    url,
    limiter,
    get countersAt(): string {
      return counters.where;
    },
    async reload(): Promise<void> {
      refreshing = undefined;
      await reloader?.reload();
      await (refreshing ?? counters.refresh(runtime));
    },
    close: () => (closing ??= close()),
  };
}

/** Nothing but the default policy. */
function withoutFiles(): LoadedPolicies {
  return { policySet: parsePolicies({ policies: [] }), warnings: [], dialects: [], digest: "" };
}

/** A file in the rate_limits format may switch the read cache off, or have it forget sooner. */
function previewCacheOf({ runtime = {} }: LoadedPolicies, local: boolean): { readonly previewCacheMs?: number } {
  if (runtime.enableReadCache === false) return { previewCacheMs: 0 };
  return local || runtime.readCacheTtlMs === undefined ? {} : { previewCacheMs: runtime.readCacheTtlMs };
}
