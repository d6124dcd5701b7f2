import { openPolicyStore, type PolicyStore, type RolloutRecord, type TallyRecord } from "@sluice/sql";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createRecordingLog, type LoggedLine } from "../../testing/recording-log.ts";
import { parseRolloutFigures } from "../rollouts/rollout-figures.ts";
import { type RolloutStart, startRollout } from "../rollouts/start-rollout.ts";
import { pauseRollout } from "../rollouts/steer-rollout.ts";
import { createSeededRandom } from "../rollouts/testing/seeded-random.ts";
import { runRollouts } from "./run-rollouts.ts";

const minuteMs = 60_000;
const beganMs = 28_000_000 * minuteMs;

let store: PolicyStore;
let nowMs: number;
let announced: number[];
let lines: LoggedLine[];

beforeEach(async () => {
  store = await openPolicyStore({ url: "sqlite::memory:" });
  nowMs = beganMs;
  announced = [];
  lines = [];
});

afterEach(() => store.close());

function pass(): Promise<void> {
  return runRollouts({
    store,
    nowMs: () => nowMs,
    log: createRecordingLog((line) => lines.push(line)),
    announce: (generation) => announced.push(generation),
  });
}

const documents = ["", '{"id":"p","limits":["10/s"]}', '{"id":"p","limits":["5/s"]}'];

/** A policy with two versions, the second being rolled out. */
async function begin(request: Partial<RolloutStart> = {}): Promise<void> {
  const start: RolloutStart = {
    id: "r",
    policy: "p",
    fromVersion: 1,
    toVersion: 2,
    author: "ada",
    by: "user",
    ...request,
  };
  const current = start.fromVersion === 0 ? start.toVersion : start.fromVersion;
  await store.change(async (change) => {
    for (const version of start.fromVersion === 0 ? [2] : [1, 2])
      await change.addVersion({
        policy: "p",
        version,
        document: documents[version] ?? "",
        deleted: false,
        author: "ada",
        atMs: nowMs,
        why: "",
        revertOf: undefined,
      });
    await change.putPolicy({
      id: "p",
      version: current,
      document: documents[current] ?? "",
      owner: undefined,
      ruleKey: undefined,
      deleted: false,
      changedMs: nowMs,
    });
    await change.putRollout(startRollout(start, nowMs));
    await change.nextGeneration();
  });
}

function rollout(): Promise<RolloutRecord> {
  return store.read(async (view) => {
    const found = await view.rollout("r");
    if (found === undefined) throw new Error("there is no rollout");
    return found;
  });
}

async function generation(): Promise<number> {
  return (await store.readPulse()).generation;
}

/**
 * Lets minutes pass on a node that decides by the policies in force: it counts, and the leader looks twice a minute.
 */
async function live(minutes: number, newRate: number, perMinute = 10_000): Promise<void> {
  const random = createSeededRandom(nowMs / minuteMs);
  for (let i = 0; i < minutes; i++) {
    const { state, step, shadow, steps, fromVersion } = await rollout();
    const minute = nowMs / minuteMs;
    const tallies: TallyRecord[] = [];
    const count = (ring: number, side: TallyRecord["side"], rate: number): void => {
      const decided = perMinute;
      tallies.push({
        rollout: "r",
        node: "n",
        minute,
        step: ring,
        side,
        decided,
        denied: random.binomial(decided, rate),
      });
    };
    if (state === "observing" || state === "running" || state === "paused")
      for (let ring = 0; ring < steps.length; ring++) {
        const joined = ring <= step;
        if (fromVersion > 0 && (!joined || shadow)) count(ring, "old", 0.02);
        if (joined) count(ring, shadow ? "shadow" : "new", newRate);
      }
    if (perMinute > 0) await store.note((note) => note.putTallies(tallies));
    nowMs += 20_000;
    await pass();
    nowMs += 40_000;
    await pass();
  }
}

async function actions(): Promise<readonly string[]> {
  const audit = await store.read((view) => view.audit({ kind: "rollout", target: "r" }));
  return audit.map(({ action }) => action).reverse();
}

describe("a good rollout", () => {
  it("goes step by step to all subjects, and then its version is the current one", async () => {
    await begin();
    await live(9, 0.02);
    expect(await rollout()).toMatchObject({ state: "observing", step: -1 });
    await live(2, 0.02);
    expect(await rollout()).toMatchObject({ state: "running", step: 0 });
    expect(await store.read((view) => view.policy("p"))).toMatchObject({ version: 1, document: documents[1] });
    await live(35, 0.02);
    expect(await rollout()).toMatchObject({ state: "done", step: 2, strikes: 0 });
    expect(await store.read((view) => view.policy("p"))).toMatchObject({ version: 2, document: documents[2] });
    expect(await actions()).toEqual(["rollout.step", "rollout.step", "rollout.step", "rollout.done"]);
  });

  it("makes and announces a new generation for each step, but not for a look", async () => {
    await begin();
    const before = await generation();
    await live(11, 0.02);
    expect(announced).toEqual([before + 1]);
    await live(5, 0.02);
    expect(parseRolloutFigures((await rollout()).figures)?.looks).toBeGreaterThanOrEqual(3);
    expect(await generation()).toBe(before + 1);
  });

  it("waits for its start", async () => {
    await begin({ startsMs: beganMs + 5 * minuteMs });
    await live(4, 0.02);
    expect((await rollout()).state).toBe("waiting");
    await live(2, 0.02);
    expect((await rollout()).state).toBe("observing");
    expect(await actions()).toEqual(["rollout.began"]);
  });

  it("stays on a manual step for as long as it takes", async () => {
    await begin({ steps: [1, 100].map((percent) => ({ percent, holdMs: 0 })), observeForMs: 0 });
    await live(60, 0.02);
    expect(await rollout()).toMatchObject({ state: "running", step: 0 });
  });

  it("ends when its last step is taken by hand, or on time if it goes to all subjects at once", async () => {
    await begin({ steps: [{ percent: 100, holdMs: 0 }], startsMs: beganMs + 5 * minuteMs, observeForMs: 0 });
    await live(4, 0.02);
    expect((await rollout()).state).toBe("waiting");
    await live(2, 0.02);
    expect((await rollout()).state).toBe("done");
    expect(await store.read((view) => view.policy("p"))).toMatchObject({ version: 2 });
  });

  it("waits five minutes longer on a step without traffic, and then advances by time alone", async () => {
    await begin({ steps: [1, 100].map((percent) => ({ percent, holdMs: 10 * minuteMs })), observeForMs: 0 });
    await live(14, 0.02, 0);
    expect(await rollout()).toMatchObject({ state: "running", step: 0 });
    await live(2, 0.02, 0);
    expect(await rollout()).toMatchObject({ state: "running", step: 1 });
  });

  it("stays on its step for as long as subjects that were active send nothing", async () => {
    await begin();
    await live(15, 0.02);
    expect(await rollout()).toMatchObject({ state: "running", step: 0 });
    // Counters are unavailable, or a kill switch decides, or clients that were denied everything have given up.
    await live(60, 0.02, 0);
    expect(await rollout()).toMatchObject({ state: "running", step: 0 });
    await live(4, 0.02);
    expect(await rollout()).toMatchObject({ state: "running", step: 1 });
  });

  it("does not advance past minutes that are reported late", async () => {
    await begin();
    await live(15, 0.02);
    nowMs += 40 * minuteMs;
    await pass();
    expect(await rollout()).toMatchObject({ state: "running", step: 0 });
    nowMs -= 40 * minuteMs;
    await live(4, 0.5);
    expect(await rollout()).toMatchObject({ state: "rolled_back", step: 0 });
  });

  it("does not advance while a kill switch decides, because nothing is counted then", async () => {
    await begin();
    const killSwitch = {
      mode: "open" as const,
      sinceMs: nowMs,
      untilMs: nowMs + 60 * minuteMs,
      reason: "",
      author: "",
    };
    await store.change((change) => change.putKillSwitch(killSwitch));
    await live(59, 0.02, 0);
    expect(await rollout()).toMatchObject({ state: "observing", step: -1 });
    await live(2, 0.02, 0);
    expect(await rollout()).toMatchObject({ state: "running", step: 0 });
  });

  it("waits for nothing but time if nothing could roll it back", async () => {
    await begin({ fromVersion: 0 });
    await live(11, 0.9);
    expect(await rollout()).toMatchObject({ state: "running", step: 1 });
    await live(20, 0.9);
    expect(await rollout()).toMatchObject({ state: "done" });
    expect(await store.read((view) => view.policy("p"))).toMatchObject({ version: 2, deleted: false });
  });
});

describe("a bad rollout", () => {
  it("is rolled back automatically within five minutes, with its metrics in the audit and in the log", async () => {
    await begin();
    await live(11, 0.02);
    const joinedMs = (await rollout()).stepSinceMs;
    await live(10, 0.08);
    const ended = await rollout();
    expect(ended).toMatchObject({ state: "rolled_back", step: 0, strikes: 3 });
    expect(ended.changedMs - joinedMs).toBeLessThanOrEqual(5 * minuteMs);
    expect(ended.reason).toMatch(/denied [78]\.\d\d % of 10000 requests; the same subjects were denied [12]\.\d\d %/);
    expect(await store.read((view) => view.policy("p"))).toMatchObject({ version: 1, document: documents[1] });

    const [entry] = await store.read((view) => view.audit({ action: "rollout.rolled_back", kind: "rollout" }));
    expect(entry).toMatchObject({ actor: "sluice", kind: "rollout", target: "r", outcome: "done", why: ended.reason });
    expect(entry?.generation).toBe(await generation());
    const after = JSON.parse(entry?.after ?? "") as { state: string; figures: unknown };
    expect(after).toMatchObject({ state: "rolled_back", policy: "p", from_version: 1, to_version: 2, strikes: 3 });
    expect(after).toMatchObject({ percent: 0 });
    const ofPolicy = await store.read((view) => view.audit({ kind: "policy", target: "p" }));
    expect(ofPolicy[0]).toMatchObject({ action: "rollout.rolled_back", after: entry?.after });
    expect(after.figures).toEqual(parseRolloutFigures(ended.figures));
    expect(announced.at(-1)).toBe(entry?.generation);
    expect(lines.filter(({ level }) => level === "warn").map(({ message }) => message)).toEqual([
      "a rollout was rolled back",
    ]);
  });

  it("is rolled back while it is paused", async () => {
    await begin();
    await live(11, 0.02);
    const paused = pauseRollout(await rollout(), nowMs);
    await store.change((change) => change.putRollout(paused));
    await live(5, 0.5);
    expect((await rollout()).state).toBe("rolled_back");
  });

  it("does not advance past a strike: the next step waits for the next looks", async () => {
    await begin();
    await live(18, 0.02);
    await live(2, 0.3);
    expect(await rollout()).toMatchObject({ state: "running", step: 0, strikes: 1 });
    await live(2, 0.3);
    expect(await rollout()).toMatchObject({ state: "rolled_back", step: 0 });
  });

  it("advances if more denials are expected", async () => {
    await begin({ expectMoreDenials: true });
    await live(45, 0.5);
    expect(await rollout()).toMatchObject({ state: "done" });
  });

  it("leaves no policy behind that was new, and only evaluated", async () => {
    await begin({ fromVersion: 0, shadow: true });
    await live(12, 0.5);
    expect(await rollout()).toMatchObject({ state: "done", shadow: true });
    expect(await store.read((view) => view.policy("p"))).toMatchObject({ deleted: true });
  });
});

describe("in shadow", () => {
  it("a version that would do well is completed, and does not become the current one", async () => {
    await begin({ shadow: true });
    await live(12, 0.02);
    expect(await rollout()).toMatchObject({ state: "done" });
    expect(await store.read((view) => view.policy("p"))).toMatchObject({ version: 1 });
  });

  it("a version that would deny more is reported", async () => {
    await begin({ shadow: true });
    await live(6, 0.1);
    const { state, reason } = await rollout();
    expect(state).toBe("rolled_back");
    expect(reason).toContain("would have denied");
  });
});

describe("leaders and editors", () => {
  it("that act at once do everything once", async () => {
    await begin();
    await live(10, 0.02);
    const before = await generation();
    const audited = (await actions()).length;
    nowMs += minuteMs;
    await Promise.all([pass(), pass(), pass()]);
    expect(await rollout()).toMatchObject({ state: "running", step: 0 });
    expect(await generation()).toBeLessThanOrEqual(before + 1);
    expect((await actions()).length).toBeLessThanOrEqual(audited + 1);

    await live(2, 0.5);
    while ((await rollout()).strikes < 2) await live(1, 0.5);
    const minute = Math.floor(nowMs / minuteMs);
    const last = { rollout: "r", node: "n", minute, step: 0, side: "new" as const, decided: 10_000, denied: 5_000 };
    await store.note((note) => note.putTallies([last]));
    nowMs += 90_000;
    await Promise.all([pass(), pass(), pass()]);
    expect((await rollout()).state).toBe("rolled_back");
    expect((await actions()).filter((action) => action === "rollout.rolled_back")).toHaveLength(1);
    expect(announced.at(-1)).toBe(await generation());
  });

  it("that change the policy meanwhile end its rollout", async () => {
    await begin();
    await store.change(async (change) => {
      const policy = await change.policy("p");
      if (policy !== undefined) await change.putPolicy({ ...policy, version: 3 });
      await change.nextGeneration();
    });
    await pass();
    expect(await rollout()).toMatchObject({
      state: "cancelled",
      reason: "the policy was changed to version 3 meanwhile",
    });
    expect(await store.read((view) => view.policy("p"))).toMatchObject({ version: 3 });
    expect(await actions()).toEqual(["rollout.cancelled"]);
  });

  it("leave ended rollouts alone", async () => {
    await begin();
    await live(11, 0.02);
    await live(6, 0.5);
    const ended = await rollout();
    const before = await generation();
    await live(30, 0.5);
    expect(await rollout()).toEqual(ended);
    expect(await generation()).toBe(before);
  });
});
