import { openPolicyStore } from "@sluice/sql";
import { expect, it } from "vitest";
import { auditEntry, sluiceItself } from "../audit/audit-entry.ts";
import { defaultUsageKept } from "../usage/usage-upkeep.ts";
import { deleteOldRecords } from "./delete-old-records.ts";

it("deletes all old audit records, however many, in parts", async () => {
  const store = await openPolicyStore({ url: "sqlite::memory:" });
  const nowMs = 1_700_000_000_000;
  const entry = (atMs: number) =>
    auditEntry(sluiceItself, { action: "policy.put", kind: "policy", target: "a" }, { outcome: "done", why: "" }, atMs);
  const old = Array.from({ length: 2_000 }, () => entry(nowMs - 1_001));
  await store.note((note) => note.addAudit([...old, entry(nowMs - 1_000)]));
  expect(
    await deleteOldRecords(store, nowMs, { auditMs: 1_000, denialsMs: 3 * 86_400_000, usage: defaultUsageKept }),
  ).toMatchObject({
    audit: 2_000,
  });
  expect(await store.read((view) => view.audit())).toHaveLength(1);
  await store.close();
});
