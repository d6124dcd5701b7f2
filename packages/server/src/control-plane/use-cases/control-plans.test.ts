import fc from "fast-check";
import { parsePolicies } from "sluice";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { PolicyDocument } from "../policy-control.ts";
import { admin, catchRefusal, createActor, openTestControl, type TestControl } from "../testing/open-test-control.ts";

let control: TestControl;

beforeEach(async () => {
  control = await openTestControl();
});

afterEach(() => control.close());

const shop = createActor("editor", "shop");

function testPolicy(owner: string, path: string, limits: readonly unknown[]): PolicyDocument {
  return { owner, on_failure: "open", match: { endpoint: path }, limits };
}

const tiered = (windows: string, tiers: Readonly<Record<string, string>>): unknown => ({
  by: ["user"],
  windows: [windows],
  tiers: Object.fromEntries(Object.entries(tiers).map(([tier, own]) => [tier, { windows: [own] }])),
});

async function prepare(): Promise<void> {
  await control.policies.put(
    admin,
    "orders",
    testPolicy("shop", "/orders", [tiered("10/s", { pro: "100/s", free: "1/s" })]),
  );
  await control.policies.put(
    admin,
    "search",
    testPolicy("shop", "/search", [
      tiered("5/s", { free: "2/s" }),
      { name: "all", by: ["tenant"], windows: "50/s", tiers: { pro: { windows: "500/s" } } },
    ]),
  );
  await control.policies.put(admin, "mail", testPolicy("post", "/mail", [{ by: ["user"], windows: ["3/s"] }]));
}

const put = (limits: readonly unknown[], more: object = {}, actor = admin) =>
  control.plans.put(actor, "pro", limits as never, more);

describe("a plan", () => {
  beforeEach(prepare);

  it("shows a tier across policies, where it is missing, and who has it", async () => {
    await control.subjects.setTier(admin, "user", "u1", "pro");
    await control.subjects.setTier(admin, "user", "u2", "pro");
    await control.subjects.setTier(admin, "tenant", "acme", "pro");
    expect(await control.plans.get(admin, "pro")).toEqual({
      plan: "pro",
      version: expect.any(Number),
      limits: [
        { policy: "orders", limit: "user", by: ["user"], windows: ["100/s"] },
        { policy: "search", limit: "all", by: ["tenant"], windows: ["500/s"] },
      ],
      without: [{ policy: "search", limit: "user", by: ["user"], windows: ["5/s"], plans: ["free"] }],
      inFiles: [],
      subjects: [
        { dimension: "tenant", count: 1 },
        { dimension: "user", count: 2 },
      ],
    });
    const { items } = await control.plans.list(admin);
    expect(items.map(({ plan, policies, limits, subjects }) => [plan, policies, limits, subjects])).toEqual([
      ["free", 2, 2, 0],
      ["pro", 2, 2, 3],
    ]);
    expect((await control.plans.list(admin, { limit: 1 })).next).toBe("free");
    expect((await control.plans.list(admin, { after: "free" })).items.map(({ plan }) => plan)).toEqual(["pro"]);
    expect((await control.subjects.list(admin, "user", { tier: "pro" })).items.map(({ value }) => value)).toEqual([
      "u1",
      "u2",
    ]);
    expect(await catchRefusal(control.plans.get(admin, "gold"))).toMatchObject({ code: "resource_not_found" });
  });

  it("changes every policy in one generation, and shows the difference of each", async () => {
    const { limits, version } = await control.plans.get(admin, "pro");
    const before = control.announced.length;
    const wanted = [
      { ...limits[0], windows: ["200/s"] },
      { policy: "mail", windows: ["9/s"] },
    ];
    const tried = await put(wanted, { expected: version, dryRun: true });
    expect([tried.generation, control.announced.length]).toEqual([undefined, before]);
    const done = await put(wanted, { expected: version, why: "new prices" });
    expect(control.announced.length).toBe(before + 1);
    expect(done.value.policies.map(({ policy, version: made }) => [policy, made])).toEqual([
      ["mail", 2],
      ["orders", 2],
      ["search", 2],
    ]);
    expect(done.value.policies[1]!.diff).toMatch(/^-.*100\/s[\s\S]*^\+.*200\/s/m);
    expect(done.warnings.map(({ message }) => message)).toEqual([expect.stringContaining("has no windows in search")]);
    const { policySet } = await control.applyStored();
    const windows = policySet.policies.map(({ id, limits: own }) => [
      id,
      own.map(({ tiers }) => tiers.pro?.windows[0]?.limit),
    ]);
    expect(windows).toEqual([
      ["mail", [9]],
      ["orders", [200]],
      ["search", [undefined, undefined]],
    ]);
    const audit = (await control.audit.list(admin, {})).items.filter(
      ({ generation }) => generation === done.generation,
    );
    expect(audit.map(({ kind, action, target, why }) => [kind, action, target, why]).sort()).toEqual([
      ["plan", "plan.put", "pro", "new prices"],
      ["policy", "policy.put", "mail", "new prices"],
      ["policy", "policy.put", "orders", "new prices"],
      ["policy", "policy.put", "search", "new prices"],
    ]);
  });

  it("is not replaced unseen, and edits of the rest of a policy are no conflict", async () => {
    const { limits, version } = await control.plans.get(admin, "pro");
    const dump = await control.dump();
    for (const expected of [undefined, 0, version + 1])
      expect(await catchRefusal(put([], { expected }))).toMatchObject({
        code: "version_conflict",
        currentVersion: version,
      });
    expect(await control.dump()).toBe(dump);
    await control.policies.put(
      admin,
      "orders",
      testPolicy("shop", "/orders", [tiered("11/s", { pro: "100/s", free: "1/s" })]),
      { expected: 1 },
    );
    await put([limits[0]], { expected: version });
    expect((await control.policies.get(admin, "orders")).version).toBe(2);
    expect((await control.plans.get(admin, "pro")).limits).toEqual([limits[0]]);
  });

  it("names what is wrong by its place in the request, and changes nothing", async () => {
    const { version } = await control.plans.get(admin, "pro");
    const dump = await control.dump();
    const attempts: readonly (readonly [unknown, readonly unknown[], string])[] = [
      [{ policy: "gone", windows: ["1/s"] }, ["policy"], "no policy with that id"],
      [{ policy: "search", windows: ["1/s"] }, ["limit"], "it has user and all"],
      [{ policy: "search", limit: "ip", windows: ["1/s"] }, ["limit"], "no limit of that name"],
      [{ policy: "search", limit: "all", windows: ["x"] }, ["windows", 0], "must be a window"],
    ];
    for (const [limit, path, message] of attempts) {
      const refusal = await catchRefusal(put([{ policy: "orders", windows: ["1/s"] }, limit], { expected: version }));
      expect(refusal).toMatchObject({ code: "invalid_policies" });
      expect(refusal.problems).toEqual([
        expect.objectContaining({ path: ["limits", 1, ...path], message: expect.stringContaining(message) }),
      ]);
    }
    const twice = [
      { policy: "orders", windows: ["1/s"] },
      { policy: "orders", limit: "user", windows: ["2/s"] },
    ];
    expect(await catchRefusal(put(twice, { expected: version }))).toMatchObject({ code: "invalid_policies" });
    expect(await catchRefusal(control.plans.put(admin, "__proto__", []))).toMatchObject({ code: "invalid_request" });
    expect(await control.dump()).toBe(dump);
  });

  it("changes only policies of an editor's team, and none if one of them is another's", async () => {
    const { limits, version } = await control.plans.get(admin, "pro");
    const dump = await control.dump();
    const both = [...limits, { policy: "mail", windows: ["9/s"] }];
    expect(await catchRefusal(put(both, { expected: version }, shop))).toMatchObject({
      code: "permission_denied",
      message: expect.stringContaining("mail is owned by post"),
    });
    for (const role of ["viewer", "operator"] as const)
      expect(await catchRefusal(put([], { expected: version }, createActor(role)))).toMatchObject({
        code: "permission_denied",
      });
    expect(await control.dump()).toBe(dump);
    await put([{ policy: "orders", windows: ["7/s"] }], { expected: version }, shop);
  });

  it("waits for the rollout of a policy, and goes out in steps on request", async () => {
    const steps = [
      { percent: 10, holdMs: 0 },
      { percent: 100, holdMs: 0 },
    ];
    const { limits, version } = await control.plans.get(admin, "pro");
    const wanted = [{ ...limits[0], windows: ["300/s"] }, limits[1]];
    const { value } = await put(wanted, { expected: version, rollout: { steps, observeForMs: 0 } });
    expect(value.policies.map(({ policy, rollout }) => [policy, rollout?.toVersion])).toEqual([["orders", 2]]);
    expect(value.plan.limits).toEqual(limits);
    expect(await catchRefusal(put([], { expected: version }))).toMatchObject({ code: "already_exists" });
    await control.rollouts.finish(admin, value.policies[0]!.rollout!.id);
    expect((await control.plans.get(admin, "pro")).limits[0]?.windows).toEqual(["300/s"]);
  });

  it("is deleted from every policy, with a warning while subjects have the tier", async () => {
    await control.subjects.setTier(admin, "user", "u1", "pro");
    const { version } = await control.plans.get(admin, "pro");
    const done = await control.plans.delete(admin, "pro", { expected: version });
    expect(done.warnings.map(({ message }) => message)).toEqual([expect.stringContaining("1 by user")]);
    expect(await control.plans.get(admin, "pro")).toMatchObject({ version: 0, limits: [], subjects: [{ count: 1 }] });
    expect(await catchRefusal(control.plans.delete(admin, "pro"))).toMatchObject({ code: "resource_not_found" });
    const { document } = await control.policies.get(admin, "orders");
    expect(document).toEqual({ id: "orders", ...testPolicy("shop", "/orders", [tiered("10/s", { free: "1/s" })]) });
  });

  it("shows windows in policy files, which are changed there", async () => {
    const filePolicies = parsePolicies({
      policies: [{ id: "filed", ...testPolicy("web", "/filed", [tiered("1/s", { pro: "2/s" })]) }],
      subjects: [{ user: "u9", tier: "pro" }],
    });
    const beside = await openTestControl({ filePolicies });
    expect(await beside.plans.get(admin, "pro")).toMatchObject({
      version: 0,
      limits: [],
      inFiles: [{ policy: "filed", limit: "user", windows: ["2/s"] }],
      subjects: [{ dimension: "user", count: 1 }],
    });
    await beside.close();
  });
});

const windows = fc.oneof(
  fc.integer({ min: 1, max: 99 }).map((count) => `${count}/s`),
  fc.integer({ min: 1, max: 99 }).map((limit) => ({ limit, per: "1m" })),
);
const tier = fc.record({ windows: fc.oneof(windows, fc.array(windows, { minLength: 1, maxLength: 2 })) });
const limit = fc.record(
  {
    by: fc.constantFrom("user", ["user"], ["tenant", "user"], []),
    windows: fc.oneof(windows, fc.array(windows, { minLength: 1, maxLength: 2 })),
    tiers: fc.dictionary(fc.constantFrom("free", "pro", "gold"), tier),
  },
  { requiredKeys: ["by", "windows"] },
);

describe("the view of a plan", () => {
  it("changes nothing if it is written back as it is, whatever the policies", async () => {
    const documents = fc.array(fc.array(limit, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(documents, async (limitsOf) => {
        const one = await openTestControl();
        try {
          for (const [index, limits] of limitsOf.entries())
            await one.policies.put(admin, `p${index}`, { on_failure: "open", limits });
          const dump = await one.dump();
          for (const { plan, version } of (await one.plans.list(admin)).items) {
            const { limits } = await one.plans.get(admin, plan);
            const done = await one.plans.put(admin, plan, limits, { expected: version });
            expect([done.generation, done.value.policies]).toEqual([undefined, []]);
            expect(done.value.plan.version).toBe(version);
          }
          expect(await one.dump()).toBe(dump);
        } finally {
          await one.close();
        }
      }),
      { numRuns: 12 },
    );
  });
});
