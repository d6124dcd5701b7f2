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
  control = await openTestControl();
});

afterEach(() => control.close());

/** A policy at version 1, and its version 2 being rolled out. */
async function rollOut(rollout = {}): Promise<string> {
  await control.policies.put(admin, "orders", document("10/s", { owner: "api" }));
  const put = await control.policies.put(admin, "orders", document("20/s", { owner: "api" }), { expected: 1, rollout });
  return put.value.rollout?.id ?? "";
}

async function inForce(): Promise<readonly unknown[]> {
  const { policySet, problems } = await control.applyStored();
  expect(problems).toEqual([]);
  return policySet.policies.map(({ id, version, trial }) => [id, version, trial?.side, trial?.percent, trial?.shadow]);
}

describe("a rollout", () => {
  it("has both versions in force, the new one for the percentage of its step", async () => {
    const id = await rollOut();
    expect(await control.policies.get(admin, "orders")).toMatchObject({
      version: 1,
      rollout: { id, state: "observing", percent: 0, by: "user", fromVersion: 1, toVersion: 2 },
    });
    expect(await inForce()).toEqual([
      ["orders", 1, "old", 0, false],
      ["orders", 2, "new", 0, false],
    ]);
    for (const percent of [1, 10, 100]) {
      expect((await control.rollouts.advance(admin, id)).value).toMatchObject({ state: "running", percent });
      expect(await inForce()).toEqual([
        ["orders", 1, "old", percent, false],
        ["orders", 2, "new", percent, false],
      ]);
    }
    const { policySet } = await control.applyStored();
    expect(policySet.policies[0]?.trial).toMatchObject({ rollout: id, by: "user", steps: [1, 10, 100] });
    expect((await control.rollouts.advance(admin, id)).value.state).toBe("done");
    expect(await inForce()).toEqual([["orders", 2, undefined, undefined, undefined]]);
    expect(await control.policies.get(admin, "orders")).toMatchObject({ version: 2, rollout: undefined });
  });

  it("says why it does not advance, and that a kill switch holds it if nothing else does", async () => {
    const id = await rollOut();
    const wait = async () => (await control.rollouts.get(admin, id)).waitsFor;
    expect(await wait()).toMatchObject({ code: "observation", untilMs: control.clock.epochMs() + 600_000, decided: 0 });
    const [listed] = (await control.rollouts.list(admin)).items;
    expect(listed?.waitsFor).toEqual(await wait());
    expect((await control.policies.get(admin, "orders")).rollout?.waitsFor).toEqual(await wait());
    control.clock.advance(11 * 60_000);
    expect(await wait()).toMatchObject({
      code: "baseline",
      minutes: 0,
      minutesNeeded: 5,
      decided: 0,
      decidedNeeded: 20,
    });
    control.clock.advance(5 * 60_000);
    expect(await wait()).toEqual({ code: "due" });
    const untilMs = control.clock.epochMs() + 60_000;
    await control.killSwitch.on(admin, "open", { forMs: 60_000, why: "an outage" });
    expect(await wait()).toEqual({ code: "kill_switch", untilMs });
    await control.rollouts.rollBack(admin, id);
    expect(await wait()).toBeUndefined();
  });

  it("takes one step if two callers advance it from the same one", async () => {
    const id = await rollOut();
    const both = await Promise.allSettled([1, 2].map(() => control.rollouts.advance(admin, id, { expectedStep: -1 })));
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(both.find(({ status }) => status === "rejected")).toMatchObject({ reason: { code: "version_conflict" } });
    expect(await control.rollouts.get(admin, id)).toMatchObject({ step: 0, percent: 1 });
  });

  it("is paused at its step, and resumed", async () => {
    const id = await rollOut();
    await control.rollouts.advance(admin, id);
    expect((await control.rollouts.pause(admin, id)).value).toMatchObject({ state: "paused", percent: 1 });
    expect(await inForce()).toContainEqual(["orders", 2, "new", 1, false]);
    expect((await control.rollouts.resume(admin, id)).value).toMatchObject({ state: "running", percent: 1 });
    expect(await catchRefusal(control.rollouts.resume(admin, id))).toMatchObject({ code: "invalid_request" });
  });

  it("goes back to the old version, and the next version gets a new number", async () => {
    const id = await rollOut();
    await control.rollouts.advance(admin, id);
    const back = await control.rollouts.rollBack(admin, id, { why: "too strict" });
    expect(back.value).toMatchObject({ state: "rolled_back", reason: "by admin: too strict" });
    expect(await inForce()).toEqual([["orders", 1, undefined, undefined, undefined]]);
    const put = await control.policies.put(admin, "orders", document("30/s"), { expected: 1 });
    expect(put.value.version).toBe(3);
    expect((await control.policies.versions(admin, "orders")).items.map(({ version }) => version)).toEqual([3, 2, 1]);
    for (const move of ["advance", "pause", "resume", "finish", "rollBack"] as const)
      expect(await catchRefusal(control.rollouts[move](admin, id))).toMatchObject({ code: "invalid_request" });
  });

  it("is completed at once, even from shadow", async () => {
    const id = await rollOut({ shadow: true });
    expect(await inForce()).toEqual([
      ["orders", 1, "old", 100, true],
      ["orders", 2, "new", 100, true],
    ]);
    await control.rollouts.finish(admin, id);
    expect(await inForce()).toEqual([["orders", 2, undefined, undefined, undefined]]);
  });

  it("leaves the old version if it was only in shadow", async () => {
    const id = await rollOut({ shadow: true });
    expect((await control.rollouts.advance(admin, id)).value.state).toBe("done");
    expect(await inForce()).toEqual([["orders", 1, undefined, undefined, undefined]]);
  });

  it("puts a new policy in force for its share alone, and removes it again", async () => {
    const rollout = {
      steps: [
        { percent: 10, holdMs: 0 },
        { percent: 100, holdMs: 0 },
      ],
    };
    const put = await control.policies.put(admin, "orders", document("20/s"), { rollout });
    expect(put.value).toMatchObject({ version: 1, rollout: { fromVersion: 0, toVersion: 1, percent: 10 } });
    expect(await inForce()).toEqual([["orders", 1, "new", 10, false]]);
    await control.rollouts.rollBack(admin, put.value.rollout?.id ?? "");
    expect(await inForce()).toEqual([]);
    expect(await catchRefusal(control.policies.get(admin, "orders"))).toMatchObject({ code: "resource_not_found" });
    const [deletion] = (await control.policies.versions(admin, "orders")).items;
    expect(deletion).toMatchObject({ version: 2, document: undefined });
  });

  it("waits for its start, with a new policy not in force until then", async () => {
    const startsMs = control.clock.epochMs() + 60_000;
    const put = await control.policies.put(admin, "orders", document("20/s"), { rollout: { startsMs } });
    expect(put.value.rollout).toMatchObject({ state: "waiting", percent: 0 });
    expect(await inForce()).toEqual([]);
    await control.rollouts.finish(admin, put.value.rollout?.id ?? "");
    expect(await inForce()).toEqual([["orders", 1, undefined, undefined, undefined]]);
  });

  it("is the only one of its policy, and nothing else changes the policy meanwhile", async () => {
    const id = await rollOut();
    const before = await control.dump();
    for (const rollout of [undefined, {}])
      expect(
        await catchRefusal(control.policies.put(admin, "orders", document("1/s"), { expected: 1, rollout })),
      ).toMatchObject({
        code: "already_exists",
        message: expect.stringContaining(id),
      });
    expect(await catchRefusal(control.policies.revert(admin, "orders", 2, { expected: 1 }))).toMatchObject({
      code: "already_exists",
    });
    expect(await control.dump()).toBe(before);
  });

  it("ends with its policy", async () => {
    const id = await rollOut();
    await control.policies.delete(admin, "orders", { expected: 1 });
    expect((await control.rollouts.get(admin, id)).state).toBe("cancelled");
    expect(await inForce()).toEqual([]);
  });

  it("is audited from start to end, even if it ends with its policy", async () => {
    const deleted = await rollOut();
    await control.rollouts.pause(admin, deleted);
    await control.policies.delete(admin, "orders", { expected: 1 });
    const { items } = await control.audit.list(admin, { kind: "rollout", target: deleted });
    expect(items.toReversed().map(({ action, after }) => [action, JSON.parse(after ?? "{}").state])).toEqual([
      ["rollout.start", "observing"],
      ["rollout.pause", "paused"],
      ["rollout.cancel", "cancelled"],
    ]);
    expect(new Set(items.map(({ outcome, generation }) => [outcome, typeof generation].join()))).toEqual(
      new Set(["done,number"]),
    );
  });

  it.each(["rollBack", "finish"] as const)("leaves a rule to the version that is in force after %s", async (move) => {
    const ruleKey = "user|*|/";
    await control.policies.put(admin, "rule", document("10/s"), { ruleKey });
    const elsewhere = document("10/s", { match: { endpoint: "/v2" } });
    const { value } = await control.policies.put(admin, "rule", elsewhere, { expected: 1, rollout: {} });
    const another = () => control.policies.put(admin, "another", document("10/s"), { ruleKey });
    expect(await catchRefusal(another())).toMatchObject({ code: "already_exists" });
    await control.rollouts[move](admin, value.rollout?.id ?? "");
    if (move === "finish") await another();
    else expect(await catchRefusal(another())).toMatchObject({ code: "already_exists" });
  });

  it("is refused if its new version leads to problems, now or later", async () => {
    await control.policies.put(admin, "orders", {
      on_failure: "open",
      limits: [{ name: "steady", by: ["user"], windows: ["10/s"] }],
    });
    await control.subjects.setLimit(admin, "user", "u1", { policy: "orders", limit: "steady", windows: ["99/s"] });
    const before = await control.dump();
    const startsMs = control.clock.epochMs() + 60_000;
    for (const rollout of [{}, { startsMs }]) {
      const put = control.policies.put(admin, "orders", document("20/s"), { expected: 1, rollout });
      expect(await catchRefusal(put)).toMatchObject({
        code: "invalid_policies",
        problems: [{ path: ["subjects", "user", "u1", "orders", "limit"] }],
      });
    }
    expect(await control.dump()).toBe(before);
  });

  it("is refused before valid_from, by a bad step, and for the default policy", async () => {
    await control.policies.put(admin, "orders", document("10/s"));
    await control.policies.put(admin, "default", document("10/s"));
    const nowMs = control.clock.epochMs();
    const later = document("20/s", { valid_from: new Date(nowMs + 60_000).toISOString() });
    for (const put of [
      control.policies.put(admin, "orders", later, { expected: 1, rollout: { startsMs: nowMs } }),
      control.policies.put(admin, "orders", document("2/s"), {
        expected: 1,
        rollout: { steps: [{ percent: 101, holdMs: 0 }] },
      }),
      control.policies.put(admin, "default", document("2/s"), { expected: 1, rollout: {} }),
    ])
      expect(await catchRefusal(put)).toMatchObject({ code: "invalid_request" });
  });

  it("is moved only by actors that may change the policy", async () => {
    const id = await rollOut();
    for (const actor of [createActor("viewer"), createActor("operator"), createActor("editor", "web")]) {
      for (const move of ["advance", "pause", "finish", "rollBack"] as const)
        expect(await catchRefusal(control.rollouts[move](actor, id))).toMatchObject({ code: "permission_denied" });
    }
    await control.settled();
    expect((await control.audit.list(admin, { kind: "rollout", target: id, outcome: "refused" })).items).toHaveLength(
      12,
    );
    await control.rollouts.pause(createActor("editor", "api"), id);
    const told = (await control.audit.list(admin, { kind: "rollout", target: id, outcome: "done" })).items;
    expect(told.map(({ action, actor }) => [action, actor])).toEqual([
      ["rollout.pause", "editor-api"],
      ["rollout.start", "admin"],
    ]);
  });

  it("is listed, newest first, by policy and state", async () => {
    const first = await rollOut();
    await control.rollouts.rollBack(admin, first);
    control.clock.advance(1_000);
    const put = await control.policies.put(admin, "orders", document("40/s"), { expected: 1, rollout: {} });
    const second = put.value.rollout?.id;
    const ids = async (query = {}) => (await control.rollouts.list(admin, query)).items.map(({ id }) => id);
    expect(await ids()).toEqual([second, first]);
    expect(await ids({ states: ["cancelled"] })).toEqual([first]);
    expect(await ids({ policy: "other" })).toEqual([]);
    const page = await control.rollouts.list(admin, { limit: 1 });
    expect(await ids({ after: page.next })).toEqual([first]);
    expect(await catchRefusal(control.rollouts.get(admin, "nothing"))).toMatchObject({ code: "resource_not_found" });
  });

  it("changes nothing in a dry run", async () => {
    const id = await rollOut();
    const before = await control.dump();
    for (const move of ["advance", "pause", "finish", "rollBack"] as const)
      expect(await control.rollouts[move](admin, id, { dryRun: true })).toMatchObject({
        dryRun: true,
        generation: undefined,
      });
    expect(await control.dump()).toBe(before);
  });
});
