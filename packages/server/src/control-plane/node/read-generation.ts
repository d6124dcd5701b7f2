import type { AuditRecord, PolicyStore } from "@sluice/sql";
import { readStored, type StoredGeneration } from "../documents/stored-generation.ts";
import { resetAction } from "../use-cases/reset-counters.ts";

type View = Parameters<Parameters<PolicyStore["read"]>[0]>[0];

/** One generation of the store, and the resets on the way to it. */
export interface ReadGeneration {
  readonly stored: StoredGeneration;
  /** When that generation was made, if that can be found. */
  readonly changedMs: number | undefined;
  /** Resets since an earlier generation, oldest first. */
  readonly resets: readonly AuditRecord[];
}

/** How many of the newest audit records to search for the change that made a generation. */
const auditSearched = 20;
const resetsAtOnce = 50;
/** How many records to read. A node that missed more has been without its store for long. */
const maxRecordsRead = 1_000;

/** `since`: the generation up to which resets are known. Undefined: none are read, because a node that starts holds no counters. */
export async function readGeneration(view: View, since: number | undefined): Promise<ReadGeneration> {
  const stored = await readStored(view);
  const records = await view.audit({ limit: auditSearched });
  const changedMs = records.find(({ generation }) => generation === stored.generation)?.atMs;
  const isNew = since !== undefined && stored.generation > since;
  return { stored, changedMs, resets: isNew ? await readResets(view, since) : [] };
}

async function readResets(view: View, since: number): Promise<readonly AuditRecord[]> {
  const resets: AuditRecord[] = [];
  let after: string | undefined;
  for (let looked = 0; looked < maxRecordsRead; looked += resetsAtOnce) {
    const page = await view.audit({ action: resetAction, outcome: "done", limit: resetsAtOnce, after });
    // Resets without a generation affected one server alone.
    resets.push(...page.filter(({ generation }) => generation !== undefined && generation > since));
    const isLast = page.some(({ generation }) => generation !== undefined && generation <= since);
    if (isLast || page.length < resetsAtOnce) break;
    after = page.at(-1)?.id;
  }
  return resets.reverse();
}
