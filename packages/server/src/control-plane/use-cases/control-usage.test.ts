import type { UsageSum } from "@sluice/sql";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { admin, catchRefusal, createActor, openTestControl, type TestControl } from "../testing/open-test-control.ts";
import { rollUpUsage } from "../usage/usage-upkeep.ts";
import type { UsageRequest } from "../usage-control.ts";

const hourMs = 3_600_000;
let control: TestControl;
let sequence = 0;

beforeEach(async () => {
  control = await openTestControl();
});

afterEach(() => control.close());

/** Stores sums that were counted this long ago. */
async function store(agoMs: number, ...sums: readonly Partial<UsageSum>[]): Promise<void> {
  const startMs = control.clock.epochMs() - agoMs;
  const whole = sums.map((sum) => ({
    ...{
      policy: "api",
      limit: "user",
      dimension: "",
      subject: "",
      startMs,
      decided: 1,
      allowed: 1,
      denied: 0,
      cost: 1,
    },
    ...{ degraded: 0, shadowDenied: 0, denials: [], ...sum },
  }));
  sequence += 1;
  await control.store.note((note) => note.addUsage({ node: "n", boot: "b", sequence, sums: whole }));
  await rollUpUsage(control.store);
}

/** The same numbers in every run. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const list = async (request: UsageRequest = {}) => (await control.usage.list(createActor("viewer"), request)).items;

describe("usage", () => {
  it("is shown by the hour for the last day, with denials by reason and window", async () => {
    const denials = [
      { reason: "over_limit", window: "5/s", denied: 2 },
      { reason: "blocked", window: "", denied: 1 },
    ];
    await store(2 * hourMs, { decided: 5, allowed: 2, denied: 3, cost: 4, denials });
    await store(25 * hourMs, { decided: 9 });
    const nowMs = control.clock.epochMs();
    expect(await list()).toEqual([
      expect.objectContaining({ startMs: nowMs - 2 * hourMs, decided: 5, denied: 3, cost: 4, policy: undefined }),
    ]);
    expect((await list())[0]!.denials).toMatchObject([
      { reason: "blocked", window: "", denied: 1 },
      { reason: "over_limit", window: "5/s", denied: 2 },
    ]);
    const days = await list({ step: "day", fromMs: nowMs - 48 * hourMs });
    expect(days.map(({ decided }) => decided)).toEqual([9, 5]);
    expect(await list({ step: "minute", fromMs: nowMs - 48 * hourMs, toMs: nowMs - 24 * hourMs })).toHaveLength(1);
  });

  it("is grouped, filtered and paged", async () => {
    const tenants = ["acme", "globex", "initech"].map((subject, i) => ({
      dimension: "tenant",
      subject,
      decided: i + 1,
    }));
    await store(hourMs, ...tenants, { decided: 6 }, { policy: "search", decided: 10 });
    expect((await list({ by: ["policy"] })).map(({ policy, decided }) => [policy, decided])).toEqual([
      ["api", 6],
      ["search", 10],
    ]);
    expect(await list({ dimension: "tenant", subject: "globex" })).toMatchObject([{ decided: 2, subject: undefined }]);
    const seen: unknown[] = [];
    for (let after: string | undefined; ; ) {
      const request = { dimension: "tenant", by: ["subject"], limit: 2, after } as const;
      const { items, next } = await control.usage.list(admin, request);
      seen.push(...items.map(({ subject }) => subject));
      if (next === undefined) break;
      after = next;
    }
    expect(seen).toEqual(["acme", "globex", "initech"]);
  });

  it("has every period once, whatever is stored between its pages", async () => {
    const random = createRandom(7);
    const pick = (count: number): number => Math.floor(random() * count);
    const some = (): Partial<UsageSum> => ({ dimension: "tenant", subject: `t${pick(40)}`, policy: `p${pick(3)}` });
    const stored = new Set<string>();
    const add = async (): Promise<void> => {
      const sum = some();
      const agoMs = pick(6) * hourMs;
      const startMs = control.clock.epochMs() - agoMs;
      stored.add(JSON.stringify([startMs - (startMs % hourMs), sum.policy, sum.subject]));
      await store(agoMs, sum);
    };
    for (let i = 0; i < 60; i++) await add();
    const first = new Set(stored);
    const seen: string[] = [];
    for (let after: string | undefined; ; ) {
      const by = ["policy", "subject"] as const;
      const asked = { by, dimension: "tenant", fromMs: 0, limit: 1 + pick(9), after };
      const { items, next } = await control.usage.list(createActor("viewer"), asked);
      seen.push(...items.map(({ startMs, policy, subject }) => JSON.stringify([startMs, policy, subject])));
      if (next === undefined) break;
      after = next;
      for (let i = 0; i < 4; i++) await add();
    }
    expect(new Set(seen).size).toBe(seen.length);
    expect([...first].filter((key) => !seen.includes(key))).toEqual([]);
    expect(seen.filter((key) => !stored.has(key))).toEqual([]);
    expect(stored.size).toBeGreaterThan(first.size);
  });

  it("lists fewer periods in a page if they have very many denials, and all denials of each", async () => {
    const denials = Array.from({ length: 9_000 }, (_, i) => ({ reason: "over_limit", window: `${i}/h`, denied: 1 }));
    for (const policy of ["a", "b", "c"]) await store(hourMs, { policy, denials, denied: denials.length });
    const pages: unknown[] = [];
    for (let after: string | undefined; ; ) {
      const asked = { step: "minute", by: ["policy"], after } as const;
      const { items, next } = await control.usage.list(createActor("viewer"), asked);
      pages.push(items.map((item) => [item.policy, item.denials.length]));
      if (next === undefined) break;
      after = next;
    }
    expect(pages).toEqual([
      [
        ["a", 9_000],
        ["b", 9_000],
      ],
      [["c", 9_000]],
    ]);
  });

  it("finds a subject by any spelling", async () => {
    await store(hourMs, { dimension: "ip", subject: "2001:db8::/64" });
    expect(await list({ dimension: "ip", subject: "2001:0DB8:0::1" })).toHaveLength(1);
  });

  it.each<readonly [string, UsageRequest]>([
    ["from_ms", { fromMs: 10, toMs: 5 }],
    ["group_by", { by: ["subject"] }],
    ["subject", { subject: "acme" }],
    ["after", { after: "nonsense" }],
    ["after", { after: '[0,"acme"]' }],
    ["limit", { limit: 0 }],
  ])("is refused with the field's name if %s makes no sense", async (field, request) => {
    const error = await catchRefusal(control.usage.list(admin, request));
    expect(error).toMatchObject({ code: "invalid_request", problems: [{ path: [field] }] });
  });

  it("is for roles that may read", async () => {
    expect(await catchRefusal(control.usage.list(createActor("check"), {}))).toMatchObject({
      code: "permission_denied",
    });
  });
});
