import type { Problem } from "sluice";
import { isBuiltInDefault } from "sluice/store";
import { defaultPolicyId } from "../documents/read-documents.ts";
import type { ControlContext } from "./control-context.ts";

type Files = Pick<ControlContext, "files" | "fileIds" | "precedence">;

/** Whether a policy file of this server has the policy as well, and wins. */
export function isOverriddenByFiles({ files, fileIds, precedence }: Files, id: string): boolean {
  const set = files();
  if (precedence !== "files" || set === undefined) return false;
  if (id !== defaultPolicyId) return fileIds().has(id);
  // That no limit holds by default was written as well.
  return set.fallback === undefined || !isBuiltInDefault(set.fallback);
}

/** What whoever changes such a policy is told. */
export function warnOverridden(context: Files, ids: readonly string[]): readonly Problem[] {
  return ids
    .filter((id) => isOverriddenByFiles(context, id))
    .map((id) => ({
      path: [],
      message: `policy ${id} is in a policy file of the server as well, which wins; what the store says of it is not in force`,
    }));
}
