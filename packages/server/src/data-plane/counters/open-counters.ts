import { HotKeys, MemoryCounters } from "sluice";
import type { RateLimitsRuntime } from "sluice/policy-text";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { SettingError } from "../../settings/parse-settings.ts";
import type { Settings } from "../../settings/settings.ts";
import { addStrongCounters } from "./add-strong-counters.ts";
import { openRedisCounters } from "./open-redis-counters.ts";
import { type CountersPlan, planCounters } from "./plan-counters.ts";
import type { RunningCounters } from "./running-counters.ts";

export interface OpenCountersOptions {
  readonly settings: Settings;
  /** The `runtime` block of the policy files. */
  readonly runtime: RateLimitsRuntime | undefined;
  readonly log: Logger;
}

/** Opens counters in memory or on servers. Unreachable servers are connected to in the background. */
export async function openCounters(options: OpenCountersOptions): Promise<RunningCounters> {
  return addStrongCounters(await openOrdinaryCounters(options), options.settings, options.log);
}

async function openOrdinaryCounters({ settings, runtime, log }: OpenCountersOptions): Promise<RunningCounters> {
  const plan = planCounters(settings, runtime);
  logIdle(log, settings, plan);
  const hotKeys = new HotKeys();
  if (plan.kind === "redis") return openRedisCounters(plan, settings, log, hotKeys);
  if (settings.redisCells !== undefined)
    throw new SettingError(
      ["redisCells"],
      "gives some counters separate servers, but nothing says where the others are; set SLUICE_REDIS_URL",
    );
  return openMemoryCounters(settings, log, hotKeys);
}

/** Reports settings in policy files that have no effect here. */
function logIdle(log: Logger, { config: path }: Settings, { kind, idle }: CountersPlan): void {
  if (idle.length === 0) return;
  const why = kind === "memory" ? "counters are in this process's memory" : "options or variables say otherwise";
  log.warn("counters.settings_ignored", { path, settings: idle, why });
}

function openMemoryCounters(settings: Settings, log: Logger, hotKeys: HotKeys): RunningCounters {
  const { maxCounters, maxCounterBytes: maxBytes = defaultCounterBytes(process.constrainedMemory()) } = settings;
  const store = new MemoryCounters({ maxCounters, maxBytes, hotKeys });
  return {
    store,
    hotKeys,
    where: "memory",
    stats: { counters: () => ({ ...store.stats, maxCounters }) },
    status: () => undefined,
    async refresh(runtime): Promise<void> {
      if (planCounters(settings, runtime).kind === "redis") log.warn("counters.servers_added");
    },
    drain: async () => undefined,
    stop(): void {},
  };
}

const mostCounterBytes = 256 * 1024 * 1024;

/**
 * The memory that counters may take if no setting says so. In a container it is at most a quarter of the container's:
 * a bound that the kernel enforces by ending the process is none. `limitBytes` is 0 or enormous where there is no limit.
 */
export function defaultCounterBytes(limitBytes: number): number {
  return limitBytes > 0 ? Math.min(mostCounterBytes, Math.floor(limitBytes / 4)) : mostCounterBytes;
}
