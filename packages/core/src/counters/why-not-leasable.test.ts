import { describe, expect, it } from "vitest";
import { compileLimits, compileLocalLimits } from "../match/compile-limit.ts";
import { parsePolicies } from "../policy/parse-policies.ts";
import { isLeasable } from "./allowance.ts";
import { whyNotLeasable } from "./why-not-leasable.ts";

type Written = Readonly<Record<string, unknown>>;

const parsePolicy = (written: Written) => parsePolicies({ policies: [{ id: "p", ...written }] }).policies[0]!;

/** Of each limit, as if a request were counted in all of them. */
function whyNot(written: Written): readonly (string | undefined)[] {
  return compileLimits(parsePolicy(written)).map((limit) => {
    const of = { limit, windows: limit.windows };
    expect(isLeasable(of)).toBe(whyNotLeasable(of) === undefined);
    return whyNotLeasable(of);
  });
}

describe("whyNotLeasable", () => {
  it.each(["gcra", "token_bucket", "leaky_bucket", "fixed_window", "sliding_window"])("leases a %s", (algorithm) => {
    expect(whyNot({ limits: [{ algorithm, windows: ["10/s", "100/m"] }] })).toEqual([undefined]);
  });

  it("leases days and months of a calendar", () => {
    expect(whyNot({ limits: [{ windows: ["10/day in UTC", "99/month in UTC"] }] })).toEqual([undefined]);
  });

  it.each<[string, Written, string]>([
    ["a policy that says exact", { counters: "exact" }, "exact"],
    ["one that says exact and a share", { counters: "exact", max_overshoot: 0.5 }, "exact"],
    ["one that exceeds nothing", { max_overshoot: 0 }, "exact"],
    ["a limit that blocks", { limits: [{ windows: "10/s", block_for: "1s" }] }, "blockable"],
    ["one that is blocked by hand", { limits: [{ windows: "10/s", blockable: true }] }, "blockable"],
    ["distinct values", { limits: [{ by: "tenant", distinct: "user", windows: "10/s" }] }, "distinct"],
    ["a sliding log", { limits: [{ windows: "10/s", algorithm: "sliding_log" }] }, "sliding_log"],
    ["a one-off quota", { limits: [{ windows: ["10/s", "10 once"] }] }, "one_off"],
    ["a bucket that nothing flows into", { limits: [{ windows: "0/s burst 10" }] }, "one_off"],
  ])("leases nothing of %s", (_, written, why) => {
    expect(whyNot({ limits: [{ windows: "10/s" }], ...written })).toEqual([why]);
  });

  it("leases nothing of limits that may charge the same counter", () => {
    const windows = "10/s";
    expect(whyNot({ limits: [{ windows }, { windows }, { by: "user", windows }, { name: "n", windows }] })).toEqual([
      "shared",
      "shared",
      undefined,
      undefined,
    ]);
    const [limit] = compileLimits(parsePolicy({ limits: [{ windows }] }));
    const uncharged = limit!.windows.map((window) => ({ ...window, charges: false }));
    expect(whyNotLeasable({ limit: limit!, windows: uncharged })).toBe("shared");
  });

  it("leases nothing that every node counts separately", () => {
    const local = { limits: [{ windows: "10/s" }], on_failure: "local", local_limits: [{ windows: "5/s" }] };
    const [limit] = compileLocalLimits(parsePolicy(local));
    expect(whyNotLeasable({ limit: limit!, windows: limit!.windows })).toBe("local");
  });
});
