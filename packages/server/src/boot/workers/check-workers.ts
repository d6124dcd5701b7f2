import { availableParallelism } from "node:os";
import { planCounters } from "../../data-plane/counters/plan-counters.ts";
import { loadPolicies } from "../../data-plane/policy-files/policy-files.ts";
import { SettingError } from "../../settings/parse-settings.ts";
import type { Settings } from "../../settings/settings.ts";

/** How many processes to run: one per core if settings say `auto`. */
export function countWorkers({ workers }: Settings): number {
  return workers === 0 ? availableParallelism() : workers;
}

/** Throws a `SettingError` if several processes would each count separately. */
export async function checkWorkers(settings: Settings): Promise<void> {
  const { config, redis, redisNodes } = settings;
  if (redis !== undefined || redisNodes !== undefined) return;
  // The first worker reports policies that cannot be read; it may have others to start with.
  const loaded = config === undefined ? undefined : await loadPolicies(config).catch(() => "unreadable" as const);
  if (loaded === "unreadable" || planCounters(settings, loaded?.runtime).kind === "redis") return;
  throw refuseLocalCounters();
}

/** Why there cannot be several processes that count in memory. */
export function refuseLocalCounters(): SettingError {
  return new SettingError(
    ["workers"],
    "counters in memory belong to one process, so that several would each allow the whole limit; set SLUICE_REDIS_URL " +
      "(--redis) for counters that processes share, or use one worker",
  );
}
