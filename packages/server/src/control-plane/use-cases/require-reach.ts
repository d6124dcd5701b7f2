import type { StoreView } from "@sluice/sql";
import type { PolicySet } from "sluice";
import type { Caller } from "../../data-plane/access/access.ts";
import { documentFromText } from "../documents/policy-documents.ts";
import type { PolicyDocument } from "../policy-control.ts";
import { findTeam, requireOwner } from "./require-owner.ts";

/**
 * Throws `permission_denied` if an editor's document would disable something that another team owns: by replacing its
 * policy, or by taking the id of one in a file. What the policy replaced before, a permitted actor has allowed.
 */
export async function requireReach(
  caller: Caller,
  view: StoreView,
  files: PolicySet | undefined,
  { id, document }: { readonly id: string; readonly document: PolicyDocument },
): Promise<void> {
  if (findTeam(caller) === undefined) return;
  const stored = await view.policy(id);
  const before = stored === undefined || stored.deleted ? undefined : documentFromText(stored.document);
  const known = new Set(replacedBy(before));
  const fresh = replacedBy(document).filter((one) => !known.has(one));
  for (const one of before === undefined ? [id, ...fresh] : fresh) {
    const record = await view.policy(one);
    if (record?.deleted === false) requireOwner(caller, one, record.owner);
    const filed = files?.policies.find((policy) => policy.id === one);
    if (filed !== undefined) requireOwner(caller, one, filed.owner);
  }
}

function replacedBy(document: PolicyDocument | undefined): readonly string[] {
  const written = document?.replaces ?? [];
  return (Array.isArray(written) ? written : [written]).filter((one) => typeof one === "string");
}
