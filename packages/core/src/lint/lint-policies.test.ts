import { describe, expect, it } from "vitest";
import { renderProblem } from "../errors.ts";
import { parsePolicies } from "../policy/parse-policies.ts";
import { lintPolicies } from "./lint-policies.ts";

function lint(document: Record<string, unknown>): string[] {
  return lintPolicies(parsePolicies(document)).map(renderProblem);
}

/** Warnings about a policy that has none without these keys. */
function lintOne(policy: Record<string, unknown>): string[] {
  const quiet = { id: "p", on_failure: "open", limits: [{ by: "user", windows: "10/s" }] };
  return lint({ policies: [{ ...quiet, ...policy }] }).map((text) => text.replace("policies[0].", ""));
}

describe("lintPolicies", () => {
  it("has nothing to say about an ordinary policy, nor about the built-in default", () => {
    expect(lintOne({})).toEqual([]);
  });

  it("warns of the double burst of a fixed window", () => {
    expect(lintOne({ limits: [{ by: "user", algorithm: "fixed_window", windows: "100/m" }] })).toEqual([
      "limits[0].algorithm: is fixed_window, which lets twice the limit through around the end of a window (200 for 100/m); sliding_window does not",
    ]);
  });

  it("does not warn about it if the calendar leaves no choice, or nothing is let through", () => {
    expect(lintOne({ limits: [{ by: "user", windows: "100/day in UTC" }] })).toEqual([]);
    expect(lintOne({ limits: [{ by: "user", algorithm: "fixed_window", windows: ["0/s"] }] })).toEqual([]);
  });

  it("wants the fail mode written down, if there is something to fail", () => {
    expect(lintOne({ on_failure: undefined })).toEqual([
      "on_failure: on_failure is not chosen, so policy p allows everything when its counters are unavailable; write open, closed or local",
    ]);
    expect(lintOne({ on_failure: undefined, limits: undefined, unlimited: true })).toEqual([]);
    expect(lint({ default: { limits: [{ by: "user", windows: "1/s" }] } })).toEqual([
      expect.stringContaining("default.on_failure: on_failure is not chosen"),
    ]);
  });

  it("warns of a window that never holds the largest cost, in tiers too", () => {
    const tiers = { small: { windows: "9/s" }, large: { windows: "50/s" } };
    expect(
      lintOne({ limits: [{ by: "user", windows: ["5/s", "100/m"], tiers }], cost: { "/export": 10, "/list": 2 } }),
    ).toEqual([
      "limits[0].windows[0]: holds at most 5, less than the cost 10 of /export, which therefore never passes",
      "limits[0].tiers.small.windows[0]: holds at most 9, less than the cost 10 of /export, which therefore never passes",
    ]);
  });

  it("warns about a cost that passes normally but not by the local share", () => {
    const limits = [{ by: "user", windows: ["10/s", "100/m"], tiers: { small: { windows: "5/s" } } }];
    expect(lintOne({ limits, cost: { "/export": 8 }, on_failure: "local" })).toEqual([
      "limits[0].tiers.small.windows[0]: holds at most 5, less than the cost 8 of /export, which therefore never passes",
      "limits[0].windows[0]: holds at most 5 when counters are unavailable (local_share), less than the cost 8 of /export, which does not pass then",
    ]);
    expect(lintOne({ limits: [{ by: "user", windows: "10/s" }], cost: 8, on_failure: "open" })).toEqual([]);
    expect(
      lintOne({ limits: [{ by: "user", windows: "10/s" }], cost: 8, on_failure: "local", local_share: 0.8 }),
    ).toEqual([]);
  });

  it("warns about a local share that local limits make useless, and examines local limits like limits", () => {
    const local_limits = [{ by: "ip", algorithm: "fixed_window", windows: ["20/m", "2000/m"] }];
    expect(lintOne({ on_failure: "local", local_share: 0.5, local_limits })).toEqual([
      "local_limits[0].algorithm: is fixed_window, which lets twice the limit through around the end of a window (40 for 20/m); sliding_window does not",
      "local_limits[0].windows[1]: 2000/m never limits anything: 20/m is always there first",
      "local_share: changes nothing: local_limits stand in for the limits, at their full size",
    ]);
    const shared = [
      { by: "ip", windows: "10/s" },
      { by: "ip", windows: "20/s" },
    ];
    expect(lintOne({ on_failure: "local", local_limits: shared })).toEqual([
      "local_limits[1].windows[0]: shares its counter with local_limits[0], which has the same dimensions, algorithm and duration; name one of the limits",
    ]);
  });

  it("does not warn of a window that denies everything", () => {
    expect(lintOne({ limits: [{ by: "user", windows: "0/s" }], cost: 10 })).toEqual([]);
  });

  it("warns of two limits that share a counter", () => {
    const limits = [
      { by: "user", windows: ["10/s", "300/m"] },
      { by: "user", windows: ["20/s"] },
    ];
    expect(lintOne({ limits })).toEqual([
      "limits[1].windows[0]: shares its counter with limits[0], which has the same dimensions, algorithm and duration; name one of the limits",
    ]);
  });

  it.each([
    ["a name", { name: "strict", by: "user", windows: "20/s" }],
    ["other dimensions", { by: "tenant", windows: "20/s" }],
    ["another algorithm", { by: "user", algorithm: "leaky_bucket", windows: "20/s" }],
    ["another duration", { by: "user", windows: "20/m" }],
    ["a named window", { by: "user", windows: { limit: 20, per: "1s", name: "strict" } }],
  ])("does not if one of them has %s", (_, second) => {
    expect(lintOne({ limits: [{ by: "user", windows: "10/s" }, second] })).toEqual([]);
  });

  it("warns about one counter for all requests", () => {
    expect(lintOne({ limits: [{ windows: "10/s" }] })).toEqual([
      "limits[0].by: is empty and the policy matches everything, so all requests together share one counter",
    ]);
    expect(lintOne({ limits: [{ windows: "10/s" }], match: { endpoint: "/login" } })).toEqual([]);
    expect(lintOne({ limits: [{ windows: "10/s" }], match: { tenant: "*" } })).toEqual([]);
  });

  it("warns about a dimension that is nearly one that requests carry, and the consequences", () => {
    const by = (dimension: string, more: object = {}) =>
      lintOne({ limits: [{ by: [dimension], windows: "9/s", ...more }] });
    const said = "is tennant, which requests may never carry";
    expect(by("tennant")).toEqual([
      `limits[0].by[0]: ${said}: all requests without it share one counter; did you mean tenant?`,
    ]);
    expect(by("tennant", { missing: "skip" })).toEqual([
      `limits[0].by[0]: ${said}: the limit does not apply to requests without it; did you mean tenant?`,
    ]);
    expect(by("User")[0]).toMatch(/did you mean user\?$/);
    expect(lintOne({ match: { tennant: "acme" } })).toEqual([
      `match.tennant: ${said}: the policy matches no request without it; did you mean tenant?`,
    ]);
    for (const own of ["id", "customer", "team", "user_id", "shop"]) expect(by(own), own).toEqual([]);
    expect(lintOne({ match: { endpoint: "/{tenants}/x" }, limits: [{ by: ["tenants"], windows: "9/s" }] })).toEqual([]);
  });

  it("warns of a dimension that is nearly one that more policies use", () => {
    const policy = (id: string, by: string) => ({ id, on_failure: "open", limits: [{ by: [by], windows: "9/s" }] });
    expect(lint({ policies: [policy("a", "workspace"), policy("b", "workspace"), policy("c", "workspaec")] })).toEqual([
      "policies[2].limits[0].by[0]: is workspaec, which requests may never carry: all requests without it share one counter; did you mean workspace?",
    ]);
    expect(lint({ policies: [policy("a", "workspace"), policy("b", "workspaces")] })).toEqual([]);
  });

  it("warns about events of every decision of a policy that decides nothing", () => {
    expect(lintOne({ mode: "shadow", events: "each" })).toEqual([
      "events: is each, but policy p is in shadow mode, decides nothing, and sends no usage events",
    ]);
    expect(lintOne({ mode: "shadow", events: "summary" })).toEqual([]);
    expect(lintOne({ events: "each" })).toEqual([]);
  });

  it("warns about a rollout to no subject", () => {
    expect(lintOne({ rollout: { percent: 0, by: "user" } })).toEqual([
      "rollout.percent: is 0, so policy p applies to no subject",
    ]);
  });

  it("warns of windows that never limit anything", () => {
    expect(lintOne({ limits: [{ by: "user", windows: ["100/s", "10000/m"] }] })).toEqual([
      "limits[0].windows[1]: 10k/m never limits anything: 100/s is always there first",
    ]);
  });

  it("warns about invalid addresses", () => {
    const lists = { ip: ["10.0.0.0/8", "10.0.0.0/33", "::1", "example.com"], user: "example.com" };
    expect(lintOne({ allow: lists, deny: { ip: "10.0.0" } })).toEqual([
      "allow.ip[1]: is 10.0.0.0/33, neither an address nor a range such as 10.0.0.0/8, so it matches no request",
      "allow.ip[3]: is example.com, neither an address nor a range such as 10.0.0.0/8, so it matches no request",
      "deny.ip[0]: is 10.0.0, neither an address nor a range such as 10.0.0.0/8, so it matches no request",
    ]);
    expect(lintOne({ match: { ip: ["10.0.0.0/8", "10.0.0.1", "10.0.0.0/99"] } })).toEqual([
      "match.ip[2]: is 10.0.0.0/99, no address or range of addresses, and matches no request",
    ]);
    expect(lintOne({ match: { ip: "*" } })).toEqual([]);
  });

  it("warns about counter settings without effect, at their key, also in the default", () => {
    const limits = [{ by: "user", windows: "5/s" }];
    expect(lintOne({ counters: "leased", limits })).toEqual([
      expect.stringMatching(/^counters: is leased, but comes to exact, .* 1% of 5\/s is less than 1$/),
    ]);
    expect(lintOne({ counters: "exact", max_overshoot: 0.5 })).toEqual([
      expect.stringMatching(/^max_overshoot: is 50%, and has no effect/),
    ]);
    const [warning, ...more] = lint({ default: { limits, on_failure: "open", counters: "leased" } });
    expect([warning, more]).toEqual([expect.stringMatching(/^default\.counters: is leased, but comes to exact/), []]);
    const subjects = [{ user: "whale", limits: [{ policy: "default", windows: "9k/s" }] }];
    expect(lint({ default: { limits, on_failure: "open", counters: "leased" }, subjects })).toEqual([]);
  });

  it("warns of subjects in a tier that no policy knows", () => {
    const policies = [
      { id: "p", on_failure: "open", limits: [{ by: "user", windows: "1/s", tiers: { premium: { windows: "9/s" } } }] },
      { id: "q", on_failure: "open", match: { tier: "internal" }, limits: [{ by: "user", windows: "1/s" }] },
    ];
    const subjects = [
      { user: "a", tier: "premium" },
      { user: "b", tier: "internal" },
      { user: "c", tier: "premum" },
    ];
    expect(lint({ policies, subjects })).toEqual([
      "subjects[2].tier: is premum, which no policy knows; did you mean premium?",
    ]);
  });

  it("warns of a subject's limit that changes nothing", () => {
    const policies = [{ id: "p", on_failure: "open", limits: [{ name: "n", by: "user", windows: "1/s" }] }];
    const own = (subject: Record<string, unknown>) => lint({ policies, subjects: [subject] });
    expect(own({ tenant: "a", limits: [{ policy: "p", windows: "5/s" }] })).toEqual([
      "subjects[0].limits[0]: changes nothing: policy p has no such limit by tenant",
    ]);
    expect(own({ user: "a", limits: [{ policy: "p", windows: "5/s" }] })).toEqual([]);
    expect(own({ user: "a", limits: [{ policy: "p", limit: "n", windows: "5/s" }] })).toEqual([]);
  });
});
