import type { PolicyAck, Policy as PolicyMessage } from "@sluice/protocol";
import { renderPath, SluiceError } from "sluice";
import { invalidField } from "../../../control-plane/control-errors.ts";
import type { ControlPlane } from "../../../control-plane/control-plane.ts";
import type { Actor } from "../../../data-plane/access/actor.ts";
import { VersionConflict } from "../../../data-plane/service/version-conflict.ts";
import type { CallInfo, UnaryHandler } from "../../../data-plane/transports/grpc/method.ts";
import { mayBeReplacedByFields } from "../policy-fields.ts";
import { documentOfMessage, rolloutOfMessage } from "../policy-message.ts";
import { requireControl } from "../require-control.ts";

/** Creates or replaces a policy, and loses nothing that the fields of a message cannot say. */
export function configurePolicy(given: ControlPlane | undefined): UnaryHandler<PolicyMessage, PolicyAck> {
  return (message, _context, info) => putPolicy(requireControl(given), message, info);
}

async function putPolicy(
  control: ControlPlane,
  message: PolicyMessage,
  { caller, from }: CallInfo,
): Promise<PolicyAck> {
  const actor: Actor = { caller, from };
  const document = documentOfMessage(message);
  const { policyId, version, dryRun, why } = message;
  if (message.documentJson === "" && version > 0) await refuseLoss(control, actor, policyId, version);
  const changed = await control.policies.put(actor, policyId, document, {
    expected: version,
    dryRun,
    ...(why !== "" && { why }),
    rollout: rolloutOfMessage(message),
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

/** What there is may say more than the fields do, and would lose it. */
async function refuseLoss(control: ControlPlane, actor: Actor, id: string, version: number): Promise<void> {
  const current = await control.policies.get(actor, id).catch((error: unknown) => {
    // Deleted, or never there: it is told by its version.
    if (error instanceof SluiceError && error.code === "resource_not_found") return undefined;
    throw error;
  });
  if (current === undefined) return;
  // What was looked at is what is replaced.
  if (current.version !== version) throw new VersionConflict(`policy ${id}`, version, current.version);
  if (mayBeReplacedByFields(id, current.document)) return;
  const message = `is empty, and policy ${id} says more than the other fields can; send all of it here, as ListPolicies tells it`;
  throw invalidField(["document_json"], message);
}
