import fc from "fast-check";
import { createLimiter, parsePolicies } from "sluice";
import { expect, it } from "vitest";
import { admin, document, openTestControl } from "../testing/open-test-control.ts";
import { effectiveLimit, limitsBy, readUsage } from "./effective-limits.ts";

const windows = fc.integer({ min: 1, max: 50 }).map((limit) => [`${limit}/s`]);
const tier = fc.constantFrom("gold", "silver", "constructor");
const limit = (name: string) =>
  fc.record({
    name: fc.constant(name),
    by: fc.constantFrom(["user"], ["org"], ["user", "org"]),
    windows,
    tiers: fc.dictionary(tier, fc.record({ windows })),
  });
const policy = (id: string) =>
  fc.record(
    {
      id: fc.constant(id),
      limits: fc.tuple(limit("first"), limit("second")).map((both) => [...both]),
      mode: fc.constantFrom("enforce", "shadow"),
      valid_from: fc.constantFrom("2026-05-01T00:00:00Z", "2026-06-01T00:00:03Z"),
    },
    { requiredKeys: ["id", "limits"] },
  );
const own = fc.record({
  policy: fc.constantFrom("a", "b"),
  limit: fc.constantFrom(undefined, "first", "second"),
  windows,
  endsInMs: fc.constantFrom(undefined, 1_000, 5_000),
});
const rollout = fc.record({
  by: fc.constantFrom("user", "org"),
  shadow: fc.boolean(),
  percent: fc.constantFrom(1, 50, 99),
});

const example = fc.record({
  a: policy("a"),
  b: policy("b"),
  next: windows,
  rollout: fc.option(rollout, { nil: undefined }),
  tiers: fc.record({ user: fc.option(tier, { nil: undefined }), org: fc.option(tier, { nil: undefined }) }),
  owned: fc.record({ user: fc.array(own, { maxLength: 4 }), org: fc.array(own, { maxLength: 3 }) }),
  user: fc.constantFrom("u1", "u2", "u3"),
  laterMs: fc.constantFrom(0, 999, 1_000, 4_999, 5_000),
});

it("shows exactly the limits that decide a request by the subject", { timeout: 60_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(example, async ({ a, b, next, rollout: trial, tiers, owned, user, laterMs }) => {
      const control = await openTestControl();
      const dimensions = { user, org: "o1" };
      const limitsByName = new Map([a, b].flatMap(({ id, limits }) => limits.map((one) => [`${id} ${one.name}`, one])));
      for (const one of [a, b]) await control.policies.put(admin, one.id, one);
      for (const by of ["user", "org"] as const) {
        if (tiers[by] !== undefined) await control.subjects.setTier(admin, by, dimensions[by], tiers[by]);
        for (const { endsInMs, ...wish } of owned[by]) {
          const names = wish.limit === undefined ? ["first", "second"] : [wish.limit];
          const findDimensions = (name: string): readonly string[] =>
            limitsByName.get(`${wish.policy} ${name}`)?.by ?? [];
          if (!names.some((name) => findDimensions(name).includes(by))) continue;
          const untilMs = endsInMs === undefined ? undefined : control.clock.epochMs() + endsInMs;
          await control.subjects.setLimit(admin, by, dimensions[by], { ...wish, untilMs }, { expected: "any" });
        }
      }
      const changed = { ...a, valid_from: undefined, limits: a.limits.map((one) => ({ ...one, windows: next })) };
      const { by: trialBy, shadow, percent } = trial ?? { by: undefined, shadow: undefined, percent: 1 };
      const steps = [percent, 100].map((one) => ({ percent: one, holdMs: 0 }));
      await control.policies.put(admin, "a", changed, {
        expected: 1,
        rollout: trial && { steps, by: trialBy, shadow, observeForMs: 0 },
      });
      await control.applyStored();
      control.clock.advance(laterMs);
      const { limits: decided } = await control.limiter.explain({ dimensions });
      for (const by of ["user", "org"] as const) {
        // Of two versions, the value of another dimension determines which one applies.
        if (trialBy !== undefined && trialBy !== by) continue;
        const { effective } = await control.subjects.get(admin, by, dimensions[by]);
        const told = effective.filter((one) => one.by.length === 1 && one.by[0] === by);
        const wanted = decided.filter((one) => {
          const { by: counted = [] } = limitsByName.get(`${one.policy} ${one.scope}`) ?? {};
          return counted.length === 1 && counted[0] === by;
        });
        const inOrder = (texts: readonly unknown[][]) => texts.map((text) => JSON.stringify(text)).toSorted();
        const expected = wanted.map((one) => {
          const sources = one.windows.map(({ window }) => window.source);
          return [one.policy, one.scope, one.shadow, sources, sources];
        });
        expect(
          inOrder(
            told.map((one) => [
              one.policy,
              one.limit,
              one.mode === "shadow",
              one.windows,
              one.usage?.map(({ window }) => window),
            ]),
          ),
        ).toEqual(inOrder(expected));
      }
      await control.close();
    }),
    { numRuns: 100 },
  );
});

it("shows the other counters if a policy was removed while they were read", async () => {
  const createPolicy = (id: string) => ({ id, ...document("10/s") });
  const limiter = createLimiter({ policies: { policies: ["a", "b"].map(createPolicy) } });
  const nowMs = Date.now();
  const limits = limitsBy(limiter.snapshot.policySet, "user", "u1", nowMs);
  limiter.usePolicies(parsePolicies({ policies: [createPolicy("a")] }));
  const usages = await readUsage(limiter, limits, "user", "u1");
  const used = limits.map((one) => usages(one, effectiveLimit(one, "user", undefined, nowMs)) !== undefined);
  expect(used.slice(0, 2)).toEqual([true, false]);
  await limiter.close();
});
