import type { ExplanationBody } from "@sluice/protocol/http";
import { describe, expect, it } from "vitest";
import { readNearMisses, readWindows } from "./read-explanation.ts";

type Limit = ExplanationBody["limits"][number];

const limit = (policy: string, windows: readonly [limit: number, remaining: number][], cost = 1): Limit => ({
  ...{ policy, scope: "per-tenant", subject: "acme", counter: "c", cost, missing: [] },
  ...{ shadow: false, counted: "exactly", allowance: 0 },
  windows: windows.map(([most, remaining]) => {
    return { window: { limit: most, per: "1m" }, remaining, reset_after_ms: 0, state: {}, arithmetic: [] };
  }),
});

const explanation = (
  decision: { readonly allowed: boolean; readonly reason: string; readonly policy?: string; readonly scope?: string },
  limits: readonly Limit[],
): ExplanationBody =>
  ({ request: {}, domain: "default", policies: [], limits, decision }) as unknown as ExplanationBody;

const names = (explained: ExplanationBody): readonly string[] =>
  readWindows(explained).map((room) => `${room.limit.policy}/${room.window.window.limit}${room.binding ? "!" : ""}`);

describe("an explained decision", () => {
  it("is the doing of the window that has no room, and not of others of the same limit", () => {
    const decision = { allowed: false, reason: "over_limit", policy: "search", scope: "per-tenant" };
    const explained = explanation(decision, [
      limit("api", [[100, 3]]),
      limit("search", [
        [1_000, 20],
        [60, 0],
      ]),
    ]);
    expect(names(explained)).toEqual(["search/60!", "search/1000", "api/100"]);
    expect(readWindows(explained)[0]).toMatchObject({ fits: false, used: 1, capacity: 60 });
  });

  it("is that of the window with the least left if it is allowed", () => {
    const decision = { allowed: true, reason: "within_limits", policy: "api", scope: "per-tenant" };
    expect(
      names(
        explanation(decision, [
          limit("api", [
            [100, 90],
            [10, 5],
          ]),
        ]),
      ),
    ).toEqual(["api/10!", "api/100"]);
  });

  it("is that of no window if a list, a block or the kill switch decided", () => {
    const decision = { allowed: false, reason: "deny_list", policy: "api" };
    expect(names(explanation(decision, [limit("api", [[100, 90]])]))).toEqual(["api/100"]);
  });

  it("has near misses: windows with little left, and policies that did not apply", () => {
    const decision = { allowed: true, reason: "within_limits", policy: "api", scope: "per-tenant" };
    const policies = [
      { policy: "api", applies: true, why: "matches" },
      { policy: "export", applies: false, why: "wants method POST, not GET" },
    ];
    const limits = [limit("api", [[100, 2]]), limit("search", [[60, 8]]), limit("roomy", [[60, 50]])];
    const near = readNearMisses({ ...explanation(decision, limits), policies });
    expect(near.windows.map((room) => room.limit.policy)).toEqual(["search"]);
    expect(near.policies).toEqual([policies[1]]);
  });

  it("copes with a window that never holds anything", () => {
    const decision = { allowed: false, reason: "never_fits", policy: "none", scope: "per-tenant" };
    expect(readWindows(explanation(decision, [limit("none", [[0, 0]])]))[0]).toMatchObject({ used: 1, binding: true });
  });
});
