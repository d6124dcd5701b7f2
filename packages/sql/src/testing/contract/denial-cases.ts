import { deepStrictEqual, strictEqual } from "node:assert/strict";
import type { DenialQuery, PolicyStore } from "../../policy-store.ts";
import type { DenialNote, DenialRecord } from "../../records.ts";
import { sample } from "../sample-records.ts";
import { ids, type PolicyStoreCase } from "./policy-store-case.ts";

const startMs = 1_700_000_000_000;

function record(id: string, changes: Partial<DenialRecord> = {}): DenialRecord {
  return {
    ...{ id, atMs: startMs, sinceMs: startMs - 5, node: "n1", policy: "api", version: 3, limit: "per-tenant" },
    ...{ by: ["tenant"], dimensions: { tenant: "acme", endpoint: "/v1" }, requestId: "r-1", reason: "over_limit" },
    ...{ window: "5/s", cost: 2, capacity: 5, remaining: 1, retryAfterMs: 200, degraded: undefined, shadow: false },
    ...{ denials: 1, mixed: false, ...changes },
  };
}

function note(id: string, changes: Partial<DenialRecord> = {}): DenialNote {
  const one = record(id, changes);
  const subjects = Object.entries(one.dimensions).filter(([dimension]) => dimension !== "endpoint");
  return { record: one, foundBy: subjects.map(([dimension, subject]) => ({ dimension, subject })) };
}

const add = (store: PolicyStore, ...notes: readonly DenialNote[]): Promise<void> =>
  store.note((write) => write.addDenials(notes));

const all = { fromMs: 0, toMs: startMs * 2, atMost: 1_000 } as const;

const read = (store: PolicyStore, query: Partial<DenialQuery> = {}): Promise<readonly DenialRecord[]> =>
  store.read((view) => view.denials({ ...all, ...query }));

/** Denials that were recorded. */
export const denialCases: readonly PolicyStoreCase[] = [
  {
    name: "returns a denial as it was added, once, however often it is added",
    async run({ store }) {
      const bare = record("b", {
        ...{ atMs: startMs - 1, policy: "", version: undefined, limit: "", by: [], dimensions: {}, window: "" },
        ...{ requestId: undefined, capacity: undefined, remaining: undefined, retryAfterMs: undefined },
        ...{ degraded: "kill_switch", shadow: true, mixed: true, denials: 7 },
      });
      const notes = [note("a"), { record: bare, foundBy: [] }];
      await add(store, ...notes);
      await add(store, ...notes);
      deepStrictEqual(await read(store), [record("a"), bare]);
      deepStrictEqual(await store.read((view) => view.countDenials(all)), { denials: 8, mixed: 7 });
    },
  },
  {
    name: "finds denials by subject, policy, limit and time, newest first and page by page",
    async run({ store }) {
      await add(
        store,
        note("a", { atMs: startMs + 1 }),
        note("b", { atMs: startMs + 2, dimensions: { tenant: "globex", user: "u1" }, denials: 9 }),
        note("c", { atMs: startMs + 2, policy: "search", limit: "user", mixed: true, denials: 4 }),
        note("d", { atMs: startMs + 3, dimensions: { user: "acme" } }),
      );
      deepStrictEqual(ids(await read(store)), ["d", "c", "b", "a"]);
      deepStrictEqual(ids(await read(store, { found: { dimension: "tenant", subject: "acme" } })), ["c", "a"]);
      deepStrictEqual(ids(await read(store, { found: { dimension: "user", subject: "u1" } })), ["b"]);
      deepStrictEqual(ids(await read(store, { found: { dimension: "user", subject: "u2" } })), []);
      deepStrictEqual(ids(await read(store, { policy: "search" })), ["c"]);
      deepStrictEqual(ids(await read(store, { limit: "per-tenant" })), ["d", "b", "a"]);
      deepStrictEqual(ids(await read(store, { fromMs: startMs + 2, toMs: startMs + 3 })), ["c", "b"]);
      deepStrictEqual(ids(await read(store, { atMost: 2 })), ["d", "c"]);
      deepStrictEqual(ids(await read(store, { after: { atMs: startMs + 2, id: "c" } })), ["b", "a"]);
      const ofPolicy = await store.read((view) => view.countDenials({ ...all, policy: "search" }));
      deepStrictEqual(ofPolicy, { denials: 4, mixed: 4 });
      deepStrictEqual(await store.read((view) => view.countDenials({ ...all, policy: "none" })), {
        denials: 0,
        mixed: 0,
      });
    },
  },
  {
    name: "finds the denials and the usage of a team's policies alone",
    async run({ store }) {
      await store.change(async (change) => {
        await change.putPolicy([
          sample.policy({ id: "api", owner: "web" }),
          sample.policy({ id: "gone", owner: "web", deleted: true, document: "" }),
          sample.policy({ id: "search", owner: "other" }),
        ]);
        await change.nextGeneration();
      });
      const policies = ["api", "gone", "search", "file"];
      await add(store, ...policies.map((policy, i) => note(policy, { policy, atMs: startMs - i })));
      const sums = policies.map((policy) => ({
        ...{ policy, limit: "l", dimension: "", subject: "", startMs: 0, decided: 1, allowed: 1, denied: 0, cost: 1 },
        ...{ degraded: 0, shadowDenied: 0, denials: [] },
      }));
      await store.note((write) => write.addUsage({ node: "n", boot: "b", sequence: 1, sums }));
      const find = async (also: readonly string[], except: readonly string[]): Promise<readonly unknown[]> => {
        const owned = { owner: "web", also, except };
        const usage = { ...all, step: "minute", by: ["policy"], owned } as const;
        const used = await store.read((view) => view.usage(usage));
        const denied = ids(await read(store, { owned }));
        deepStrictEqual(used.map(({ policy }) => policy!).sort(), [...denied].sort());
        return denied;
      };
      deepStrictEqual(await find([], []), ["api", "gone"]);
      deepStrictEqual(await find(["file"], ["api"]), ["gone", "file"]);
    },
  },
  {
    name: "deletes the oldest denials, by age and by number, in bounded parts",
    async run({ store }) {
      await add(store, ...Array.from({ length: 10 }, (_, i) => note(`d${i}`, { atMs: startMs + i })));
      const found = { dimension: "tenant", subject: "acme" };
      const remove = (beforeMs: number, keep: number, limit = 100): Promise<number> =>
        store.note((write) => write.deleteOldDenials(beforeMs, keep, limit));
      strictEqual(await remove(startMs, 10), 0);
      strictEqual(await remove(startMs + 2, 10), 2);
      strictEqual(await remove(startMs, 5), 3);
      deepStrictEqual(ids(await read(store, { found })), ["d9", "d8", "d7", "d6", "d5"]);
      strictEqual(await remove(startMs * 2, 5, 1), 2);
      strictEqual(await remove(startMs * 2, 5, 1), 2);
      strictEqual(await remove(startMs * 2, 5, 1), 1);
      strictEqual(await remove(startMs * 2, 5, 1), 0);
      deepStrictEqual(await read(store), []);
    },
  },
  {
    name: "stores denials of requests with any characters, and subjects of any length",
    async run({ store }) {
      const long = "x".repeat(4_000);
      const odd = { tenant: long, user: "nul\0 half \ud800 🙂" };
      await add(store, note("a", { dimensions: odd, requestId: "nul\0", limit: "half \udc00" }));
      const [stored] = await read(store, { found: { dimension: "tenant", subject: long } });
      deepStrictEqual(stored?.dimensions, odd);
      deepStrictEqual([stored?.requestId, stored?.limit], ["nul\ufffd", "half \ufffd"]);
    },
  },
];
