import { deepStrictEqual, strictEqual } from "node:assert/strict";
import type { KnownSubjectQuery, PolicyStore, UsageQuery } from "../../policy-store.ts";
import type { UsageFlush, UsageRow, UsageSum } from "../../records.ts";
import type { PolicyStoreCase } from "./policy-store-case.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
/** A day begins here. */
const originMs = 20_000 * dayMs;

function sum(changes: Partial<UsageSum> = {}): UsageSum {
  return {
    ...{ policy: "api", limit: "user", dimension: "", subject: "", startMs: originMs },
    ...{ decided: 10, allowed: 8, denied: 2, cost: 9, degraded: 1, shadowDenied: 3 },
    denials: [
      { reason: "over_limit", window: "5/s", denied: 1 },
      { reason: "over_limit", window: "100/h", denied: 1 },
    ],
    ...changes,
  };
}

function flush(sequence: number, sums: readonly UsageSum[], changes: Partial<UsageFlush> = {}): UsageFlush {
  return { node: "n1", boot: "b1", sequence, sums, ...changes };
}

const all = { fromMs: 0, toMs: originMs + 400 * dayMs, by: [], atMost: 1_000 } as const;

const read = (store: PolicyStore, query: Partial<UsageQuery> = {}): Promise<readonly UsageRow[]> =>
  store.read((view) => view.usage({ ...all, step: "minute", ...query }));

async function rollUp(store: PolicyStore): Promise<number> {
  let rolled = 0;
  await store.note((note) => note.planUsage());
  while (await store.upkeep((note) => note.rollUpUsage())) rolled += 1;
  return rolled;
}

/** What a period says, without what it was not asked for by. */
const brief = (rows: readonly UsageRow[]) =>
  rows.map(({ startMs, policy, limit, subject, decided, cost }) => {
    const by = [policy, limit, subject].filter((field) => field !== undefined);
    return [(startMs - originMs) / minuteMs, ...by, decided, cost];
  });

/** Usage of policies over time. */
export const usageCases: readonly PolicyStoreCase[] = [
  {
    name: "adds a flush of usage once, however often it is sent, and the next one to it",
    async run({ store }) {
      const add = (one: UsageFlush): Promise<boolean> => store.note((note) => note.addUsage(one));
      strictEqual(await add(flush(1, [sum()])), true);
      strictEqual(await add(flush(1, [sum()])), false);
      strictEqual(await add(flush(3, [sum({ denials: [{ reason: "blocked", window: "", denied: 2 }] })])), true);
      strictEqual(await add(flush(2, [sum()])), false);
      strictEqual(await add(flush(1, [sum()], { boot: "b2" })), true);
      strictEqual(await add(flush(1, [sum()], { node: "n2" })), true);
      strictEqual(await add(flush(4, [])), true);
      const counts = { decided: 40, allowed: 32, denied: 8, cost: 36, degraded: 4, shadowDenied: 12 };
      const nobody = { policy: undefined, limit: undefined, dimension: undefined, subject: undefined };
      deepStrictEqual(await read(store), [{ startMs: originMs, ...nobody, ...counts }]);
      const denials = await store.read((view) => view.usageDenials({ ...all, step: "minute" }));
      deepStrictEqual(
        denials.map(({ reason, window, denied }) => [reason, window, denied]),
        [
          ["blocked", "", 2],
          ["over_limit", "100/h", 3],
          ["over_limit", "5/s", 3],
        ],
      );
    },
  },
  {
    name: "keeps usage apart by policy, limit and subject, and adds up the rest",
    async run({ store }) {
      const tenants = { dimension: "tenant" };
      await store.note((note) =>
        note.addUsage(
          flush(1, [
            sum({ decided: 1 }),
            sum({ decided: 2, limit: "tenant" }),
            sum({ decided: 4, policy: "search" }),
            sum({ decided: 8, ...tenants, subject: "acme" }),
            sum({ decided: 16, ...tenants, subject: "globex" }),
            sum({ decided: 32, ...tenants, subject: "acme", policy: "search", startMs: originMs + minuteMs }),
          ]),
        ),
      );
      deepStrictEqual(brief(await read(store)), [[0, 7, 27]]);
      deepStrictEqual(brief(await read(store, { by: ["policy"] })), [
        [0, "api", 3, 18],
        [0, "search", 4, 9],
      ]);
      deepStrictEqual(brief(await read(store, { by: ["policy", "limit"], policy: "api" })), [
        [0, "api", "tenant", 2, 9],
        [0, "api", "user", 1, 9],
      ]);
      deepStrictEqual(brief(await read(store, { by: ["policy"], policies: ["search", "login"] })), [
        [0, "search", 4, 9],
      ]);
      deepStrictEqual(brief(await read(store, { policies: ["search", "api"] })), [[0, 7, 27]]);
      deepStrictEqual(brief(await read(store, { by: ["subject"], ...tenants })), [
        [0, "acme", 8, 9],
        [0, "globex", 16, 9],
        [1, "acme", 32, 9],
      ]);
      deepStrictEqual(brief(await read(store, { ...tenants, subject: "acme", fromMs: originMs + minuteMs })), [
        [1, 32, 9],
      ]);
      deepStrictEqual(brief(await read(store, { ...tenants, subject: "acme", toMs: originMs + minuteMs })), [
        [0, 8, 9],
      ]);
      deepStrictEqual(await read(store, { dimension: "user" }), []);
      const page = { by: ["subject"], ...tenants, atMost: 1 } as const;
      deepStrictEqual(brief(await read(store, page)), [[0, "acme", 8, 9]]);
      deepStrictEqual(brief(await read(store, { ...page, after: [originMs, "acme"] })), [[0, "globex", 16, 9]]);
      deepStrictEqual(brief(await read(store, { ...page, after: [originMs, "globex"] })), [[1, "acme", 32, 9]]);
      deepStrictEqual(await read(store, { ...page, after: [originMs + minuteMs, "acme"] }), []);
    },
  },
  {
    name: "adds up hours and days from minutes, again when a flush comes late",
    async run({ store }) {
      const at = (minute: number): UsageSum => sum({ startMs: originMs + minute * minuteMs });
      await store.note((note) => note.addUsage(flush(1, [at(0), at(59), at(60), at(24 * 60)])));
      strictEqual(await rollUp(store), 3);
      strictEqual(await rollUp(store), 0);
      const hours = (): Promise<readonly UsageRow[]> => read(store, { step: "hour" });
      deepStrictEqual(brief(await hours()), [
        [0, 20, 18],
        [60, 10, 9],
        [24 * 60, 10, 9],
      ]);
      await store.note((note) => note.addUsage(flush(7, [at(30)], { node: "n2" })));
      strictEqual(await rollUp(store), 1);
      deepStrictEqual(brief(await hours())[0], [0, 30, 27]);
      deepStrictEqual(brief(await read(store, { step: "day" })), [
        [0, 40, 36],
        [24 * 60, 10, 9],
      ]);
      const denials = await store.read((view) => view.usageDenials({ ...all, step: "day", by: ["policy"] }));
      deepStrictEqual(
        denials.map(({ startMs, policy, window, denied }) => [(startMs - originMs) / dayMs, policy, window, denied]),
        [
          [0, "api", "100/h", 4],
          [0, "api", "5/s", 4],
          [1, "api", "100/h", 1],
          [1, "api", "5/s", 1],
        ],
      );
    },
  },
  {
    name: "deletes usage by age, each step for itself, and series that are no longer used",
    async run({ store }) {
      const at = (minute: number): UsageSum => sum({ startMs: originMs + minute * minuteMs });
      await store.note((note) => note.addUsage(flush(1, [at(0), at(1), at(2)])));
      await rollUp(store);
      const deleteMinutes = async (beforeMs: number): Promise<number> => {
        let deleted = 0;
        while (await store.note((note) => note.deleteOldestUsage("minute", beforeMs))) deleted += 1;
        return deleted;
      };
      strictEqual(await deleteMinutes(originMs), 0);
      strictEqual(await deleteMinutes(originMs + 2 * minuteMs), 2);
      deepStrictEqual(brief(await read(store)), [[2, 10, 9]]);
      deepStrictEqual(brief(await read(store, { step: "hour" })), [[0, 30, 27]]);
      strictEqual((await store.read((view) => view.usageDenials({ ...all, step: "minute" }))).length, 2);
      await store.note((note) => note.addUsage(flush(2, [sum({ policy: "search" }), sum({ policy: "login" })])));
      const deleteUnused = (beforeMs: number): Promise<number> =>
        store.note((note) => note.deleteUnusedUsageSeries(beforeMs, 2));
      strictEqual(await deleteUnused(originMs), 0);
      strictEqual(await deleteUnused(originMs + dayMs), 2);
      strictEqual(await deleteUnused(originMs + dayMs), 1);
    },
  },
  {
    name: "loses nothing of an hour whose minutes are deleted when a flush comes very late",
    async run({ store }) {
      const at = (minute: number): UsageSum => sum({ startMs: originMs + minute * minuteMs });
      await store.note((note) => note.addUsage(flush(1, [at(0), at(1), at(60)])));
      await rollUp(store);
      while (await store.note((note) => note.deleteOldestUsage("minute", originMs + dayMs)));
      await store.note((note) => note.addUsage(flush(2, [at(2), at(70), at(71)])));
      strictEqual(await rollUp(store), 2);
      deepStrictEqual(brief(await read(store, { step: "hour" })), [
        [0, 20, 18],
        [60, 20, 18],
      ]);
      deepStrictEqual(brief(await read(store, { step: "day" })), [[0, 40, 36]]);
      const denials = await store.read((view) => view.usageDenials({ ...all, step: "hour" }));
      deepStrictEqual(
        denials.map(({ startMs, window, denied }) => [(startMs - originMs) / minuteMs, window, denied]),
        [
          [0, "100/h", 2],
          [0, "5/s", 2],
          [60, "100/h", 2],
          [60, "5/s", 2],
        ],
      );
    },
  },
  {
    name: "stores thousands of sums in one flush, with subjects of any length and any characters",
    async run({ store }) {
      const subjects = Array.from({ length: 2_500 }, (_, i) => `${i}-${"x".repeat(i % 400)}`);
      const odd = ["nul\0", "half \ud800", "ü", "🙂", "'\"\\"];
      const sums = [...subjects, ...odd].map((subject) => sum({ dimension: "user", subject, denials: [] }));
      await store.note((note) => note.addUsage(flush(1, sums)));
      const rows = await read(store, { dimension: "user", by: ["subject"], atMost: 10_000 });
      strictEqual(rows.length, sums.length);
      strictEqual(rows.filter(({ subject }) => subject!.includes("\ufffd")).length, 2);
      const long = subjects.find(({ length }) => length > 400)!;
      deepStrictEqual(brief(await read(store, { dimension: "user", subject: long })), [[0, 10, 9]]);
    },
  },
  {
    name: "adds up what a flush has twice, of a series and of a window, also if only characters differ that cannot be stored",
    async run({ store }) {
      const windows = ["a\0", "a\ufffd", "b"].map((window) => ({ reason: "over_limit", window, denied: 1 }));
      const twice = sum({ decided: 3, denied: 3, denials: windows });
      await store.note((note) => note.addUsage(flush(1, [twice, sum({ policy: "search" }), twice])));
      deepStrictEqual(brief(await read(store, { by: ["policy"] })), [
        [0, "api", 6, 18],
        [0, "search", 10, 9],
      ]);
      const denials = await store.read((view) => view.usageDenials({ ...all, step: "minute", policy: "api" }));
      deepStrictEqual(
        denials.map(({ window, denied }) => [window, denied]),
        [
          ["a\ufffd", 4],
          ["b", 2],
        ],
      );
    },
  },
  {
    name: "adds flushes of many nodes at once, and adds up hours meanwhile, without losing any",
    async run({ store, openAnother }) {
      const other = (await openAnother?.()) ?? store;
      const nodes = ["n1", "n2", "n3", "n4"];
      const sums = Array.from({ length: 40 }, (_, i) =>
        sum({ dimension: "tenant", subject: `t${i}`, startMs: originMs + (i % 3) * 30 * minuteMs }),
      );
      const flushAll = async (node: string, i: number): Promise<void> => {
        const target = i % 2 === 0 ? store : other;
        for (let sequence = 1; sequence <= 5; sequence += 1)
          await target.note((note) => note.addUsage(flush(sequence, sums.toReversed(), { node })));
      };
      let isFlushing = true;
      const rolling = (async () => {
        while (isFlushing) await rollUp(store);
      })();
      await Promise.all(nodes.map(flushAll));
      isFlushing = false;
      await rolling;
      await rollUp(store);
      const expected = { decided: 40 * 5 * 4 * 10, cost: 40 * 5 * 4 * 9 };
      for (const step of ["minute", "hour", "day"] as const) {
        const rows = await read(store, { step, dimension: "tenant" });
        const total = rows.reduce((so, { decided, cost }) => [so[0]! + decided, so[1]! + cost], [0, 0]);
        deepStrictEqual(total, [expected.decided, expected.cost], step);
      }
    },
  },
  {
    name: "says who used most, how high a policy peaked, and which subjects begin with a text",
    async run({ store }) {
      const tenant = (subject: string, cost: number, more: Partial<UsageSum> = {}): UsageSum =>
        sum({ dimension: "tenant", subject, cost, decided: cost, denied: 1, ...more });
      const sums = [
        ...[tenant("acme", 5), tenant("acme", 9, { startMs: originMs + minuteMs }), tenant("apex", 12)],
        ...[tenant("globex", 3, { policy: "other" }), tenant("(other)", 99), sum({ cost: 30 })],
      ];
      await store.note((note) => note.addUsage(flush(1, sums)));
      const period = { step: "minute", fromMs: originMs, toMs: originMs + hourMs } as const;
      const top = await store.read((view) =>
        view.topSubjects({ ...period, dimension: "tenant", policy: "api", by: "cost", atMost: 3 }),
      );
      deepStrictEqual(
        top.map(({ subject, cost, denied }) => [subject, cost, denied]),
        [
          ["(other)", 99, 1],
          ["acme", 14, 2],
          ["apex", 12, 1],
        ],
      );
      const peaks = async () => {
        const found = await store.read((view) => view.usagePeaks({ ...period, policies: ["api"] }));
        return found.map(({ limit, dimension, tier, cost }) => [limit, dimension, tier, cost]).sort();
      };
      deepStrictEqual(await peaks(), [
        ["user", "", undefined, 30],
        ["user", "tenant", undefined, 12],
      ]);
      await store.change((change) =>
        change.putSubject({ dimension: "tenant", value: "acme", tier: "pro", version: 1, changedMs: originMs }),
      );
      deepStrictEqual(await peaks(), [
        ["user", "", undefined, 30],
        ["user", "tenant", undefined, 12],
        ["user", "tenant", "pro", 9],
      ]);
      const windows = '["99/m"]';
      const own = { dimension: "tenant", value: "apex", policy: "api", limit: "", windows, untilMs: undefined };
      await store.change((change) => change.putSubjectLimit({ ...own, reason: "", author: "ann", atMs: originMs }));
      deepStrictEqual(await peaks(), [
        ["user", "", undefined, 30],
        ["user", "tenant", "pro", 9],
      ]);
      const find = (query: Partial<KnownSubjectQuery>) =>
        store.read(async (view) =>
          (await view.knownSubjects({ prefix: "", atMost: 10, ...query })).map(({ value, by }) => [value, by]),
        );
      deepStrictEqual(await find({ prefix: "ac" }), [
        ["acme", "usage"],
        ["acme", "configured"],
      ]);
      const rest = [
        ["apex", "usage"],
        ["globex", "usage"],
      ];
      deepStrictEqual(await find({ after: { dimension: "tenant", value: "acme" } }), rest);
      deepStrictEqual(await find({ dimension: "user" }), []);
      deepStrictEqual(await find({ prefix: "%" }), []);
      strictEqual((await find({ atMost: 1 })).length, 2);
    },
  },
];
