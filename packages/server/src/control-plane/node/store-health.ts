import type { Logger } from "../../observe/telemetry/logger.ts";

/** Since when the policy store is unavailable, and why. */
export interface StoreOutage {
  readonly sinceMs: number;
  readonly steadySinceMs: number;
  /** The error of the latest attempt. */
  reason: string;
  /** Whether it has lasted longer than the grace. */
  expired: boolean;
}

export interface StoreHealthOptions {
  /** The store's address, without user and password. */
  readonly where: string;
  readonly log: Logger;
  /** How long the store may be unavailable before that is an error. */
  readonly graceMs: number;
  readonly nowMs: () => number;
  /** A monotonic clock. */
  readonly steadyMs: () => number;
}

/**
 * Whether the policy store is available, reported once per change:
 *
 *     reachable ──missed──► away ──missed, after the grace──► expired
 *         ▲                  │                                  │
 *         └─────reached──────┴──────────────reached─────────────┘
 */
export class StoreHealth {
  readonly #options: StoreHealthOptions;
  #outage: StoreOutage | undefined;

  constructor(options: StoreHealthOptions) {
    this.#options = options;
  }

  /** Undefined while the store is available. */
  get outage(): Readonly<StoreOutage> | undefined {
    return this.#outage;
  }

  /**
   * The store did not answer. `generation` stays in force; undefined before there is any, when the start itself reports
   * it.
   */
  missed(error: unknown, generation: number | undefined): void {
    const { where, log, graceMs, nowMs, steadyMs } = this.#options;
    const reason = error instanceof Error ? error.message : String(error);
    if (this.#outage === undefined && generation !== undefined)
      log.warn("store.unreachable", { store: where, reason, generation });
    this.#outage ??= { sinceMs: nowMs(), steadySinceMs: steadyMs(), reason, expired: false };
    const outage = this.#outage;
    outage.reason = reason;
    if (outage.expired || generation === undefined || steadyMs() - outage.steadySinceMs < graceMs) return;
    outage.expired = true;
    log.error("store.grace_expired", {
      store: where,
      reason,
      generation,
      since: new Date(outage.sinceMs).toISOString(),
    });
  }

  /** The store answered. `generation` is undefined if none of it can be used, so that this is not good news yet. */
  reached(generation: number | undefined): void {
    const { where, log, steadyMs } = this.#options;
    if (this.#outage !== undefined && generation !== undefined)
      log.info("store.reachable", { store: where, awayMs: Math.round(steadyMs() - this.#outage.steadySinceMs) });
    this.#outage = undefined;
  }
}
