import type { SubjectLimitBody } from "@sluice/protocol/admin";
import { type SubjectName, subjects } from "../../api/subjects.ts";

const why = "Undone in the console";

/**
 * Brings back the override that was there before a change, or none: `before` is what the change replaced, and `version` what the
 * subject has since. Refused if someone else has changed it meanwhile.
 */
export async function restoreOverride(
  name: SubjectName,
  before: readonly SubjectLimitBody[],
  which: { readonly policy: string; readonly limit?: string | undefined },
  version: number,
): Promise<void> {
  const old = before.find(
    ({ policy, limit, until_ms: untilMs }) => policy === which.policy && limit === which.limit && untilMs !== undefined,
  );
  if (old?.until_ms === undefined || old.until_ms <= Date.now())
    await subjects.deleteOverride(name, which, { expected: version, why });
  else
    await subjects.setOverride(
      name,
      { ...which, windows: old.windows, until_ms: old.until_ms },
      { expected: version, why },
    );
}

export async function restoreTier(name: SubjectName, tier: string | undefined, version: number): Promise<void> {
  if (tier === undefined) await subjects.deleteTier(name, { expected: version, why });
  else await subjects.setTier(name, tier, { expected: version, why });
}
