import { type PolicySet, parsePolicies } from "sluice";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readStored, type StoredGeneration } from "../documents/stored-generation.ts";
import { deleteOldRecords } from "../jobs/delete-old-records.ts";
import { assembleGeneration } from "../testing/assemble-stored.ts";
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
  await control.policies.put(admin, "orders", document("1/h", { match: { endpoint: "/orders" } }));
});

afterEach(() => control.close());

const hourMs = 3_600_000;
const operator = createActor("operator");
const inAnHour = (): number => control.clock.epochMs() + hourMs;
const why = "wrong since noon";
const order = { dimensions: { endpoint: "/orders", user: "u1" } };

/** Whether three requests in a row pass, once the stored generation is applied. */
async function passes(): Promise<boolean> {
  await control.applyStored();
  return [1, 2, 3].every(() => control.limiter.checkSync(order).allowed);
}

describe("disabling a policy", () => {
  it("holds in the next generation, ends automatically, and is audited with its reason", async () => {
    const done = await control.disabling.disable(operator, "orders", { why, untilMs: inAnHour() });
    const expected = { policy: "orders", mode: "allow", untilMs: inAnHour(), reason: why, author: "operator" };
    expect(done.value).toMatchObject(expected);
    expect(control.announced.at(-1)).toBe(done.generation);
    expect(await passes()).toBe(true);
    expect(await control.disabling.list(createActor("viewer"))).toMatchObject([expected]);
    expect((await control.policies.get(admin, "orders")).disabled).toMatchObject(expected);
    expect((await control.policies.list(admin)).items[0]?.disabled).toMatchObject(expected);
    const [entry] = (await control.audit.list(admin, { target: "orders" })).items;
    expect(entry).toMatchObject({ action: "policy.disable", actor: "operator", why, generation: done.generation });
    control.clock.advance(hourMs);
    expect(await control.disabling.list(admin)).toEqual([]);
    expect((await control.policies.get(admin, "orders")).disabled).toBeUndefined();
    expect(await passes()).toBe(false);
  });

  it("lasts as long as asked from the moment of the change, from a second to a week", async () => {
    for (const forMs of [1_000, 7 * 24 * hourMs]) {
      const { value } = await control.disabling.disable(operator, "orders", { why, forMs });
      expect(value?.untilMs).toBe(control.clock.epochMs() + forMs);
    }
    for (const forMs of [999, 7 * 24 * hourMs + 1])
      expect(await catchRefusal(control.disabling.disable(operator, "orders", { why, forMs }))).toMatchObject({
        problems: [{ path: ["for_ms"] }],
      });
  });

  it("is undone by enabling, which changes nothing the second time", async () => {
    await control.disabling.disable(operator, "orders", { why, mode: "shadow" });
    expect(await passes()).toBe(true);
    const done = await control.disabling.enable(operator, "orders", { why: "fixed" });
    expect(done.generation).toBeDefined();
    expect(await passes()).toBe(false);
    expect((await control.disabling.enable(operator, "orders")).generation).toBeUndefined();
  });

  it("needs a reason, an end within a week, a policy that exists, and an operator", async () => {
    const dump = await control.dump();
    const attempt = (options: object, id = "orders", actor = operator) =>
      catchRefusal(control.disabling.disable(actor, id, { why, ...options }));
    expect((await attempt({ why: " " })).problems).toMatchObject([{ path: ["why"] }]);
    for (const forMs of [-1, 0, 8 * 24 * hourMs, 0.5])
      expect((await attempt({ untilMs: control.clock.epochMs() + forMs })).problems).toMatchObject([
        { path: ["until_ms"] },
      ]);
    expect(await attempt({}, "orderz")).toMatchObject({ code: "resource_not_found" });
    for (const role of ["viewer", "editor"] as const)
      expect(await attempt({}, "orders", createActor(role))).toMatchObject({ code: "permission_denied" });
    expect((await control.disabling.disable(operator, "orders", { why, dryRun: true })).generation).toBeUndefined();
    expect(await control.dump()).toBe(dump);
  });

  it("works for policies of files and the default policy, and warns of a rollout that goes on", async () => {
    const filePolicies: PolicySet = parsePolicies({ policies: [{ id: "filed", ...document("1/h") }] });
    const beside = await openTestControl({ filePolicies });
    await beside.disabling.disable(operator, "filed", { why });
    await beside.disabling.disable(operator, "default", { why });
    expect((await beside.disabling.list(admin)).map(({ policy }) => policy)).toEqual(["default", "filed"]);
    await beside.close();
    const steps = [{ percent: 100, holdMs: 0 }];
    await control.policies.put(admin, "orders", document("9/h", { match: { endpoint: "/orders" } }), {
      expected: 1,
      rollout: { steps, observeForMs: 300_000 },
    });
    const { warnings } = await control.disabling.disable(operator, "orders", { why });
    expect(warnings).toMatchObject([{ message: expect.stringContaining("pause it") }]);
  });
});

describe("blocking a subject", () => {
  it("keeps it out in the next generation, ends automatically, and is shown and audited", async () => {
    const done = await control.subjects.block(operator, "user", "u1", { untilMs: inAnHour() }, { why });
    const block = {
      policies: undefined,
      untilMs: inAnHour(),
      reason: why,
      author: "operator",
      atMs: expect.any(Number),
    };
    expect(done.value.block).toEqual(block);
    expect(await passes()).toBe(false);
    expect(control.limiter.checkSync(order)).toMatchObject({ reason: "blocked", retryAfterMs: hourMs });
    expect((await control.subjects.list(admin, "user")).items).toMatchObject([{ value: "u1", block }]);
    const [entry] = (await control.audit.list(admin, { target: "user:u1" })).items;
    expect(entry).toMatchObject({ action: "subject.block", why });
    control.clock.advance(hourMs);
    expect((await control.subjects.get(admin, "user", "u1")).block).toBeUndefined();
    await control.applyStored();
    expect(control.limiter.checkSync(order).allowed).toBe(true);
  });

  it("is undone by an unblock, and not replaced unseen; tier and limits stay", async () => {
    await control.subjects.setTier(operator, "user", "u1", "gold");
    const { value } = await control.subjects.block(operator, "user", "u1", { untilMs: inAnHour() }, { why });
    const again = { untilMs: inAnHour() + 1, policies: ["orders"] };
    const attempt = control.subjects.block(operator, "user", "u1", again, { why });
    expect(await catchRefusal(attempt)).toMatchObject({ code: "version_conflict", currentVersion: value.version });
    const longer = await control.subjects.block(operator, "user", "u1", again, { why, expected: value.version });
    expect([longer.replaced?.block?.untilMs, longer.value.block?.policies]).toEqual([inAnHour(), ["orders"]]);
    const done = await control.subjects.unblock(operator, "user", "u1", { expected: "any" });
    expect(done.value).toMatchObject({ tier: "gold", block: undefined });
    await control.applyStored();
    expect(control.limiter.checkSync(order).allowed).toBe(true);
    expect(await catchRefusal(control.subjects.unblock(operator, "user", "u1"))).toMatchObject({
      code: "resource_not_found",
    });
  });

  it("takes another reason for the same block, and nothing that is the same", async () => {
    const block = (reason: string) =>
      control.subjects.block(operator, "user", "u1", { untilMs: inAnHour() }, { why: reason, expected: "any" });
    await block("scrapes");
    expect((await block("scrapes")).generation).toBeUndefined();
    const other = await block("fraud");
    expect([other.generation !== undefined, other.value.block?.reason]).toEqual([true, "fraud"]);
  });

  it("is deleted with its subject even if nothing else is stored about it", async () => {
    await control.subjects.block(operator, "user", "u1", { untilMs: inAnHour() }, { why });
    // As an import of an earlier version left it.
    await control.store.change((change) => change.deleteSubject("user", "u1"));
    await control.subjects.delete(operator, "user", "u1", { expected: "any" });
    expect((await control.applyStored()).policySet.blocks).toBeUndefined();
  });

  it("needs a reason, an end within a year and an operator, and warns of a policy that does not exist", async () => {
    const dump = await control.dump();
    const attempt = (options: object, untilMs = inAnHour(), actor = operator) =>
      catchRefusal(control.subjects.block(actor, "user", "u1", { untilMs }, { why, ...options }));
    expect((await attempt({ why: "" })).problems).toMatchObject([{ path: ["why"] }]);
    for (const untilMs of [0, inAnHour() + 367 * 24 * hourMs])
      expect((await attempt({}, untilMs)).problems).toMatchObject([{ path: ["until_ms"] }]);
    expect(await attempt({}, inAnHour(), createActor("editor", "shop"))).toMatchObject({ code: "permission_denied" });
    expect(await control.dump()).toBe(dump);
    const block = { untilMs: inAnHour(), policies: ["orders", "orderz"] };
    const { warnings } = await control.subjects.block(operator, "user", "u1", block, { why });
    expect(warnings).toMatchObject([{ path: ["policies", 1], message: expect.stringContaining("orderz") }]);
  });

  it("holds although a policy file has the same subject, and is deleted with the subject", async () => {
    const filePolicies = parsePolicies({ policies: [], subjects: [{ user: "u1", tier: "gold" }] });
    const beside = await openTestControl({ filePolicies });
    const untilMs = beside.clock.epochMs() + hourMs;
    await beside.subjects.block(operator, "user", "u1", { untilMs }, { why });
    expect((await beside.applyStored()).policySet.blocks).toMatchObject([{ dimension: "user", value: "u1" }]);
    const gone = await beside.subjects.delete(operator, "user", "u1", { expected: "any" });
    expect(gone.replaced?.block?.untilMs).toBe(untilMs);
    expect((await beside.applyStored()).policySet.blocks).toBeUndefined();
    await beside.close();
  });
});

it("is kept on disk and in a topic with its generation, and absent from those of earlier versions", async () => {
  await control.disabling.disable(operator, "orders", { why, untilMs: inAnHour() });
  await control.subjects.block(operator, "user", "u1", { untilMs: inAnHour() }, { why });
  const kept: StoredGeneration = JSON.parse(JSON.stringify(await control.store.read(readStored)));
  const { policySet, digest } = assembleGeneration(kept, control.clock.epochMs());
  expect([policySet.disabled, policySet.blocks]).toMatchObject([[{ policy: "orders" }], [{ value: "u1" }]]);
  const { disabled: _, blocks: __, ...rows } = kept.rows;
  const earlier = assembleGeneration({ ...kept, rows }, control.clock.epochMs());
  expect([earlier.policySet.disabled, earlier.policySet.blocks]).toEqual([undefined, undefined]);
  expect(earlier.digest).not.toBe(digest);
});

it("deletes what has ended an hour after it, when every clock agrees", async () => {
  await control.disabling.disable(operator, "orders", { why, untilMs: inAnHour() });
  await control.subjects.block(operator, "user", "u1", { untilMs: inAnHour() }, { why });
  const kept = { auditMs: 1e12, usage: { minutesMs: 1e12, totalsMs: 1e12 }, denialsMs: 1e12 };
  const left = () => control.store.read(async (view) => [(await view.disabled()).length, (await view.blocks()).length]);
  await deleteOldRecords(control.store, inAnHour() + hourMs - 1, kept);
  expect(await left()).toEqual([1, 1]);
  await deleteOldRecords(control.store, inAnHour() + hourMs + 1, kept);
  expect(await left()).toEqual([0, 0]);
});
