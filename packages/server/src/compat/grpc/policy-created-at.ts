import { SluiceError } from "sluice";
import type { PolicyControl, StoredPolicy } from "../../control-plane/policy-control.ts";
import type { Actor } from "../../data-plane/access/actor.ts";

/** When the first version of a policy was made; undefined if that is no longer known. */
export async function policyCreatedAt(
  policies: PolicyControl,
  actor: Actor,
  { id, version, changedMs }: StoredPolicy,
): Promise<number | undefined> {
  if (version === 1) return changedMs;
  try {
    return (await policies.version(actor, id, 1)).atMs;
  } catch (error) {
    // Deleted meanwhile.
    if (error instanceof SluiceError && error.code === "resource_not_found") return undefined;
    throw error;
  }
}
