import { createLimiter, type Limiter } from "sluice";
import { createLimiterWatch, type LimiterWatch, maxPreviewCacheMs } from "sluice/internal";
import type { OpenedStore } from "../control-plane/node/open-store.ts";
import { createPoliciesInForce, type PoliciesInForce } from "../control-plane/node/policies-in-force.ts";
import type { RunningCounters } from "../data-plane/counters/running-counters.ts";
import type { LoadedPolicies } from "../data-plane/policy-files/policy-files.ts";
import type { Logger } from "../observe/telemetry/logger.ts";
import type { Settings } from "../settings/settings.ts";
import type { RunningParts } from "./running-parts.ts";

export interface OpenLimiterOptions {
  readonly settings: Settings;
  readonly log: Logger;
  readonly loaded: LoadedPolicies;
  readonly counters: Pick<RunningCounters, "store">;
  readonly store: Pick<OpenedStore, "tallies"> | undefined;
  readonly running: Pick<RunningParts, "metrics">;
}

/** The limiter with its first policies, and the merger of those of files and store that come later. */
export function openLimiter(options: OpenLimiterOptions): {
  readonly limiter: Limiter;
  readonly policies: PoliciesInForce;
  readonly watch: LimiterWatch;
} {
  const { settings, log, loaded, counters, store, running } = options;
  const watch = createLimiterWatch();
  const limiter = createLimiter({
    policies: loaded.policySet,
    counters: counters.store,
    ipv6PrefixBits: settings.ipv6PrefixBits,
    onPreviewHit: () => running.metrics?.countPreviewHit(),
    onMissing: ({ id }, dimension) => running.metrics?.countMissing(id, dimension),
    onTrial: store?.tallies.onTrial,
    watch,
    ...findPreviewCache(loaded, counters.store.local),
  });
  const policies = createPoliciesInForce({
    limiter,
    files: loaded.policySet,
    precedence: settings.precedence,
    log,
    onUsed: (policySet) => running.metrics?.usePolicies(policySet),
  });
  return { limiter, policies, watch };
}

/**
 * A file in the rate_limits format may turn the read cache off or shorten it. Longer times, usual in that format, are
 * cut to our maximum.
 */
function findPreviewCache({ runtime = {} }: LoadedPolicies, local: boolean): { readonly previewCacheMs?: number } {
  if (runtime.enableReadCache === false) return { previewCacheMs: 0 };
  if (local || runtime.readCacheTtlMs === undefined) return {};
  return { previewCacheMs: Math.min(runtime.readCacheTtlMs, maxPreviewCacheMs) };
}
