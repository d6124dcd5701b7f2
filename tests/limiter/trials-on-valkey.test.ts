import { redis } from "@sluice/redis";
import { startServer, type TestServer } from "@sluice/test-servers";
import { createLimiter, type Limiter, type Policy, type PolicySet, parsePolicies } from "sluice";
import type { Trial } from "sluice/internal";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

let server: TestServer;
const open: Limiter[] = [];

beforeAll(async () => {
  server = await startServer({ flavor: "valkey" });
}, 60_000);

afterAll(async () => {
  await Promise.all(open.map((limiter) => limiter.close()));
  await server?.close();
});

function written(id: string, limit: number, more: object = {}): Policy {
  const limits = [{ by: ["user"], algorithm: "fixed_window", windows: [`${limit}/d`] }];
  // Enough time to connect on a busy machine: an unanswered check is denied here.
  const patient = { on_failure: "closed", deadline: "10s" };
  return parsePolicies({ policies: [{ id, limits, ...patient, ...more }], default: "none" }).policies[0]!;
}

function onTrial(old: Policy, next: Policy, given: Partial<Trial>): PolicySet {
  const trial = { rollout: "r", by: "user", percent: 0, steps: [50, 100], shadow: false, ...given };
  return {
    kind: "policy_set",
    subjects: [],
    policies: [
      { ...old, version: 1, trial: { ...trial, side: "old" } },
      { ...next, version: 2, trial: { ...trial, side: "new" } },
    ],
  };
}

/** A node, and the trials it reports: version, and whether it denies. */
function nodeOn(policies: PolicySet): { readonly limiter: Limiter; readonly told: string[] } {
  const told: string[] = [];
  const limiter = createLimiter({
    policies,
    counters: redis(server.url),
    onTrial: ({ version }, _, denied) => told.push(`${version} ${denied}`),
  });
  open.push(limiter);
  return { limiter, told };
}

describe("two versions of a policy, with counters on Valkey", () => {
  it("share them even between nodes that differ in the percentage: no subject gets both quotas", async () => {
    const [old, next] = [written("shared", 5), written("shared", 3)];
    const behind = nodeOn(onTrial(old, next, { percent: 0 }));
    const ahead = nodeOn(onTrial(old, next, { percent: 100 }));
    let allowed = 0;
    for (let i = 0; i < 10; i++)
      for (const { limiter } of [ahead, behind])
        if ((await limiter.check({ dimensions: { user: "u" } })).allowed) allowed++;
    expect(allowed).toBe(5);
    expect(new Set(behind.told)).toEqual(new Set(["1 false", "1 true"]));
    expect(new Set(ahead.told)).toEqual(new Set(["2 false", "2 true"]));
  });

  it("report requests that are checked together, one by one, and no replay", async () => {
    const { limiter, told } = nodeOn(onTrial(written("many", 1), written("many", 1), { percent: 100 }));
    const requests = ["a", "b"].map((user) => ({ dimensions: { user } }));
    await limiter.checkTogether(requests);
    expect(told).toEqual(["2 false", "2 false"]);
    await limiter.checkTogether(requests);
    expect(told.slice(2)).toEqual(["2 true", "2 true"]);
    told.length = 0;
    const once = { dimensions: { user: "c" }, id: "once" };
    await limiter.check(once);
    expect(await limiter.check(once)).toMatchObject({ allowed: true });
    expect(told).toEqual(["2 false"]);
  });

  it("count a shadow version separately", async () => {
    const { limiter, told } = nodeOn(onTrial(written("seen", 4), written("seen", 2), { percent: 100, shadow: true }));
    const decisions = [];
    for (let i = 0; i < 5; i++) decisions.push(await limiter.check({ dimensions: { user: "u" } }));
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, true, false]);
    expect(told.filter((one) => one === "2 true")).toHaveLength(3);
    expect(told.filter((one) => one === "1 true")).toHaveLength(1);
  });

  it("report no decisions of a kill switch, nor any without counters", async () => {
    const { limiter, told } = nodeOn(onTrial(written("forced", 1), written("forced", 1), { percent: 100 }));
    limiter.force({ mode: "closed", untilMs: Date.now() + 60_000 });
    expect((await limiter.check({ dimensions: { user: "u" } })).allowed).toBe(false);
    await limiter.checkTogether([{ dimensions: { user: "u" } }]);
    limiter.force(undefined);
    await limiter.close();
    expect((await limiter.check({ dimensions: { user: "u" } })).allowed).toBe(false);
    expect(told).toEqual([]);
  });

  it("each replace other policies for their own subjects", async () => {
    const next = written("vip", 100);
    const set = onTrial(next, { ...next, replaces: ["base"] }, { percent: 50 });
    const { limiter } = nodeOn({ ...set, policies: [...set.policies, { ...written("base", 1), version: 7 }] });
    const freed = new Map<number, Set<boolean>>();
    for (let i = 0; i < 20; i++) {
      const request = { dimensions: { user: `user-${i}` } };
      const { version = 0 } = await limiter.check({ ...request, policies: ["vip"] });
      await limiter.check(request);
      const isFreed = (await limiter.check(request)).allowed;
      freed.set(version, (freed.get(version) ?? new Set()).add(isFreed));
    }
    expect(freed).toEqual(
      new Map([
        [1, new Set([false])],
        [2, new Set([true])],
      ]),
    );
  });
});
