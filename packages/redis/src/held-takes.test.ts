import { flavors, startServer, type TestServer } from "@sluice/test-servers";
import fc from "fast-check";
import { MemoryCounters } from "sluice";
import type { ResolvedLimit } from "sluice/store";
import { compileTestLimit, resolvedLimit, testWindow } from "sluice/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { decodeAheads, decodeArrivals, decodeHead, decodeMarks } from "./ask/decode-reply.ts";
import { type Call, encodeArrivals, encodeGiveBack } from "./ask/encode-call.ts";
import { ArrivalsQuestion, type HeldNumbers } from "./ask/question.ts";
import { findCode } from "./ask/window-code.ts";
import { createKeyNames } from "./place/key-names.ts";
import { RedisCounters } from "./redis-counters.ts";
import type { ScriptName } from "./scripts.generated.ts";
import { scriptsOnTestTime, testTime } from "./testing/scripts-on-test-time.ts";

/**
 * What a request across slots takes from one of them is held until the others have answered. Giving it back uses no
 * receipt on the server, but gives as much as one would: no more than is left of what was taken, whatever happens in
 * between.
 */

const names = createKeyNames("s");
const holdMs = 5000;
/** Other runs of the property on the same server. */
let run = 0;

const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("take" as const),
      /** They travel together. */
      takes: fc.array(
        fc.record({
          limits: fc.uniqueArray(fc.nat({ max: 2 }), { minLength: 1, maxLength: 3 }),
          subject: fc.nat({ max: 1 }),
          cost: fc.integer({ min: 1, max: 4 }),
          held: fc.constantFrom(true, true, false),
        }),
        { minLength: 1, maxLength: 4 },
      ),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("give back" as const), which: fc.nat({ max: 5 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("wait" as const),
      ms: fc.oneof(fc.integer({ min: 0, max: 400 }), fc.constantFrom(0.25, 0.5, 1000, 3000)),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("charge" as const),
      limit: fc.nat({ max: 2 }),
      subject: fc.nat({ max: 1 }),
      cost: fc.integer({ min: -8, max: 8 }).filter((cost) => cost !== 0),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom("receipt" as const, "reset" as const),
      limit: fc.nat({ max: 2 }),
      subject: fc.nat({ max: 1 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("give" as const), which: fc.nat({ max: 3 }) }) },
);

describe.each(flavors)("takes that are held, on %s", (flavor) => {
  let server: TestServer;
  const clock = testTime();
  const tune = scriptsOnTestTime(clock);

  beforeAll(async () => {
    server = await startServer({ flavor });
  });
  afterAll(() => server.close());
  beforeEach(() => server.command("FLUSHALL"));

  async function call(script: ScriptName, { keys, args }: Call): Promise<unknown> {
    const { source } = tune.scripts[script];
    return server.command("EVAL", source, keys.length, ...keys, ...args, ...tune.extraArguments());
  }

  /** As a lane does. */
  async function take(
    requests: readonly { readonly limits: readonly ResolvedLimit[]; readonly held: boolean }[],
  ): Promise<readonly { readonly taken: boolean; readonly held: HeldNumbers | undefined }[]> {
    const questions = requests.map(({ limits, held }) => new ArrivalsQuestion(limits, held ? holdMs : 0));
    const reply = await call("takeArrivals", encodeArrivals(questions, names, 0));
    const [aheads, marks, { nowUs }] = [decodeAheads(reply), decodeMarks(reply), decodeHead(reply)];
    let at = 0;
    let markAt = 0;
    return questions.map(({ limits, count, holdMs: heldMs }) => {
      const { taken } = decodeArrivals(limits, aheads, at, nowUs);
      const own = { nowUs, aheads: aheads.slice(at, at + count), marks: marks.slice(markAt, markAt + 2 * count) };
      at += count;
      if (heldMs > 0) markAt += 2 * count;
      return { taken, held: heldMs > 0 ? own : undefined };
    });
  }

  async function giveBack(limits: readonly ResolvedLimit[], held: HeldNumbers): Promise<boolean> {
    const reply = (await call("giveArrivals", encodeGiveBack(limits, held, names))) as readonly number[];
    return reply[2] === 1;
  }

  it("are given back as by a receipt in memory, whatever happens in between", async () => {
    const store = new RedisCounters({ servers: server.url, deadlineMs: 5000, tune });
    await store.connected();
    try {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 50 }), async (steps) => {
          run += 1;
          clock.advance(testTime().epochMs() - clock.epochMs());
          const memory = new MemoryCounters({ clock });
          const limits = [
            [testWindow(5, 1000)],
            [testWindow(10, 10_000), testWindow(4, 1000)],
            [testWindow(3, 1000, 7), testWindow(50, 60_000)],
          ].map((windows, i) => compileTestLimit({ algorithm: "gcra", windows, policy: `h${i}-${run}` }));
          const resolved = (limit: number, subject: number, cost = 1): ResolvedLimit =>
            resolvedLimit(limits[limit]!, `u${subject}`, cost);
          const everything = limits.flatMap((_, i) => [resolved(i, 0), resolved(i, 1)]);
          const taken: { limits: readonly ResolvedLimit[]; held: HeldNumbers; receipt: string }[] = [];
          const receipts: { ours: string; theirs: string }[] = [];
          for (const one of steps) {
            switch (one.do) {
              case "take": {
                const asked = one.takes.map(({ limits: wanted, subject, cost, held }) => ({
                  limits: wanted.map((i) => resolved(i, subject, cost)),
                  held,
                }));
                const ours = await take(asked);
                asked.forEach(({ limits: own, held }, i) => {
                  const theirs = memory.take(own, { receipt: held });
                  expect(ours[i]!.taken).toBe(theirs.taken);
                  if (held && theirs.taken) taken.push({ limits: own, held: ours[i]!.held!, receipt: theirs.receipt! });
                });
                break;
              }
              case "give back": {
                const [chosen] = taken.splice(one.which, 1);
                if (chosen === undefined) break;
                expect(await giveBack(chosen.limits, chosen.held)).toBe(memory.give(chosen.receipt));
                break;
              }
              case "wait":
                clock.advance(one.ms);
                break;
              case "charge": {
                const own = [resolved(one.limit, one.subject, one.cost)];
                await store.charge(own);
                memory.charge(own);
                break;
              }
              case "receipt": {
                const own = [resolved(one.limit, one.subject)];
                const ours = await store.take(own, { receipt: true });
                const theirs = memory.take(own, { receipt: true });
                expect(ours.taken).toBe(theirs.taken);
                if (ours.taken) receipts.push({ ours: ours.receipt!, theirs: theirs.receipt! });
                break;
              }
              case "give": {
                const [chosen] = receipts.splice(one.which, 1);
                if (chosen === undefined) break;
                expect(await store.give(chosen.ours)).toBe(memory.give(chosen.theirs));
                break;
              }
              case "reset": {
                const own = [resolved(one.limit, one.subject)];
                await store.reset(own);
                memory.reset(own);
                break;
              }
            }
            const left = (answer: Awaited<ReturnType<RedisCounters["peek"]>>): unknown =>
              answer.outcomes.map(({ remaining, resetAfterMs }) => [remaining, resetAfterMs]);
            expect(left(await store.peek(everything))).toEqual(left(memory.peek(everything)));
          }
        }),
        { numRuns: 250 },
      );
    } finally {
      await store.close();
    }
  }, 120_000);

  describe("have a mark", () => {
    const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, 3_600_000)] });
    const one = [resolvedLimit(limit, "u1")];
    const mark = names.mark(findCode(limit.windows[0]!).code, "u1");
    const counter = names.counter(findCode(limit.windows[0]!).code, "u1");
    const lifeOfMark = async (): Promise<number> => Number(await server.command("PTTL", mark));
    const takeOne = async (): Promise<HeldNumbers> => (await take([{ limits: one, held: true }]))[0]!.held!;

    it("that outlasts them, and not by long", async () => {
      await takeOne();
      expect(await lifeOfMark()).toBeGreaterThan(holdMs);
      expect(await lifeOfMark()).toBeLessThanOrEqual(2 * holdMs);
      // About to end: the next one puts it off.
      await server.command("PEXPIRE", mark, 1000);
      await takeOne();
      expect(await lifeOfMark()).toBeGreaterThan(holdMs);
      // Without an end: it is given one.
      await server.command("PERSIST", mark);
      await takeOne();
      expect(await lifeOfMark()).toBeLessThanOrEqual(2 * holdMs);
    });

    it("only on the server that took them", async () => {
      await take([{ limits: [resolvedLimit(limit, "u1", 11)], held: true }]);
      expect(await server.command("EXISTS", mark, counter)).toBe(0);
    });

    it.each([
      ["is gone", () => server.command("DEL", mark)],
      ["is of another time", () => server.command("SET", mark, "another 0", "PX", 5000)],
      ["is not one", () => server.command("SET", mark, "hello", "PX", 5000)],
      ["is a list", () => server.command("DEL", mark).then(() => server.command("RPUSH", mark, "a"))],
    ])("without which nothing is given back: if it %s", async (_, spoil) => {
      const held = await takeOne();
      const before = await server.command("GET", counter);
      await spoil();
      expect(await giveBack(one, held)).toBe(false);
      expect(await server.command("GET", counter)).toBe(before);
    });

    it("which is created anew if something else is in its place", async () => {
      await server.command("RPUSH", mark, "a");
      expect(await giveBack(one, await takeOne())).toBe(true);
    });
  });
});
