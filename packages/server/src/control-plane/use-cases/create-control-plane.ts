import type { PolicyStore } from "@sluice/sql";
import type { Limiter, PolicySet } from "sluice";
import type { OwnHotKeys } from "../../observe/hot-keys/own-hot-keys.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { createRefusals } from "../audit/refusals.ts";
import type { ControlPlane } from "../control-plane.ts";
import { createDocumentReader } from "../documents/read-documents.ts";
import { type AsideOptions, createAside } from "../worker-thread/aside.ts";
import { createAuditControl } from "./control-audit.ts";
import { createConfigurationControl } from "./control-configuration.ts";
import type { ControlContext } from "./control-context.ts";
import { createKillSwitchControl } from "./control-kill-switch.ts";
import { createNodeControl } from "./control-nodes.ts";
import { createPolicyControl } from "./control-policies.ts";
import { createRolloutControl } from "./control-rollouts.ts";
import { createSubjectControl } from "./control-subjects.ts";
import { createTextControl } from "./control-texts.ts";
import { createTokenControl } from "./control-tokens.ts";

export interface ControlPlaneOptions {
  readonly store: PolicyStore;
  /** The id of this node among those of the store. */
  readonly node?: string | undefined;
  /** The limiter of this node, by whose policies and counters subjects are told how they stand. */
  readonly limiter: Pick<Limiter, "explain" | "reset" | "resetSubject" | "snapshot">;
  readonly log: Logger;
  readonly nowMs?: (() => number) | undefined;
  /** Called after every change that was kept. Must not throw. */
  readonly announce?: ((generation: number) => void) | undefined;
  /** Policies of files, beside the stored ones. Undefined: there are none. */
  readonly files?: (() => PolicySet | undefined) | undefined;
  /** Which wins where both have a policy. */
  readonly precedence?: "files" | "store" | undefined;
  /** That of the limiter. */
  readonly ipv6PrefixBits?: number | undefined;
  /** Of this node. Absent: it tells nothing of them. */
  readonly hotKeys?: OwnHotKeys | undefined;
  /** How many refusals of a minute are kept in the audit. */
  readonly refusalsPerMinute?: number | undefined;
  /** Bounds of what is read in another thread. */
  readonly aside?: AsideOptions | undefined;
}

export interface RunningControlPlane extends ControlPlane {
  /** Resolves when all refusals are in the audit, and the thread for long work has ended. The store is not closed. */
  close(): Promise<void>;
}

/** The use cases of people, on a policy store. */
export function createControlPlane(options: ControlPlaneOptions): RunningControlPlane {
  const { store, limiter, log, nowMs = Date.now, files = () => undefined } = options;
  const refusals = createRefusals({ store, log, nowMs, perMinute: options.refusalsPerMinute });
  const context: ControlContext = {
    store,
    node: options.node,
    limiter,
    log,
    nowMs,
    announce: options.announce ?? (() => {}),
    files,
    fileIds: createIdsOf(files),
    precedence: options.precedence ?? "files",
    ipv6PrefixBits: options.ipv6PrefixBits,
    hotKeys: options.hotKeys ?? (async () => []),
    reader: createDocumentReader(),
    refusals,
    aside: createAside(options.aside),
  };
  return {
    policies: createPolicyControl(context),
    rollouts: createRolloutControl(context),
    subjects: createSubjectControl(context),
    killSwitch: createKillSwitchControl(context),
    audit: createAuditControl(context),
    tokens: createTokenControl(context),
    nodes: createNodeControl(context),
    configuration: createConfigurationControl(context),
    texts: createTextControl(context),
    async close(): Promise<void> {
      await Promise.all([refusals.settled(), context.aside.close()]);
    },
  };
}

/** Made anew only where the files have changed. */
function createIdsOf(files: () => PolicySet | undefined): () => ReadonlySet<string> {
  let known: PolicySet | undefined;
  let ids: ReadonlySet<string> = new Set();
  return () => {
    const now = files();
    if (now !== known) ids = new Set(now?.policies.map(({ id }) => id));
    known = now;
    return ids;
  };
}
