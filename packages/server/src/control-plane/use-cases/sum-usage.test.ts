import type { UsageSum } from "@sluice/sql";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { admin, catchRefusal, createActor, openTestControl, type TestControl } from "../testing/open-test-control.ts";
import { rollUpUsage } from "../usage/usage-upkeep.ts";
import type { UsageSumRequest, UsageTotal } from "../usage-control.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

let control: TestControl;
let nowMs: number;
let sequence = 0;

beforeEach(async () => {
  control = await openTestControl({ usageBy: ["tenant", "ip"] });
  control.clock.advance(12 * hourMs + 30 * minuteMs + 30_000);
  nowMs = control.clock.epochMs();
});

afterEach(() => control.close());

/** Stores sums of the minute in which this moment was. */
async function store(agoMs: number, ...sums: readonly Partial<UsageSum>[]): Promise<void> {
  const startMs = Math.floor((nowMs - agoMs) / minuteMs) * minuteMs;
  const whole = sums.map((sum) => ({
    ...{ policy: "api", limit: "user", dimension: "tenant", subject: "acme", startMs },
    ...{ decided: 1, allowed: 1, denied: 0, cost: 1, degraded: 0, shadowDenied: 0, denials: [], ...sum },
  }));
  sequence += 1;
  await control.store.note((note) => note.addUsage({ node: "n", boot: "b", sequence, sums: whole }));
  await rollUpUsage(control.store);
}

const acme = { policies: ["api"], dimensions: { tenant: "acme" } };
const sum = (request: Partial<UsageSumRequest>, actor = createActor("viewer")): Promise<readonly UsageTotal[]> =>
  control.usage.sum(actor, { fromMs: nowMs - hourMs, ...acme, ...request });

describe("sums of a period", () => {
  it("add up a subject's minutes and limits by policy", async () => {
    await store(5 * minuteMs, { decided: 5, allowed: 3, denied: 2, cost: 4, degraded: 1, shadowDenied: 1 });
    await store(9 * minuteMs, { decided: 7, limit: "tenant" }, { policy: "search", decided: 9 });
    await store(9 * minuteMs, { subject: "globex" }, { dimension: "", subject: "" }, { policy: "unasked" });
    const totals = await sum({ policies: ["api", "search", "unused"] });
    expect(totals).toEqual([
      {
        ...{ policy: "api", dimension: "tenant", subject: "acme" },
        ...{ fromMs: nowMs - 30_000 - hourMs, toMs: nowMs + 30_000 },
        ...{ decided: 12, allowed: 4, denied: 2, cost: 5, degraded: 1, shadowDenied: 1 },
      },
      expect.objectContaining({ policy: "search", decided: 9 }),
    ]);
    expect(await sum({ policies: [] })).toEqual([]);
  });

  it.each([
    ["minutes up to six hours", 6 * hourMs, 0, minuteMs],
    ["hours up to two weeks", 7 * hourMs, 0, hourMs],
    ["hours for six hours of long ago, whose minutes may be deleted", 30 * hourMs, 24 * hourMs, hourMs],
    ["days for longer", 15 * dayMs, 0, dayMs],
    ["days for the longest", 366 * dayMs, 0, dayMs],
  ])("have whole %s, and say so", async (_, fromAgoMs, toAgoMs, stepMs) => {
    await store(fromAgoMs, { decided: 3 });
    await store(toAgoMs, { decided: 4 });
    await store(fromAgoMs + stepMs, { decided: 100 });
    await store(toAgoMs - stepMs, { decided: 100 });
    const [fromMs, toMs] = [nowMs - fromAgoMs, nowMs - toAgoMs];
    expect(await sum({ fromMs, toMs })).toEqual([
      expect.objectContaining({
        decided: 7,
        fromMs: fromMs - (fromMs % stepMs),
        toMs: toMs - (toMs % stepMs) + stepMs,
      }),
    ]);
  });

  it("are for every tracked dimension of a request, by any spelling", async () => {
    await store(minuteMs, { decided: 2 }, { dimension: "ip", subject: "2001:db8::/64", decided: 3 });
    const dimensions = { tenant: "acme", ip: "2001:0DB8:0::1", user: "ada" };
    expect((await sum({ dimensions })).map(({ dimension, subject, decided }) => [dimension, subject, decided])).toEqual(
      [
        ["tenant", "acme", 2],
        ["ip", "2001:db8::/64", 3],
      ],
    );
  });

  it("are those of an editor's own team", async () => {
    for (const [id, owner] of [
      ["ours", "web"],
      ["theirs", "other"],
    ])
      await control.policies.put(
        admin,
        id!,
        { owner, match: { endpoint: `/${id}` }, limits: [{ by: ["user"], windows: ["5/m"] }] },
        { expected: 0 },
      );
    await store(minuteMs, { policy: "ours" }, { policy: "theirs" });
    const policies = ["ours", "theirs"];
    const seenBy = async (actor = createActor("viewer")) => (await sum({ policies }, actor)).map((one) => one.policy);
    expect(await seenBy()).toEqual(policies);
    expect(await seenBy(createActor("editor", "web"))).toEqual(["ours"]);
    expect(await seenBy(createActor("editor", "none"))).toEqual([]);
    expect(await catchRefusal(sum({}, createActor("check")))).toMatchObject({ code: "permission_denied" });
  });

  it.each<readonly [string, string, (nowMs: number) => Partial<UsageSumRequest>]>([
    ["from_unix_ms", "above 0", () => ({ fromMs: 0, toMs: 5 })],
    ["from_unix_ms", "above 0", () => ({ fromMs: -1 })],
    ["from_unix_ms", "in the past", (now) => ({ fromMs: now })],
    ["from_unix_ms", "before to_unix_ms", (now) => ({ fromMs: now - 5, toMs: now - 5 })],
    ["from_unix_ms", "at most 366 days", (now) => ({ fromMs: now - 366 * dayMs - 1 })],
    ["to_unix_ms", "above 0", () => ({ toMs: -1 })],
    ["dimensions", "tenant, ip", () => ({ dimensions: { user: "ada" } })],
    ["policy_id", "101 policies", () => ({ policies: Array.from({ length: 101 }, (_, i) => `p${i}`) })],
  ])("are refused with the field's name: %s, %s", async (field, text, request) => {
    const error = await catchRefusal(sum(request(nowMs)));
    expect(error).toMatchObject({ code: "invalid_request", problems: [{ path: [field] }] });
    expect(error.message).toContain(text);
  });

  it("are refused if no history is kept", async () => {
    const without = await openTestControl({ usageBy: [] });
    const error = await catchRefusal(without.usage.sum(admin, { fromMs: without.clock.epochMs() - hourMs, ...acme }));
    expect(error.message).toContain("--usage-by");
    await without.close();
  });
});
