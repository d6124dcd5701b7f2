import { createLimiter } from "sluice";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { silentLog } from "../../testing/test-service.ts";
import { testEvent } from "./testing/test-events.ts";
import type { UsageEvent } from "./usage-event.ts";
import { UsageEvents } from "./usage-events.ts";
import { UsageStream } from "./usage-stream.ts";
import { UsageTail, type UsageTailOptions } from "./usage-tail.ts";
import { watchEvents } from "./watch-events.ts";

let publish: ((event: UsageEvent) => void) | undefined;
let watched: number;
let tail: UsageTail;

const createTail = (options: Partial<UsageTailOptions> = {}): UsageTail =>
  new UsageTail({
    watch(onEvent) {
      publish = onEvent;
      watched += 1;
      return () => {
        publish = undefined;
      };
    },
    ...{ maxEvents: 4, maxAnswered: 3, maxWaiting: 2, keepMs: 30_000 },
    ...options,
  });

beforeEach(() => {
  vi.useFakeTimers();
  publish = undefined;
  watched = 0;
  tail = createTail();
});

afterEach(() => {
  tail.close();
  vi.useRealTimers();
});

function make(...ids: readonly string[]): void {
  for (const id of ids) publish?.(testEvent(id));
}

const all = (): boolean => true;
const only = (id: string) => (event: UsageEvent) => event.id === id;
const ids = ({ events }: { readonly events: readonly UsageEvent[] }): readonly string[] => events.map(({ id }) => id);

describe("the tail of usage events", () => {
  it("begins now, and continues after the cursor, in answers of bounded size", async () => {
    const first = await tail.read({ waitMs: 0, isShown: all });
    expect(first).toMatchObject({ events: [], missed: 0, restarted: false });
    make("a", "b", "c", "d");
    const second = await tail.read({ after: first.next, waitMs: 0, isShown: all });
    expect(ids(second)).toEqual(["a", "b", "c"]);
    const third = await tail.read({ after: second.next, waitMs: 5_000, isShown: all });
    expect(ids(third)).toEqual(["d"]);
    expect(ids(await tail.read({ after: third.next, waitMs: 0, isShown: all }))).toEqual([]);
    expect(ids(await tail.read({ after: first.next, waitMs: 0, isShown: only("b") }))).toEqual(["b"]);
  });

  it("counts events that were discarded before they were read", async () => {
    const { next } = await tail.read({ waitMs: 0, isShown: all });
    make("a", "b", "c", "d", "e", "f");
    const late = await tail.read({ after: next, waitMs: 5_000, isShown: all });
    expect(ids(late)).toEqual(["c", "d", "e"]);
    expect(late.missed).toBe(2);
    expect(await tail.read({ after: late.next, waitMs: 0, isShown: all })).toMatchObject({ missed: 0 });
  });

  it("keeps fewer events if callers choose long names", async () => {
    const { next } = await tail.read({ waitMs: 0, isShown: all });
    const event = testEvent("");
    for (const id of ["a", "b", "c"]) publish?.({ ...event, id, subject: "s".repeat(1_500) });
    // Four KiB hold one of them, with room for small ones.
    const after = await tail.read({ after: next, waitMs: 0, isShown: all });
    expect([ids(after), after.missed]).toEqual([["c"], 2]);
    publish?.({ ...event, id: "large", subject: "s".repeat(4_096) });
    const last = await tail.read({ after: next, waitMs: 0, isShown: all });
    expect([ids(last), last.missed]).toEqual([["large"], 3]);
  });

  it("waits for an event that is shown, and misses none that is not", async () => {
    const { next } = await tail.read({ waitMs: 0, isShown: all });
    const waiting = tail.read({ after: next, waitMs: 5_000, isShown: only("z") });
    make("a", "b", "c", "d", "e", "f", "z");
    const woken = await waiting;
    expect(ids(woken)).toEqual(["z"]);
    expect(woken.missed).toBe(0);

    const vain = tail.read({ after: woken.next, waitMs: 5_000, isShown: only("z") });
    make("a", "b", "c", "d", "e", "f");
    vi.advanceTimersByTime(5_000);
    expect(await vain).toMatchObject({ events: [], missed: 0, restarted: false });
  });

  it("refuses more requests that wait than it has room for, and serves those that do not wait", async () => {
    const { next } = await tail.read({ waitMs: 0, isShown: all });
    const wait = () => tail.read({ after: next, waitMs: 5_000, isShown: all });
    const waiting = [wait(), wait()];
    await expect(wait()).rejects.toMatchObject({ code: "overloaded", message: expect.stringMatching(/^2 requests/) });
    expect(ids(await tail.read({ after: next, waitMs: 0, isShown: all }))).toEqual([]);
    make("a");
    expect((await Promise.all(waiting)).map(ids)).toEqual([["a"], ["a"]]);
    const again = wait();
    expect(ids(await again)).toEqual(["a"]);
  });

  it("stops watching 30 seconds after the last request, but not while one waits", async () => {
    expect(tail.isWatched).toBe(false);
    const { next } = await tail.read({ waitMs: 0, isShown: all });
    const waiting = tail.read({ after: next, waitMs: 40_000, isShown: all });
    vi.advanceTimersByTime(39_999);
    expect(tail.isWatched).toBe(true);
    vi.advanceTimersByTime(1);
    await waiting;
    vi.advanceTimersByTime(29_999);
    expect(publish).toBeDefined();
    vi.advanceTimersByTime(1);
    expect(publish).toBeUndefined();
    expect(tail.isWatched).toBe(false);

    const other = await tail.read({ after: next, waitMs: 5_000, isShown: all });
    expect(other).toMatchObject({ events: [], missed: 0, restarted: true });
    expect(watched).toBe(2);
    make("a");
    expect(ids(await tail.read({ after: other.next, waitMs: 0, isShown: all }))).toEqual(["a"]);
  });

  it("answers requests that wait when the server stops, and refuses others", async () => {
    const { next } = await tail.read({ waitMs: 0, isShown: all });
    const waiting = tail.read({ after: next, waitMs: 5_000, isShown: all });
    tail.close();
    expect(await waiting).toMatchObject({ events: [], restarted: false });
    expect(publish).toBeUndefined();
    await expect(tail.read({ after: next, waitMs: 0, isShown: all })).rejects.toMatchObject({ code: "not_ready" });
  });

  it("has decisions counted only while it is watched, if there is no sink", async () => {
    const stream = await UsageStream.open({ sinks: [], maxEvents: 10, log: silentLog });
    const limiter = createLimiter({
      policies: { policies: [{ id: "api", events: "each", limits: [{ by: ["tenant"], windows: ["9/h"] }] }] },
    });
    const events = new UsageEvents({
      ...{ limiter, ipv6PrefixBits: 64, node: "n", boot: "b", source: "/sluice", subjectDimension: "tenant" },
      publish: (event) => stream.publish(event),
    });
    tail = createTail({ watch: (onEvent) => watchEvents(events, stream, onEvent) });
    const check = (id: string): void => {
      const request = { dimensions: { tenant: "acme" }, id };
      events.count(request, limiter.checkSync(request));
    };
    check("before");
    const { next } = await tail.read({ waitMs: 0, isShown: all });
    expect(events.active).toBe(true);
    check("during");
    expect(ids(await tail.read({ after: next, waitMs: 0, isShown: all }))).toEqual(["during"]);
    vi.advanceTimersByTime(30_000);
    expect(events.active).toBe(false);
    expect(stream.isHeard).toBe(false);
  });
});
