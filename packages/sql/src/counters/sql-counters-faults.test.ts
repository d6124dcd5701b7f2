import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setImmediate } from "node:timers/promises";
import { createFaultyProxy, startPostgres, type TestPostgres } from "@sluice/test-servers";
import pg from "pg";
import { ManualClock } from "sluice";
import { type ResolvedLimit, StoreUnavailable, type TakeAnswer } from "sluice/store";
import { compileTestLimit, conversationStartMs, resolvedLimit, testWindow } from "sluice/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { openDatabase } from "../open-database.ts";
import { PostgresCounters } from "./postgres-counters.ts";
import { SqlCounters, type SqlCountersOptions } from "./sql-counters.ts";
import { SqliteCounters } from "./sqlite-counters.ts";

const closing: { close(): Promise<void> }[] = [];
let server: TestPostgres;
let subjects = 0;

beforeAll(async () => {
  server = await startPostgres();
}, 60_000);

afterEach(async () => {
  for (const each of closing.splice(0).reverse()) await each.close();
});

afterAll(() => server.close());

function open(options: Partial<SqlCountersOptions> = {}): SqlCounters {
  const store = new SqlCounters({ url: server.url, deadlineMs: 20_000, ...options });
  closing.push(store);
  return store;
}

/** A store that reaches its server through a proxy. `beforeCommit` is called once, when it has decided. */
async function openThroughProxy(beforeCommit: (proxy: Awaited<ReturnType<typeof createFaultyProxy>>) => void) {
  const proxy = await createFaultyProxy({ host: "127.0.0.1", port: server.port });
  closing.push(proxy);
  const clock = new ManualClock(conversationStartMs);
  let armed = false;
  const nowMs = (): number => {
    if (armed) beforeCommit(proxy);
    armed = false;
    return clock.epochMs();
  };
  const store = open({
    url: server.url.replace(`:${server.port}/`, `:${proxy.port}/`),
    connections: 1,
    tune: { nowMs },
  });
  return {
    proxy,
    store,
    arm(): void {
      armed = true;
    },
  };
}

function ofTen(policy = "ten"): ResolvedLimit {
  subjects += 1;
  const limit = compileTestLimit({ algorithm: "fixed_window", windows: [testWindow(10, 24 * 3_600_000)], policy });
  return resolvedLimit(limit, `s${subjects}`);
}

function remaining({ outcomes }: TakeAnswer): number | undefined {
  return outcomes[0]?.remaining;
}

describe("a commit whose answer is lost", () => {
  it("is found by the number of its transaction, and answered without being charged again", async () => {
    const { store, arm } = await openThroughProxy((proxy) => proxy.dropRepliesOnce());
    const asked = [ofTen()];
    await store.take(asked);
    arm();
    const answers = await Promise.all([store.take(asked), store.take(asked)]);
    expect(answers.map(remaining)).toEqual([8, 7]);
    expect(remaining(await store.peek(asked))).toBe(7);
    expect(store.stats).toMatchObject({ recovered: 1, unknown: 0 });
  });

  it("is made again if it never reached the server", async () => {
    const { store, arm } = await openThroughProxy((proxy) => proxy.resetAll());
    const asked = [ofTen()];
    await store.take(asked);
    arm();
    expect(remaining(await store.take(asked))).toBe(8);
    expect(remaining(await store.peek(asked))).toBe(8);
    expect(store.stats).toMatchObject({ recovered: 1, unknown: 0 });
  });

  it("is unknown if the server stays away, and the same request id settles it later", async () => {
    const { store, proxy, arm } = await openThroughProxy((each) => {
      each.dropRepliesOnce();
      void setImmediate().then(() => each.refuse());
    });
    const asked = [ofTen()];
    const options = { id: "r1", fingerprint: "f" };
    await store.take(asked);
    arm();
    const error = await store.take(asked, { ...options, deadlineMs: 200 }).catch((one: unknown) => one);
    expect(error).toBeInstanceOf(StoreUnavailable);
    expect((error as StoreUnavailable).mayBeDone).toBe(true);
    proxy.heal();
    const again = await store.take(asked, options);
    expect(remaining(again)).toBe(8);
    expect(remaining(await store.peek(asked))).toBe(8);
  });
});

it("asks again on a new connection if one broke before anything was decided", async () => {
  const { store, proxy } = await openThroughProxy(() => undefined);
  const asked = [ofTen()];
  await store.take(asked);
  proxy.dropRepliesOnce();
  expect(remaining(await store.take(asked))).toBe(8);
});

it("keeps what was acknowledged when the server is killed in the middle of takes, and charges no id twice", async () => {
  const fragile = await startPostgres();
  closing.push(fragile);
  const store = open({ url: fragile.url, deadlineMs: 300, breaker: { probeEveryMs: 20 } });
  const limit = compileTestLimit({ algorithm: "fixed_window", windows: [testWindow(100_000, 24 * 3_600_000)] });
  const asked = [resolvedLimit(limit, "u")];
  await store.open();
  const ids = Array.from({ length: 400 }, (_, i) => `r${i}`);
  const askAll = (): Promise<(TakeAnswer | undefined)[]> =>
    Promise.all(
      ids.map(async (id, i) => {
        for (let turn = 0; turn < i % 20; turn += 1) await setImmediate();
        return store.take(asked, { id, fingerprint: "f" }).catch((error: unknown) => {
          if (!(error instanceof StoreUnavailable)) throw error;
          return undefined;
        });
      }),
    );
  const first = askAll();
  await store.take(asked, { id: "r0", fingerprint: "f" });
  await fragile.stop("SIGKILL");
  const acknowledged = await first;
  await fragile.start();
  const later = new Map<string, TakeAnswer>();
  while (later.size < ids.length) {
    for (const [i, answer] of (await askAll()).entries()) {
      if (answer !== undefined && !later.has(ids[i]!)) later.set(ids[i]!, answer);
    }
  }
  const kept = ids.filter((_, i) => acknowledged[i] !== undefined);
  expect(kept.length).toBeGreaterThan(0);
  expect(kept.every((id) => later.get(id)!.replayed)).toBe(true);
  expect(remaining(await store.peek(asked))).toBe(100_000 - ids.length);
}, 60_000);

describe("several nodes", () => {
  it("together admit what the limit allows, to the unit", async () => {
    const nodes = [open(), open(), open()];
    const asked = [ofTen("wide"), ofTen("narrow")];
    const answers = await Promise.all(
      Array.from({ length: 90 }, (_, i) => nodes[i % 3]!.take(i % 2 === 0 ? asked : [...asked].reverse())),
    );
    expect(answers.filter(({ taken }) => taken)).toHaveLength(10);
    expect(nodes.map(({ stats }) => stats.conflicts)).toEqual([0, 0, 0]);
    expect((await nodes[0]!.peek(asked)).outcomes.map((one) => one.remaining)).toEqual([0, 0]);
  });

  it("of one machine share an SQLite file", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "sluice-nodes-"));
    const url = `sqlite:${path.join(folder, "counters.db")}`;
    const nodes = [open({ url }), open({ url })];
    const asked = [ofTen()];
    const answers = await Promise.all(Array.from({ length: 30 }, (_, i) => nodes[i % 2]!.take(asked)));
    expect(answers.filter(({ taken }) => taken)).toHaveLength(10);
    rmSync(folder, { recursive: true, force: true });
  });
});

it("waits for a row that another transaction holds until the deadline, and then charges nothing", async () => {
  const store = open();
  const asked = [ofTen()];
  await store.take(asked);
  const other = new pg.Client({ connectionString: server.url });
  await other.connect();
  await other.query("begin; select id from sluice_counters for update");
  const error = await store.take(asked, { deadlineMs: 50 }).catch((one: unknown) => one);
  expect((error as StoreUnavailable).reason).toBe("storage_timeout");
  await other.query("rollback");
  await other.end();
  expect(remaining(await store.take(asked))).toBe(8);
});

it("locks no subject out and gives nothing away when the database's clock steps back", async () => {
  let nowMs = conversationStartMs + 3_600_000;
  const store = open({ tune: { nowMs: () => nowMs } });
  for (const algorithm of ["gcra", "fixed_window", "sliding_window", "sliding_log"] as const) {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(10, 1000)], policy: algorithm });
    const asked = [resolvedLimit(limit, "u", 10)];
    nowMs = conversationStartMs + 3_600_000;
    expect((await store.take(asked)).taken).toBe(true);
    nowMs = conversationStartMs;
    const denied = await store.take(asked);
    expect([denied.taken, denied.outcomes[0]!.retryAfterMs <= 2000]).toEqual([false, true]);
    // A denial writes nothing, so time goes on where the counter was written.
    nowMs = conversationStartMs + 3_600_000 + denied.outcomes[0]!.retryAfterMs;
    expect((await store.take(asked)).taken).toBe(true);
  }
});

it("blocks a subject no longer than asked when the database's clock steps back", async () => {
  const startMs = conversationStartMs + 3_600_000;
  let nowMs = startMs;
  const store = open({ tune: { nowMs: () => nowMs } });
  const limit = compileTestLimit({
    algorithm: "gcra",
    windows: [testWindow(10, 1000)],
    policy: "blocks",
    blockForMs: 60_000,
  });
  const asked = [resolvedLimit(limit, "u", 1)];
  await store.block(asked, 60_000);
  nowMs = startMs - 3_600_000;
  const denied = await store.take(asked);
  expect([denied.taken, denied.outcomes[0]!.retryAfterMs]).toEqual([false, 60_000]);
});

describe("idle rows", () => {
  it.each([
    ["PostgreSQL", async () => new PostgresCounters({ url: server.url }, 2)],
    [
      "SQLite",
      async () => {
        const folder = mkdtempSync(path.join(tmpdir(), "sluice-idle-"));
        const url = `sqlite:${path.join(folder, "counters.db")}`;
        const store = new SqlCounters({ url });
        await store.open();
        await store.close();
        return new SqliteCounters(await openDatabase({ url }));
      },
    ],
  ])("are deleted in %s, part by part, and others are not", async (_kind, openRows) => {
    await open().open();
    const rows = await openRows();
    closing.push(rows);
    const ids = ["x1", "x2", "x3", "x4", "x5"];
    const put = ids.map((id, i) => ({ id, state: "{}", untilMs: i === 1 ? Number.MAX_SAFE_INTEGER : 1 }));
    await rows.change(["x1"], [], 10_000, () => ({ put, drop: [] }));
    const deleted: number[] = [];
    let after: string | undefined = "x";
    while (after !== undefined) {
      const swept: Awaited<ReturnType<typeof rows.sweep>> = await rows.sweep(after, 2);
      deleted.push(swept.deleted);
      after = swept.last;
    }
    expect(deleted).toEqual([1, 2, 1]);
    expect([...(await rows.look(ids, 10_000)).rows.keys()]).toEqual(["x2"]);
  });

  it("are deleted part after part without a pause while most are idle", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "sluice-sweep-"));
    const url = `sqlite:${path.join(folder, "counters.db")}`;
    vi.useFakeTimers({ toFake: ["setInterval"] });
    try {
      const store = open({ url });
      const rows = await store.open();
      const put = Array.from({ length: 1_700 }, (_, i) => ({ id: `x${i}`, state: "", untilMs: 1 }));
      await rows.change([], [], 10_000, () => ({ put, drop: [] }));
      vi.advanceTimersToNextTimer();
      for (let round = 0; round < 10_000 && store.stats.swept < put.length; round += 1) await setImmediate();
      expect(store.stats.swept).toBe(put.length);
    } finally {
      vi.useRealTimers();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
