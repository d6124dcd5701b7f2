import { describe, expect, it } from "vitest";
import { compileLimits } from "../match/compile-limit.ts";
import { parsePolicies } from "../policy/parse-policies.ts";
import { describeCounting } from "./describe-counting.ts";

type Written = Readonly<Record<string, unknown>>;

const leasing = { local: false, leases: true };

/** How a policy's only limit is counted, by default 1 000 a second. */
function countedBy(store: Parameters<typeof describeCounting>[1], policy: Written, limit: Written = {}) {
  const limits = [{ windows: "1000/s", ...limit }];
  const [compiled] = compileLimits(parsePolicies({ policies: [{ id: "p", limits, ...policy }] }).policies[0]!);
  return describeCounting({ limit: compiled!, windows: compiled!.windows }, store);
}

describe("describeCounting", () => {
  it("describes leases, and by how much they may exceed the smallest window", () => {
    expect(countedBy(leasing, {})).toEqual({
      counted: "by leases while hot, at most 10 over 1000/s (max_overshoot 1%)",
      allowance: 10,
    });
    expect(countedBy(leasing, { counters: "leased", max_overshoot: "0.25%" }, { windows: ["9k/m", "2k/s"] })).toEqual({
      counted: "by leases, at most 5 over 2000/s (max_overshoot 0.25%)",
      allowance: 5,
    });
  });

  it("counts small limits exactly, unless leases are asked for", () => {
    expect(countedBy(leasing, {}, { windows: "999/s" })).toEqual({
      counted: "exactly, at the counters, because it is too small: 1% of 999/s is less than 10",
      // Clients may still ask for leases of it.
      allowance: 9,
    });
    expect(countedBy(leasing, { counters: "leased" }, { windows: "100/s" })).toEqual({
      counted: "by leases, at most 1 over 100/s (max_overshoot 1%)",
      allowance: 1,
    });
    expect(countedBy(leasing, { counters: "leased" }, { windows: "99/s" })).toEqual({
      counted: "exactly, at the counters, because it is too small: 1% of 99/s is less than 1",
      allowance: 0,
    });
  });

  it.each<[Written, Written, string]>([
    [{ counters: "exact" }, {}, "is of a policy with counters: exact"],
    [{ max_overshoot: 0 }, {}, "is of a policy with max_overshoot: 0"],
    [{}, { block_for: "1s" }, "can be blocked, and a block takes effect at once on every node"],
    [{}, { distinct: "ip" }, "counts distinct values, and only the counters know which of them were seen"],
    [{}, { algorithm: "sliding_log" }, "is a sliding_log, which is chosen to be exact"],
    [{}, { windows: "5k once" }, "is a one-off quota, and what a node loses of it is lost for good"],
  ])("says of %j with %j why it is exact", (policy, limit, why) => {
    const counted = `exactly, at the counters, because it ${why}`;
    expect(countedBy(leasing, policy, limit)).toEqual({ counted, allowance: 0 });
  });

  it("describes exact counters if this process takes no leases, and what others may", () => {
    expect(countedBy({ local: false }, {})).toEqual({ counted: "exactly, at the counters", allowance: 10 });
    expect(countedBy({ local: false, leases: false }, { counters: "leased" })).toMatchObject({ allowance: 10 });
    expect(countedBy({ local: true }, { counters: "exact" })).toEqual({
      counted: "exactly, in memory",
      allowance: 0,
    });
  });
});
