import type { AuditRecord, PolicyStore } from "@sluice/sql";
import type { Actor } from "../../data-plane/access/actor.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { type AuditedAction, auditEntry, sluiceItself } from "./audit-entry.ts";

/**
 * Stores refused attempts. Any client can cause a flood of them, so only a bounded number per minute is stored, and the
 * rest are counted.
 */
export interface Refusals {
  /** Never throws, and never blocks. */
  add(actor: Actor, audited: AuditedAction, why: string): void;
  /** Resolves when all of them are stored, or cannot be. */
  settled(): Promise<void>;
}

export interface RefusalsOptions {
  readonly store: Pick<PolicyStore, "note">;
  readonly log: Logger;
  readonly nowMs: () => number;
  /** How many are stored per minute. */
  readonly perMinute?: number | undefined;
}

const minuteMs = 60_000;

export function createRefusals({ store, log, nowMs, perMinute = 120 }: RefusalsOptions): Refusals {
  let queue: AuditRecord[] = [];
  let beganMs = -Infinity;
  let kept = 0;
  let leftOut = 0;
  let writing: Promise<void> | undefined;

  function recordLeftOut(): void {
    if (leftOut === 0) return;
    const audited: AuditedAction = { action: "audit.refusals", kind: "audit", target: "" };
    const why = `${leftOut} more attempts were refused within a minute, too many to record each`;
    queue.push(auditEntry(sluiceItself, audited, { outcome: "refused", why, after: { count: leftOut } }, nowMs()));
    leftOut = 0;
  }

  /** Attempts that arrive during a call to the store go with the next one. */
  async function write(): Promise<void> {
    while (queue.length > 0) {
      const records = queue;
      queue = [];
      try {
        await store.note((note) => note.addAudit(records));
      } catch (error) {
        // At least the log has them.
        log.error("audit.refusals_lost", { reason: refusalReason(error), count: records.length });
      }
    }
  }

  function start(): Promise<void> {
    writing ??= Promise.resolve()
      .then(write)
      .finally(() => {
        writing = undefined;
      });
    return writing;
  }

  return {
    add(actor, audited, why): void {
      const atMs = nowMs();
      if (atMs - beganMs >= minuteMs || atMs < beganMs) {
        recordLeftOut();
        beganMs = atMs;
        kept = 0;
      }
      if (kept < perMinute) {
        kept += 1;
        queue.push(auditEntry(actor, audited, { outcome: "refused", why }, atMs));
      } else leftOut += 1;
      if (queue.length > 0) void start();
    },
    async settled(): Promise<void> {
      recordLeftOut();
      if (queue.length > 0 || writing !== undefined) await start();
    },
  };
}

function refusalReason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
