import { describe, expect, it } from "vitest";
import { hotKeysHere } from "../http/hot-key.ts";
import { auditEntry } from "./audit-entry.ts";
import { rolloutFigures, rolloutWait } from "./rollout.ts";
import { effectiveLimit, subjectChange } from "./subject.ts";
import { newToken } from "./token.ts";
import { version } from "./version.ts";

/** The JSON of a body, as it travels. */
const travel = (body: unknown): unknown => JSON.parse(JSON.stringify(body));

const unchanged = { dryRun: true, generation: undefined, warnings: [] };

describe("nouns whose body differs from the view", () => {
  it("shows a new token, and none in a dry run", () => {
    const view = {
      ...{ id: "t1", name: "ci", role: "editor" as const, team: undefined, createdMs: 1, createdBy: "al" },
      ...{ expiresMs: 9, revokedMs: undefined, lastUsedMs: undefined },
    };
    const body = { id: "t1", name: "ci", role: "editor", created_ms: 1, created_by: "al", expires_ms: 9 };
    expect(travel(newToken.render({ ...unchanged, token: { ...view, token: "" } }))).toEqual({
      ...{ dry_run: true, warnings: [] },
      token: body,
    });
    expect(travel(newToken.render({ ...unchanged, token: { ...view, token: "s" } }))).toMatchObject({
      token: { ...body, token: "s" },
    });
  });

  it("shows the audit's values as JSON, and a text that is not JSON unchanged", () => {
    const entry = {
      ...{ id: "a1", atMs: 1, actor: "al", role: "admin", from: "", action: "policy.put", kind: "policy" },
      ...{ target: "login", outcome: "done" as const, why: "", before: '{"a":[1]}', after: "{" },
      generation: undefined,
    };
    expect(travel(auditEntry.render(entry))).toEqual({
      ...{ id: "a1", at_ms: 1, actor: "al", role: "admin", from: "", action: "policy.put", kind: "policy" },
      ...{ target: "login", outcome: "done", why: "", before: { a: [1] }, after: "{" },
    });
  });

  it("calls a version without a document deleted", () => {
    const view = {
      ...{ policy: "login", version: 2, author: "al", why: "", atMs: 1, revertOf: undefined },
      ...{ current: true, rollout: undefined },
    };
    expect(version.render({ ...view, document: undefined }).deleted).toBe(true);
    expect(version.render({ ...view, document: {} }).deleted).toBe(false);
  });

  it("gives a wait its numbers", () => {
    expect(travel(rolloutWait.render({ code: "looks", untilMs: 5, looks: 1, looksNeeded: 3 }))).toEqual({
      ...{ code: "looks", until_ms: 5, looks: 1, looks_needed: 3 },
    });
    expect(travel(rolloutWait.render({ code: "due" }))).toEqual({ code: "due" });
  });

  it("accepts metrics of an earlier version, which lack `because`", () => {
    const total = {
      ...{ decided: 2, denied: 1, rate: 0.5, baseline: 0.1, baselineMinutes: 3 },
      ...{ baselineDecided: 20, others: 1, sigma: 0, threshold: 1 },
    };
    const look = { minute: 1, minutes: 1, verdict: "fine", sentence: "as usual", looks: 1, strikes: 0 } as const;
    expect(travel(rolloutFigures.render({ ...look, total, rings: [{ ...total, step: 0, judged: true }] }))).toEqual({
      ...look,
      total: expect.objectContaining({ baseline_minutes: 3, baseline_decided: 20 }),
      rings: [expect.objectContaining({ step: 0, judged: true, rate: 0.5 })],
    });
  });

  it("leaves out the reset of a quota that never refills, and the usage of replaced limits", () => {
    const window = { limit: 5, per: { kind: "never" }, burst: 5 } as const;
    const limit = {
      ...{ policy: "p", version: 1, limit: "user", by: ["user"], algorithm: "gcra", windows: [window] },
      ...({ source: { kind: "override", untilMs: 7 }, mode: "enforce" } as const),
    };
    const usage = [{ window, used: 1, remaining: 4, resetAfterMs: Number.POSITIVE_INFINITY }];
    const body = {
      ...{ policy: "p", version: 1, limit: "user", by: ["user"], algorithm: "gcra" },
      ...{ windows: [{ limit: 5, per: "never" }], source: { kind: "override", until_ms: 7 }, mode: "enforce" },
    };
    expect(travel(effectiveLimit.render({ ...limit, usage }))).toEqual({
      ...body,
      usage: [{ window: { limit: 5, per: "never" }, used: 1, remaining: 4 }],
    });
    const subject = {
      dimension: "user",
      value: "u1",
      version: 1,
      tier: undefined,
      limits: [],
      block: undefined,
      effective: [],
    };
    const changed = subjectChange.render({ ...unchanged, replaced: undefined, inPlaceOf: [limit], subject });
    expect(travel(changed.in_place_of)).toEqual([body]);
  });

  it("rounds rates of hot keys to a hundredth", () => {
    const rates = { perSecond: 1.005_1, deniedPerSecond: 0.333 };
    const key = { policy: "p", scope: "user", subject: "u1", ...rates, errorPerSecond: 0, parts: 2 };
    const view = {
      by: "rate",
      keys: [key],
      totals: rates,
      reported: 2,
      silent: undefined,
      oldestMs: 1.6,
      hashed: false,
    };
    expect(travel(hotKeysHere.render({ ...view, by: "rate" }))).toEqual({
      by: "rate",
      items: [
        {
          ...{ policy: "p", scope: "user", subject: "u1", per_second: 1.01, denied_per_second: 0.33 },
          ...{ error_per_second: 0, nodes: 2 },
        },
      ],
      total: { per_second: 1.01, denied_per_second: 0.33 },
      nodes: { reported: 2, oldest_ms: 2 },
      hashed: false,
    });
  });
});
