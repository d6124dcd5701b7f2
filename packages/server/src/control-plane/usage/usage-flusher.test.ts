import { openPolicyStore, type PolicyStore, PolicyStoreUnavailable, type UsageFlush } from "@sluice/sql";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { UsageCounts } from "../../observe/usage/usage-sums.ts";
import { createRecordingLog, type LoggedLine } from "../../testing/recording-log.ts";
import { UsageFlusher, type UsageFlusherOptions } from "./usage-flusher.ts";

const minuteMs = 60_000;
const startMs = 1_700_000_040_000;

let store: PolicyStore;
let nowMs: number;
let counted: UsageCounts[];
let lines: LoggedLine[];

beforeEach(async () => {
  store = await openPolicyStore({ url: "sqlite::memory:" });
  nowMs = startMs;
  counted = [];
  lines = [];
});

afterEach(() => store.close());

function count(decided: number, changes: Partial<UsageCounts> = {}): void {
  counted.push({
    ...{
      policy: "api",
      limit: "user",
      dimension: "",
      subject: "",
      decided,
      allowed: decided,
      denied: 0,
      cost: decided,
    },
    ...{ degraded: 0, shadowDenied: 0, denials: undefined, ...changes },
  });
}

function createFlusher(options: Partial<UsageFlusherOptions> = {}): UsageFlusher {
  return new UsageFlusher({
    sums: { take: () => counted.splice(0), forgetNames() {} },
    ...{ store, node: "n1", boot: "b1", nowMs: () => nowMs, everyMs: 0 },
    log: createRecordingLog((line) => lines.push(line)),
    ...options,
  });
}

/** What is stored, minute by minute. */
async function readMinutes(): Promise<readonly (readonly [number, number])[]> {
  const query = { step: "minute", fromMs: 0, toMs: nowMs + 3_600_000, by: [], atMost: 100 } as const;
  const rows = await store.read((view) => view.usage(query));
  return rows.map((row) => [(row.startMs - startMs) / minuteMs, row.decided] as const);
}

/** A store that fails, before it does anything or after it did all of it. */
function unreliable(fails: () => "before" | "after" | undefined): Pick<PolicyStore, "note"> {
  return {
    async note(work) {
      const when = fails();
      if (when === "before") throw new PolicyStoreUnavailable("unavailable");
      const result = await store.note(work);
      if (when === "after") throw new PolicyStoreUnavailable("the answer was lost");
      return result;
    },
  };
}

describe("flushing usage", () => {
  it("stores sums in the minute that they were counted in", async () => {
    const flusher = createFlusher();
    count(3);
    nowMs += 10_000;
    await flusher.flush();
    count(4);
    nowMs += 50_000;
    await flusher.flush();
    count(5);
    await flusher.close();
    expect(await readMinutes()).toEqual([
      [0, 7],
      [1, 5],
    ]);
    expect(flusher.stats).toEqual({ waiting: 0, stored: 3, dropped: 0 });
  });

  it("adds every sum once, although the store fails before and after it has added them", async () => {
    const outcomes = ["after", "before", "after", undefined, "before", undefined, "after"] as const;
    let turn = 0;
    const flusher = createFlusher({ store: unreliable(() => outcomes[turn++]) });
    for (let i = 0; i < 10; i++) {
      count(10 ** (i % 3));
      nowMs += 10_000;
      await flusher.flush();
    }
    await flusher.close();
    const total = (await readMinutes()).reduce((sum, [, decided]) => sum + decided, 0);
    expect(total).toBe(4 * 1 + 3 * 10 + 3 * 100);
    expect(flusher.stats).toEqual({ waiting: 0, stored: 10, dropped: 0 });
  });

  it("logs an outage of the store once, and its end", async () => {
    let isDown = true;
    const flusher = createFlusher({ store: unreliable(() => (isDown ? "before" : undefined)) });
    for (let i = 0; i < 3; i++) {
      count(1);
      await flusher.flush();
    }
    expect(flusher.stats.waiting).toBe(3);
    isDown = false;
    await flusher.close();
    expect(lines.map(({ event }) => event)).toEqual(["usage.waiting", "usage.stored_again"]);
    expect((await readMinutes()).map(([, decided]) => decided)).toEqual([3]);
  });

  it("drops the oldest sums if too many wait, and counts them", async () => {
    let isDown = true;
    const flusher = createFlusher({ store: unreliable(() => (isDown ? "before" : undefined)), maxWaiting: 3 });
    for (let i = 0; i < 5; i++) {
      count(10 ** i);
      await flusher.flush();
    }
    isDown = false;
    await flusher.close();
    expect(flusher.stats).toEqual({ waiting: 0, stored: 3, dropped: 2 });
    expect(await readMinutes()).toEqual([[0, 11_100]]);
  });

  it("counts denials towards that bound", async () => {
    let isDown = true;
    const flusher = createFlusher({ store: unreliable(() => (isDown ? "before" : undefined)), maxWaiting: 8 });
    for (let i = 0; i < 3; i++) {
      const reasons = Array.from({ length: 4 }, (_, window) => ({
        reason: "over_limit",
        window: `${window}`,
        denied: 1,
      }));
      count(10 ** i, { denials: new Map(reasons.map((one) => [one.window, one])) });
      await flusher.flush();
    }
    isDown = false;
    await flusher.close();
    expect(flusher.stats).toEqual({ waiting: 0, stored: 1, dropped: 2 });
    expect(await readMinutes()).toEqual([[0, 100]]);
  });

  it("reports what is lost if the store is unavailable when the server stops", async () => {
    const flusher = createFlusher({ store: unreliable(() => "before") });
    count(1);
    await flusher.flush();
    count(2);
    await flusher.close();
    expect(flusher.stats).toEqual({ waiting: 0, stored: 0, dropped: 2 });
    expect(lines).toMatchObject([
      { event: "usage.waiting" },
      { level: "error", event: "usage.dropped", fields: { sums: 2 } },
    ]);
  });

  it("drops what the store refuses for good, so that the rest is stored", async () => {
    const flushes: UsageFlush[] = [];
    const flusher = createFlusher({
      store: {
        note: (work) =>
          store.note((note) =>
            work({
              ...note,
              addUsage(flush) {
                flushes.push(flush);
                return flush.sequence === 1 ? Promise.reject(new Error("no such table")) : note.addUsage(flush);
              },
            }),
          ),
      },
    });
    count(1);
    await flusher.flush();
    count(2);
    await flusher.close();
    expect(flushes.map(({ sequence }) => sequence)).toEqual([1, 2]);
    expect(flusher.stats).toEqual({ waiting: 0, stored: 1, dropped: 1 });
    expect(lines.map(({ event }) => event)).toEqual(["usage.dropped"]);
  });

  it("splits many sums into several flushes", async () => {
    const flusher = createFlusher();
    for (let i = 0; i < 12_000; i++) count(1, { dimension: "tenant", subject: `t${i}` });
    await flusher.close();
    const query = {
      step: "minute",
      fromMs: 0,
      toMs: nowMs + minuteMs,
      dimension: "tenant",
      by: [],
      atMost: 10,
    } as const;
    expect(await store.read((view) => view.usage(query))).toMatchObject([{ decided: 12_000 }]);
  });
});
