import type { PolicyRecord, SubjectLimitRecord, SubjectRecord } from "@sluice/sql";
import { describe, expect, it } from "vitest";
import { admin, document, openTestControl } from "../testing/open-test-control.ts";
import { composePolicySet } from "./compose-policy-set.ts";
import { createDocumentReader } from "./read-documents.ts";
import type { StoredRows } from "./stored-rows.ts";

function policy(id: string, written: unknown, version = 1): PolicyRecord {
  const text = typeof written === "string" ? written : JSON.stringify(written);
  return { id, version, document: text, owner: undefined, ruleKey: undefined, deleted: false, changedMs: 0 };
}

const subject = (value: string, tier?: string): SubjectRecord => ({
  dimension: "user",
  value,
  tier,
  version: 1,
  changedMs: 0,
});

function own(value: string, more: Partial<SubjectLimitRecord> = {}): SubjectLimitRecord {
  const nobody = { untilMs: undefined, reason: "", author: "", atMs: 0 };
  return { dimension: "user", value, policy: "a", limit: "", windows: '["5/s"]', ...nobody, ...more };
}

function rows(more: Partial<StoredRows>): StoredRows {
  return { policies: [], underway: [], subjects: [], subjectLimits: [], ...more };
}

const good = (id: string, more = {}): PolicyRecord => policy(id, { id, ...document("10/s", more) });

describe("policies composed of rows", () => {
  it("are those that can be read; each of the others is named, and affects no other", () => {
    const { policySet, problems } = composePolicySet(
      rows({
        policies: [
          good("a"),
          policy("b", "no JSON"),
          policy("c", { id: "c", from_the_future: true }),
          policy("d", { id: "other", ...document("1/s") }),
          policy("e", 7),
          good("f", { replaces: ["b", "nothing"] }),
        ],
      }),
      0,
    );
    expect(policySet.policies.map(({ id }) => id)).toEqual(["a", "f"]);
    // A policy that cannot be read still replaces those that it names.
    expect(policySet.policies[1]?.replaces).toEqual(["b"]);
    const places = new Set(problems.map(({ path }) => path.slice(0, 2).join(" ")));
    expect([...places].sort()).toEqual(["policies b", "policies c", "policies d", "policies e", "policies f"]);
  });

  it("lose the reference that closes a cycle, and stay in force", () => {
    const { policySet, problems } = composePolicySet(
      rows({ policies: [good("a", { replaces: ["b"] }), good("b", { replaces: ["a"] })] }),
      0,
    );
    expect(policySet.policies.map(({ id, replaces }) => [id, replaces])).toEqual([
      ["a", ["b"]],
      ["b", []],
    ]);
    expect(problems).toEqual([{ path: ["policies", "b", "replaces", 0], message: expect.stringContaining("ring") }]);
  });

  it("fall back to the built-in default if theirs cannot be read", () => {
    const { policySet, hasDefault, problems } = composePolicySet(
      rows({ policies: [policy("default", { limts: [] })] }),
      0,
    );
    expect(hasDefault).toBe(false);
    expect(policySet.fallback?.id).toBe("default");
    expect(problems[0]?.path[0]).toBe("default");
  });

  it("carry the store's versions", () => {
    const { policySet } = composePolicySet(rows({ policies: [policy("a", { id: "a", ...document("1/s") }, 41)] }), 0);
    expect(policySet.policies[0]?.version).toBe(41);
  });

  it("give subjects the limits that have not ended, without dangling references", () => {
    const { policySet, problems } = composePolicySet(
      rows({
        policies: [good("a")],
        subjects: [subject("1", "gold"), subject("2"), subject("3"), subject("4"), subject("5")],
        subjectLimits: [
          own("2", { untilMs: 100 }),
          own("3", { untilMs: 101 }),
          own("4", { policy: "nothing" }),
          own("5", { windows: '["fast"]' }),
          own("5", { limit: "none" }),
        ],
      }),
      100,
    );
    expect(policySet.subjects.filter(({ tier, limits }) => tier !== undefined || limits.length > 0)).toMatchObject([
      { value: "1", tier: "gold", limits: [] },
      { value: "3", limits: [{ policy: "a", untilMs: 101 }] },
    ]);
    expect(problems.map(({ path }) => path)).toEqual([
      ["subjects", "user", "5", "a", "windows", 0],
      ["subjects", "user", "4", "nothing", "policy"],
      ["subjects", "user", "5", "a", "limit"],
    ]);
  });

  it("report every one of thousands of dangling references", () => {
    const subjects = Array.from({ length: 2_500 }, (_, i) => subject(`u${i}`));
    const subjectLimits = subjects.map(({ value }) => own(value, { policy: "nothing" }));
    const { policySet, problems } = composePolicySet(rows({ subjects, subjectLimits }), 0);
    expect(problems).toHaveLength(2_500);
    expect(policySet.subjects.every(({ limits }) => limits.length === 0)).toBe(true);
  });
});

describe("reading again", () => {
  it("parses only what changed", () => {
    const reader = createDocumentReader();
    const policies = Array.from({ length: 100 }, (_, i) => good(`p${i}`));
    const first = composePolicySet(rows({ policies }), 0, { reader }).policySet.policies;
    const changed = policies.with(7, good("p7", { description: "other" }));
    const second = composePolicySet(rows({ policies: changed }), 0, { reader }).policySet.policies;
    // Documents that were not parsed again are the same objects.
    expect(second.filter(({ limits }, i) => limits !== first[i]?.limits).map(({ id }) => id)).toEqual(["p7"]);
    const fresh = composePolicySet(rows({ policies: changed }), 0).policySet.policies;
    expect(second).toEqual(fresh);
  });
});

describe("the assembled store", () => {
  it("has a digest that changes if and only if decisions may change", async () => {
    const control = await openTestControl();
    const digests = new Set<string>();
    const look = async (): Promise<number> => digests.add((await control.applyStored()).digest).size;
    expect(await look()).toBe(1);
    await control.policies.put(admin, "a", document("10/s"));
    expect(await look()).toBe(2);
    await control.tokens.make(admin, { name: "t", role: "viewer" });
    await control.killSwitch.on(admin, "open", { why: "x" });
    expect(await look()).toBe(2);
    await control.subjects.setTier(admin, "user", "u1", "gold");
    expect(await look()).toBe(3);
    await control.subjects.setLimit(admin, "user", "u1", { policy: "a", windows: ["1/s"] });
    expect(await look()).toBe(4);
    const expected = "any";
    await control.subjects.setLimit(admin, "user", "u1", { policy: "a", windows: ["2/s"] }, { expected });
    expect(await look()).toBe(5);
    for (const seconds of [60, 61]) {
      const untilMs = control.clock.epochMs() + seconds * 1_000;
      await control.subjects.setLimit(admin, "user", "u1", { policy: "a", windows: ["2/s"], untilMs }, { expected });
      expect(await look()).toBe(seconds - 54);
    }
    const { value } = await control.policies.put(admin, "a", document("20/s"), { expected: 1, rollout: {} });
    expect(await look()).toBe(8);
    await control.rollouts.advance(admin, value.rollout?.id ?? "");
    expect(await look()).toBe(9);
    const { killSwitch, tokens, generation } = await control.applyStored();
    expect([killSwitch?.mode, tokens.map(({ name }) => name), generation]).toEqual(["open", ["t"], 10]);
    await control.close();
  });

  it("warns of what may surprise, by id", async () => {
    const control = await openTestControl();
    await control.policies.put(admin, "a", { limits: [{ by: ["user"], windows: ["10/s"] }] });
    const { warnings } = await control.applyStored();
    expect(warnings).toEqual([expect.objectContaining({ path: ["policies", "a", "on_failure"] })]);
    await control.close();
  });
});
