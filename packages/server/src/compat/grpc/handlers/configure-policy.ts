import type { PolicyAck, Policy as PolicyMessage } from "@sluice/protocol";
import { SluiceError } from "sluice";
import { renderPath } from "sluice/internal";
import { invalidField } from "../../../control-plane/control-errors.ts";
import type { ControlPlane } from "../../../control-plane/control-plane.ts";
import type { Actor } from "../../../data-plane/access/actor.ts";
import { VersionConflict } from "../../../data-plane/service/version-conflict.ts";
import type { CallInfo, UnaryHandler } from "../../../data-plane/transports/grpc/method.ts";
import { mayBeReplacedByFields } from "../policy-fields.ts";
import { documentFromMessage, rolloutFromMessage } from "../policy-message.ts";
import { requireControl } from "../require-control.ts";

/** Creates or replaces a policy, without losing anything that the message's fields cannot express. */
export function configurePolicy(given: ControlPlane | undefined): UnaryHandler<PolicyMessage, PolicyAck> {
  return (message, _context, info) => putPolicy(requireControl(given), message, info);
}

async function putPolicy(
  control: ControlPlane,
  message: PolicyMessage,
  { caller, from }: CallInfo,
): Promise<PolicyAck> {
  const actor: Actor = { caller, from };
  const document = documentFromMessage(message);
  const { policyId, version, dryRun, why } = message;
  if (message.documentJson === "" && version > 0) await refuseLoss(control, actor, policyId, version);
  const changed = await control.policies.put(actor, policyId, document, {
    expected: version,
    dryRun,
    ...(why !== "" && { why }),
    rollout: rolloutFromMessage(message),
  });
  return {
    policyId,
    version: changed.value.version,
    generation: changed.generation ?? 0,
    dryRun: changed.dryRun,
    rolloutId: changed.value.rollout?.id ?? "",
    warnings: changed.warnings.map(({ path, message: text }) => ({ field: renderPath(path), message: text })),
  };
}

/** The existing policy may have more than the fields can express, which would be lost. */
async function refuseLoss(control: ControlPlane, actor: Actor, id: string, version: number): Promise<void> {
  const current = await control.policies.get(actor, id).catch((error: unknown) => {
    // Deleted, or never created: its version says which.
    if (error instanceof SluiceError && error.code === "resource_not_found") return undefined;
    throw error;
  });
  if (current === undefined) return;
  // The version that was checked is the one that is replaced.
  if (current.version !== version) throw new VersionConflict(`policy ${id}`, version, current.version);
  if (mayBeReplacedByFields(id, current.document)) return;
  const message = `is empty, and policy ${id} has more than the other fields can express; send all of it here, as ListPolicies returns it`;
  throw invalidField(["document_json"], message);
}
