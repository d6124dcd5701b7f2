import { SluiceError } from "sluice";
import { demand } from "../../data-plane/access/access.ts";
import type { Actor } from "../../data-plane/access/actor.ts";
import type { Permission } from "../../data-plane/access/roles.ts";
import { policySetBody, withoutTrials } from "../../data-plane/transports/http/policy-body.ts";
import { type AuditDetails, type AuditedAction, auditEntry } from "../audit/audit-entry.ts";
import type { ChangeOptions } from "../change.ts";
import { invalidField } from "../control-errors.ts";
import type { KeptRecordings } from "../what-if/kept-recordings.ts";
import { SimulationJobs } from "../what-if/simulation-jobs.ts";
import type { SimulationOrder } from "../what-if/simulation-order.ts";
import type {
  RecordingControl,
  RecordingView,
  SimulationControl,
  SimulationRequest,
  SimulationView,
} from "../what-if-control.ts";
import { actorKey } from "./actor-key.ts";
import { auditRefusals } from "./commit.ts";
import type { ControlContext } from "./control-context.ts";

export interface WhatIfOptions {
  /** The name of this node. */
  readonly node: string;
  /** Undefined without a folder for them. */
  readonly recordings: KeptRecordings | undefined;
}

const noFolder = "this server keeps no recordings; start it with --recordings FOLDER (SLUICE_RECORDINGS)";
const severalWorkers =
  "this server runs several workers, and each request may meet another one; record with --record, and simulate with sluice simulate";

/** Recordings of this node. `whatIf` is undefined if this process is one of several workers. */
export function createRecordingControl(context: ControlContext, whatIf: WhatIfOptions | undefined): RecordingControl {
  const refused = <T>(
    actor: Actor,
    word: string,
    target: string,
    needs: Permission,
    work: () => Promise<T>,
  ): Promise<T> =>
    auditRefusals(context, actor, { action: `recording.${word}`, kind: "recording", target }, async () => {
      demand(actor.caller, needs);
      return work();
    });
  const kept = (): KeptRecordings => {
    if (whatIf === undefined) throw new SluiceError("resource_not_found", severalWorkers);
    if (whatIf.recordings === undefined) throw new SluiceError("resource_not_found", noFolder);
    return whatIf.recordings;
  };
  const audit = (
    actor: Actor,
    word: string,
    { why = "" }: ChangeOptions,
    before: RecordingView | undefined,
    after: RecordingView | undefined,
  ): Promise<void> => {
    const target = (after ?? before)?.id ?? "";
    const audited = { action: `recording.${word}`, kind: "recording", target };
    return auditDone(context, actor, audited, { why, before, after });
  };
  return {
    list: (actor) =>
      refused(actor, "list", "", "read", async () => ({
        enabled: whatIf?.recordings !== undefined,
        items: (await whatIf?.recordings?.list()) ?? [],
      })),
    get: (actor, id) => refused(actor, "get", id, "read", () => kept().find(id)),
    start: (actor, request, options = {}) =>
      refused(actor, "start", "", "operate", async () => {
        const { sharePercent = 100, shareBy } = request;
        if (sharePercent < 100 && shareBy === undefined)
          throw invalidField(
            ["share_by"],
            "is missing: name the dimension whose subjects are recorded whole, such as tenant",
          );
        const planned = kept().plan(request, actor.caller.name);
        if (options.dryRun === true) return planned;
        const view = await kept().start(planned);
        await audit(actor, "start", options, undefined, view);
        return view;
      }),
    stop: (actor, id, options = {}) =>
      refused(actor, "stop", id, "operate", async () => {
        const before = await kept().find(id);
        if (before.state !== "recording") return before;
        if (options.dryRun === true)
          return { ...before, state: "done", endedMs: context.nowMs(), endReason: "stopped" };
        const after = await kept().stop(id);
        await audit(actor, "stop", options, before, after);
        return after;
      }),
    delete: (actor, id, options = {}) =>
      refused(actor, "delete", id, "operate", async () => {
        const before = await kept().find(id);
        if (options.dryRun === true) return before;
        const gone = await kept().delete(id);
        await audit(actor, "delete", options, gone, undefined);
        return gone;
      }),
  };
}

export interface RunningSimulations extends SimulationControl {
  close(): Promise<void>;
}

export function createSimulationControl(
  context: ControlContext,
  whatIf: WhatIfOptions | undefined,
): RunningSimulations {
  const jobs = new SimulationJobs({ node: whatIf?.node ?? "", nowMs: context.nowMs });
  const renderInForce = createInForce(context);
  const asked = async <T>(
    actor: Actor,
    word: string,
    id: string,
    needs: Permission,
    work: () => T | Promise<T>,
  ): Promise<T> =>
    auditRefusals(context, actor, { action: `simulation.${word}`, kind: "simulation", target: id }, async () => {
      demand(actor.caller, needs);
      if (whatIf === undefined) throw new SluiceError("resource_not_found", severalWorkers);
      return work();
    });
  const audit = (actor: Actor, word: string, { id, recording, logBytes, createdBy }: SimulationView): Promise<void> => {
    const state = { recording, logBytes, createdBy };
    const audited = { action: `simulation.${word}`, kind: "simulation", target: id };
    return auditDone(context, actor, audited, {
      why: "",
      ...(word === "create" ? { after: state } : { before: state }),
    });
  };
  return {
    list: (actor) => asked(actor, "list", "", "read", () => jobs.list()),
    get: (actor, id) =>
      asked(actor, "get", id, "read", () => {
        const found = jobs.find(id);
        if (found.recording !== undefined) demandAllSubjects(actor);
        return found;
      }),
    delete: (actor, id) =>
      asked(actor, "delete", id, "simulate", async () => {
        if (!jobs.isOwn(id, actorKey(actor))) demand(actor.caller, "operate");
        const gone = jobs.delete(id);
        await audit(actor, "delete", gone);
        return gone;
      }),
    create: (actor, request) =>
      asked(actor, "create", "", "simulate", async () => {
        const { recording } = request.source;
        if (recording !== undefined) demandAllSubjects(actor);
        const [owner, createdBy] = [actorKey(actor), actor.caller.name];
        // Before anything is decoded or rendered in the thread that decides.
        jobs.demandRoom(owner, createdBy);
        const order = await readOrder(request, renderInForce, whatIf?.recordings);
        const created = jobs.add({ createdBy, owner, recording, logBytes: order.bytes?.length, order });
        await audit(actor, "create", created);
        return created;
      }),
    close: () => jobs.close(),
  };
}

/** A recording has the subjects of every team. Throws `permission_denied` for an editor, who sees those of one team. */
function demandAllSubjects({ caller }: Actor): void {
  if (caller.role !== "editor") return;
  throw new SluiceError(
    "permission_denied",
    "a recording has subjects of every team's policies, and an editor sees those of its team; simulate on an access log, or ask an operator",
  );
}

/** The policies in force, as a policy file in JSON, rendered once for each snapshot. */
function createInForce({ limiter }: ControlContext): () => string {
  let rendered: { readonly of: unknown; readonly text: string } | undefined;
  return () => {
    const { policySet } = limiter.snapshot;
    if (rendered?.of !== policySet)
      rendered = { of: policySet, text: JSON.stringify(policySetBody(withoutTrials(policySet))) };
    return rendered.text;
  };
}

async function auditDone(
  context: ControlContext,
  actor: Actor,
  audited: AuditedAction,
  details: Omit<AuditDetails, "outcome">,
): Promise<void> {
  const entry = auditEntry(actor, audited, { outcome: "done", ...details }, context.nowMs());
  const { action, target } = audited;
  // It is done even while the policy store is unavailable; the log has who did it.
  context.log.info("control.changed", { caller: actor.caller.name, action, target });
  await context.store
    .note((note) => note.addAudit(entry))
    .catch((error: unknown) =>
      context.log.error("audit.write_failed", { ...audited, caller: actor.caller.name, reason: String(error) }),
    );
}

async function readOrder(
  { source, format, map = [], candidate, now = "policies", findLimit }: SimulationRequest,
  renderInForce: () => string,
  recordings: KeptRecordings | undefined,
): Promise<SimulationOrder> {
  const { recording, log, logBase64 } = source;
  if ([recording, log, logBase64].filter((one) => one !== undefined).length !== 1)
    throw invalidField(["source"], "must have one of recording, log and log_base64");
  if ((candidate.file === undefined) === (candidate.policies === undefined))
    throw invalidField(["candidate"], "must have one of file and policies");
  if (recording !== undefined) {
    if (recordings === undefined) throw new SluiceError("resource_not_found", noFolder);
    await recordings.find(recording);
  }
  const bytes = log === undefined ? logBase64 && Buffer.from(logBase64, "base64") : Buffer.from(log);
  return {
    path: recording === undefined ? undefined : recordings?.path(recording),
    bytes: bytes === "" ? Buffer.alloc(0) : bytes,
    ...{ format, map, now, findLimit, file: candidate.file, policies: candidate.policies ?? [] },
    inForce: renderInForce(),
  };
}
