import type { PolicyStore } from "@sluice/sql";
import type { Limiter, PolicySet } from "sluice";
import type { OwnHotKeys } from "../../observe/hot-keys/own-hot-keys.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import type { UsageTail } from "../../observe/usage-events/usage-tail.ts";
import { createRefusals } from "../audit/refusals.ts";
import type { ControlPlane } from "../control-plane.ts";
import { createDocumentReader } from "../documents/read-documents.ts";
import { createWorkerThread, type WorkerThreadOptions } from "../worker-thread/worker-thread.ts";
import { createAuditControl } from "./control-audit.ts";
import { createConfigurationControl } from "./control-configuration.ts";
import type { ControlContext } from "./control-context.ts";
import { createDenialControl } from "./control-denials.ts";
import { createDisablingControl } from "./control-disabling.ts";
import { createKillSwitchControl } from "./control-kill-switch.ts";
import { createNodeControl } from "./control-nodes.ts";
import { createPlanControl } from "./control-plans.ts";
import { createPolicyControl } from "./control-policies.ts";
import { createRolloutControl } from "./control-rollouts.ts";
import { createSubjectControl } from "./control-subjects.ts";
import { createSummaryControl } from "./control-summaries.ts";
import { createTextControl } from "./control-texts.ts";
import { createTokenControl } from "./control-tokens.ts";
import { createUsageControl } from "./control-usage.ts";
import { createRecordingControl, createSimulationControl, type WhatIfOptions } from "./control-what-if.ts";

export interface ControlPlaneOptions {
  readonly store: PolicyStore;
  /** The id of this node in the store. */
  readonly node?: string | undefined;
  /** The limiter of this node, whose policies and counters show the state of subjects. */
  readonly limiter: Pick<Limiter, "explain" | "reset" | "resetSubject" | "snapshot">;
  readonly log: Logger;
  readonly nowMs?: (() => number) | undefined;
  /** Called after every change that was stored. Must not throw. */
  readonly announce?: ((generation: number) => void) | undefined;
  /** Policies of files, which apply along with the stored ones. Undefined: there are none. */
  readonly files?: (() => PolicySet | undefined) | undefined;
  /** Which wins if both have a policy. */
  readonly precedence?: "files" | "store" | undefined;
  /** The limiter's counters. */
  readonly ipv6PrefixBits?: number | undefined;
  /** The hot keys of this node. Absent: it reports none. */
  readonly hotKeys?: OwnHotKeys | undefined;
  /** The dimensions whose subjects have a usage history. Absent: `tenant`. */
  readonly usageBy?: readonly string[] | undefined;
  /** Stores the denials that this node has sampled. Must not reject. Absent: it samples none. */
  readonly flushDenials?: (() => Promise<void>) | undefined;
  /** The latest usage events of this node. Absent: they cannot be watched. */
  readonly usageTail?: Pick<UsageTail, "read"> | undefined;
  /** Recordings and simulations. Absent: there are none, because this process is one of several workers. */
  readonly whatIf?: WhatIfOptions | undefined;
  /** How many refusals per minute are audited. */
  readonly refusalsPerMinute?: number | undefined;
  /** The bounds of work in another thread. */
  readonly thread?: WorkerThreadOptions | undefined;
}

export interface RunningControlPlane extends ControlPlane {
  /** Resolves when all refusals are in the audit, and the thread for long work has ended. The store is not closed. */
  close(): Promise<void>;
}

/** The use cases of the control plane, on a policy store. */
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
    fileIds: createFileIds(files),
    precedence: options.precedence ?? "files",
    ipv6PrefixBits: options.ipv6PrefixBits,
    hotKeys: options.hotKeys ?? (async () => []),
    usageBy: options.usageBy ?? ["tenant"],
    flushDenials: options.flushDenials ?? (async () => {}),
    usageTail: options.usageTail,
    reader: createDocumentReader(),
    refusals,
    thread: createWorkerThread(options.thread),
  };
  const simulations = createSimulationControl(context, options.whatIf);
  const policies = createPolicyControl(context);
  return {
    policies,
    summaries: createSummaryControl(context, policies),
    plans: createPlanControl(context),
    disabling: createDisablingControl(context),
    rollouts: createRolloutControl(context),
    subjects: createSubjectControl(context),
    killSwitch: createKillSwitchControl(context),
    audit: createAuditControl(context),
    usage: createUsageControl(context),
    denials: createDenialControl(context),
    tokens: createTokenControl(context),
    nodes: createNodeControl(context),
    configuration: createConfigurationControl(context),
    texts: createTextControl(context),
    recordings: createRecordingControl(context, options.whatIf),
    simulations,
    async close(): Promise<void> {
      await Promise.all([refusals.settled(), context.thread.close(), simulations.close()]);
    },
  };
}

/** Made again only if the files have changed. */
function createFileIds(files: () => PolicySet | undefined): () => ReadonlySet<string> {
  let known: PolicySet | undefined;
  let ids: ReadonlySet<string> = new Set();
  return () => {
    const now = files();
    if (now !== known) ids = new Set(now?.policies.map(({ id }) => id));
    known = now;
    return ids;
  };
}
