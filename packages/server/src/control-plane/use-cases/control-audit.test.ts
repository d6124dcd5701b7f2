import { PolicyStoreUnavailable } from "@sluice/sql";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  admin,
  catchRefusal,
  createActor,
  document,
  openTestControl,
  type TestControl,
} from "../testing/open-test-control.ts";

let control: TestControl;

beforeEach(async () => {
  control = await openTestControl({ refusalsPerMinute: 5 });
});

afterEach(() => control.close());

describe("the audit", () => {
  it("is read newest first, in pages, by permitted actors", async () => {
    for (const id of ["a", "b", "c"]) {
      control.clock.advance(1_000);
      await control.policies.put(admin, id, document("10/s"));
    }
    const viewer = createActor("viewer");
    const first = await control.audit.list(viewer, { limit: 2 });
    expect(first.items.map(({ target }) => target)).toEqual(["c", "b"]);
    const rest = await control.audit.list(viewer, { limit: 2, after: first.next });
    expect([rest.items.map(({ target }) => target), rest.next]).toEqual([["a"], undefined]);
    const sinceMs = control.clock.epochMs() - 1_000;
    expect((await control.audit.list(viewer, { sinceMs })).items).toHaveLength(2);
    expect(await catchRefusal(control.audit.list(createActor("check")))).toMatchObject({ code: "permission_denied" });
  });

  it("is found by any spelling of a subject", async () => {
    await control.subjects.setTier(admin, "ip", "2001:DB8::1", "gold");
    await control.subjects.setTier(admin, "user", "a:b", "gold");
    control.audit.refused(createActor("viewer"), "subject.tier", "subject", "ip:2001:db8:0::2", "no");
    await control.settled();
    const of = async (target: string): Promise<number> => (await control.audit.list(admin, { target })).items.length;
    expect(await of("ip:2001:db8::1")).toBe(2);
    expect(await of("ip:2001:0db8:0000::2")).toBe(2);
    expect(await of("ip:2001:db8::/64")).toBe(2);
    expect(await of("ip:2001:db8:1::1")).toBe(0);
    expect(await of("user:a:b")).toBe(1);
  });

  it("keeps order within a millisecond", async () => {
    for (let i = 1; i <= 40; i++)
      await control.policies.put(admin, "a", document(`${i}/s`), i === 1 ? {} : { expected: i - 1 });
    const { items } = await control.audit.list(admin);
    expect(items.map(({ generation }) => generation)).toEqual(Array.from({ length: 40 }, (_, i) => 40 - i));
  });

  it("stores a bounded number of refusals a minute, and counts the rest", async () => {
    const stranger = { caller: { name: "anonymous", may: new Set<never>() }, from: "203.0.113.9" };
    for (let i = 0; i < 1_000; i++)
      control.audit.refused(stranger, "login", "token", "", "this token is not known here");
    control.clock.advance(60_000);
    control.audit.refused(stranger, "login", "token", "", "this token is not known here");
    await control.settled();
    const { items } = await control.audit.list(admin, { outcome: "refused" });
    expect(items).toHaveLength(7);
    expect(items.filter(({ actor }) => actor === "sluice")).toEqual([
      expect.objectContaining({
        action: "audit.refusals",
        why: expect.stringContaining("995 more"),
        after: '{"count":995}',
      }),
    ]);
    expect(items[0]).toMatchObject({ actor: "anonymous", from: "203.0.113.9", action: "login", outcome: "refused" });
  });

  it("bounds the input of callers", async () => {
    control.audit.refused(admin, "login", "token", "x".repeat(100_000), "y".repeat(100_000));
    await control.settled();
    const [item] = (await control.audit.list(admin)).items;
    expect(item!.target.length + item!.why.length).toBeLessThan(10_000);
  });

  it("also records refusals of invalid or stale requests, but not of dry runs", async () => {
    await control.policies.put(admin, "a", document("10/s"));
    await catchRefusal(control.policies.put(admin, "a", document("11/s")));
    await catchRefusal(control.policies.put(admin, "b", {}));
    await catchRefusal(control.policies.put(admin, "a", document("11/s"), { dryRun: true }));
    await catchRefusal(control.policies.get(admin, "nothing"));
    await control.settled();
    const { items } = await control.audit.list(admin, { outcome: "refused" });
    expect(items.map(({ target }) => target).sort()).toEqual(["a", "b"]);
  });
});

describe("an unavailable policy store", () => {
  it("is reported as such by every use case, without its address", async () => {
    const away = async (): Promise<never> => {
      throw new PolicyStoreUnavailable("postgres://sluice:hunter2@db/sluice cannot be reached");
    };
    const { store } = control;
    const broken = await openTestControl({
      store: { ...store, read: away, change: away, note: away, readPulse: away, lead: away },
    });
    const limit = { policy: "a", windows: ["1/s"] };
    for (const attempt of [
      broken.policies.list(admin),
      broken.policies.put(admin, "a", document("1/s")),
      broken.rollouts.advance(admin, "r"),
      broken.subjects.get(admin, "user", "u1"),
      broken.subjects.setLimit(admin, "user", "u1", limit),
      broken.subjects.reset(admin, "user", "u1"),
      broken.killSwitch.on(admin, "open", { why: "x" }),
      broken.audit.list(admin),
      broken.tokens.list(admin),
      broken.tokens.make(admin, { name: "a", role: "viewer" }),
      broken.nodes.list(admin),
      broken.configuration.export(admin),
      broken.configuration.import(admin, "policies: []"),
    ]) {
      const refusal = await catchRefusal(attempt);
      expect(refusal).toMatchObject({ code: "policy_store_unavailable" });
      expect(refusal.message).not.toContain("hunter2");
    }
    broken.audit.refused(admin, "login", "token", "", "x");
    await broken.close();
  });
});

describe("nodes", () => {
  it("are alive while they report, and current at the newest generation", async () => {
    await control.policies.put(admin, "a", document("10/s"));
    control.clock.stepWall(3_600_000);
    await control.store.note(async (note) => {
      const nowMs = await note.nowMs();
      const node = { name: "n", version: "1", startedMs: 0, appliedMs: 0 };
      await note.putNode({ ...node, id: "1", seenMs: nowMs, generation: 1, details: '{"pid":1}' });
      await note.putNode({ ...node, id: "2", seenMs: nowMs - 15_001, generation: 0, details: "not JSON" });
    });
    const { generation, nodes } = await control.nodes.list(createActor("viewer"));
    expect(generation).toBe(1);
    expect(nodes.map(({ id, alive, current, details }) => [id, alive, current, details])).toEqual([
      ["1", true, true, { pid: 1 }],
      ["2", false, false, {}],
    ]);
  });
});
