import { startPostgres, startServer, type TestPostgres, type TestServer } from "@sluice/test-servers";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type Sluice, startProgram } from "../restart/start-sluice.ts";
import { createFleet, type Fleet, patience, steerWell } from "./fleet.ts";
import {
  beginRollout,
  check,
  fastRolloutsServer,
  minuteMs,
  type Rollout,
  readRollout,
  speed,
  versionsOn,
  whileAsked,
} from "./rollout-drill.ts";

let postgres: TestPostgres;
let valkey: TestServer;
let fleet: Fleet;
let nodes: readonly Sluice[];

beforeAll(async () => {
  [postgres, valkey] = await Promise.all([startPostgres(), startServer({ flavor: "valkey" })]);
  const time = [String(Date.now()), String(speed)];
  fleet = await createFleet({ SLUICE_STORE_URL: postgres.url, SLUICE_REDIS_URL: valkey.url }, (env) =>
    startProgram(env, fastRolloutsServer, ...time),
  );
  nodes = [await fleet.start("one"), await fleet.start("two")];
}, 180_000);

afterAll(async () => {
  await fleet?.close();
  await Promise.all([postgres?.close(), valkey?.close()]);
});

function untilItIs(on: Sluice, policy: string, expected: Partial<Rollout>): Promise<void> {
  return vi.waitFor(async () => expect(await readRollout(fleet, on, policy)).toMatchObject(expected), {
    timeout: 120_000,
    interval: 100,
  });
}

/** Resolves when every node decides for all users by this version. */
async function untilAllAreUnder(open: readonly Sluice[], policy: string, version: number): Promise<void> {
  await vi.waitFor(async () => {
    for (const node of open) expect(new Set(await versionsOn(node, policy))).toEqual(new Set([version]));
  }, patience);
}

interface AuditEntry {
  readonly action: string;
  readonly actor: string;
  readonly why: string;
  readonly after?: { readonly percent: number; readonly figures?: Rollout["figures"] };
}

/** Sluice's automatic actions on a rollout, in order. */
async function readAudit(on: Sluice, { id }: Rollout): Promise<readonly AuditEntry[]> {
  const { items } = await steerWell(on, fleet, "GET", `/audit?kind=rollout&target=${id}`);
  return (items as AuditEntry[]).filter(({ actor }) => actor === "sluice").toReversed();
}

describe("rollouts in a fleet under traffic", () => {
  it("advance, or roll back, with a few requests a minute from a few subjects, and say what they wait for", async () => {
    const [one, two] = nodes as [Sluice, Sluice];
    // One request a second, of which every tenth is from a subject that joins first.
    const crowd = Array.from({ length: 40 }, (_, i) => `guest-${i}`);
    const perMinute = 60;
    // A minute lasts a second here. A busy machine sends less in it and judges later: the step of the version that is to be
    // rolled back lasts until that has happened, however long it takes.
    const endless = 30 * 24 * 60;
    const begin = async (policy: string, limit: number, holdMinutes: number): Promise<void> => {
      const steps = [10, 100].map((percent) => ({ percent, hold_ms: holdMinutes * minuteMs }));
      const document = (windows: string) => ({
        id: policy,
        match: { endpoint: `/${policy}` },
        limits: [{ by: ["user"], algorithm: "fixed_window", windows: [windows] }],
        on_failure: "open",
      });
      await steerWell(one, fleet, "PUT", `/policies/${policy}`, { document: document("1000000/h") });
      const wish = { by: "user", observe_for_ms: 5 * minuteMs, steps };
      const body = { document: document(`${limit}/h`), expected_version: 1, rollout: wish };
      await steerWell(one, fleet, "PUT", `/policies/${policy}`, body);
    };
    await Promise.all([begin("calm-good", 900_000, 12), begin("calm-bad", 1, endless)]);
    const waits = new Set<string>();
    const ended = Promise.all(
      ["calm-good", "calm-bad"].map(async (policy) => {
        for (;;) {
          const { state, waits_for } = await readRollout(fleet, two, policy);
          if (state === "done" || state === "rolled_back") return state;
          waits.add(waits_for?.code ?? "none");
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
      }),
    );
    let over = false;
    const states = ended.finally(() => {
      over = true;
    });
    const beganMs = Date.now();
    for (let asked = 0; !over; await new Promise((resolve) => setTimeout(resolve, 20))) {
      const due = Math.floor(((Date.now() - beganMs) / minuteMs) * speed * perMinute);
      // Delays of a slow machine are skipped: steady traffic matters more than its volume.
      const sent: Promise<unknown>[] = [];
      for (const until = Math.min(due, asked + 20); asked < until; asked++) {
        const [node, user] = [nodes[asked % 2]!, crowd[Math.floor(asked / 2) % crowd.length]!];
        for (const policy of ["calm-good", "calm-bad"]) sent.push(check(node, policy, user, false));
      }
      await Promise.all(sent);
      asked = Math.max(asked, due - 100);
    }
    expect(await states).toEqual(["done", "rolled_back"]);
    expect(await readRollout(fleet, one, "calm-bad")).toMatchObject({
      step: 0,
      reason: expect.stringMatching(/3 times in a row/),
    });
    expect(waits).toContain("observation");
    expect(waits).toContain("hold");
    expect([...waits].filter((code) => code === "none" || code === "operator")).toEqual([]);
    const { items } = await steerWell(two, fleet, "GET", "/policies/calm-bad/versions");
    expect(items).toMatchObject([{ version: 2, current: false, rollout: { state: "rolled_back" } }, { version: 1 }]);
  }, 180_000);

  it("end automatically: a version that denies too much is rolled back, and a good one applies to all subjects", async () => {
    const [one, two] = nodes as [Sluice, Sluice];
    await beginRollout(fleet, one, "bad", 3);
    await beginRollout(fleet, two, "good", 900_000);
    const ended = (async () => {
      await untilItIs(one, "good", { state: "running", percent: 50 });
      await vi.waitFor(async () => {
        const versions = await versionsOn(one, "good");
        expect(new Set(versions)).toEqual(new Set([1, 2]));
        expect(await versionsOn(two, "good")).toEqual(versions);
      }, patience);
      await Promise.all([
        untilItIs(two, "bad", { state: "rolled_back" }),
        untilItIs(one, "good", { state: "done", percent: 100 }),
      ]);
    })();
    await whileAsked(["bad", "good"], () => nodes, ended);

    await untilAllAreUnder(nodes, "bad", 1);
    await untilAllAreUnder(nodes, "good", 2);
    const bad = await readRollout(fleet, one, "bad");
    expect(bad.figures).toMatchObject({ verdict: "strike", strikes: 3 });
    expect(bad.reason).toBe(bad.figures!.sentence);
    expect(bad.reason).toMatch(/the same subjects were denied \d+\.\d\d % under the old version .* 3 times in a row/);
    const audit = await readAudit(two, bad);
    expect(audit.map(({ action, after }) => [action, after?.percent])).toEqual([
      ["rollout.step", 50],
      ["rollout.rolled_back", 0],
    ]);
    const { verdict, strikes, sentence } = bad.figures!;
    expect(audit[1]).toMatchObject({ why: bad.reason, after: { figures: { verdict, strikes, sentence } } });
    const ofPolicy = await steerWell(two, fleet, "GET", "/audit?kind=policy&target=bad&action=rollout.rolled_back");
    expect(ofPolicy.items).toMatchObject([{ why: bad.reason, after: { rollout: bad.id, state: "rolled_back" } }]);
    const steps = await readAudit(two, await readRollout(fleet, one, "good"));
    expect(steps.map(({ action }) => action)).toEqual(["rollout.step", "rollout.step", "rollout.done"]);
  }, 180_000);

  it("are rolled back even when the node that judges them is killed", async () => {
    const [one, two] = nodes as [Sluice, Sluice];
    let open: readonly Sluice[] = nodes;
    await beginRollout(fleet, two, "orphaned", 3);
    const ended = (async () => {
      await untilItIs(two, "orphaned", { state: "running", percent: 50 });
      open = [two];
      await one.kill();
      await untilItIs(two, "orphaned", { state: "rolled_back" });
    })();
    await whileAsked(["orphaned"], () => open, ended);
    await untilAllAreUnder([two], "orphaned", 1);
    const audit = await readAudit(two, await readRollout(fleet, two, "orphaned"));
    expect(audit.filter(({ action }) => action === "rollout.rolled_back")).toHaveLength(1);
  }, 180_000);
});
