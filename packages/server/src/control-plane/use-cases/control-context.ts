import type { PolicyStore } from "@sluice/sql";
import type { Limiter, PolicySet } from "sluice";
import type { OwnHotKeys } from "../../observe/hot-keys/own-hot-keys.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import type { Refusals } from "../audit/refusals.ts";
import type { DocumentReader } from "../documents/read-documents.ts";
import type { Aside } from "../worker-thread/aside.ts";

/** What every use case stands on. */
export interface ControlContext {
  readonly store: PolicyStore;
  /** The id of this node among those of the store. */
  readonly node: string | undefined;
  /** The limiter of this node, by whose policies and counters subjects are told how they stand. */
  readonly limiter: Pick<Limiter, "explain" | "reset" | "resetSubject" | "snapshot">;
  readonly log: Logger;
  readonly nowMs: () => number;
  /** Called after every change that was kept. */
  readonly announce: (generation: number) => void;
  /** Policies in files, beside the stored ones. */
  readonly files: () => PolicySet | undefined;
  /** Ids of those. */
  readonly fileIds: () => ReadonlySet<string>;
  readonly precedence: "files" | "store";
  readonly ipv6PrefixBits: number | undefined;
  /** Of this node. */
  readonly hotKeys: OwnHotKeys;
  readonly reader: DocumentReader;
  readonly refusals: Refusals;
  /** Where that is done which a request may make arbitrarily long. */
  readonly aside: Aside;
}
