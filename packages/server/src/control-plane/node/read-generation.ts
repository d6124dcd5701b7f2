import type { AuditRecord, PolicyStore } from "@sluice/sql";
import { readStored, type StoredGeneration } from "../documents/assemble-stored.ts";
import { resetAction } from "../use-cases/reset-counters.ts";

type View = Parameters<Parameters<PolicyStore["read"]>[0]>[0];

/** One generation of the store, and what happened on the way to it. */
export interface ReadGeneration {
  readonly stored: StoredGeneration;
  /** When the change was made that it is, where that can be found. */
  readonly changedMs: number | undefined;
  /** Resets since an earlier generation, oldest first. */
  readonly resets: readonly AuditRecord[];
}

/** The newest audit records, among which the change should be that made a generation. */
const auditLooked = 20;
const resetsAtOnce = 50;
/** Records looked at. A node that missed more has been without its store for long. */
const mostLooked = 1_000;

/** `since`: the generation up to which resets are known. Undefined: none are read, because a node that starts holds no counters. */
export async function readGeneration(view: View, since: number | undefined): Promise<ReadGeneration> {
  const stored = await readStored(view);
  const records = await view.audit({ limit: auditLooked });
  const changedMs = records.find(({ generation }) => generation === stored.generation)?.atMs;
  const isNew = since !== undefined && stored.generation > since;
  return { stored, changedMs, resets: isNew ? await readResets(view, since) : [] };
}

async function readResets(view: View, since: number): Promise<readonly AuditRecord[]> {
  const resets: AuditRecord[] = [];
  let after: string | undefined;
  for (let looked = 0; looked < mostLooked; looked += resetsAtOnce) {
    const page = await view.audit({ action: resetAction, outcome: "done", limit: resetsAtOnce, after });
    // Those without a generation were one server's alone.
    resets.push(...page.filter(({ generation }) => generation !== undefined && generation > since));
    const isLast = page.some(({ generation }) => generation !== undefined && generation <= since);
    if (isLast || page.length < resetsAtOnce) break;
    after = page.at(-1)?.id;
  }
  return resets.reverse();
}
