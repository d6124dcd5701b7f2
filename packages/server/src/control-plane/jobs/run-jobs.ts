import type { PolicyStore } from "@sluice/sql";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { runRollouts } from "./run-rollouts.ts";
import { sweepStore } from "./sweep-store.ts";

export interface JobsOptions {
  readonly store: PolicyStore;
  /** Tells processes apart. */
  readonly node: string;
  readonly log: Pick<Logger, "info" | "warn" | "debug">;
  /** Called with every generation that a job makes. */
  readonly announce: (generation: number) => void;
  /** How long audit records are kept. Absent: 90 days. */
  readonly auditKeptMs?: number | undefined;
  /** Epoch milliseconds. Absent: the machine's clock. */
  readonly nowMs?: (() => number) | undefined;
  /** How often `run` is called by itself; 0: never. Absent: every second. */
  readonly everyMs?: number | undefined;
}

/** What only one node does, and another one when that is gone. */
export interface Jobs {
  /** Whether this node is the one. */
  readonly leads: boolean;
  /** Does what is due, if this node is to. Never rejects; what is asked while it runs is the same run. */
  run(): Promise<void>;
  /** Waits for what is being done, and lets another node go on. */
  close(): Promise<void>;
}

const leadForMs = 10_000;
const rolloutsEveryMs = 2_000;
const sweepEveryMs = 3_600_000;
const defaultAuditKeptMs = 90 * 24 * 3_600_000;

/** Starts the jobs of a node. */
export function createJobs(options: JobsOptions): Jobs {
  const { store, node, log, announce, auditKeptMs = defaultAuditKeptMs, nowMs = Date.now, everyMs = 1_000 } = options;
  let leads = false;
  let failing = false;
  let closed = false;
  let running: Promise<void> | undefined;
  let ranRolloutsMs = -Infinity;
  let sweptMs = -Infinity;

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

  /** A rollout that fails keeps nothing from being swept. */
  async function work(): Promise<void> {
    try {
      if (!isDue(ranRolloutsMs, rolloutsEveryMs)) return;
      ranRolloutsMs = nowMs();
      await runRollouts({ store, nowMs, log, announce });
    } finally {
      if (isDue(sweptMs, sweepEveryMs)) await sweep();
    }
  }

  async function sweep(): Promise<void> {
    const swept = await sweepStore(store, nowMs(), auditKeptMs);
    sweptMs = nowMs();
    if (Object.values(swept).some((count) => count > 0)) log.info("jobs.expired_rows_deleted", { ...swept });
  }

  /** Also when the clock was set back. */
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
      // Else it would be followed only when its time is over.
      await store.lead(node, 0).catch(() => undefined);
    },
  };
}
