import { flavors, startServer, type TestServer } from "@sluice/test-servers";
import * as fc from "fast-check";
import type { ResolvedLimit } from "sluice/store";
import { compileTestLimit, resolvedLimit, type TestLimit, testWindow } from "sluice/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { blockKey } from "./ask/encode-call.ts";
import { findCode } from "./ask/window-code.ts";
import { createKeyNames } from "./place/key-names.ts";
import { RedisCounters } from "./redis-counters.ts";

const hourMs = 3_600_000;
const day = { limit: 5, per: { kind: "calendar", unit: "day", timeZone: "Europe/Berlin" }, burst: 5 } as const;
const once = { limit: 5, per: { kind: "never" }, burst: 5 } as const;

/** Every kind of counter that there is. */
const limits: readonly (TestLimit & { readonly name: string })[] = [
  { name: "gcra", algorithm: "gcra", windows: [testWindow(5, hourMs)] },
  { name: "gcra over months", algorithm: "gcra", windows: [testWindow(5, 90 * 24 * hourMs)] },
  { name: "a short gcra", algorithm: "gcra", windows: [testWindow(5, 100)] },
  { name: "token bucket", algorithm: "token_bucket", windows: [testWindow(5, hourMs, 20)] },
  { name: "leaky bucket", algorithm: "leaky_bucket", windows: [testWindow(5, hourMs)] },
  { name: "fixed window", algorithm: "fixed_window", windows: [testWindow(5, hourMs)] },
  { name: "calendar day", algorithm: "fixed_window", windows: [day] },
  { name: "one-off quota", algorithm: "fixed_window", windows: [once] },
  { name: "sliding window", algorithm: "sliding_window", windows: [testWindow(5, hourMs)] },
  { name: "sliding log", algorithm: "sliding_log", windows: [testWindow(5, hourMs)] },
  { name: "blocking", algorithm: "gcra", windows: [testWindow(1, hourMs)], blockForMs: 60_000 },
  { name: "blockable", algorithm: "fixed_window", windows: [testWindow(9, hourMs)], blockable: true },
  { name: "two windows", algorithm: "sliding_window", windows: [testWindow(3, 60_000), testWindow(9, hourMs)] },
];
const compiled = limits.map((limit) =>
  compileTestLimit({ ...limit, policy: limit.name.replaceAll(" ", "-"), maxOvershoot: 1 }),
);
const names = createKeyNames("s");

describe.each(flavors)("keys on %s", (flavor) => {
  let server: TestServer;
  let store: RedisCounters;
  beforeAll(async () => {
    server = await startServer({ flavor });
    store = new RedisCounters({ servers: server.url, deadlineMs: 5000 });
    await store.connected();
  });
  afterAll(async () => {
    await store.close();
    await server.close();
  });
  beforeEach(() => server.command("FLUSHALL"));

  const counterKey = ({ windows, subject }: ResolvedLimit): string =>
    names.counter(findCode(windows[0]!).code, subject);

  async function endless(): Promise<readonly string[]> {
    const keys = (await server.command("KEYS", "*")) as readonly string[];
    const lives = await Promise.all(keys.map((key) => server.command("PTTL", key)));
    // −2: it ended meanwhile.
    return keys.filter((_, i) => lives[i] !== -2 && !(Number(lives[i]) > 0));
  }

  type Step = {
    readonly kind:
      | "take"
      | "takeAll"
      | "peek"
      | "charge"
      | "credit"
      | "block"
      | "give"
      | "reset"
      | "takeById"
      | "lease"
      | "hold"
      | "commit"
      | "extend";
    readonly limit: number;
    readonly subject: number;
    readonly cost: number;
    readonly group: number;
    readonly receipt: boolean;
  };
  const step: fc.Arbitrary<Step> = fc.record({
    kind: fc.constantFrom(
      "take",
      "take",
      "takeAll",
      "peek",
      "charge",
      "credit",
      "block",
      "give",
      "reset",
      "takeById",
      "lease",
      "hold",
      "commit",
      "extend",
    ),
    limit: fc.nat({ max: compiled.length - 1 }),
    subject: fc.nat({ max: 2 }),
    cost: fc.integer({ min: 1, max: 6 }),
    group: fc.constantFrom(0, 0, 1),
    receipt: fc.boolean(),
  });

  it("all have an end, whatever was asked in whatever order", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
        const receipts: string[] = [];
        const holds: string[] = [];
        let epoch = 0;
        const hold = ({ receipt }: { readonly receipt: string | undefined }): void => {
          if (receipt !== undefined) receipts.push(receipt);
        };
        for (const { kind, limit, subject, cost, group, receipt } of steps) {
          const one = resolvedLimit(compiled[limit]!, `u${subject}`, cost);
          const several = compiled.map((each) => resolvedLimit(each, `u${subject}`, 1, each === one.limit ? group : 0));
          if (kind === "take") hold(await store.take([one], { receipt }));
          else if (kind === "takeAll") hold(await store.take(several, { receipt }));
          else if (kind === "takeById")
            hold(await store.take([one], { id: `id${subject}`, fingerprint: "f", receipt }));
          else if (kind === "hold") {
            const held = await store.take([one, ...several], { receipt: true, holdMs: 1000 * cost });
            if (held.receipt !== undefined) holds.push(held.receipt);
          } else if (kind === "commit") await store.holds.commit(holds.at(-1) ?? "h0.0.none", 2 * cost, receipt);
          else if (kind === "extend") await store.holds.extend(holds.at(-1) ?? "h0.0.none", 9000 * cost);
          else if (kind === "peek") await store.peek(several);
          else if (kind === "charge") await store.charge([one]);
          else if (kind === "credit") await store.charge([{ ...one, cost: -cost }]);
          else if (kind === "block") await store.block(several, 1000 * cost);
          else if (kind === "reset") await store.reset([one]);
          else if (kind === "lease") {
            const settled = { epoch, spent: group, kept: limit % 3, returned: limit % 2 };
            ({ epoch } = await store.lease([one], { want: cost, holdMs: 1000 * cost, settled }));
          } else await store.give(receipts.pop() ?? "r0.0.none");
        }
        expect(await endless()).toEqual([]);
      }),
      { numRuns: 30 },
    );
    expect(Number(await server.command("DBSIZE"))).toBeGreaterThan(0);
  });

  it("are not made by a credit, and those that it finds still end when they would have, or later", async () => {
    const takes = compiled.map((limit) => resolvedLimit(limit, "u1"));
    await store.charge(takes.map((take) => ({ ...take, cost: -5 })));
    expect(await server.command("DBSIZE")).toBe(0);
    await store.charge(takes.map((take) => ({ ...take, cost: 5 })));
    const keys = (await server.command("KEYS", "*")) as readonly string[];
    await store.charge(takes.map((take) => ({ ...take, cost: -2 })));
    for (const take of takes) {
      for (const [i, { resetAfterMs }] of (await store.read(take)).entries()) {
        const life = Number(await server.command("PTTL", names.counter(findCode(take.windows[i]!).code, "u1")));
        if (resetAfterMs > 1000) expect(life).toBeGreaterThan(resetAfterMs - 1000);
      }
    }
    await store.charge(takes.map((take) => ({ ...take, cost: -100_000 })));
    expect(await endless()).toEqual([]);
    expect(Number(await server.command("DBSIZE"))).toBeLessThanOrEqual(keys.length);
  });

  it("of blocks end with them", async () => {
    const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(5, hourMs)], blockable: true });
    const key = blockKey(names, limit, "u1");
    await store.block([resolvedLimit(limit, "u1")], hourMs);
    await store.block([resolvedLimit(limit, "u1")], 1000);
    expect(Number(await server.command("PTTL", key))).toBeGreaterThan(hourMs - 60_000);
    await store.block([resolvedLimit(limit, "u1")], 2 * hourMs);
    const life = Number(await server.command("PTTL", key));
    expect(life).toBeGreaterThan(2 * hourMs - 60_000);
    expect(life).toBeLessThanOrEqual(2 * hourMs);
  });

  it("outlive their contents: they do not expire before the counter is as good as new", async () => {
    for (const limit of compiled) {
      const take = resolvedLimit(limit, "u1");
      await store.charge([{ ...take, cost: 2 * limit.windows[0]!.capacity }]);
      const readings = await store.read(take);
      for (const [i, { resetAfterMs }] of readings.entries()) {
        const key = names.counter(findCode(limit.windows[i]!).code, "u1");
        const life = Number(await server.command("PTTL", key));
        if (resetAfterMs < Number.MAX_SAFE_INTEGER) expect(life).toBeGreaterThan(resetAfterMs - 1000);
      }
    }
  });

  const alone = limits.map(({ name }, i): [string, ResolvedLimit] => [name, resolvedLimit(compiled[i]!, "u1")]);

  it.each(alone)("of a counter (%s) get an end again with the next take", async (_, take) => {
    await store.take([take]);
    expect(await server.command("PERSIST", counterKey(take))).toBe(1);
    // Of several keys in a call, one is checked; which one depends on the time.
    await expect
      .poll(
        async () => {
          await store.take([take]);
          return Number(await server.command("PTTL", counterKey(take)));
        },
        { timeout: 30_000, interval: 1 },
      )
      .toBeGreaterThan(0);
  });

  const ofOneKey = alone.filter(([, { windows, limit }]) => windows.length === 1 && !limit.blockable);
  it.each(ofOneKey.filter(([, { windows }]) => windows[0]!.perMs >= hourMs || windows[0]!.calendar !== undefined))(
    "of a used-up counter (%s) get an expiry again with the very next denial, and that is reported",
    async (_, take) => {
      await store.charge([{ ...take, cost: 2 * take.windows[0]!.capacity }]);
      expect(await server.command("PERSIST", counterKey(take))).toBe(1);
      const before = store.stats.healed;
      const { taken, outcomes } = await store.take([take]);
      expect(taken).toBe(false);
      // Not before its contents have expired.
      expect(Number(await server.command("PTTL", counterKey(take)))).toBeGreaterThan(outcomes[0]!.resetAfterMs - 1000);
      expect(store.stats.healed).toBe(before + 1);
    },
  );

  it("get no expiry decades away if a calendar's window is taken from in the same call", async () => {
    const ofDay = compiled[limits.findIndex(({ name }) => name === "calendar day")]!;
    const ofHour = compiled[limits.findIndex(({ name }) => name === "fixed window")]!;
    const used = resolvedLimit(ofHour, "u1");
    await store.charge([{ ...used, cost: 100 }]);
    expect(await server.command("PERSIST", counterKey(used))).toBe(1);
    await expect
      .poll(
        async () => {
          // Denied in shadow mode: it is only peeked at.
          await store.charge([{ ...resolvedLimit(ofDay, "u1"), cost: -5 }]);
          expect((await store.take([resolvedLimit(ofDay, "u1"), { ...used, group: 1 }])).taken).toBe(true);
          return Number(await server.command("PTTL", counterKey(used)));
        },
        { timeout: 30_000, interval: 1 },
      )
      .toBeGreaterThan(0);
    expect(Number(await server.command("PTTL", counterKey(used)))).toBeLessThan(366 * 24 * hourMs);
  });

  it("of counters get an expiry again when they are asked for with others", async () => {
    const takes = compiled.map((limit) => resolvedLimit(limit, "u1"));
    await store.charge(takes.map((take) => ({ ...take, cost: 100 })));
    const keys = (await server.command("KEYS", "*")) as readonly string[];
    for (const key of keys) await server.command("PERSIST", key);
    await expect
      .poll(
        async () => {
          await store.take(takes);
          return (await endless()).length;
        },
        { timeout: 30_000, interval: 1 },
      )
      .toBe(0);
  });
});
