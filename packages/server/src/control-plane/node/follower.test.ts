import { openPolicyStore, type PolicyStore, PolicyStoreUnavailable, type Pulse, type TokenRecord } from "@sluice/sql";
import { createLimiter, type Limiter, ManualClock, type PolicySet, parsePolicies } from "sluice";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { noDenials, noUsage, StoreMetrics } from "../../observe/telemetry/store-metrics.ts";
import { createRecordingLog, type LoggedLine } from "../../testing/recording-log.ts";
import { readStored, type StoredGeneration } from "../documents/stored-generation.ts";
import { Follower, type FollowerOptions } from "./follower.ts";
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
let tokens: string[][];
let follower: Follower;

beforeEach(async () => {
  store = await openPolicyStore({ url: "sqlite::memory:" });
  [lines, taken, used, tokens] = [[], [], [], []];
});
afterEach(async () => {
  follower?.close();
  await store.close();
});

/** The store, with overrides for single methods. */
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
  follower = new Follower({
    store: { where: "here", readPulse: () => store.readPulse(), read: (work) => store.read(work), ...asked },
    limiter,
    policies,
    figures: new StoreMetrics(() => ({
      ...reading,
      problems: 0,
      disabled: 0,
      blocked: 0,
      overridden: 0,
      usage: noUsage,
      denials: noDenials,
    })),
    log,
    useTokens: (all) => void tokens.push(all.map(({ id }) => id)),
    onResets: () => undefined,
    onApplied: ({ generation }, source) => void taken.push([generation, source]),
    graceMs,
    // Tests trigger every look.
    lookEveryMs: 3_600_000,
    nowMs: () => clock.epochMs(),
    steadyMs: () => clock.nowMs(),
    ...more,
  });
  return follower;
}

const readLimit = (id: string): number | undefined =>
  limiter.snapshot.policySet.policies.find((policy) => policy.id === id)?.limits[0]?.windows[0]?.limit;
const createTokenRecord = (id: string): TokenRecord => ({
  ...{ id, name: id, role: "viewer", team: undefined, sha256: id, createdMs: 1, createdBy: "test" },
  ...{ expiresMs: undefined, lastUsedMs: undefined, revokedMs: undefined },
});
const messages = (level: string): readonly string[] =>
  lines.filter((line) => line.level === level).map(({ message }) => message);

describe("a follower", () => {
  it("applies the store's policies before it starts, and every change", async () => {
    await putPolicy(store, "p", 5);
    await follow().start(undefined);
    expect(readLimit("p")).toBe(5);
    await putPolicy(store, "p", 6);
    await putPolicy(store, "q", 1);
    await follower.look();
    expect([readLimit("p"), readLimit("q")]).toEqual([6, 1]);
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

  it("looks at once when a newer generation is announced, and not for one that it has", async () => {
    const readPulse = vi.fn(() => store.readPulse());
    await follow({ readPulse }).start(undefined);
    const generation = await putPolicy(store, "p", 5);
    follower.announced(generation);
    await vi.waitFor(() => expect(readLimit("p")).toBe(5));
    const looks = readPulse.mock.calls.length;
    follower.announced(generation);
    expect(readPulse).toHaveBeenCalledTimes(looks);
    follower.announced();
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
    change = async () => follower.announced(await putPolicy(store, "p", 6));
    await follower.look();
    expect(readLimit("p")).toBe(6);
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
    expect(readLimit("p")).toBe(6);
    expect(follower.status.generation).toBe(2);
    expect(taken).toHaveLength(1);
  });

  it("does not apply a view that is older than the current one", async () => {
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
      expect(readLimit("p")).toBe(6);
      lagging = false;
      await follower.look();
      expect(readLimit("p")).toBe(7);
    } finally {
      await behind.close();
    }
  });

  it("applies an older generation that the store stays at, as after a restored backup", async () => {
    await putPolicy(store, "p", 5);
    await putPolicy(store, "p", 6);
    await follow().start(undefined);
    await store.close();
    store = await openPolicyStore({ url: "sqlite::memory:" });
    await putPolicy(store, "p", 7);
    await follower.look();
    expect(readLimit("p")).toBe(6);
    clock.advance(10_000);
    await follower.look();
    expect(readLimit("p")).toBe(7);
    expect(follower.status.generation).toBe(1);
    expect(messages("warn")).toEqual([expect.stringContaining("as after a restored backup")]);
  });

  it("reads everything every minute, and applies changes without a new generation", async () => {
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
    expect(readLimit("p")).toBe(9);
    // So that it is also kept for a warm start.
    expect(taken).toEqual([
      [1, "store"],
      [1, "store"],
    ]);
  });

  it("applies tokens with every read, even if policies are refused or only tokens changed", async () => {
    let broken = false;
    const useStored: PoliciesInForce["useStored"] = (compose) => {
      if (broken) throw new Error("cannot be used");
      return policies.useStored(compose);
    };
    await follow({}, { policies: { useStored, files: noPolicies } }).start(undefined);
    broken = true;
    await putPolicy(store, "p", 5);
    await changeStore(store, (change) => change.putToken(createTokenRecord("t1")));
    await follower.look();
    expect(follower.status).toMatchObject({ state: "stale", generation: 0, newest: 2 });
    expect(tokens).toEqual([[], ["t1"]]);
    await follower.look();
    expect(tokens).toHaveLength(2);
    broken = false;
    await store.change((change) => change.putToken(createTokenRecord("t2")));
    clock.advance(60_000);
    await follower.look();
    expect(follower.status).toMatchObject({ state: "current", generation: 2 });
    expect(tokens.at(-1)).toEqual(["t1", "t2"]);
  });

  it("starts with the kept policies if the newest are refused, and says so", async () => {
    await putPolicy(store, "p", 5);
    const kept = await store.read(readStored);
    await putPolicy(store, "p", 6);
    let calls = 0;
    const useStored: PoliciesInForce["useStored"] = (compose) => {
      calls += 1;
      if (calls === 1) throw new Error("cannot be used");
      return policies.useStored(compose);
    };
    await follow({}, { policies: { useStored, files: noPolicies } }).start(kept);
    expect(readLimit("p")).toBe(5);
    expect(follower.status).toMatchObject({ state: "stale", source: "snapshot", generation: 1, newest: 2 });
  });

  it("reads an older generation that it refuses no more often than others", async () => {
    await putPolicy(store, "p", 5);
    await putPolicy(store, "p", 6);
    let [broken, reads] = [false, 0];
    const useStored: PoliciesInForce["useStored"] = (compose) => {
      if (broken) throw new Error("cannot be used");
      return policies.useStored(compose);
    };
    const read: PolicyStore["read"] = (work) => {
      reads += 1;
      return store.read(work);
    };
    await follow({ read }, { policies: { useStored, files: noPolicies } }).start(undefined);
    await store.close();
    store = await openPolicyStore({ url: "sqlite::memory:" });
    await putPolicy(store, "p", 7);
    await follower.look();
    broken = true;
    clock.advance(10_000);
    for (let look = 0; look < 5; look++) await follower.look();
    expect(reads).toBe(2);
    broken = false;
    clock.advance(60_000);
    await follower.look();
    expect(readLimit("p")).toBe(7);
  });

  it("stops at once, even if the store does not answer", async () => {
    await putPolicy(store, "p", 5);
    const never = new Promise<never>(() => undefined);
    let silent = false;
    await follow({ read: (work) => (silent ? never : store.read(work)) }).start(undefined);
    silent = true;
    await putPolicy(store, "p", 6);
    void follower.look();
    await follower.close();
    expect(readLimit("p")).toBe(5);
  });

  it("compiles nothing again for a generation with the same policies", async () => {
    await putPolicy(store, "p", 5);
    await follow().start(undefined);
    const before = used.length;
    await changeStore(store, async () => undefined);
    await follower.look();
    expect(follower.status.generation).toBe(2);
    expect(used).toHaveLength(before);
  });

  it("leaves out policies that cannot be read, says so once, and decides by the rest", async () => {
    await putPolicy(store, "p", 5);
    await follow().start(undefined);
    await changeStore(store, async (change) => {
      const policy = (await change.policy("p"))!;
      await change.putPolicy({ ...policy, id: "bad", document: '{"id":"bad","limits":"many"}' });
    });
    await follower.look();
    await putPolicy(store, "p", 6);
    await follower.look();
    expect(readLimit("p")).toBe(6);
    expect(follower.status.problems.map(({ path }) => path.slice(0, 2))).toContainEqual(["policies", "bad"]);
    expect(messages("error")).toEqual([expect.stringContaining("left out")]);
  });
});

describe("with any sequence of faults", () => {
  it.each(Array.from({ length: 40 }, (_, seed) => seed))(
    "a node decides by one generation, never goes back, and reaches the newest (%i)",
    async (seed) => {
      const random = randomFrom(seed);
      const chance = (of: number): boolean => random() < of;
      const slowly = async <T>(answer: T): Promise<T> => {
        for (let turns = Math.floor(random() * 6); turns > 0; turns--) await new Promise(setImmediate);
        if (chance(0.15)) throw new PolicyStoreUnavailable("lost on the way");
        return answer;
      };
      let calm = false;
      const views: Pulse[] = [];
      // A replica that sometimes lags, slow answers, and lost answers.
      const readPulse = async (): Promise<Pulse> => {
        views.push(await store.readPulse());
        const late = chance(0.2) ? views[Math.floor(random() * views.length)]! : views.at(-1)!;
        return calm ? views.at(-1)! : slowly(late);
      };
      const read: PolicyStore["read"] = async (work) => {
        const answer = await store.read(work);
        return calm ? answer : slowly(answer);
      };
      await changeBoth(0);
      calm = true;
      await follow({ readPulse, read }).start(undefined);
      calm = false;
      let [latest, switched] = [0, false];
      const seen: (readonly (number | undefined)[])[] = [];
      const pushes: number[] = [];
      for (let step = 0; step < 60; step++) {
        if (chance(0.3)) {
          switched = !switched;
          const sinceMs = clock.epochMs();
          const record = { mode: "closed", sinceMs, untilMs: sinceMs + 3_600_000 } as const;
          pushes.push(await putKillSwitch(store, switched ? record : undefined));
        } else if (chance(0.5)) {
          latest += 1;
          pushes.push(await changeBoth(latest));
        }
        if (chance(0.5)) follower.announced(pushes[Math.floor(random() * pushes.length)]);
        if (chance(0.3)) void follower.look();
        if (chance(0.3)) await new Promise(setImmediate);
        clock.advance(Math.floor(random() * 100));
        seen.push([readLimit("p"), readLimit("q")]);
      }
      calm = true;
      await follower.look();
      await follower.look();
      expect([readLimit("p"), readLimit("q")]).toEqual([latest + 1, latest + 1]);
      expect(limiter.forced !== undefined).toBe(switched);
      for (const [p, q] of seen) expect(p).toBe(q);
      const limits = seen.map(([p]) => p ?? 0);
      expect(limits).toEqual(limits.toSorted((one, other) => one - other));
      const generations = taken.map(([generation]) => generation);
      expect(generations).toEqual(generations.toSorted((one, other) => one - other));
    },
  );
});

/** Two policies in one change, with the same limit. */
function changeBoth(limit: number): Promise<number> {
  return changeStore(store, async (change) => {
    for (const id of ["p", "q"]) {
      const version = ((await change.policy(id))?.version ?? 0) + 1;
      const limits = [{ by: ["user"], windows: [`${limit + 1}/h`] }];
      const document = JSON.stringify({ id, match: { endpoint: `/${id}` }, limits, on_failure: "open" });
      const rest = { owner: undefined, ruleKey: undefined, deleted: false, changedMs: 1 };
      await change.putPolicy({ id, version, document, ...rest });
    }
  });
}

function randomFrom(seed: number): () => number {
  let state = seed * 2_654_435_761 + 1;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

describe("an unavailable store", () => {
  let away: boolean;
  const refuse = (): never => {
    throw new PolicyStoreUnavailable("the policy store is unavailable");
  };
  const faulty = {
    readPulse: async (): Promise<Pulse> => (away ? refuse() : store.readPulse()),
    read: async <T>(work: Parameters<PolicyStore["read"]>[0]): Promise<T> =>
      away ? refuse() : ((await store.read(work)) as T),
  } as Pick<PolicyStore, "readPulse" | "read">;
  beforeEach(() => {
    away = false;
  });

  it("leaves the last good policies in force, and is reported once, and as an error after its grace", async () => {
    await putPolicy(store, "p", 5);
    await follow(faulty).start(undefined);
    away = true;
    await follower.look();
    clock.advance(graceMs - 1);
    await follower.look();
    expect(follower.status).toMatchObject({ state: "away", reason: "the policy store is unavailable", generation: 1 });
    expect(messages("warn")).toHaveLength(1);
    expect(messages("error")).toEqual([]);
    clock.advance(1);
    await follower.look();
    await follower.look();
    expect(follower.status.state).toBe("expired");
    expect(messages("error")).toHaveLength(1);
    expect(readLimit("p")).toBe(5);
  });

  it("brings the node to the newest generation when it is back, whatever was missed", async () => {
    await putPolicy(store, "p", 5);
    await follow(faulty).start(undefined);
    away = true;
    await follower.look();
    for (let limit = 6; limit <= 20; limit++) await putPolicy(store, "p", limit);
    away = false;
    await follower.look();
    expect(readLimit("p")).toBe(20);
    expect(taken.map(([generation]) => generation)).toEqual([1, 16]);
    expect(follower.status).toMatchObject({ state: "current", awaySinceMs: undefined, generation: 16 });
  });

  it("does not prevent a start with kept policies, but does without them", async () => {
    await putPolicy(store, "p", 5);
    const kept: StoredGeneration[] = [];
    await follow({}, { onApplied: (stored) => void kept.push(stored) }).start(undefined);
    await follower.close();
    away = true;
    await follow(faulty).start(kept[0]);
    expect(readLimit("p")).toBe(5);
    expect(follower.status).toMatchObject({ state: "away", source: "snapshot", generation: 1 });
    expect(messages("error")).toEqual([expect.stringContaining("policies from the snapshot decide")]);
    await putPolicy(store, "p", 6);
    away = false;
    await follower.look();
    expect(readLimit("p")).toBe(6);
    expect(follower.status).toMatchObject({ state: "current", source: "store", generation: 2 });
    await follower.close();
    away = true;
    await expect(follow(faulty).start(undefined)).rejects.toThrow("the policy store is unavailable");
  });

  /** A topic that holds what the store has now, which a node cannot read meanwhile. */
  async function fillTopic(): Promise<void> {
    inTopic = await store.read(readStored);
  }
  let inTopic: StoredGeneration | undefined;
  const topic = {
    get generation(): number | undefined {
      return inTopic?.generation;
    },
    read: vi.fn(async () => inTopic),
  };
  beforeEach(() => {
    inTopic = undefined;
    topic.read.mockClear();
  });

  it("is replaced by a topic, which brings policies, tokens and the kill switch until it is back", async () => {
    await putPolicy(store, "p", 5);
    await follow(faulty, { topic }).start(undefined);
    away = true;
    await follower.look();
    await putPolicy(store, "p", 6);
    await changeStore(store, (change) => change.putToken(createTokenRecord("t")));
    await putKillSwitch(store, { mode: "closed", sinceMs: clock.epochMs(), untilMs: clock.epochMs() + 60_000 });
    await fillTopic();
    follower.announced(4);
    await follower.look();
    expect([readLimit("p"), limiter.forced?.mode, tokens.at(-1)]).toEqual([6, "closed", ["t"]]);
    expect(follower.status).toMatchObject({ state: "away", source: "topic", generation: 4 });
    await follower.look();
    expect(topic.read).toHaveBeenCalledTimes(1);
    away = false;
    await putPolicy(store, "p", 7);
    await follower.look();
    expect(readLimit("p")).toBe(7);
    expect(follower.status).toMatchObject({ state: "current", source: "store", generation: 5 });
  });

  it("is never overruled by a topic while it answers, nor set back by one", async () => {
    await putPolicy(store, "p", 5);
    await fillTopic();
    inTopic = { ...inTopic!, generation: 99 };
    await follow(faulty, { topic }).start(undefined);
    await follower.look();
    expect(follower.status).toMatchObject({ generation: 1, source: "store" });
    inTopic = { ...inTopic, generation: 0 };
    away = true;
    await follower.look();
    expect(follower.status).toMatchObject({ generation: 1, source: "store", state: "away" });
    expect(topic.read).not.toHaveBeenCalled();
  });

  it("does not prevent a start with a topic's policies", async () => {
    await putPolicy(store, "p", 5);
    await fillTopic();
    away = true;
    await follow(faulty, { topic }).start(inTopic, "topic");
    expect(readLimit("p")).toBe(5);
    expect(follower.status).toMatchObject({ state: "away", source: "topic", generation: 1 });
    expect(messages("error")).toEqual([expect.stringContaining("policies from the Kafka topic decide")]);
  });
});

describe("the kill switch", () => {
  const forced = (): unknown => limiter.forced?.mode;
  const check = (): boolean => limiter.checkSync({ dimensions: { user: "u" } }).allowed;

  it("is obeyed at the next look, without reading policies, and released at the next", async () => {
    await putPolicy(store, "p", 5);
    let unreadable = false;
    const read: PolicyStore["read"] = (work) =>
      unreadable ? Promise.reject(new PolicyStoreUnavailable("policies cannot be read")) : store.read(work);
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

  it("is obeyed while policies are being read, and not undone by an older read", async () => {
    await putPolicy(store, "p", 5);
    let held: Promise<void> | undefined;
    let isRead = (): void => undefined;
    const read: PolicyStore["read"] = async (work) => {
      const answer = await store.read(work);
      isRead();
      await held;
      return answer;
    };
    await follow({ read }).start(undefined);
    let letGo = (): void => undefined;
    held = new Promise((resolve) => {
      letGo = resolve;
    });
    const beingRead = new Promise<void>((resolve) => {
      isRead = resolve;
    });
    await putPolicy(store, "p", 6);
    const looking = follower.look();
    await beingRead;
    const sinceMs = clock.epochMs();
    follower.announced(await putKillSwitch(store, { mode: "closed", sinceMs, untilMs: sinceMs + 60_000 }));
    await vi.waitFor(() => expect(forced()).toBe("closed"));
    const seen: unknown[] = [];
    vi.spyOn(policies, "useStored").mockImplementation((compose) => {
      seen.push(forced());
      return policies.useFiles(compose(noPolicies));
    });
    letGo();
    await looking;
    expect(seen).toEqual(["closed"]);
    expect(forced()).toBe("closed");
  });

  it("is found by polling while policies are being read, however long that takes", async () => {
    await putPolicy(store, "p", 5);
    const never = new Promise<never>(() => undefined);
    let silent = false;
    const read: PolicyStore["read"] = (work) => (silent ? never : store.read(work));
    await follow({ read }, { lookEveryMs: 10 }).start(undefined);
    silent = true;
    await putPolicy(store, "p", 6);
    const sinceMs = clock.epochMs();
    await putKillSwitch(store, { mode: "closed", sinceMs, untilMs: sinceMs + 60_000 });
    await vi.waitFor(() => expect(forced()).toBe("closed"), { timeout: 30_000 });
    await putKillSwitch(store, undefined);
    await vi.waitFor(() => expect(forced()).toBeUndefined(), { timeout: 30_000 });
  });

  it("does not go back with a lagging store, and does with a restored one", async () => {
    await putPolicy(store, "p", 5);
    const older = await store.readPulse();
    let lagging = false;
    await follow({ readPulse: async () => (lagging ? older : store.readPulse()) }).start(undefined);
    const sinceMs = clock.epochMs();
    await putKillSwitch(store, { mode: "closed", sinceMs, untilMs: sinceMs + 3_600_000 });
    await follower.look();
    lagging = true;
    await follower.look();
    expect(forced()).toBe("closed");
    lagging = false;
    await follower.look();
    await store.close();
    store = await openPolicyStore({ url: "sqlite::memory:" });
    await follower.look();
    expect(forced()).toBe("closed");
    clock.advance(10_000);
    await follower.look();
    expect(forced()).toBeUndefined();
  });

  it.each([
    ["ahead", 30 * 60_000],
    ["behind", -30 * 60_000],
  ])("lasts its whole time on a node whose clock is %s", async (_, aheadMs) => {
    await follow().start(undefined);
    clock.advance(500);
    const sinceMs = clock.epochMs() - aheadMs;
    await putKillSwitch(store, { mode: "closed", sinceMs, untilMs: sinceMs + 60_000 });
    await follower.look();
    clock.advance(59_499);
    expect(forced()).toBe("closed");
    clock.advance(501);
    expect(forced()).toBeUndefined();
  });

  it("ends at its stated end if clocks agree, although it took a moment to arrive", async () => {
    await follow().start(undefined);
    const sinceMs = clock.epochMs();
    clock.advance(1_500);
    await follower.look();
    await putKillSwitch(store, { mode: "closed", sinceMs, untilMs: sinceMs + 60_000 });
    await follower.look();
    expect(limiter.forced?.untilMs).toBe(sinceMs + 60_000);
  });

  it("is not obeyed if it ended long ago, as in a restored backup", async () => {
    await follow().start(undefined);
    const sinceMs = clock.epochMs() - 86_400_000;
    await putKillSwitch(store, { mode: "closed", sinceMs, untilMs: sinceMs + 60_000 });
    await follower.look();
    expect(forced()).toBeUndefined();
  });

  it("does not start over with a backup that was restored while it was on", async () => {
    await putPolicy(store, "p", 5);
    await putPolicy(store, "p", 6);
    await follow().start(undefined);
    await store.close();
    store = await openPolicyStore({ url: "sqlite::memory:" });
    const sinceMs = clock.epochMs() - 120_000;
    await putKillSwitch(store, { mode: "closed", sinceMs, untilMs: sinceMs + 60_000 });
    await follower.look();
    clock.advance(10_000);
    await follower.look();
    expect(follower.status.generation).toBe(1);
    expect(forced()).toBeUndefined();
  });

  it("follows a restored backup, even if policies were refused since", async () => {
    let broken = false;
    const useStored: PoliciesInForce["useStored"] = (compose) => {
      if (broken) throw new Error("cannot be used");
      return policies.useStored(compose);
    };
    await follow({}, { policies: { useStored, files: noPolicies } }).start(undefined);
    broken = true;
    await putPolicy(store, "p", 5);
    const sinceMs = clock.epochMs();
    await putKillSwitch(store, { mode: "closed", sinceMs, untilMs: sinceMs + 3_600_000 });
    await follower.look();
    expect([forced(), follower.status.generation]).toEqual(["closed", 0]);
    await store.close();
    store = await openPolicyStore({ url: "sqlite::memory:" });
    await follower.look();
    clock.advance(10_000);
    await follower.look();
    expect(forced()).toBeUndefined();
  });

  it("stays on, until it ends, on a node that is started without the store, with the kept tokens", async () => {
    const sinceMs = Date.now();
    await changeStore(store, (change) => change.putToken(createTokenRecord("t1")));
    await putKillSwitch(store, { mode: "closed", sinceMs, untilMs: sinceMs + 3_600_000 });
    const kept = await store.read(readStored);
    const readPulse = (): Promise<Pulse> =>
      Promise.reject(new PolicyStoreUnavailable("the policy store is unavailable"));
    await follow({ readPulse }).start(kept);
    expect(forced()).toBe("closed");
    expect(tokens).toEqual([["t1"]]);
    clock.advance(3_600_000);
    expect(forced()).toBeUndefined();
    await follower.close();
    await follow({ readPulse }, { nowMs: () => sinceMs + 3_600_000 }).start(kept);
    expect(forced()).toBeUndefined();
  });

  it("that is found after an outage of the store ends at its stated end", async () => {
    let away = false;
    const readPulse = async (): Promise<Pulse> => {
      if (away) throw new PolicyStoreUnavailable("the policy store is unavailable");
      return store.readPulse();
    };
    await follow({ readPulse }).start(undefined);
    away = true;
    const sinceMs = clock.epochMs();
    await putKillSwitch(store, { mode: "closed", sinceMs, untilMs: sinceMs + 60_000 });
    clock.advance(50_000);
    await follower.look();
    away = false;
    await follower.look();
    clock.advance(9_999);
    expect(forced()).toBe("closed");
    clock.advance(1);
    expect(forced()).toBeUndefined();
    await putKillSwitch(store, { mode: "closed", sinceMs, untilMs: sinceMs + 60_001 });
    clock.advance(60_000);
    await follower.look();
    expect(forced()).toBeUndefined();
  });

  it("ends automatically on the node, without the store, even if the clock was set back", async () => {
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

  it("does not start over with a look after the clock was set back", async () => {
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
