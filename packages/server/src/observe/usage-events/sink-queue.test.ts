import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { createRecordingLog, type LoggedLine } from "../../testing/recording-log.ts";
import { EventsRefused } from "./event-sink.ts";
import { SinkQueue } from "./sink-queue.ts";
import { createRecordingSink, ManualPauses, settle, testEvent, testEvents } from "./testing/test-events.ts";
import { type UsageEvent, usageEventBytes } from "./usage-event.ts";

let logged: LoggedLine[];
beforeEach(() => {
  logged = [];
});

const log = createRecordingLog((line) => logged.push(line));

function open({
  maxEvents = 10_000,
  sendWithinMs = 60_000,
  onSettled = undefined as ((event: UsageEvent) => void) | undefined,
} = {}) {
  const sink = createRecordingSink();
  const pauses = new ManualPauses();
  const queue = new SinkQueue({ sink, log, maxEvents, pause: pauses.pause, sendWithinMs, onSettled });
  return { sink, pauses, queue };
}

function offerAll(queue: SinkQueue, events: readonly UsageEvent[]): void {
  for (const event of events) queue.offer(event);
}

describe("the queue of a sink", () => {
  it("sends a batch as soon as a hundred wait", async () => {
    const { sink, queue } = open();
    offerAll(queue, testEvents(250));
    await settle();
    expect(sink.batches.map(({ length }) => length)).toEqual([100, 100]);
    expect(queue.waiting).toBe(50);
  });

  it("sends fewer after a second", async () => {
    const { sink, pauses, queue } = open();
    offerAll(queue, testEvents(3));
    await settle();
    expect(sink.batches).toEqual([]);
    expect(pauses.waitingMs).toEqual([1_000]);
    await pauses.end();
    expect(sink.ids).toEqual(["e0", "e1", "e2"]);
    expect(queue.stats).toEqual({ sent: 3, failed: 0, dropped: { full: 0, refused: 0, stopped: 0 } });
  });

  it("sends a batch again until it is accepted, later each time, and logs the outage once", async () => {
    const { sink, pauses, queue } = open();
    sink.before = () => Promise.reject(new Error("fetch failed", { cause: { code: "ECONNREFUSED" } }));
    offerAll(queue, testEvents(100));
    await settle();
    const waits: number[] = [];
    for (let i = 0; i < 8; i++) {
      // The first pause is the one for others to come along.
      waits.push(pauses.waitingMs.at(-1)!);
      await pauses.end();
    }
    expect(queue.stats.failed).toBe(9);
    expect(waits).toHaveLength(8);
    for (const [i, ms] of waits.entries()) {
      const longest = Math.min(250 * 2 ** i, 10_000);
      expect(ms).toBeGreaterThanOrEqual(longest / 2);
      expect(ms).toBeLessThanOrEqual(longest);
    }
    expect(logged.map(({ event, level, fields }) => [level, event, fields.reason])).toEqual([
      ["warn", "usage_events.failed", "fetch failed: ECONNREFUSED"],
    ]);
    sink.before = () => undefined;
    await pauses.end();
    expect(sink.ids).toEqual(testEvents(100).map(({ id }) => id));
    expect(logged.map(({ event }) => event)).toEqual(["usage_events.failed", "usage_events.recovered"]);
    expect(queue.failing).toBe(false);
  });

  it("drops what comes while it is full, and counts it", async () => {
    const { sink, pauses, queue } = open({ maxEvents: 1_000 });
    sink.before = () => Promise.reject(new Error("down"));
    offerAll(queue, testEvents(5_000));
    await settle();
    expect(queue.waiting).toBe(1_000);
    expect(queue.stats.dropped.full).toBe(4_000);
    sink.before = () => undefined;
    await pauses.end();
    expect(sink.ids).toEqual(testEvents(1_000).map(({ id }) => id));
  });

  it("drops only the events that the receiver refuses for good, wherever they are in a batch", async () => {
    const { sink, queue } = open();
    const refused = new Set(["e0", "e42", "e43", "e120"]);
    sink.before = (events) => {
      if (events.some(({ id }) => refused.has(id))) throw new EventsRefused("it answered 400");
    };
    offerAll(queue, testEvents(200));
    await expect.poll(() => queue.waiting).toBe(0);
    const accepted = testEvents(200).flatMap(({ id }) => (refused.has(id) ? [] : [id]));
    expect(sink.ids).toEqual(accepted);
    expect(queue.stats).toMatchObject({ sent: 196, dropped: { refused: 4 } });
    expect(queue.waitingBytes).toBe(0);
    expect(logged.map(({ event }) => event)).toEqual(["usage_events.refused"]);
  });

  it("does not look for one event to blame while the receiver refuses all", async () => {
    const { sink, queue } = open();
    sink.before = () => {
      throw new EventsRefused("it answered 415");
    };
    offerAll(queue, testEvents(1_000));
    await expect.poll(() => queue.waiting).toBe(0);
    // Each of the first hundred is tried alone.
    expect(sink.attempts).toBe(199 + 9);
    expect(queue.stats.dropped.refused).toBe(1_000);
    sink.before = () => undefined;
    offerAll(queue, testEvents(100));
    await expect.poll(() => queue.stats.sent).toBe(100);
    expect(logged.map(({ event }) => event)).toEqual(["usage_events.refused", "usage_events.recovered"]);
  });

  it("holds a bounded number of bytes, however long the names are that callers choose", async () => {
    const { sink, queue } = open({ maxEvents: 1_000 });
    sink.before = () => Promise.reject(new Error("down"));
    const large = (i: number): UsageEvent => {
      const event = testEvent(`e${i}`);
      return { ...event, subject: "s".repeat(4_096), data: { ...event.data, key: "k".repeat(4_096) } };
    };
    for (let i = 0; i < 1_000; i++) queue.offer(large(i));
    const most = 1_000 * 1_024;
    expect(queue.waitingBytes).toBeGreaterThan(most - usageEventBytes(large(0)));
    expect(queue.waitingBytes).toBeLessThan(most + usageEventBytes(large(0)));
    expect(queue.waiting).toBeLessThan(100);
    expect(queue.stats.dropped.full).toBe(1_000 - queue.waiting);
    expect(await queue.close(1)).toBe(1_000 - queue.stats.dropped.full);
    expect(queue.waitingBytes).toBe(0);
  });

  it("gives up a send that does not end, even if the sink ignores that, and repeats it", async () => {
    const { sink, pauses, queue } = open({ sendWithinMs: 1 });
    sink.before = () => new Promise(() => undefined);
    offerAll(queue, testEvents(100));
    await expect.poll(() => queue.stats.failed).toBe(1);
    sink.before = () => undefined;
    await pauses.end();
    expect(queue.stats.sent).toBe(100);
  });

  it("sends the rest when it closes, and closes the sink", async () => {
    const settled: UsageEvent[] = [];
    const { sink, queue } = open({ onSettled: (event) => settled.push(event) });
    offerAll(queue, testEvents(130));
    expect(await queue.close(60_000)).toBe(0);
    expect(sink.batches.map(({ length }) => length)).toEqual([100, 30]);
    expect(sink.closed).toBe(true);
    queue.offer(testEvent("late"));
    expect(queue.stats.dropped.stopped).toBe(1);
    expect(settled).toHaveLength(130);
  });

  it("reports what is left if the sink does not accept it in time", async () => {
    const { sink, queue } = open();
    sink.before = () => Promise.reject(new Error("down"));
    offerAll(queue, testEvents(130));
    expect(await queue.close(1)).toBe(130);
    expect(queue.stats.dropped.stopped).toBe(130);
    expect(sink.closed).toBe(true);
  });

  it("loses nothing within its bound and settles each event once, whichever sends fail or were accepted unheard", async () => {
    const outcome = fc.constantFrom("accepted", "lost", "accepted, but the answer was lost");
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(150), { maxLength: 12 }),
        fc.array(outcome, { maxLength: 30 }),
        async (bursts, outcomes) => {
          const settled: string[] = [];
          const { sink, pauses, queue } = open({ maxEvents: 400, onSettled: ({ id }) => settled.push(id) });
          const received: string[] = [];
          let sends = 0;
          sink.before = (events) => {
            const answer = outcomes[sends] ?? "accepted";
            sends += 1;
            if (answer !== "lost") received.push(...events.map(({ id }) => id));
            if (answer !== "accepted") throw new Error(answer);
          };
          let made = 0;
          const kept: string[] = [];
          for (const burst of bursts) {
            for (let i = 0; i < burst; i++) {
              const event = testEvent(`n-boot-${made}`);
              made += 1;
              if (queue.hasRoom) kept.push(event.id);
              queue.offer(event);
            }
            await pauses.end();
          }
          while (queue.waiting > 0) await pauses.end();
          expect([...new Set(received)]).toEqual(kept);
          expect(queue.stats.sent).toBe(kept.length);
          expect(queue.stats.dropped.full).toBe(made - kept.length);
          expect(settled).toHaveLength(made);
          expect(new Set(settled).size).toBe(made);
        },
      ),
      { numRuns: 40 },
    );
  });
});
