import fc from "fast-check";
import {
  type CheckRequest,
  type CounterStore,
  createLimiter,
  type Decision,
  ManualClock,
  MemoryCounters,
  MemorySubjectDirectory,
  StoreUnavailable,
} from "sluice";
import { expect, test } from "vitest";

/** The same counters, as if they were remote. */
function elsewhere(memory: MemoryCounters, away: { now: boolean } = { now: false }): CounterStore {
  return {
    local: false,
    take: async (limits, options) => {
      if (away.now) throw new StoreUnavailable("storage_timeout");
      return memory.take(limits, options);
    },
    peek: async (limits) => {
      if (away.now) throw new StoreUnavailable("storage_timeout");
      return memory.peek(limits);
    },
    give: async (receipt) => memory.give(receipt),
    charge: async (limits) => memory.charge(limits),
    block: async (limits, forMs) => memory.block(limits, forMs),
    reset: async (limits) => memory.reset(limits),
    read: async (limit) => memory.read(limit),
    close: async () => memory.close(),
  };
}

const opt = <T>(arb: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(arb, { nil: undefined, freq: 1 });
const windowsArb = fc.constantFrom<unknown>("3/s", "5/10s", "2/s burst 4", ["3/s", "7/m"], "10/m", "4/h");
const limitArb = fc.record({
  by: fc.constantFrom<unknown>("user", "tenant", ["tenant", "user"], "ip", [], "endpoint"),
  windows: windowsArb,
  algorithm: opt(
    fc.constantFrom("gcra", "token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log"),
  ),
  missing: opt(fc.constantFrom("share", "skip", "deny")),
  block_for: opt(fc.constantFrom("2s")),
  tiers: opt(fc.constant({ gold: "20/s", bronze: ["1/s"] })),
});
const policyArb = fc.record({
  match: opt(
    fc
      .record({
        endpoint: opt(fc.constantFrom<unknown>("/v1/*", "/v1/orders", "/v1/{id}", "/**")),
        methods: opt(fc.constantFrom<unknown>(["GET"], ["POST"])),
        dimensions: opt(fc.constantFrom<unknown>({ tenant: "acme" }, { plan: "pro" })),
      })
      .map((one) => JSON.parse(JSON.stringify(one)) as object)
      .filter((one) => Object.keys(one).length > 0),
  ),
  mode: opt(fc.constantFrom("shadow", "enforce")),
  cost: opt(fc.constantFrom<unknown>({ "/v1/orders": 2 }, 2)),
  allow: opt(fc.constantFrom<unknown>({ user: ["u1"] }, { ip: ["10.0.0.0/8"] })),
  deny: opt(fc.constant({ user: ["u2"] })),
  limits: fc.array(limitArb, { minLength: 1, maxLength: 2 }),
  warn_at: opt(fc.constantFrom(0.5, 0.8)),
  on_failure: opt(fc.constantFrom("open", "closed", "local")),
});
const plainPolicyArb = fc.record({
  limits: fc
    .record({
      by: fc.constantFrom<unknown>("user", "tenant", "ip"),
      windows: fc.constantFrom<unknown>("3/s", "5/10s", "2/s burst 4", "4/h"),
      algorithm: opt(fc.constantFrom("gcra", "token_bucket", "leaky_bucket")),
    })
    .map((one) => [one]),
  warn_at: opt(fc.constantFrom(0.5, 0.8)),
  on_failure: opt(fc.constantFrom("open", "closed", "local")),
});
const dimsArb = fc.record(
  {
    user: fc.constantFrom("u1", "u2", "u3", ""),
    tenant: fc.constantFrom("acme", "b|c", "d\\"),
    ip: fc.constantFrom("10.0.0.1", "2001:db8::1", "nonsense"),
    endpoint: fc.constantFrom("/v1/orders", "/v1/a%2Fb", "/v1/x/../orders", "/v2", "v1/orders"),
    method: fc.constantFrom("GET", "POST", "get"),
    tier: fc.constantFrom("gold", "bronze", "none"),
    plan: fc.constantFrom("pro", "free"),
  },
  { requiredKeys: [] },
);
const requestArb = fc.record(
  {
    dimensions: dimsArb,
    cost: fc.constantFrom(1, 1, 1, 2, 5, 100, 0, 0.5, -1),
    id: fc.constantFrom("a", "b"),
    preview: fc.constantFrom(true, false),
    details: fc.boolean(),
    receipt: fc.boolean(),
    domain: fc.constantFrom("", "other"),
  },
  { requiredKeys: ["dimensions"] },
);
const stepArb = fc.record({
  request: requestArb,
  simple: fc.boolean(),
  waitMs: fc.constantFrom(0, 0, 60, 100, 400, 3000),
});

function clean<T extends object>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

test("a check of remote counters decides like one of counters in memory", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.array(policyArb, { minLength: 1, maxLength: 3 }),
        plainPolicyArb.map((one) => [one]),
      ),
      fc.boolean(),
      fc.array(stepArb, { minLength: 1, maxLength: 30 }),
      async (raw, withSubjects, steps) => {
        const policies = raw.map((one, i) => clean({ id: `p${i}`, ...one }));
        const clocks = [new ManualClock(1_768_478_400_000), new ManualClock(1_768_478_400_000)] as const;
        const stores = clocks.map((clock) => new MemoryCounters({ clock }));
        const open = (counters: CounterStore, clock: ManualClock) =>
          createLimiter({
            policies: { policies },
            clock,
            counters,
            previewCacheMs: 0,
            subjects: new MemorySubjectDirectory(
              withSubjects ? ([{ dimension: "user", value: "u3", tier: "gold" }] as never) : [],
            ),
          });
        const near = open(stores[0]!, clocks[0]);
        const far = open(elsewhere(stores[1]!), clocks[1]);
        for (const { request, simple, waitMs } of steps) {
          for (const clock of clocks) clock.advance(waitMs);
          const asked = (
            simple ? { dimensions: request.dimensions, cost: request.cost ?? 1 } : request
          ) as CheckRequest;
          const attempt = async (ask: () => Decision | Promise<Decision>): Promise<unknown> => {
            try {
              const { receipt, ...rest } = await ask();
              return { ...rest, receipt: receipt !== undefined };
            } catch (error) {
              return { name: (error as Error).name, message: (error as Error).message };
            }
          };
          const one = await attempt(() => near.checkSync(asked));
          const other = await attempt(() => far.check(asked));
          expect(other).toEqual(one);
        }
      },
    ),
    { numRuns: 600 },
  );
}, 120_000);

test("the fast path and the slow path decide alike, through outages too", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.array(policyArb, { minLength: 1, maxLength: 3 }),
        plainPolicyArb.map((one) => [one]),
      ),
      fc.array(fc.record({ step: stepArb, away: fc.boolean() }), { minLength: 1, maxLength: 30 }),
      async (raw, steps) => {
        const policies = raw.map((one, i) => clean({ id: `p${i}`, ...one }));
        const away = { now: false };
        const limiters = [[], [{ dimension: "nobody", value: "x", tier: "gold" }]].map((entries) => {
          const clock = new ManualClock(1_768_478_400_000);
          const counters = elsewhere(new MemoryCounters({ clock }), away);
          const subjects = new MemorySubjectDirectory(entries as never);
          return {
            clock,
            limiter: createLimiter({ policies: { policies }, clock, counters, subjects, previewCacheMs: 0 }),
          };
        });
        for (const { step, away: now } of steps) {
          away.now = now;
          const asked = (
            step.simple ? { dimensions: step.request.dimensions, cost: step.request.cost ?? 1 } : step.request
          ) as CheckRequest;
          const answers = [];
          for (const { clock, limiter } of limiters) {
            clock.advance(step.waitMs);
            try {
              const { receipt, ...rest } = await limiter.check(asked);
              answers.push({ ...rest, receipt: receipt !== undefined });
            } catch (error) {
              answers.push({ name: (error as Error).name, message: (error as Error).message });
            }
          }
          expect(answers[0]).toEqual(answers[1]);
        }
      },
    ),
    { numRuns: 600 },
  );
}, 120_000);
