import type { AuditRecord, PolicyStore } from "@sluice/sql";
import type { Actor } from "../../data-plane/access/actor.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { auditEntry, type Deed, sluiceItself } from "./audit-entry.ts";

/**
 * Keeps what was refused. A flood of refusals, which anybody can cause, does not fill the store: so many a minute are kept, and
 * of the others their number.
 */
export interface Refusals {
  /** Never throws, and keeps nobody waiting. */
  add(actor: Actor, deed: Deed, why: string): void;
  /** Resolves when all of them are kept, or cannot be. */
  settled(): Promise<void>;
}

export interface RefusalsOptions {
  readonly store: Pick<PolicyStore, "note">;
  readonly log: Logger;
  readonly nowMs: () => number;
  /** How many are kept of one minute. */
  readonly perMinute?: number | undefined;
}

const minuteMs = 60_000;

export function createRefusals({ store, log, nowMs, perMinute = 120 }: RefusalsOptions): Refusals {
  let queue: AuditRecord[] = [];
  let beganMs = -Infinity;
  let kept = 0;
  let leftOut = 0;
  let writing: Promise<void> | undefined;

  function tellLeftOut(): void {
    if (leftOut === 0) return;
    const deed: Deed = { action: "audit.refusals", kind: "audit", target: "" };
    const why = `${leftOut} more attempts were refused within a minute, too many to keep each`;
    queue.push(auditEntry(sluiceItself, deed, { outcome: "refused", why, after: { count: leftOut } }, nowMs()));
    leftOut = 0;
  }

  /** What comes while the store is asked goes with the next call. */
  async function write(): Promise<void> {
    while (queue.length > 0) {
      const records = queue;
      queue = [];
      try {
        await store.note((note) => note.addAudit(records));
      } catch (error) {
        // They are told here at least.
        log.error("audit.refusals_lost", { reason: reasonOf(error), count: records.length });
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
    add(actor, deed, why): void {
      const atMs = nowMs();
      if (atMs - beganMs >= minuteMs || atMs < beganMs) {
        tellLeftOut();
        beganMs = atMs;
        kept = 0;
      }
      if (kept < perMinute) {
        kept += 1;
        queue.push(auditEntry(actor, deed, { outcome: "refused", why }, atMs));
      } else leftOut += 1;
      if (queue.length > 0) void start();
    },
    async settled(): Promise<void> {
      tellLeftOut();
      if (queue.length > 0 || writing !== undefined) await start();
    },
  };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
