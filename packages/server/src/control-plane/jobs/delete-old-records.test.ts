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

it("deletes sessions of the console a day after their end, and leaves the tokens that people made", async () => {
  const store = await openPolicyStore({ url: "sqlite::memory:" });
  const nowMs = 1_700_000_000_000;
  const dayMs = 86_400_000;
  const token = (name: string, expiresMs: number) => ({
    ...{ id: name, name, role: "admin", team: undefined, sha256: name, createdMs: 0, createdBy: "sluice", expiresMs },
    ...{ revokedMs: undefined, lastUsedMs: undefined },
  });
  await store.change(async (change) => {
    await change.putToken(token("console/old", nowMs - dayMs - 1));
    await change.putToken(token("console/recent", nowMs - dayMs));
    await change.putToken(token("ops", nowMs - 9 * dayMs));
    await change.nextGeneration();
  });
  const kept = { auditMs: 1_000, denialsMs: 3 * dayMs, usage: defaultUsageKept };
  expect(await deleteOldRecords(store, nowMs, kept)).toMatchObject({ tokens: 1 });
  expect(await store.read(async (view) => (await view.tokens()).map(({ name }) => name))).toEqual([
    "console/recent",
    "ops",
  ]);
  expect(await deleteOldRecords(store, nowMs, kept)).toMatchObject({ tokens: 0 });
  await store.close();
});
