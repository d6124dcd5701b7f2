import { openPolicyStore, type PolicyStore, PolicyStoreUnavailable, type TallyRecord } from "@sluice/sql";
import { createLimiter, ManualClock, type Policy } from "sluice";
import type { Trial } from "sluice/internal";
import { parsePolicyText } from "sluice/policy-text";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createRecordingLog, type LoggedLine } from "../../testing/recording-log.ts";
import { createTrialTallies, type TrialTallies } from "./tally-trials.ts";

const minute = 28_000_000;
const { policySet } = parsePolicyText("policies: [{ id: p, on_failure: open, limits: [{ by: user, windows: 5/h }] }]");

let store: PolicyStore;
let away: boolean;
let nowMs: number;
let lines: LoggedLine[];
let tallies: TrialTallies;

beforeEach(async () => {
  store = await openPolicyStore({ url: "sqlite::memory:" });
  away = false;
  nowMs = minute * 60_000;
  lines = [];
  tallies = create("a");
});

afterEach(async () => {
  await tallies.close();
  await store.close();
});

function create(node: string): TrialTallies {
  return createTrialTallies({
    store: {
      note: (work) => (away ? Promise.reject(new PolicyStoreUnavailable("away")) : store.note(work)),
    },
    node,
    log: createRecordingLog((line) => lines.push(line)),
    nowMs: () => nowMs,
    flushEveryMs: 3_600_000,
  });
}

function policyOn(rollout: string, side: Trial["side"], shadow = false): Policy {
  const [policy] = policySet.policies;
  if (policy === undefined) throw new Error("there is no policy");
  return { ...policy, trial: { rollout, side, by: "user", percent: 10, steps: [1, 10, 100], shadow } };
}

async function stored(rollout = "r"): Promise<readonly string[]> {
  const found = await store.read((view) => view.tallies(rollout));
  return found.map(renderTally).sort();
}

function renderTally({ node, minute: at, step, side, decided, denied }: TallyRecord): string {
  return `${node} ${at - minute} ${side}${step} ${denied}/${decided}`;
}

const oldVersion = policyOn("r", "old");
const newVersion = policyOn("r", "new");

describe("tallies", () => {
  it("count by minute, by the step at which subjects join, and by side", async () => {
    tallies.onTrial(newVersion, 0, true);
    tallies.onTrial(newVersion, 0, false);
    tallies.onTrial(oldVersion, 2, false);
    tallies.onTrial(oldVersion, 3, true);
    nowMs += 60_000;
    tallies.onTrial(newVersion, 0, true);
    tallies.onTrial(policyOn("s", "new", true), 1, true);
    tallies.onTrial(policyOn("s", "old", true), 1, false);
    await tallies.flush();
    expect(await stored()).toEqual(["a 0 new0 1/2", "a 0 old2 0/1", "a 0 old3 1/1", "a 1 new0 1/1"]);
    expect(await stored("s")).toEqual(["a 1 old1 0/1", "a 1 shadow1 1/1"]);
  });

  it("write the whole of a minute each time, so that writing it twice adds nothing", async () => {
    tallies.onTrial(newVersion, 0, true);
    await tallies.flush();
    tallies.onTrial(newVersion, 0, false);
    await tallies.flush();
    await tallies.flush();
    expect(await stored()).toEqual(["a 0 new0 1/2"]);
  });

  it("keep nodes apart", async () => {
    const other = create("b");
    tallies.onTrial(newVersion, 0, true);
    other.onTrial(newVersion, 0, false);
    await Promise.all([tallies.flush(), other.close()]);
    expect(await stored()).toEqual(["a 0 new0 1/1", "b 0 new0 0/1"]);
  });

  it("lose nothing that is counted during a write", async () => {
    tallies.onTrial(newVersion, 0, true);
    const asked = tallies.flush();
    tallies.onTrial(newVersion, 0, true);
    nowMs += 60_000;
    tallies.onTrial(newVersion, 0, true);
    await asked;
    await tallies.flush();
    expect(await stored()).toEqual(["a 0 new0 2/2", "a 1 new0 1/1"]);
  });

  it("write the rest at the end, and count nothing more", async () => {
    tallies.onTrial(newVersion, 0, true);
    await tallies.close();
    tallies.onTrial(newVersion, 0, true);
    await tallies.flush();
    expect(await stored()).toEqual(["a 0 new0 1/1"]);
  });

  it("continue in the same minute when the clock is set back a little", async () => {
    tallies.onTrial(newVersion, 0, true);
    await tallies.flush();
    nowMs += 60_000;
    tallies.onTrial(newVersion, 0, true);
    nowMs -= 60_000;
    tallies.onTrial(newVersion, 0, true);
    await tallies.flush();
    expect(await stored()).toEqual(["a 0 new0 1/1", "a 1 new0 2/2"]);
  });

  it("ignore policies without a rollout, and steps that a rollout does not have", async () => {
    const { trial: _, ...plain } = newVersion;
    tallies.onTrial(plain, 0, true);
    tallies.onTrial(newVersion, 4, true);
    tallies.onTrial(newVersion, -1, true);
    await tallies.flush();
    expect(await stored()).toEqual([]);
  });
});

describe("while the store is unavailable", () => {
  it("minutes are kept and written later, and it is logged once", async () => {
    away = true;
    for (let i = 0; i < 3; i++) {
      tallies.onTrial(newVersion, 0, true);
      await tallies.flush();
      nowMs += 60_000;
    }
    expect(lines.map(({ level }) => level)).toEqual(["warn"]);
    away = false;
    await tallies.flush();
    expect(await stored()).toEqual(["a 0 new0 1/1", "a 1 new0 1/1", "a 2 new0 1/1"]);
    expect(lines.map(({ level }) => level)).toEqual(["warn", "info"]);
  });

  it("a thousand minutes are kept at most, the latest", async () => {
    away = true;
    for (let i = 0; i < 1_100; i++) {
      tallies.onTrial(newVersion, 0, true);
      if (i % 100 === 0) await tallies.flush();
      nowMs += 60_000;
    }
    away = false;
    await tallies.flush();
    const kept = await store.read((view) => view.tallies("r"));
    expect(kept.length).toBeLessThanOrEqual(1_001);
    expect(Math.max(...kept.map((tally) => tally.minute))).toBe(minute + 1_099);
    expect(Math.min(...kept.map((tally) => tally.minute))).toBeGreaterThan(minute + 90);
    expect(lines.at(-1)).toMatchObject({ level: "info", fields: { lost: 99 } });
  });
});

describe("on a limiter", () => {
  it("both versions are counted separately, as they decide", async () => {
    const clock = new ManualClock(nowMs);
    const limiter = createLimiter({
      policies: { ...policySet, policies: [oldVersion, newVersion] },
      clock,
      onTrial: tallies.onTrial,
    });
    for (let user = 0; user < 300; user++)
      for (let i = 0; i < 6; i++) await limiter.check({ dimensions: { user: `u${user}` } });
    await limiter.close();
    await tallies.flush();
    const found = await store.read((view) => view.tallies("r"));
    expect(found.reduce((sum, { decided }) => sum + decided, 0)).toBe(1_800);
    for (const { step, side, decided, denied } of found) {
      expect(side).toBe(step <= 1 ? "new" : "old");
      expect(denied).toBe(decided / 6);
    }
  });
});
