import type { StoreView } from "@sluice/sql";
import type { PolicySet } from "sluice";
import type { Caller } from "../../data-plane/access/access.ts";
import type { PolicyDocument } from "../control-plane.ts";
import { documentFromText } from "../documents/policy-documents.ts";
import { demandOwner, teamOf } from "./may-edit.ts";

/**
 * Throws `permission_denied` where an editor's document takes out of force what another team owns: by replacing its policy, or by
 * having the id of one in a file. What the policy replaced before, somebody who may has allowed.
 */
export async function demandReach(
  caller: Caller,
  view: StoreView,
  files: PolicySet | undefined,
  { id, document }: { readonly id: string; readonly document: PolicyDocument },
): Promise<void> {
  if (teamOf(caller) === undefined) return;
  const stored = await view.policy(id);
  const before = stored === undefined || stored.deleted ? undefined : documentFromText(stored.document);
  const known = new Set(replacedBy(before));
  const fresh = replacedBy(document).filter((one) => !known.has(one));
  for (const one of before === undefined ? [id, ...fresh] : fresh) {
    const record = await view.policy(one);
    if (record?.deleted === false) demandOwner(caller, one, record.owner);
    const filed = files?.policies.find((policy) => policy.id === one);
    if (filed !== undefined) demandOwner(caller, one, filed.owner);
  }
}

function replacedBy(document: PolicyDocument | undefined): readonly string[] {
  const written = document?.replaces ?? [];
  return (Array.isArray(written) ? written : [written]).filter((one) => typeof one === "string");
}
