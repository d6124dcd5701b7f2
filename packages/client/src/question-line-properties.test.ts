import * as fc from "fast-check";
import type { CheckRequest } from "sluice";
import { expect, it } from "vitest";
import { connectServers } from "./connect-servers.ts";
import { parseAddresses } from "./parse-addresses.ts";
import { ManualTime, settled } from "./testing/manual-time.ts";
import { ScriptedExchange } from "./testing/scripted-exchange.ts";

/** Events for a client of three servers. */
const event = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("ask" as const), more: fc.constantFrom("plain", "id", "preview") }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("answer" as const), server: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("turnAway" as const), server: fc.nat(2) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("fail" as const),
      server: fc.nat(2),
      because: fc.constantFrom("lost" as const, "not_asked" as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("end" as const), server: fc.nat(2) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("reach" as const), server: fc.nat(2), reachable: fc.boolean() }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(1, 10, 50, 200, 3_000) }),
  },
);

it("under any events, each check is answered once and in time, and none is repeated that may have been charged", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 40 }), async (events) => {
      const time = new ManualTime();
      const exchanges: ScriptedExchange[] = [];
      const limiter = connectServers(
        parseAddresses("grpc://a,b,c", ["grpc"]),
        {},
        (_address, _options, told) => {
          exchanges.push(new ScriptedExchange(told, 2));
          return exchanges.at(-1)!;
        },
        {
          clock: time.clock,
          schedule: time.schedule,
          scheduleIdly: time.schedule,
          soon: (act) => void setImmediate(act),
        },
        () => 0.5,
      );
      const askedMs: number[] = [];
      const answeredMs: number[] = [];
      /**
       * The charges that servers may have made: by user, how often a check was sent and not reported as not carried
       * out.
       */
      const charged = new Map<string, number>();
      const played = new Set<object>();

      const firstOpen = (server: number) => exchanges[server]!.batches.find((batch) => !played.has(batch));

      for (const [i, one] of events.entries()) {
        if (one.kind === "ask") {
          const user = `${one.more}-${i}`;
          const request: CheckRequest = { dimensions: { user }, ...(one.more === "id" && { id: user }) };
          const at = askedMs.push(time.clock.nowMs()) - 1;
          const asked = one.more === "preview" ? limiter.peek(request) : limiter.check(request);
          void asked.then(() => {
            expect(answeredMs[at]).toBeUndefined();
            answeredMs[at] = time.clock.nowMs();
          });
        } else if (one.kind === "wait") await time.advance(one.ms);
        else if (one.kind === "end") exchanges[one.server]!.events.onEnd("it left");
        else if (one.kind === "reach") exchanges[one.server]!.reachable = one.reachable;
        else {
          const batch = firstOpen(one.server);
          if (batch !== undefined) {
            played.add(batch);
            if (one.kind === "answer") batch.answer();
            else if (one.kind === "turnAway") batch.turnAway("storage_overloaded");
            else batch.fail(one.because);
            const leftAlone = one.kind === "turnAway" || (one.kind === "fail" && one.because === "not_asked");
            if (leftAlone) for (const user of batch.users) charged.set(user!, (charged.get(user!) ?? 0) - 1);
          }
        }
        await settled();
      }
      await time.advance(500);
      await settled();

      for (const { batches } of exchanges)
        for (const { users } of batches) for (const user of users) charged.set(user!, (charged.get(user!) ?? 0) + 1);
      for (const [user, times] of charged) if (user.startsWith("plain")) expect(times, user).toBeLessThanOrEqual(1);
      // 100 ms, and the lateness of a timer.
      for (const [i, ms] of askedMs.entries()) expect(answeredMs[i]! - ms).toBeLessThanOrEqual(102);
      expect(limiter.stats).toMatchObject({ waiting: 0, unanswered: 0 });
      await limiter.close();
      expect(time.timers).toBe(0);
    }),
    { numRuns: 300 },
  );
}, 60_000);
