import { describe, expect, it } from "vitest";
import { parsePolicies } from "../policy/parse-policies.ts";
import { lintCounters } from "./lint-counters.ts";
import { lintPolicies } from "./lint-policies.ts";

type Written = Readonly<Record<string, unknown>>;

function lint(policy: Written, subjects: readonly Written[] = []): readonly string[] {
  const set = parsePolicies({ policies: [{ id: "p", ...policy }], subjects });
  return lintCounters(set.policies[0]!, set.subjects).map(({ key, message }) => `${key}: ${message}`);
}

const leased = (limit: Written): readonly string[] => lint({ counters: "leased", limits: [limit] });

const never = "counters: is leased, but comes to exact, because no limit of the policy can be leased: ";

describe("lintCounters", () => {
  it("has nothing to report if leases are possible, or not insisted on", () => {
    expect(leased({ windows: "100/s" })).toEqual([]);
    for (const algorithm of ["token_bucket", "leaky_bucket", "fixed_window", "sliding_window"])
      expect(leased({ algorithm, windows: "100/s" })).toEqual([]);
    expect(leased({ windows: "1k/day in UTC" })).toEqual([]);
    for (const counters of ["auto", "exact", undefined])
      expect(lint({ counters, limits: [{ windows: "1/s", block_for: "1m" }] })).toEqual([]);
  });

  it("advises strong counters to fail closed, and reports an overshoot that they do not have", () => {
    const strong = (more: Written): readonly string[] =>
      lint({ counters: "strong", limits: [{ windows: "1k/s" }], ...more });
    expect(strong({ on_failure: "closed" })).toEqual([]);
    expect(strong({ on_failure: "open" })).toEqual([expect.stringMatching(/^on_failure: is open, .* write closed/)]);
    expect(strong({ on_failure: "closed", max_overshoot: 0.01 })).toEqual([
      "max_overshoot: is 1%, and has no effect: counters is strong, and exceeds nothing",
    ]);
    const set = parsePolicies({
      policies: [{ id: "p", counters: "strong", limits: [{ by: "user", windows: "1k/s" }] }],
    });
    expect(lintPolicies(set).map(({ message }) => message)).toEqual([
      expect.stringContaining("write closed, because counters is strong"),
    ]);
  });

  it.each<[string, Written, string]>([
    ["a limit that blocks", { block_for: "1m" }, "can be blocked, and a block takes effect at once on every node"],
    ["one that is blocked by hand", { blockable: true }, "can be blocked"],
    [
      "distinct values",
      { distinct: "ip" },
      "counts distinct values, and only the counters know which of them were seen",
    ],
    ["a sliding log", { algorithm: "sliding_log" }, "is a sliding_log, which is chosen to be exact"],
    ["a one-off quota", { windows: "5k once" }, "is a one-off quota, and what a node loses of it is lost for good"],
    ["a one-off quota beside a window", { windows: ["1k/s", "5k once"] }, "is a one-off quota"],
    ["a limit below 1", { windows: "99/s" }, "is too small: 1% of 99/s is less than 1"],
    ["one with a smaller window", { windows: ["1k/s", "50/m"] }, "is too small: 1% of 50/m is less than 1"],
    ["a limit of nothing", { windows: "0/s" }, "is too small: 1% of 0/s is less than 1"],
  ])("warns about leases if there is only %s", (_, limit, why) => {
    expect(leased({ windows: "1k/s", ...limit })).toEqual([expect.stringContaining(`${never}limits[0] ${why}`)]);
  });

  it("warns if limits may share their counter", () => {
    const limits = [
      { by: "user", windows: "1k/s" },
      { by: "user", windows: "9k/m" },
    ];
    const why = "may share its counter with another limit of the policy; give it a name";
    expect(lint({ counters: "leased", limits })).toEqual([`${never}limits[0] ${why}; limits[1] ${why}`]);
    expect(lint({ counters: "leased", limits: [{ ...limits[0], name: "second" }, limits[1]] })).toEqual([]);
  });

  it("names the first few of many limits", () => {
    const limits = Array.from({ length: 9 }, (_, i) => ({ name: `n${i}`, windows: "5/s" }));
    const [warning] = lint({ counters: "leased", limits });
    expect(warning).toContain("limits[3] is too small: 1% of 5/s is less than 1 (and 5 more)");
    expect(warning).not.toContain("limits[4]");
  });

  it("considers the share that the policy allows", () => {
    const limits = [{ windows: "20/s" }];
    expect(lint({ counters: "leased", max_overshoot: "5%", limits })).toEqual([]);
    expect(lint({ counters: "leased", max_overshoot: "4.9%", limits })).toEqual([
      `${never}limits[0] is too small: 4.9% of 20/s is less than 1`,
    ]);
  });

  it("is content if one limit of several, a tier, or an override can be leased", () => {
    const small = { by: "user", windows: "5/s" };
    expect(lint({ counters: "leased", limits: [small, { by: "tenant", windows: "1k/s" }] })).toEqual([]);
    expect(leased({ ...small, tiers: { whale: { windows: "100k/s" } } })).toEqual([]);
    expect(leased({ ...small, tiers: { more: { windows: "10/s" } } })).toHaveLength(1);
    const own = (subject: Written, windows: string, limit?: string): readonly string[] =>
      lint({ counters: "leased", limits: [{ ...small, name: "n" }] }, [
        { ...subject, limits: [{ policy: "p", windows, ...(limit !== undefined && { limit }) }] },
      ]);
    expect(own({ user: "whale" }, "100k/s")).toEqual([]);
    expect(own({ user: "whale" }, "100k/s", "n")).toEqual([]);
    expect(own({ user: "minnow" }, "9/s")).toHaveLength(1);
    // It does not have the limit's dimension.
    expect(own({ tenant: "whale" }, "100k/s")).toHaveLength(1);
  });

  it("ignores windows that a subject has for another policy, or for another limit", () => {
    const limits = [
      { name: "a", by: "user", windows: "5/s" },
      { name: "b", by: "user", windows: "1k/s", block_for: "1m" },
    ];
    const set = (own: Written) =>
      parsePolicies({
        policies: [
          { id: "p", counters: "leased", limits },
          { id: "q", limits },
        ],
        subjects: [{ user: "whale", limits: [{ windows: "100k/s", ...own }] }],
      });
    const warnings = (own: Written): number => {
      const { policies, subjects } = set(own);
      return lintCounters(policies[0]!, subjects).length;
    };
    expect([{ policy: "p", limit: "a" }, { policy: "q" }, { policy: "p", limit: "b" }].map(warnings)).toEqual([
      0, 1, 1,
    ]);
  });

  it("warns of leases of a policy without limits", () => {
    expect(lint({ counters: "leased", unlimited: true })).toEqual([
      "counters: is leased, but the policy has no limits",
    ]);
  });

  it("warns about a share that exact counters do not exceed, unless it is 0", () => {
    const limits = [{ windows: "1k/s" }];
    expect(lint({ counters: "exact", max_overshoot: "2%", limits })).toEqual([
      "max_overshoot: is 2%, and has no effect: counters is exact, and exceeds nothing",
    ]);
    // Writing the default has no effect either.
    expect(lint({ counters: "exact", max_overshoot: 0.01, limits })).toHaveLength(1);
    expect(lint({ counters: "exact", max_overshoot: 0, limits })).toEqual([]);
    expect(lint({ counters: "exact", limits })).toEqual([]);
  });
});
