import * as fc from "fast-check";
import { createLimiter, MemoryCounters, SluiceError } from "sluice";
import { expect, it } from "vitest";
import type { Outcome } from "../batch.ts";
import type { LeaseQuestion } from "../exchange.ts";
import { ManualTime } from "../testing/manual-time.ts";
import { RemoteLeases } from "./remote-leases.ts";

const limit = 20_000;
const allowance = 1_000;
const leaseMs = 1_000;
const staleMs = 8_000;
const clients = 3;
const dimensions = { user: "ada" };

/** The fate of calls: answered, soon or late; carried out and not answered; lost on the way; certainly never sent. */
const fates = ["answered", "late", "reply lost", "question lost", "not asked"] as const;
type Fate = (typeof fates)[number];
const anyClient = fc.nat(clients - 1);
const event = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("traffic" as const),
      client: anyClient,
      perTurn: fc.constantFrom(5, 40, 120),
      turns: fc.constantFrom(1, 10, 30),
      cost: fc.constantFrom(undefined, 1, 3),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("wait" as const),
      ms: fc.constantFrom(1, 20, 250, 1_400, 4_000, 8_500, 20_000),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("spree" as const) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("network" as const), fate: fc.constantFrom(...fates) }) },
  // Like a killed process: its units are gone, and no server is informed.
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("kill" as const), client: anyClient }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("close" as const), client: anyClient }) },
  {
    weight: 1,
    // Rare, because a subject that is not to be leased is left alone for long.
    arbitrary: fc.record({ kind: fc.constant("edit" as const), exact: fc.nat(5).map((one) => one === 0) }),
  },
);

function policies(exact: boolean): Readonly<Record<string, unknown>> {
  const limits = [{ by: ["user"], windows: [`${limit}/10s`] }];
  return {
    policies: [{ id: "api", limits, ...(exact ? { counters: "exact" } : { max_overshoot: allowance / limit }) }],
  };
}

/** Servers, and a network that treats calls as scripted. */
function setUp() {
  let fate: Fate = "answered";
  const time = new ManualTime();
  const { clock, schedule } = time;
  const limiter = createLimiter({ policies: policies(false), clock, counters: new MemoryCounters({ clock }) });
  let calls = 0;

  async function carryOut({ want, settled }: LeaseQuestion): Promise<Outcome> {
    try {
      const grant = await limiter.lease({ dimensions }, { want, holdMs: leaseMs + staleMs, settled });
      return { kind: "answer", value: { ...grant, leaseMs, staleMs, cost: grant.decision.cost } };
    } catch (error) {
      if (error instanceof SluiceError) return { kind: "refused", error };
      throw error;
    }
  }

  function ask(question: LeaseQuestion, settle: (outcome: Outcome) => void): void {
    calls += 1;
    const fail = (mayBeDone: boolean): void => settle({ kind: "unanswered", reason: "storage_timeout", mayBeDone });
    if (fate === "not asked") fail(false);
    else if (fate === "question lost") schedule(300, () => fail(true));
    else if (fate === "reply lost") {
      // A server may take longer than any caller waits.
      schedule(calls % 2 === 0 ? 1 : 900, () => void carryOut(question));
      schedule(300, () => fail(true));
    } else {
      schedule(fate === "late" ? 800 : 1, () => {
        void carryOut(question).then((outcome) => schedule(1, () => settle(outcome)));
      });
    }
  }

  return {
    time,
    limiter,
    use(next: Fate): void {
      fate = next;
    },
    start: (): RemoteLeases =>
      new RemoteLeases({ perSecond: 5, ask, time: { clock, schedule, scheduleIdly: schedule, soon: () => undefined } }),
    /** The units that the counters consider granted and unspent. */
    async unspent(): Promise<number> {
      const nothing = { epoch: 0, spent: 0, kept: 0, returned: 0 };
      return (await limiter.lease({ dimensions }, { want: 0, holdMs: 1, settled: nothing })).unspent;
    },
  };
}

it("clients never hold more units than the counters know of, which never exceed the allowance", {
  timeout: 120_000,
}, async () => {
  let spentOnSprees = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(event, { minLength: 10, maxLength: 60 }), async (events) => {
      const { time, limiter, start, unspent, use } = setUp();
      const running = Array.from({ length: clients }, start);
      for (const one of events) {
        if (one.kind === "wait") await time.advance(one.ms);
        else if (one.kind === "edit") limiter.usePolicies(policies(one.exact));
        else if (one.kind === "network") use(one.fate);
        else if (one.kind === "kill") running[one.client] = start();
        else if (one.kind === "close") {
          void running[one.client]!.close(500);
          running[one.client] = start();
        } else if (one.kind === "traffic") {
          const { client, cost, turns, perTurn } = one;
          for (let turn = 0; turn < turns; turn++) {
            await time.advance(10);
            for (let i = 0; i < perTurn; i++) running[client]!.decide({ dimensions, cost });
          }
        } else {
          const known = await unspent();
          expect(known).toBeLessThanOrEqual(allowance);
          let spent = 0;
          for (const client of running) while (client.decide({ dimensions, cost: 1 }) !== undefined) spent += 1;
          expect(spent).toBeLessThanOrEqual(known);
          spentOnSprees += spent;
        }
      }
    }),
    { numRuns: 400 },
  );
  expect(spentOnSprees).toBeGreaterThan(1_000);
});
