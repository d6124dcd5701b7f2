import { type NodeRecord, openPolicyStore, type PolicyStore } from "@sluice/sql";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type Access, openAccess } from "../../data-plane/access/access.ts";
import { createRecordingLog } from "../../testing/recording-log.ts";
import { createNodeReports, type NodeReports } from "./node-reports.ts";
import { changeStore } from "./testing/store-changes.ts";
import { createTokenUses } from "./token-uses.ts";

let store: PolicyStore;
let reports: NodeReports;
const log = createRecordingLog(() => undefined);
const node: NodeRecord = {
  ...{ id: "n-1", name: "n", version: "1", startedMs: 1, seenMs: 2, generation: 3, appliedMs: 4, details: "{}" },
};
const nodes = (): Promise<readonly NodeRecord[]> => store.read((view) => view.nodes());

beforeEach(async () => {
  store = await openPolicyStore({ url: "sqlite::memory:" });
});
afterEach(() => store.close());

it("reports a node at the start and on request, and removes it at the end", async () => {
  let generation = 3;
  reports = createNodeReports({ store, id: node.id, read: () => ({ ...node, generation }), log, everyMs: 3_600_000 });
  await vi.waitFor(async () => expect(await nodes()).toEqual([node]));
  generation = 4;
  reports.report();
  await vi.waitFor(async () => expect(await nodes()).toEqual([{ ...node, generation: 4 }]));
  await reports.close();
  expect(await nodes()).toEqual([]);
});

it("receives the time by the store's clock", async () => {
  const beforeMs = await store.read((view) => view.nowMs());
  reports = createNodeReports({ store, id: node.id, read: (seenMs) => ({ ...node, seenMs }), log });
  await vi.waitFor(async () => expect(await nodes()).toHaveLength(1));
  expect((await nodes())[0]!.seenMs).toBeGreaterThanOrEqual(beforeMs);
  await reports.close();
});

it("continues automatically, even after an outage of the store", async () => {
  let failures = 2;
  const note: PolicyStore["note"] = (work) => {
    failures -= 1;
    return failures >= 0 ? Promise.reject(new Error("away")) : store.note(work);
  };
  reports = createNodeReports({ store: { note }, id: node.id, read: () => node, log, everyMs: 1 });
  await vi.waitFor(async () => expect(await nodes()).toEqual([node]));
  await reports.close();
});

it("is not blocked by a store that does not answer", async () => {
  const note = (): Promise<never> => new Promise(() => undefined);
  reports = createNodeReports({ store: { note }, id: node.id, read: () => node, log, forgetWithinMs: 1 });
  await reports.close();
});

it("records which tokens are used, each at most once a minute", async () => {
  await changeStore(store, (change) =>
    change.putToken({
      ...{ id: "t1", name: "ann", role: "viewer", team: undefined, sha256: "0".repeat(64), createdMs: 1 },
      ...{ createdBy: "test", expiresMs: undefined, revokedMs: undefined, lastUsedMs: undefined },
    }),
  );
  let nowMs = 1_000_000;
  const uses = createTokenUses(() => nowMs);
  const caller = { ...openAccess.identify(undefined), tokenId: "t1" };
  const access = uses.watch<Access>({ identify: () => caller });
  const write = (): Promise<void> => store.note((note) => uses.write(note));
  const lastUsedMs = async (): Promise<number | undefined> =>
    (await store.read((view) => view.token("t1")))?.lastUsedMs;
  expect(access.identify("secret")).toBe(caller);
  await write();
  expect(await lastUsedMs()).toBe(1_000_000);
  nowMs += 59_999;
  access.identify("secret");
  await write();
  expect(await lastUsedMs()).toBe(1_000_000);
  nowMs += 1;
  access.identify("secret");
  await write();
  expect(await lastUsedMs()).toBe(1_060_000);
  nowMs += 3_600_000;
  await write();
  expect(await lastUsedMs()).toBe(1_060_000);
});
