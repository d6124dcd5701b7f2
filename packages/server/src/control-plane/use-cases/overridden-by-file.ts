import type { Problem } from "sluice";
import { isBuiltInDefault } from "sluice/internal";
import { defaultPolicyId } from "../documents/read-documents.ts";
import type { ControlContext } from "./control-context.ts";

type Files = Pick<ControlContext, "files" | "fileIds" | "precedence">;

/** Whether a policy file of this server has the policy as well, and wins. */
export function isOverriddenByFile({ files, fileIds, precedence }: Files, id: string): boolean {
  const set = files();
  if (precedence !== "files" || set === undefined) return false;
  if (id !== defaultPolicyId) return fileIds().has(id);
  // `default: none` counts as written, too.
  return set.fallback === undefined || !isBuiltInDefault(set.fallback);
}

/** The warning for a change to such a policy. */
export function warnOverridden(context: Files, ids: readonly string[]): readonly Problem[] {
  return ids
    .filter((id) => isOverriddenByFile(context, id))
    .map((id) => ({
      path: [],
      message: `policy ${id} is in a policy file of the server as well, which wins; the stored one is not in force`,
    }));
}
