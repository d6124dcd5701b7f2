import { setTimeout as pause } from "node:timers/promises";
import type { NodeRecord, PolicyStore, StoreNote } from "@sluice/sql";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { withDeadline } from "../../with-deadline.ts";

/** Tells the store how this node stands: now and then, and whenever something changed. */
export interface NodeReports {
  /** Tells now. Of several that wait only the last is told. */
  report(): void;
  /** Has the node forgotten, unless the store is away. */
  close(): Promise<void>;
}

export interface NodeReportsOptions {
  readonly store: Pick<PolicyStore, "note">;
  readonly id: string;
  /** How the node stands now, which is `nowMs` by the store's clock. */
  readonly read: (nowMs: number) => NodeRecord;
  /** What else is written down at the same time. */
  readonly also?: ((note: StoreNote) => Promise<void>) | undefined;
  readonly log: Logger;
  readonly everyMs?: number | undefined;
  /** How long the end waits for the store. */
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
        // That the store is away is told by who follows it.
        await writeOnce().catch((error: unknown) => log.debug("store.node_report_failed", { reason: String(error) }));
      } while (again && !closed);
    })().finally(() => {
      running = undefined;
    });
  }

  async function tellOften(): Promise<void> {
    while (!closed) {
      report();
      await pause(everyMs, undefined, { ref: false, signal: stop.signal }).catch(() => undefined);
    }
  }

  void tellOften();
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
