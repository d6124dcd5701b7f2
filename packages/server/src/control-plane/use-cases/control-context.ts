import type { PolicyStore } from "@sluice/sql";
import type { Limiter, PolicySet } from "sluice";
import type { OwnHotKeys } from "../../observe/hot-keys/own-hot-keys.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import type { UsageTail } from "../../observe/usage-events/usage-tail.ts";
import type { Refusals } from "../audit/refusals.ts";
import type { DocumentReader } from "../documents/read-documents.ts";
import type { WorkerThread } from "../worker-thread/worker-thread.ts";

/** The dependencies of every use case. */
export interface ControlContext {
  readonly store: PolicyStore;
  /** The id of this node in the store. */
  readonly node: string | undefined;
  /** The limiter of this node, whose policies and counters show the state of subjects. */
  readonly limiter: Pick<Limiter, "explain" | "reset" | "resetSubject" | "snapshot">;
  readonly log: Logger;
  readonly nowMs: () => number;
  /** Called after every change that was stored. */
  readonly announce: (generation: number) => void;
  /** Policies in files, which apply along with the stored ones. */
  readonly files: () => PolicySet | undefined;
  /** Their ids. */
  readonly fileIds: () => ReadonlySet<string>;
  readonly precedence: "files" | "store";
  readonly ipv6PrefixBits: number | undefined;
  /** The hot keys of this node. */
  readonly hotKeys: OwnHotKeys;
  /** The dimensions whose subjects have a usage history. */
  readonly usageBy: readonly string[];
  /** Stores the denials that this node has sampled. Never rejects. */
  readonly flushDenials: () => Promise<void>;
  /** The latest usage events of this node. Undefined: they cannot be watched, because it is one of several workers. */
  readonly usageTail: Pick<UsageTail, "read"> | undefined;
  readonly reader: DocumentReader;
  readonly refusals: Refusals;
  /** Runs work that a request can make arbitrarily long. */
  readonly thread: WorkerThread;
}
