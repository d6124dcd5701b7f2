import type { PolicyStore } from "@sluice/sql";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { defaultUsageKept, rollUpUsage, type UsageKept } from "../usage/usage-upkeep.ts";
import { deleteOldRecords } from "./delete-old-records.ts";
import { runRollouts } from "./run-rollouts.ts";

export interface JobsOptions {
  readonly store: PolicyStore;
  /** Differs between processes. */
  readonly node: string;
  readonly log: Pick<Logger, "info" | "warn" | "debug">;
  /** Called with every generation that a job creates. */
  readonly announce: (generation: number) => void;
  /** How long audit records are stored. Absent: 90 days. */
  readonly auditKeptMs?: number | undefined;
  /** How long usage is kept. Absent: 30 days by minutes, a year by hours and days. */
  readonly usageKept?: UsageKept | undefined;
  /** How long records of denials are kept. Absent: 3 days. */
  readonly denialsKeptMs?: number | undefined;
  /** Epoch milliseconds. Absent: the machine's clock. */
  readonly nowMs?: (() => number) | undefined;
  /** How often `run` is called automatically; 0: never. Absent: every second. */
  readonly everyMs?: number | undefined;
}

/** The jobs that only one node does; another node takes over when it stops. */
export interface Jobs {
  /** Whether this node is the leader. */
  readonly leads: boolean;
  /** Does the jobs that are due, if this node is the leader. Never rejects; a call during a run joins that run. */
  run(): Promise<void>;
  /** Waits for the current run, and lets another node take over. */
  close(): Promise<void>;
}

const leadForMs = 10_000;
const rolloutsEveryMs = 2_000;
const cleanEveryMs = 3_600_000;
const usageEveryMs = 60_000;
/** Adding up usage takes at most this share of the time, if there is so much that it takes long. */
const usageShare = 1 / 10;
const defaultDenialsKeptMs = 3 * 24 * 3_600_000;
const defaultAuditKeptMs = 90 * 24 * 3_600_000;

/** Starts the jobs of a node. */
export function createJobs(options: JobsOptions): Jobs {
  const { store, node, log, announce, auditKeptMs = defaultAuditKeptMs, nowMs = Date.now, everyMs = 1_000 } = options;
  let leads = false;
  let failing = false;
  let closed = false;
  let running: Promise<void> | undefined;
  let ranRolloutsMs = -Infinity;
  let cleanedMs = -Infinity;
  let rolledUpMs = -Infinity;
  let rollUpTookMs = 0;

  async function runOnce(): Promise<void> {
    try {
      const led = leads;
      leads = await store.lead(node, leadForMs);
      if (leads !== led) log.debug("jobs.leader_changed", { node, leads });
      if (leads) await work();
      if (failing) log.info("jobs.recovered");
      failing = false;
    } catch (error) {
      if (!failing) log.warn("jobs.failed", { err: error });
      failing = true;
    }
  }

  /** A rollout that fails does not prevent cleanup. */
  async function work(): Promise<void> {
    try {
      if (!isDue(ranRolloutsMs, rolloutsEveryMs)) return;
      ranRolloutsMs = nowMs();
      await runRollouts({ store, nowMs, log, announce });
    } finally {
      if (isDue(rolledUpMs, Math.max(usageEveryMs, rollUpTookMs / usageShare))) {
        rolledUpMs = nowMs();
        await rollUpUsage(store);
        rollUpTookMs = nowMs() - rolledUpMs;
      }
      if (isDue(cleanedMs, cleanEveryMs)) await clean();
    }
  }

  async function clean(): Promise<void> {
    const deleted = await deleteOldRecords(store, nowMs(), {
      auditMs: auditKeptMs,
      usage: options.usageKept ?? defaultUsageKept,
      denialsMs: options.denialsKeptMs ?? defaultDenialsKeptMs,
    });
    cleanedMs = nowMs();
    if (Object.values(deleted).some((count) => count > 0)) log.info("jobs.expired_rows_deleted", { ...deleted });
  }

  /** Also runs when the clock was set back. */
  function isDue(lastMs: number, everyMs: number): boolean {
    const sinceMs = nowMs() - lastMs;
    return sinceMs >= everyMs || sinceMs < 0;
  }

  function run(): Promise<void> {
    if (closed) return Promise.resolve();
    running ??= runOnce().finally(() => {
      running = undefined;
    });
    return running;
  }

  const timer = everyMs === 0 ? undefined : setInterval(() => void run(), everyMs).unref();
  return {
    get leads(): boolean {
      return leads;
    },
    run,
    close: async () => {
      closed = true;
      clearInterval(timer);
      await running;
      if (!leads) return;
      leads = false;
      // Otherwise another node would take over only when the lease runs out.
      await store.lead(node, 0).catch(() => undefined);
    },
  };
}
