import { openPolicyStore, type PolicyStore, PolicyStoreUnavailable, type Pulse } from "@sluice/sql";
import { createLimiter, type Limiter, ManualClock, type PolicySet, parsePolicies } from "sluice";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { StoredGeneration } from "../control/assemble-stored.ts";
import { StoreFigures } from "../telemetry/store-families.ts";
import { createRecordingLog, type LoggedLine } from "../testing/recording-log.ts";
import { createFollower, type Follower, type FollowerOptions } from "./follower.ts";
import { createPoliciesInForce, type PoliciesInForce } from "./policies-in-force.ts";
import { changeStore, putKillSwitch, putPolicy } from "./testing/store-changes.ts";

const graceMs = 3_600_000;
const noPolicies = parsePolicies({ policies: [] });

let store: PolicyStore;
let clock: ManualClock;
let limiter: Limiter;
let policies: PoliciesInForce;
let lines: LoggedLine[];
let taken: [generation: number, source: string][];
let used: PolicySet[];
let follower: Follower;

beforeEach(async () => {
  store = await openPolicyStore({ url: "sqlite::memory:" });
  [lines, taken, used] = [[], [], []];
});
afterEach(async () => {
  await follower?.close();
  await store.close();
});

/** The store, as it is unless something is said otherwise. */
function follow(
  asked: Partial<Pick<PolicyStore, "readPulse" | "read">> = {},
  more: Partial<FollowerOptions> = {},
): Follower {
  clock = new ManualClock(Date.now());
  limiter = createLimiter({ policies: noPolicies, clock });
  const log = createRecordingLog((line) => lines.push(line));
  policies = createPoliciesInForce({
    limiter,
    files: noPolicies,
    precedence: "files",
    log,
    onUsed: (policySet) => void used.push(policySet),
  });
  const reading = { state: "current", newest: 0, generation: 0, pushed: false, killSwitch: undefined } as const;
  follower = createFollower({
    store: { where: "here", readPulse: () => store.readPulse(), read: (work) => store.read(work), ...asked },
    limiter,
    policies,
    figures: new StoreFigures(() => ({ ...reading, problems: 0, overridden: 0 })),
    log,
    onTaken: ({ generation }, source) => void taken.push([generation, source]),
    graceMs,
    // Tests look by themselves.
    lookEveryMs: 3_600_000,
    nowMs: () => clock.epochMs(),
    steadyMs: () => clock.nowMs(),
    ...more,
  });
  return follower;
}

const limitOf = (id: string): number | undefined =>
  limiter.snapshot.policySet.policies.find((policy) => policy.id === id)?.limits[0]?.windows[0]?.limit;
const messages = (level: string): readonly string[] =>
  lines.filter((line) => line.level === level).map(({ message }) => message);

describe("a follower", () => {
  it("takes up what the store has before it starts, and what changes", async () => {
    await putPolicy(store, "p", 5);
    await follow().start(undefined);
    expect(limitOf("p")).toBe(5);
    await putPolicy(store, "p", 6);
    await putPolicy(store, "q", 1);
    await follower.look();
    expect([limitOf("p"), limitOf("q")]).toEqual([6, 1]);
    expect(taken).toEqual([
      [1, "store"],
      [3, "store"],
    ]);
    expect(follower.status).toMatchObject({ state: "current", generation: 3, newest: 3, source: "store" });
  });

  it("starts with an empty store", async () => {
    await follow().start(undefined);
    expect(follower.status).toMatchObject({ state: "current", generation: 0 });
  });

  it("looks at once when it hears of a newer generation, and not for one that it has", async () => {
    const readPulse = vi.fn(() => store.readPulse());
    await follow({ readPulse }).start(undefined);
    const generation = await putPolicy(store, "p", 5);
    follower.heard(generation);
    await vi.waitFor(() => expect(limitOf("p")).toBe(5));
    const looks = readPulse.mock.calls.length;
    follower.heard(generation);
    expect(readPulse).toHaveBeenCalledTimes(looks);
    follower.heard();
    expect(readPulse).toHaveBeenCalledTimes(looks + 1);
  });

  it("reads again when something changed while it was reading", async () => {
    let change: (() => Promise<unknown>) | undefined;
    const read: PolicyStore["read"] = async (work) => {
      const answer = await store.read(work);
      const now = change;
      change = undefined;
      await now?.();
      return answer;
    };
    await follow({ read }).start(undefined);
    await putPolicy(store, "p", 5);
    change = async () => follower.heard(await putPolicy(store, "p", 6));
    await follower.look();
    expect(limitOf("p")).toBe(6);
    expect(taken.map(([generation]) => generation)).toEqual([0, 1, 2]);
  });

  it("does not go back to an older generation, unless the store stays there", async () => {
    await putPolicy(store, "p", 5);
    const old = await store.read(async (view) => ({ pulse: await view.pulse() }));
    await putPolicy(store, "p", 6);
    let lagging = false;
    const readPulse = async (): Promise<Pulse> => (lagging ? old.pulse : store.readPulse());
    await follow({ readPulse }).start(undefined);
    lagging = true;
    clock.advance(60_000);
    await follower.look();
    expect(limitOf("p")).toBe(6);
    expect(follower.status.generation).toBe(2);
    expect(taken).toHaveLength(1);
  });

  it("does not take up a view that is older than what it has", async () => {
    const behind = await openPolicyStore({ url: "sqlite::memory:" });
    try {
      await putPolicy(behind, "p", 5);
      await putPolicy(store, "p", 5);
      await putPolicy(store, "p", 6);
      let lagging = false;
      await follow({ read: (work) => (lagging ? behind : store).read(work) }).start(undefined);
      lagging = true;
      await putPolicy(store, "p", 7);
      await follower.look();
      expect(limitOf("p")).toBe(6);
      lagging = false;
      await follower.look();
      expect(limitOf("p")).toBe(7);
    } finally {
      await behind.close();
    }
  });

  it("takes up an older generation that the store stays at, as after a restored backup", async () => {
    await putPolicy(store, "p", 5);
    await putPolicy(store, "p", 6);
    await follow().start(undefined);
    await store.close();
    store = await openPolicyStore({ url: "sqlite::memory:" });
    await putPolicy(store, "p", 7);
    await follower.look();
    expect(limitOf("p")).toBe(6);
    clock.advance(10_000);
    await follower.look();
    expect(limitOf("p")).toBe(7);
    expect(follower.status.generation).toBe(1);
    expect(messages("warn")).toEqual([expect.stringContaining("as after a restored backup")]);
  });

  it("reads the whole every minute, and takes up what changed without a new generation", async () => {
    await putPolicy(store, "p", 5);
    let reads = 0;
    const read: PolicyStore["read"] = (work) => {
      reads += 1;
      return store.read(work);
    };
    await follow({ read }).start(undefined);
    await store.change(async (change) => {
      const { document, ...policy } = (await change.policy("p"))!;
      await change.putPolicy({ ...policy, document: document.replace("5/h", "9/h") });
    });
    clock.advance(59_999);
    await follower.look();
    expect(reads).toBe(1);
    clock.advance(1);
    await follower.look();
    expect(reads).toBe(2);
    expect(limitOf("p")).toBe(9);
  });

  it("compiles nothing anew for a generation with the same policies", async () => {
    await putPolicy(store, "p", 5);
    await follow().start(undefined);
    const before = used.length;
    await changeStore(store, async () => undefined);
    await follower.look();
    expect(follower.status.generation).toBe(2);
    expect(used).toHaveLength(before);
  });

  it("leaves out what cannot be read, says so once, and has the rest decide", async () => {
    await putPolicy(store, "p", 5);
    await follow().start(undefined);
    await changeStore(store, async (change) => {
      const policy = (await change.policy("p"))!;
      await change.putPolicy({ ...policy, id: "bad", document: '{"id":"bad","limits":"many"}' });
    });
    await follower.look();
    await putPolicy(store, "p", 6);
    await follower.look();
    expect(limitOf("p")).toBe(6);
    expect(follower.status.problems.map(({ path }) => path.slice(0, 2))).toContainEqual(["policies", "bad"]);
    expect(messages("error")).toEqual([expect.stringContaining("left out")]);
  });
});

describe("a store that is away", () => {
  let away: boolean;
  const refuse = (): never => {
    throw new PolicyStoreUnavailable("the policy store is away");
  };
  const faulty = {
    readPulse: async (): Promise<Pulse> => (away ? refuse() : store.readPulse()),
    read: async <T>(work: Parameters<PolicyStore["read"]>[0]): Promise<T> =>
      away ? refuse() : ((await store.read(work)) as T),
  } as Pick<PolicyStore, "readPulse" | "read">;
  beforeEach(() => {
    away = false;
  });

  it("leaves the last good policies in force, is told of once, and as an error after its grace", async () => {
    await putPolicy(store, "p", 5);
    await follow(faulty).start(undefined);
    away = true;
    await follower.look();
    clock.advance(graceMs - 1);
    await follower.look();
    expect(follower.status).toMatchObject({ state: "away", reason: "the policy store is away", generation: 1 });
    expect(messages("warn")).toHaveLength(1);
    expect(messages("error")).toEqual([]);
    clock.advance(1);
    await follower.look();
    await follower.look();
    expect(follower.status.state).toBe("expired");
    expect(messages("error")).toHaveLength(1);
    expect(limitOf("p")).toBe(5);
  });

  it("is caught up with to the newest generation when it is back, whatever was missed", async () => {
    await putPolicy(store, "p", 5);
    await follow(faulty).start(undefined);
    away = true;
    await follower.look();
    for (let limit = 6; limit <= 20; limit++) await putPolicy(store, "p", limit);
    away = false;
    await follower.look();
    expect(limitOf("p")).toBe(20);
    expect(taken.map(([generation]) => generation)).toEqual([1, 16]);
    expect(follower.status).toMatchObject({ state: "current", awaySinceMs: undefined, generation: 16 });
  });

  it("is started without by what was kept of it, and only then", async () => {
    await putPolicy(store, "p", 5);
    const kept: StoredGeneration[] = [];
    await follow({}, { onTaken: (stored) => void kept.push(stored) }).start(undefined);
    await follower.close();
    away = true;
    await follow(faulty).start(kept[0]);
    expect(limitOf("p")).toBe(5);
    expect(follower.status).toMatchObject({ state: "away", source: "snapshot", generation: 1 });
    expect(messages("error")).toEqual([expect.stringContaining("were kept of it decide")]);
    await putPolicy(store, "p", 6);
    away = false;
    await follower.look();
    expect(limitOf("p")).toBe(6);
    expect(follower.status).toMatchObject({ state: "current", source: "store", generation: 2 });
    await follower.close();
    away = true;
    await expect(follow(faulty).start(undefined)).rejects.toThrow("the policy store is away");
  });
});

describe("the kill switch", () => {
  const check = (): boolean => limiter.checkSync({ dimensions: { user: "u" } }).allowed;

  it("is obeyed at the next look, without reading policies, and let go of", async () => {
    await putPolicy(store, "p", 5);
    let unreadable = false;
    const read: PolicyStore["read"] = (work) =>
      unreadable ? Promise.reject(new PolicyStoreUnavailable("the whole cannot be read")) : store.read(work);
    await follow({ read }).start(undefined);
    const sinceMs = clock.epochMs();
    unreadable = true;
    await putKillSwitch(store, { mode: "closed", sinceMs, untilMs: sinceMs + 3_600_000 });
    await follower.look();
    expect(check()).toBe(false);
    await putKillSwitch(store, undefined);
    await follower.look();
    expect(check()).toBe(true);
  });

  it("ends by itself on the node, with the store gone, also where the clock was set back", async () => {
    await follow().start(undefined);
    const sinceMs = clock.epochMs();
    await putKillSwitch(store, { mode: "closed", sinceMs, untilMs: sinceMs + 60_000 });
    await follower.look();
    await store.close();
    clock.advance(30_000);
    clock.stepWall(-86_400_000);
    await follower.look();
    expect(check()).toBe(false);
    clock.advance(30_000);
    expect(check()).toBe(true);
    store = await openPolicyStore({ url: "sqlite::memory:" });
  });

  it("is not begun anew by a look after the clock was set back", async () => {
    await follow().start(undefined);
    const sinceMs = clock.epochMs();
    await putKillSwitch(store, { mode: "closed", sinceMs, untilMs: sinceMs + 60_000 });
    await follower.look();
    clock.advance(60_000);
    clock.stepWall(-60_000);
    await follower.look();
    expect(check()).toBe(true);
  });

  it("lasts no longer on a node whose clock is behind", async () => {
    await follow().start(undefined);
    const sinceMs = clock.epochMs() + 86_400_000;
    await putKillSwitch(store, { mode: "closed", sinceMs, untilMs: sinceMs + 60_000 });
    await follower.look();
    clock.advance(59_999);
    expect(check()).toBe(false);
    clock.advance(1);
    expect(check()).toBe(true);
  });
});
