import { setTimeout as pause } from "node:timers/promises";
import type { NodeRecord, PolicyStore, StoreNote } from "@sluice/sql";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { withDeadline } from "../../with-deadline.ts";

/** Reports this node's state to the store: at intervals, and after every change. */
export interface NodeReports {
  /** Reports now. Of several waiting reports, only the last is written. */
  report(): void;
  /** Removes the node from the store, if the store is available. */
  close(): Promise<void>;
}

export interface NodeReportsOptions {
  readonly store: Pick<PolicyStore, "note">;
  readonly id: string;
  /** The node's current state; `nowMs` is by the store's clock. */
  readonly read: (nowMs: number) => NodeRecord;
  /** Other writes of the same transaction. */
  readonly also?: ((note: StoreNote) => Promise<void>) | undefined;
  readonly log: Logger;
  readonly everyMs?: number | undefined;
  /** How long closing waits for the store. */
  readonly forgetWithinMs?: number | undefined;
}

const writeWithinMs = 10_000;

export function createNodeReports(options: NodeReportsOptions): NodeReports {
  const { store, id, read, also, log, everyMs = 5_000, forgetWithinMs = 2_000 } = options;
  let running: Promise<void> | undefined;
  let again = false;
  let closed = false;
  const stop = new AbortController();

  async function writeOnce(): Promise<void> {
    const work = store.note(async (note) => {
      await note.putNode(read(await note.nowMs()));
      await also?.(note);
    });
    await withDeadline(work, writeWithinMs, () => new Error("the policy store does not answer"));
  }

  function report(): void {
    if (closed) return;
    if (running !== undefined) {
      again = true;
      return;
    }
    running = (async () => {
      do {
        again = false;
        // The follower reports that the store is unavailable.
        await writeOnce().catch((error: unknown) => log.debug("store.node_report_failed", { reason: String(error) }));
      } while (again && !closed);
    })().finally(() => {
      running = undefined;
    });
  }

  async function reportOften(): Promise<void> {
    while (!closed) {
      report();
      await pause(everyMs, undefined, { ref: false, signal: stop.signal }).catch(() => undefined);
    }
  }

  void reportOften();
  return {
    report,
    async close(): Promise<void> {
      closed = true;
      stop.abort();
      const forget = async (): Promise<void> => {
        await running;
        await store.note((note) => note.deleteNode(id));
      };
      await withDeadline(forget(), forgetWithinMs, () => new Error("the policy store does not answer")).catch(
        (error: unknown) => log.debug("store.node_stop_report_failed", { reason: String(error) }),
      );
    },
  };
}
