import fc from "fast-check";
import { renderProblem, SluiceError } from "sluice";
import { parsePolicyText } from "sluice/policy-text";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ImportReport } from "../control-plane.ts";
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

type Kind = "created" | "changed" | "deleted";

/** The users in a report. */
function told(users: Partial<Readonly<Record<Kind, readonly string[]>>>): ImportReport["subjects"] {
  const of = (values: readonly string[] = []) => ({
    count: values.length,
    first: values.map((value) => ({ dimension: "user", value })),
  });
  return { created: of(users.created), changed: of(users.changed), deleted: of(users.deleted) };
}

const withoutHeader = (text: string): string => text.replace(/^#.*\n/gm, "");

describe("an export", () => {
  it("is a policy file of all policies, the default and subjects, with stable text", async () => {
    await control.policies.put(admin, "orders", document("10/s", { description: "yes" }));
    await control.policies.put(admin, "default", { unlimited: true });
    await control.subjects.setTier(admin, "user", "u1", "gold");
    const untilMs = control.clock.epochMs() + 60_000;
    await control.subjects.setLimit(admin, "user", "u1", { policy: "orders", windows: ["99/s"], untilMs });
    await control.subjects.setLimit(admin, "user", "null", { policy: "orders", windows: ["1/s"] });
    const text = await control.configuration.export(createActor("viewer"));
    expect(text).toBe(`# Sluice's policies, as of generation 5
policies:
  - id: orders
    on_failure: open
    limits:
      - by:
          - user
        windows:
          - 10/s
    description: yes
default:
  unlimited: true
subjects:
  - user: "null"
    limits:
      - policy: orders
        windows:
          - 1/s
  - user: u1
    tier: gold
    limits:
      - policy: orders
        windows:
          - 99/s
        until: 2026-06-01T00:01:00.000Z
`);
    expect(parsePolicyText(text).policySet.subjects).toHaveLength(2);
    control.clock.advance(60_000);
    expect(await control.configuration.export(admin)).not.toContain("99/s");
  });

  it("lists versions that are being rolled out", async () => {
    await control.policies.put(admin, "orders", document("10/s"));
    await control.policies.put(admin, "orders", document("20/s"), { expected: 1, rollout: {} });
    const text = await control.configuration.export(admin);
    expect(text).toMatch(/^# being rolled out: version 2 of orders \(rollout \w+\)$/m);
    expect(text).toContain("10/s");
    expect(text).not.toContain("20/s");
  });

  it("of nothing is a policy file without policies", async () => {
    const text = await control.configuration.export(admin);
    expect(text).toBe("# Sluice's policies, as of generation 0\npolicies: []\n");
    expect(await control.configuration.import(admin, text, { mode: "replace" })).toMatchObject({
      generation: undefined,
    });
  });
});

describe("an import", () => {
  const file = `
domain: shop
policies:
  - id: orders
    version: 12
    on_failure: open
    limits: [{ by: user, windows: 10/s }]
  - { id: carts, domain: default, on_failure: open, replaces: orders, limits: [{ windows: [5/s] }] }
default: none
subjects:
  - { user: u1, tier: gold }
  - { user: u2, limits: [{ policy: orders, windows: 7/s, until: 2026-07-01 }, { policy: carts, windows: 7/s, until: 2026-01-01 }] }
`;

  it("applies a whole file as one generation, with a new version for each policy that differs", async () => {
    await control.policies.put(admin, "old", document("1/s"));
    const report = await control.configuration.import(admin, file, { why: "from Git" });
    expect(report).toMatchObject({
      generation: 2,
      value: { created: ["orders", "carts", "default"], changed: [], deleted: [], unchanged: 0 },
    });
    expect(report.value.subjects).toEqual(told({ created: ["u1", "u2"] }));
    const { policySet, problems } = await control.applyStored();
    expect(problems).toEqual([]);
    expect(policySet.policies.map(({ id, version, match }) => [id, version, match.domain])).toEqual([
      ["carts", 1, "default"],
      ["old", 1, "default"],
      ["orders", 1, "shop"],
    ]);
    expect(policySet.fallback).toBeUndefined();
    expect(policySet.subjects).toMatchObject([
      { value: "u1", tier: "gold" },
      { value: "u2", limits: [{ policy: "orders", untilMs: Date.parse("2026-07-01") }] },
    ]);
    const again = await control.configuration.import(admin, file);
    expect(again).toMatchObject({ generation: undefined, value: { unchanged: 3, subjects: told({}) } });
    const { items } = await control.audit.list(admin, { kind: "policy", target: "orders" });
    expect(items).toEqual([expect.objectContaining({ action: "policy.put", why: "from Git", generation: 2 })]);
  });

  it("in mode replace, deletes policies and subjects that the file does not name", async () => {
    await control.policies.put(admin, "old", document("1/s"));
    await control.policies.put(admin, "orders", document("1/s"));
    await control.subjects.setTier(admin, "user", "gone", "gold");
    const report = await control.configuration.import(admin, file, { mode: "replace", expected: "any" });
    expect(report.value).toEqual({
      created: ["carts", "default"],
      changed: ["orders"],
      deleted: ["old"],
      unchanged: 0,
      subjects: told({ created: ["u1", "u2"], deleted: ["gone"] }),
      generationBefore: 3,
    });
    expect((await control.policies.get(admin, "orders")).version).toBe(2);
    expect((await control.subjects.get(admin, "user", "gone")).version).toBe(0);
  });

  it("in mode replace, keeps a subject that is blocked listed, without tier and limits", async () => {
    const untilMs = control.clock.epochMs() + 60_000;
    await control.subjects.setTier(admin, "user", "bad", "gold");
    await control.subjects.block(admin, "user", "bad", { untilMs }, { why: "scrapes" });
    const { value } = await control.configuration.import(admin, file, { mode: "replace", expected: "any" });
    expect(value.subjects.deleted).toMatchObject({ first: [{ dimension: "user", value: "bad" }] });
    const { items } = await control.subjects.list(admin, "user");
    expect(items.find((one) => one.value === "bad")).toMatchObject({ tier: undefined, limits: [], block: { untilMs } });
    await control.subjects.delete(admin, "user", "bad", { expected: "any" });
    expect((await control.applyStored()).policySet.blocks).toBeUndefined();
  });

  it("changes nothing if the store has the same, apart from ended overrides", async () => {
    await control.policies.put(admin, "orders", document("10/s"));
    const untilMs = control.clock.epochMs() + 1_000;
    await control.subjects.setLimit(admin, "user", "u1", { policy: "orders", windows: ["99/s"], untilMs });
    await control.subjects.setTier(admin, "user", "u2", "gold");
    await control.subjects.setTier(admin, "user", "u2", undefined, { expected: "any" });
    control.clock.advance(1_000);
    const text = await control.configuration.export(admin);
    const again = await control.configuration.import(admin, text, { mode: "replace" });
    expect(again).toMatchObject({
      generation: undefined,
      value: { deleted: [], changed: [], subjects: told({}) },
    });
  });

  it("refuses two limits of a subject for the same policy limit, of which one would be lost", async () => {
    const until = (second: number) => new Date(control.clock.epochMs() + second * 1_000).toISOString();
    const file = (...limits: readonly object[]) =>
      JSON.stringify({
        policies: [{ id: "orders", ...document("10/s") }],
        subjects: [{ user: "u1", limits: limits.map((one) => ({ policy: "orders", windows: ["5/s"], ...one })) }],
      });
    for (const twice of [file({}, {}), file({ until: until(1) }, { until: until(2) })])
      expect(await catchRefusal(control.configuration.import(admin, twice))).toMatchObject({
        code: "invalid_request",
        problems: [{ path: ["subjects", 0, "limits"] }],
      });
    await control.configuration.import(admin, file({}, { until: until(1) }));
    expect((await control.subjects.get(admin, "user", "u1")).limits).toHaveLength(2);
  });

  it("puts the plans of its files under the limits that they name", async () => {
    const policies = "policies:\n  - { id: orders, on_failure: open, limits: [{ by: [user], windows: [1/s] }] }\n";
    const plans = "plans: { pro: { limits: [{ policy: orders, windows: 9/s }] }, free: { limits: [] } }\n";
    const files = [
      { file: "orders.yaml", text: policies },
      { file: "plans.yaml", text: plans },
    ];
    const body = JSON.stringify({ files });
    expect((await control.configuration.plan(admin, body)).policies).toMatchObject([
      { policy: "orders", action: "create" },
    ]);
    await control.configuration.import(admin, body);
    const { document: kept } = await control.policies.get(admin, "orders");
    expect(kept.limits).toEqual([{ by: ["user"], windows: ["1/s"], tiers: { pro: { windows: ["9/s"] } } }]);
    const alone = plans.replace("pro", "gold");
    for (const attempt of [control.configuration.import(admin, alone), control.configuration.plan(admin, alone)])
      expect(await catchRefusal(attempt)).toMatchObject({
        code: "invalid_policies",
        problems: [{ path: ["plans", "gold", "limits", 0], message: expect.stringContaining("not in these files") }],
      });
    const again = await control.configuration.import(admin, await control.configuration.export(admin));
    expect(again.generation).toBeUndefined();
  });

  it("is whole or not at all", async () => {
    await control.policies.put(admin, "old", document("1/s"));
    const before = await control.dump();
    for (const bad of [
      `${file}  - { user: u3, limits: [{ policy: nothing, windows: [1/s] }] }\n`,
      `${file}  - { user: u3, limits: [{ policy: orders, windows: [1/s], until: 2099-01-01 }] }\n`,
      `${file}  - { user: u1, tier: free }\n`,
    ]) {
      const refusal = await catchRefusal(control.configuration.import(admin, bad));
      expect(refusal).toBeInstanceOf(SluiceError);
      expect(await control.dump()).toBe(before);
    }
    expect(control.announced).toEqual([1]);
  });

  it("reads a large file in another thread, with the same outcome", async () => {
    const large = `${file}# ${"x".repeat(4_096)}\n`;
    const report = (await control.configuration.import(admin, large, { dryRun: true })).value;
    expect(report).toEqual((await control.configuration.import(admin, file, { dryRun: true })).value);
    const bad = "policies:\n  - id: a\n    limts: []\n";
    const here = await catchRefusal(control.configuration.import(admin, bad));
    const thread = await catchRefusal(control.configuration.import(admin, `${bad}# ${"x".repeat(4_096)}\n`));
    expect(thread).toMatchObject({ code: "invalid_policies", message: here.message, problems: here.problems });
  });

  it("reports every problem with its place", async () => {
    const bad =
      "policies:\n  - id: a\n    limts: []\n  - id: b\n    limits: [{ windows: [fast] }]\n  - id: b\n    unlimited: true\n";
    const refusal = (await catchRefusal(control.configuration.import(admin, bad))) as unknown as SluiceError;
    expect(refusal.code).toBe("invalid_policies");
    expect(refusal.problems.map((problem) => renderProblem(problem).slice(0, 40))).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^\(text\):3:\d+ policies\[0\]\.limts/),
        expect.stringMatching(/^\(text\):5:\d+ policies\[1\]/),
        expect.stringMatching(/^\(text\):6:\d+ policies\[2\]\.id/),
      ]),
    );
  });

  it.each([
    "",
    "[",
    "policies: {}",
    "domains: [{}]",
    "- a",
    "policies: [{ id: default, unlimited: true }]",
    "policies: &a [*a]",
  ])("refuses %j", async (text) => {
    expect(await catchRefusal(control.configuration.import(admin, text))).toMatchObject({ code: "invalid_policies" });
  });

  it("is refused if the configuration is not the one that the caller saw", async () => {
    await control.policies.put(admin, "old", document("1/s"));
    expect(await catchRefusal(control.configuration.import(admin, file, { expected: 0 }))).toMatchObject({
      code: "version_conflict",
      currentVersion: 1,
    });
    await control.configuration.import(admin, file, { expected: 1 });
  });

  it("changes and deletes nothing without the generation that was seen, and says what to do", async () => {
    await control.configuration.import(admin, file);
    const untilMs = control.clock.epochMs() + 1_000;
    await control.subjects.setLimit(admin, "user", "u1", { policy: "orders", windows: ["9/s"], untilMs });
    const { generation } = await control.store.readPulse();
    const subject = (more: object): string => JSON.stringify({ policies: [], subjects: [{ user: "u1", ...more }] });
    const own = { policy: "orders", windows: "9/s", until: new Date(untilMs).toISOString() };
    const all = withoutHeader(await control.configuration.export(admin));
    const cases = [
      ["merge", "policies: [{ id: orders, on_failure: open, limits: [{ by: user, windows: 11/s }] }]", {}],
      ["merge", subject({ tier: "silver", limits: [own] }), { changed: ["u1"] }],
      ["merge", subject({ limits: [own] }), { changed: ["u1"] }],
      ["merge", subject({ tier: "gold" }), { changed: ["u1"] }],
      ["merge", subject({ tier: "gold", limits: [{ ...own, windows: "8/s" }] }), { changed: ["u1"] }],
      ["merge", subject({ tier: "gold", limits: [{ ...own, until: undefined }] }), { changed: ["u1"] }],
      ["replace", all.replace(/subjects:.*/s, ""), { deleted: ["u1", "u2"] }],
      ["replace", all.replace(/default:.*(?=subjects:)/s, ""), {}],
    ] as const;
    const before = await control.dump();
    for (const [mode, text, subjects] of cases) {
      const refusal = await catchRefusal(control.configuration.import(admin, text, { mode }));
      expect(refusal, text).toMatchObject({ code: "version_conflict", currentVersion: generation });
      expect(refusal.message, text).toMatch(/dry run.*If-Match.*If-Match: \*/);
      const dry = await control.configuration.import(admin, text, { mode, dryRun: true });
      expect(dry.value, text).toMatchObject({ generationBefore: generation, subjects: told(subjects) });
      for (const expected of [generation, "any"] as const)
        await control.configuration.import(admin, text, { mode, expected, dryRun: true });
    }
    expect(await control.dump()).toBe(before);
    const [[, text]] = cases;
    await control.configuration.import(admin, text, { expected: generation });
    expect(await catchRefusal(control.configuration.import(admin, text, { expected: generation }))).toMatchObject({
      code: "version_conflict",
    });
  });

  it("needs no generation to add, or to repeat, and leaves the rest alone", async () => {
    await control.configuration.import(admin, file);
    const limit = { policy: "orders", windows: ["1/s"] };
    await control.subjects.setLimit(createActor("operator"), "user", "u1", limit, { why: "contract 4711" });
    const more = JSON.stringify({
      policies: [{ id: "more", ...document("1/s") }],
      subjects: [
        { user: "u1", tier: "gold", limits: [limit, { policy: "carts", windows: "2/s" }].toReversed() },
        { user: "u2", tier: "gold", limits: [{ policy: "orders", windows: "7/1s", until: "2026-07-01" }] },
        { user: "u3", tier: "gold" },
      ],
    });
    const { value } = await control.configuration.import(admin, more, { why: "more" });
    expect(value).toMatchObject({
      created: ["more"],
      subjects: told({ changed: ["u1", "u2"], created: ["u3"] }),
    });
    const { limits } = await control.subjects.get(admin, "user", "u1");
    expect(limits.map(({ policy, reason }) => [policy, reason]).toSorted()).toEqual([
      ["carts", "more"],
      ["orders", "contract 4711"],
    ]);
    expect((await control.subjects.get(admin, "user", "u2")).limits).toMatchObject([{ windows: ["7/s"] }]);
    expect((await control.configuration.import(admin, more)).generation).toBeUndefined();
    // An override that has ended is invisible, and not missed.
    control.clock.advance(366 * 86_400_000);
    const last = JSON.stringify({ policies: [], subjects: [{ user: "u2", tier: "gold" }] });
    expect((await control.configuration.import(admin, last)).generation).toBeUndefined();
  });

  it("names the first of many subjects, and counts all", async () => {
    const users = Array.from({ length: 101 }, (_, index) => ({ user: `u${index}`, tier: "gold" }));
    const { value } = await control.configuration.import(admin, JSON.stringify({ policies: [], subjects: users }));
    expect(value.subjects.created.count).toBe(101);
    expect(value.subjects.created.first).toHaveLength(100);
  });

  it("is refused if it changes a policy that is being rolled out", async () => {
    await control.policies.put(admin, "orders", document("1/s"));
    await control.policies.put(admin, "orders", document("2/s"), { expected: 1, rollout: {} });
    expect(await catchRefusal(control.configuration.import(admin, file))).toMatchObject({ code: "already_exists" });
    // The version in force is no change.
    const same = withoutHeader(await control.configuration.export(admin));
    expect((await control.configuration.import(admin, same, { mode: "replace" })).generation).toBeUndefined();
  });

  it("changes nothing in a dry run, and is for admins alone", async () => {
    const before = await control.dump();
    const dry = await control.configuration.import(admin, file, { dryRun: true });
    expect(dry.value.created).toHaveLength(3);
    for (const actor of [createActor("operator"), createActor("editor", "api"), createActor("viewer")])
      expect(await catchRefusal(control.configuration.import(actor, file))).toMatchObject({
        code: "permission_denied",
      });
    expect(await control.dump()).toBe(before);
  });
});

describe("an export imported into another store", () => {
  const name = fc.stringMatching(/^[A-Za-z0-9._:/@-]{1,12}$/).filter((id) => id !== "default");
  const value = fc
    .string({ unit: "binary", minLength: 1, maxLength: 12 })
    .filter((text) => !/\0|\p{Surrogate}/u.test(text));
  const windows = fc.array(
    fc.integer({ min: 1, max: 1_000 }).map((limit) => `${limit}/s`),
    { minLength: 1, maxLength: 3 },
  );
  const limit = fc.record(
    { by: fc.constantFrom(["user"], ["ip"], ["tenant", "user"], []), windows },
    { requiredKeys: ["windows"] },
  );
  const policy = fc.record(
    {
      limits: fc.array(limit, { minLength: 1, maxLength: 3 }),
      description: fc
        .string({ unit: "binary", minLength: 1, maxLength: 40 })
        .filter((text) => !/\0|\p{Surrogate}/u.test(text)),
      owner: name,
      on_failure: fc.constantFrom("open", "closed", "local"),
      mode: fc.constantFrom("enforce", "shadow"),
      warn_at: fc.constantFrom(0.5, "80%"),
      counters: fc.constantFrom("auto", "exact", "leased"),
      max_overshoot: fc.constantFrom(0.02, "5%", 1),
      allow: fc.record({ user: fc.array(value, { minLength: 1, maxLength: 2 }) }),
    },
    { requiredKeys: ["limits"] },
  );
  const subject = fc.record(
    {
      dimension: fc.constantFrom("user", "tenant"),
      value,
      tier: fc.constantFrom("gold", "null", "1e3", "~"),
      own: windows,
      endsInMs: fc.integer({ min: 1, max: 360 * 86_400_000 }),
    },
    { requiredKeys: ["dimension", "value"] },
  );

  it("is the same again, and a usable policy file", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(name, policy, { maxKeys: 4 }),
        fc.option(policy, { nil: undefined }),
        fc.uniqueArray(subject, { maxLength: 4, selector: (one) => `${one.dimension} ${one.value}` }),
        async (policies, fallback, subjects) => {
          const [one, other] = [await openTestControl(), await openTestControl()];
          try {
            for (const [id, written] of Object.entries(policies)) await one.policies.put(admin, id, written);
            if (fallback !== undefined) await one.policies.put(admin, "default", fallback);
            const [target] = Object.keys(policies);
            for (const { dimension, value: who, tier, own, endsInMs } of subjects) {
              if (tier !== undefined && tier !== "~") await one.subjects.setTier(admin, dimension, who, tier);
              if (own === undefined || target === undefined) continue;
              const untilMs = endsInMs === undefined ? undefined : one.clock.epochMs() + endsInMs;
              await one.subjects.setLimit(admin, dimension, who, { policy: target, windows: own, untilMs });
            }
            const text = await one.configuration.export(admin);
            const { policySet } = parsePolicyText(text);
            await other.configuration.import(admin, text);
            expect(withoutHeader(await other.configuration.export(admin))).toBe(withoutHeader(text));
            // Nodes decide the same way, wherever the policies come from.
            const unversioned = (set: typeof policySet): unknown => ({
              policies: set.policies.map(({ version: _, ...rest }) => rest).toSorted((a, b) => (a.id < b.id ? -1 : 1)),
              subjects: set.subjects.length,
            });
            expect(unversioned((await other.applyStored()).policySet)).toEqual(unversioned(policySet));
            expect((await one.configuration.import(admin, text, { mode: "replace" })).generation).toBeUndefined();
          } finally {
            await Promise.all([one.close(), other.close()]);
          }
        },
      ),
      { numRuns: 30 },
    );
  }, 60_000);
});
