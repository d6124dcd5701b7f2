import { openPolicyStore, type PolicyStore, PolicyStoreUnavailable } from "@sluice/sql";
import { type CheckRequest, createLimiter, ManualClock } from "sluice";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DenialSamples } from "../../observe/denials/denial-samples.ts";
import { createRecordingLog, type LoggedLine } from "../../testing/recording-log.ts";
import { DenialFlusher, type DenialFlusherOptions } from "./denial-flusher.ts";

let store: PolicyStore;
let clock: ManualClock;
let lines: LoggedLine[];
let samples: DenialSamples;

beforeEach(async () => {
  store = await openPolicyStore({ url: "sqlite::memory:" });
  clock = new ManualClock(1_700_000_000_000);
  lines = [];
  samples = new DenialSamples({ findBy: () => ["tenant"], nowMs: () => clock.epochMs() });
});

afterEach(() => store.close());

const policies = { policies: [{ id: "api", limits: [{ name: "calls", by: ["tenant"], windows: ["1/h"] }] }] };

/** Denies as many requests. */
function deny(times: number, request: CheckRequest): void {
  const limiter = createLimiter({ policies, clock });
  limiter.checkSync({ ...request, id: undefined });
  for (let i = 0; i < times; i++) samples.count(request, limiter.checkSync(request));
}

const createFlusher = (options: Partial<DenialFlusherOptions> = {}): DenialFlusher =>
  new DenialFlusher({
    ...{ samples, store, node: "n1", ipv6PrefixBits: undefined, everyMs: 0, nowMs: () => clock.epochMs() },
    log: createRecordingLog((line) => lines.push(line)),
    ...options,
  });

const read = () => store.read((view) => view.denials({ fromMs: 0, toMs: 2 ** 45, atMost: 10_000 }));

describe("the flusher of denials", () => {
  it("stores what was denied, bounded, without secrets, and with where it is found", async () => {
    const dimensions = {
      ...{ tenant: "acme", api_key: "k-secret", endpoint: "/v1?token=t-secret", long: "x".repeat(1_000) },
      ...Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`extra_${i}`, "y"])),
    };
    deny(7, { dimensions, id: "r1", cost: 1 });
    const flusher = createFlusher();
    await flusher.close();
    const records = await read();
    expect(records.map(({ denials }) => denials)).toEqual([3, 1, 1, 1, 1]);
    expect(records[0]).toMatchObject({
      ...{ node: "n1", policy: "api", limit: "calls", by: ["tenant"], reason: "over_limit", window: "1/h" },
      ...{ cost: 1, capacity: 1, remaining: 0, requestId: "r1", shadow: false, mixed: false },
    });
    expect(JSON.stringify(records)).not.toContain("k-secret");
    expect(JSON.stringify(records)).not.toContain("t-secret");
    const shown = records[0]!.dimensions;
    expect(Object.keys(shown).slice(0, 2)).toContain("tenant");
    expect(Object.keys(shown)).toHaveLength(16);
    expect(shown.long).toHaveLength(256);
    const found = { dimension: "tenant", subject: "acme" };
    const query = { fromMs: 0, toMs: 2 ** 45, found, atMost: 10 };
    expect(await store.read((view) => view.denials(query))).toHaveLength(5);
    expect(flusher.stats).toEqual({ waiting: 0, stored: 5, dropped: 0 });
  });

  it("takes no larger a sample for readers that ask all the time", async () => {
    const flusher = createFlusher();
    for (let i = 0; i < 20; i++) {
      deny(100, { dimensions: { tenant: "acme" } });
      await flusher.flush();
      clock.advance(50);
    }
    expect(await read()).toHaveLength(5);
    await flusher.close();
    expect((await read()).reduce((sum, { denials }) => sum + denials, 0)).toBe(2_000);
  });

  it("keeps the newest while the store is unavailable, says so once, and stores them afterwards", async () => {
    let isAway = true;
    const flusher = createFlusher({
      maxWaiting: 8,
      store: {
        async note(work) {
          if (isAway) throw new PolicyStoreUnavailable("away");
          return store.note(work);
        },
      },
    });
    for (const tenant of ["a", "b", "c"]) {
      deny(5, { dimensions: { tenant } });
      await flusher.flush();
      clock.advance(10_000);
    }
    expect(flusher.stats).toEqual({ waiting: 8, stored: 0, dropped: 7 });
    isAway = false;
    await flusher.flush();
    expect((await read()).map(({ dimensions }) => dimensions.tenant).join("")).toBe("cccccbbb");
    expect(lines.map(({ event }) => event)).toEqual(["denials.waiting", "denials.stored_again"]);
    await flusher.close();
  });

  it("reports what is lost if the store is unavailable when the server stops", async () => {
    const flusher = createFlusher({ store: { note: () => Promise.reject(new PolicyStoreUnavailable("away")) } });
    deny(3, { dimensions: { tenant: "a" } });
    await flusher.close();
    expect(flusher.stats).toEqual({ waiting: 0, stored: 0, dropped: 3 });
    expect(lines).toMatchObject([
      { event: "denials.waiting" },
      { level: "error", event: "denials.dropped", fields: { records: 3 } },
    ]);
  });

  it("drops what cannot be stored, says so, and goes on", async () => {
    let fails = true;
    const flusher = createFlusher({
      store: {
        async note(work) {
          if (fails) throw new Error("no such table");
          return store.note(work);
        },
      },
    });
    deny(1, { dimensions: { tenant: "a" } });
    await flusher.flush();
    fails = false;
    clock.advance(10_000);
    deny(1, { dimensions: { tenant: "b" } });
    await flusher.close();
    expect(flusher.stats).toEqual({ waiting: 0, stored: 1, dropped: 1 });
    expect(lines).toMatchObject([{ level: "error", event: "denials.dropped" }]);
  });
});
