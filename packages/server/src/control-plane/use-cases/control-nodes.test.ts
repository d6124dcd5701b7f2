import type { NodeRecord, PolicyStore } from "@sluice/sql";
import { openPolicyStore, PolicyStoreUnavailable } from "@sluice/sql";
import type { HotKey } from "sluice";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { encodeReport, type HotKeyReport } from "../../observe/hot-keys/hot-key-report.ts";
import type { NodeHotKeys } from "../../observe/hot-keys/merge-hot-keys.ts";
import { createActor, openTestControl, type TestControl } from "../testing/open-test-control.ts";

const viewer = createActor("viewer");

function report(subject: string, perSecond: number): HotKeyReport {
  const key: HotKey = { policy: "api", scope: "user", subject, perSecond, deniedPerSecond: 0, errorPerSecond: 0 };
  return { keys: [key], totals: { perSecond: 2 * perSecond, deniedPerSecond: 0 } };
}

const own: NodeHotKeys = { node: { id: "here-1", name: "here" }, ageMs: 0, report: report("u1", 10) };

let store: PolicyStore;
let control: TestControl;

beforeEach(async () => {
  store = await openPolicyStore({ url: "sqlite::memory:" });
  control = await openTestControl({ store, hotKeys: async () => [own] });
});
afterEach(() => control.close());

async function putNode(id: string, details: unknown, agoMs = 0): Promise<void> {
  await store.note(async (note) => {
    const seenMs = (await note.nowMs()) - agoMs;
    const [name = ""] = id.split("-");
    const node: NodeRecord = {
      ...{ id, name, version: "1", startedMs: 0, seenMs, generation: 0, appliedMs: 0 },
      details: JSON.stringify(details),
    };
    await note.putNode(node);
  });
}

const listSubjects = ({ keys }: { readonly keys: readonly HotKey[] }): unknown[] =>
  keys.map(({ subject, perSecond }) => [subject, perSecond]);

describe("hot keys", () => {
  it("are those of this node now, and of the others as of their last report", async () => {
    // This node's stored report is older than its current state.
    await putNode("here-1", { hot_keys: encodeReport(report("u1", 9_999)) });
    await putNode("there-1", { hot_keys: encodeReport(report("u1", 5)) }, 4_000);
    await putNode("there-2", { hot_keys: encodeReport(report("u2", 7)) });
    const hotKeys = await control.nodes.hotKeys(viewer);
    expect(listSubjects(hotKeys)).toEqual([
      ["u1", 15],
      ["u2", 7],
    ]);
    expect(hotKeys).toMatchObject({ reported: 3, silent: 0, totals: { perSecond: 44 } });
    expect(hotKeys.oldestMs).toBeGreaterThanOrEqual(4_000);
  });

  it("leave out nodes that are gone, and count nodes that report none", async () => {
    await putNode("gone-1", { hot_keys: encodeReport(report("u1", 5)) }, 60_000);
    await putNode("older-1", { pid: 7 });
    await putNode("newer-1", { hot_keys: { another: "form" } });
    expect(await control.nodes.hotKeys(viewer)).toMatchObject({ reported: 1, silent: 2, keys: [{ perSecond: 10 }] });
  });

  it("are those of one node, by its id or its name", async () => {
    await putNode("there-1", { hot_keys: encodeReport(report("u1", 5)) });
    await putNode("there-2", { hot_keys: encodeReport(report("u2", 7)) });
    const of = async (node: string): Promise<unknown> => listSubjects(await control.nodes.hotKeys(viewer, { node }));
    expect(await of("there-1")).toEqual([["u1", 5]]);
    expect(await of("there")).toEqual([
      ["u2", 7],
      ["u1", 5],
    ]);
    expect(await of("here")).toEqual([["u1", 10]]);
    await expect(of("nowhere")).rejects.toMatchObject({ code: "resource_not_found" });
  });

  it("are those of this node alone while the store is unavailable, with the number of other nodes unknown", async () => {
    const away = (): Promise<never> => Promise.reject(new PolicyStoreUnavailable("gone", { maybeDone: false }));
    const alone = await openTestControl({ store: { ...store, read: away }, hotKeys: async () => [own] });
    const hotKeys = await alone.nodes.hotKeys(viewer);
    expect(hotKeys).toMatchObject({ reported: 1, keys: [{ subject: "u1" }] });
    expect(hotKeys.silent).toBeUndefined();
    await expect(alone.nodes.hotKeys(createActor("check"))).rejects.toMatchObject({ code: "permission_denied" });
  });

  it("are refused to actors that may not read", async () => {
    await expect(control.nodes.hotKeys(createActor("check"))).rejects.toMatchObject({ code: "permission_denied" });
  });

  it("stay out of the list of nodes", async () => {
    await putNode("there-1", { pid: 7, hot_keys: encodeReport(report("u1", 5)) });
    const { nodes } = await control.nodes.list(viewer);
    expect(nodes.map(({ details }) => details)).toEqual([{ pid: 7 }]);
  });
});
