import { type NodeRecord, openPolicyStore, type PolicyStore, PolicyStoreUnavailable } from "@sluice/sql";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createRecordingLog, type LoggedLine } from "../../testing/recording-log.ts";
import { auditEntry, sluiceItself } from "../audit/audit-entry.ts";
import { startRollout } from "../rollouts/start-rollout.ts";
import { createJobs, type Jobs } from "./run-jobs.ts";

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

let store: PolicyStore;
let nowMs: number;
let lines: LoggedLine[];
let open: Jobs[];

beforeEach(async () => {
  store = await openPolicyStore({ url: "sqlite::memory:" });
  nowMs = 1_700_000_000_000;
  lines = [];
  open = [];
});

afterEach(async () => {
  for (const jobs of open) await jobs.close();
  await store.close();
});

function startJobs(node: string, on: PolicyStore = store): Jobs {
  const jobs = createJobs({
    store: on,
    node,
    log: createRecordingLog((line) => lines.push(line)),
    announce: () => undefined,
    nowMs: () => nowMs,
    everyMs: 0,
  });
  open.push(jobs);
  return jobs;
}

/** Starts a rollout that is due a minute from now. */
async function beginLater(): Promise<void> {
  await store.change(async (change) => {
    const version = {
      policy: "p",
      document: "{}",
      deleted: false,
      author: "ada",
      atMs: nowMs,
      why: "",
      revertOf: undefined,
    };
    await change.addVersion({ ...version, version: 1 });
    await change.addVersion({ ...version, version: 2 });
    const policy = { id: "p", version: 1, document: "{}", owner: undefined, ruleKey: undefined, deleted: false };
    await change.putPolicy({ ...policy, changedMs: nowMs });
    const request = { id: "r", policy: "p", fromVersion: 1, toVersion: 2, author: "ada", by: "user" };
    await change.putRollout(startRollout({ ...request, startsMs: nowMs + minuteMs }, nowMs));
    await change.nextGeneration();
  });
}

function stateOfRollout(): Promise<string | undefined> {
  return store.read(async (view) => (await view.rollout("r"))?.state);
}

function nodeRecord(id: string, seenMs: number): NodeRecord {
  return { id, name: id, version: "1", startedMs: 0, seenMs, generation: 0, appliedMs: 0, details: "{}" };
}

describe("jobs", () => {
  it("are done by one node, and by another when the first closes", async () => {
    await beginLater();
    const first = startJobs("a");
    const second = startJobs("b");
    await first.run();
    await second.run();
    expect([first.leads, second.leads]).toEqual([true, false]);
    nowMs += minuteMs;
    await second.run();
    expect(await stateOfRollout()).toBe("waiting");
    await first.close();
    await second.run();
    expect([first.leads, second.leads]).toEqual([false, true]);
    expect(await stateOfRollout()).toBe("observing");
  });

  it("are no longer done after closing", async () => {
    await beginLater();
    const jobs = startJobs("a");
    await jobs.close();
    nowMs += minuteMs;
    await jobs.run();
    expect(await stateOfRollout()).toBe("waiting");
  });

  it("are retried when the store was unavailable, which is logged once", async () => {
    await beginLater();
    let away = true;
    const flaky: PolicyStore = new Proxy(store, {
      get(target, name, receiver): unknown {
        if (away && name === "lead") return () => Promise.reject(new PolicyStoreUnavailable("away"));
        const value: unknown = Reflect.get(target, name, receiver);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const jobs = startJobs("a", flaky);
    nowMs += minuteMs;
    for (let i = 0; i < 3; i++) await jobs.run();
    expect(lines.filter(({ level }) => level === "warn")).toHaveLength(1);
    away = false;
    await jobs.run();
    expect(await stateOfRollout()).toBe("observing");
    expect(lines.filter(({ message }) => message === "background jobs run again")).toHaveLength(1);
  });

  it("run one at a time", async () => {
    const jobs = startJobs("a");
    const running = jobs.run();
    expect(jobs.run()).toBe(running);
    await running;
  });
});

describe("sweeping", () => {
  it("deletes old records, once an hour, and leaves the rest", async () => {
    await store.change(async (change) => {
      for (const [what, ageMs] of [
        ["old", 90 * dayMs + 1],
        ["young", 90 * dayMs - 1],
      ] as const) {
        const deed = { action: "policy.put", kind: "policy", target: what };
        await change.addAudit(auditEntry(sluiceItself, deed, { outcome: "done", why: "" }, nowMs - ageMs));
      }
      await change.putNode(nodeRecord("gone", nowMs - dayMs - 1));
      await change.putNode(nodeRecord("there", nowMs - minuteMs));
      const minute = Math.floor(nowMs / minuteMs);
      const tally = { rollout: "r", node: "a", step: 0, side: "old" as const, decided: 1, denied: 0 };
      await change.putTallies([
        { ...tally, minute: minute - 1_441 },
        { ...tally, minute: minute - 1_439 },
      ]);
      await change.putSubject({ dimension: "user", value: "u", tier: undefined, version: 1, changedMs: nowMs });
      for (const [policy, untilMs] of [
        ["ended", nowMs - 60 * minuteMs - 1],
        ["ending", nowMs - 1],
        ["lasting", undefined],
      ] as const)
        await change.putSubjectLimit({
          dimension: "user",
          value: "u",
          policy,
          limit: "",
          windows: '["1/s"]',
          untilMs,
          reason: "",
          author: "ada",
          atMs: 0,
        });
      await change.nextGeneration();
    });
    const { generation } = await store.readPulse();
    const jobs = startJobs("a");
    await jobs.run();
    const left = await store.read(async (view) => ({
      audit: (await view.audit()).map(({ target }) => target),
      nodes: (await view.nodes()).map(({ id }) => id),
      tallies: (await view.tallies("r")).length,
      limits: (await view.subjectLimits()).map(({ policy }) => policy).sort(),
    }));
    expect(left).toEqual({ audit: ["young"], nodes: ["there"], tallies: 1, limits: ["ending", "lasting"] });
    expect(lines.filter(({ level }) => level === "info").map(({ fields }) => fields)).toEqual([
      { audit: 1, nodes: 1, tallies: 1, overrides: 1, tokens: 0, usage: 0, denials: 0 },
    ]);
    expect((await store.readPulse()).generation).toBe(generation);

    nowMs += 59 * minuteMs;
    await jobs.run();
    expect(await store.read(async (view) => (await view.audit()).length)).toBe(1);
    nowMs += minuteMs;
    await jobs.run();
    expect(await store.read(async (view) => (await view.audit()).length)).toBe(0);
  });
});
