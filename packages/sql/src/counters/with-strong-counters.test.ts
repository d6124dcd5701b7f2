import { setImmediate } from "node:timers/promises";
import { startPostgres, type TestPostgres } from "@sluice/test-servers";
import { createLimiter, type Decision, type Limiter, MemoryCounters, SluiceError } from "sluice";
import { StoreUnavailable } from "sluice/store";
import { failingCounters } from "sluice/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { SqlCounters } from "./sql-counters.ts";
import { withStrongCounters } from "./with-strong-counters.ts";

let server: TestPostgres;
let strong: SqlCounters;
let users = 0;

beforeAll(async () => {
  server = await startPostgres();
  strong = new SqlCounters({ url: server.url, deadlineMs: 20_000 });
}, 60_000);

afterAll(async () => {
  await strong.close();
  await server.close();
});

const plain = { id: "plain", limits: [{ by: ["user"], windows: ["5/d"], algorithm: "fixed_window" }] };
const billing = {
  id: "billing",
  limits: [{ by: ["user"], windows: ["3/d"], algorithm: "fixed_window" }],
  counters: "strong",
  on_failure: "closed",
};

function open(policies: readonly object[], counters = withStrongCounters(new MemoryCounters(), strong)): Limiter {
  return createLimiter({ policies: { policies }, counters });
}

function user(): { readonly dimensions: { readonly user: string } } {
  users += 1;
  return { dimensions: { user: `u${users}` } };
}

function left({ limits }: Decision): readonly (readonly [string, number])[] | undefined {
  return limits?.map(({ policy, remaining }) => [policy, remaining] as const);
}

describe("a request with limits of both", () => {
  it("takes from both or from neither", async () => {
    const limiter = open([plain, billing]);
    const request = { ...user(), details: true };
    for (const leftOver of [2, 1, 0]) {
      const decision = await limiter.check(request);
      expect([decision.allowed, decision.remaining]).toEqual([true, leftOver]);
    }
    const denied = await limiter.check(request);
    expect([denied.allowed, denied.policy]).toEqual([false, "billing"]);
    expect(left(denied)).toEqual([
      ["plain", 2],
      ["billing", 0],
    ]);
    expect(left(await limiter.peek(request))).toEqual([
      ["plain", 2],
      ["billing", 0],
    ]);
  });

  it("charges no strong counter if the other denies", async () => {
    const limiter = open([{ ...plain, limits: [{ by: ["user"], windows: ["1/d"] }] }, billing]);
    const request = { ...user(), details: true };
    await limiter.check(request);
    const denied = await limiter.check(request);
    expect([denied.allowed, denied.policy]).toEqual([false, "plain"]);
    expect(left(denied)).toEqual([
      ["plain", 0],
      ["billing", 2],
    ]);
  });

  it("is charged once for a request id, in both", async () => {
    const limiter = open([plain, billing]);
    const request = { ...user(), id: "r1", details: true };
    await limiter.check(request);
    const again = await limiter.check(request);
    expect(again.replayed).toBe(true);
    expect(left(await limiter.peek({ ...request, id: undefined }))).toEqual([
      ["plain", 4],
      ["billing", 2],
    ]);
  });

  it("is given back in both by one receipt, once", async () => {
    const limiter = open([plain, billing]);
    const request = { ...user(), details: true };
    const { receipt } = await limiter.check({ ...request, receipt: true });
    expect([await limiter.give(receipt!), await limiter.give(receipt!)]).toEqual([true, false]);
    expect(left(await limiter.peek(request))).toEqual([
      ["plain", 5],
      ["billing", 3],
    ]);
  });

  it("asks the database once, however many receipts a caller strings together", async () => {
    const give = vi.spyOn(strong, "give");
    const receipt = `q${"0".repeat(24)}`;
    expect(await open([plain, billing]).give([receipt, receipt, receipt].join("&"))).toBe(false);
    expect(give).toHaveBeenCalledTimes(1);
    give.mockRestore();
  });

  it("is charged, reset, explained and read in both", async () => {
    const limiter = open([plain, billing]);
    const request = { ...user(), details: true };
    await limiter.charge({ ...request, cost: 2 });
    expect(left(await limiter.peek(request))).toEqual([
      ["plain", 3],
      ["billing", 1],
    ]);
    await limiter.reset(request);
    expect(left(await limiter.peek(request))).toEqual([
      ["plain", 5],
      ["billing", 3],
    ]);
    expect((await limiter.explain(request)).decision.allowed).toBe(true);
  });

  it("gives the other back if the strong counters certainly did nothing", async () => {
    const memory = new MemoryCounters();
    const away = failing(new StoreUnavailable("storage_unavailable", undefined, { mayBeDone: false }));
    const limiter = open([plain, billing], withStrongCounters(memory, away));
    const request = user();
    const decision = await limiter.check(request);
    expect([decision.allowed, decision.degraded]).toEqual([false, "storage_unavailable"]);
    const alone = createLimiter({ policies: { policies: [plain] }, counters: memory });
    expect(alone.checkSync({ ...request, preview: true }).remaining).toBe(5);
  });

  it("leaves the other charged if the strong ones may have been", async () => {
    const memory = new MemoryCounters();
    const away = failing(new StoreUnavailable("storage_timeout"));
    const limiter = open([plain, billing], withStrongCounters(memory, away));
    const request = user();
    expect((await limiter.check(request)).allowed).toBe(false);
    const alone = createLimiter({ policies: { policies: [plain] }, counters: memory });
    expect(alone.checkSync({ ...request, preview: true }).remaining).toBe(4);
  });

  it("charges no strong counter if the others cannot be asked", async () => {
    const others = failingCounters(() => new StoreUnavailable("storage_unavailable"));
    const request = { ...user(), details: true };
    await open([plain, billing], withStrongCounters(others, strong)).check(request);
    expect((await open([billing]).peek(request)).remaining).toBe(3);
  });

  it("leaves the strong counters what the others left of the caller's deadline", async () => {
    const memory = new MemoryCounters();
    const slow = {
      take: async (...asked: Parameters<MemoryCounters["take"]>) => {
        for (const untilMs = performance.now() + 1; performance.now() < untilMs; ) await setImmediate();
        return memory.take(...asked);
      },
    };
    const counters = new Proxy(memory, {
      get: (_, name) => {
        const value: unknown = Reflect.get(name === "take" ? slow : memory, name);
        return typeof value === "function" ? value.bind(memory) : value;
      },
    });
    const take = vi.spyOn(strong, "take");
    await open([plain, billing], withStrongCounters(counters, strong)).check({ ...user(), deadlineMs: 5_000 });
    expect(take.mock.lastCall?.[1]?.deadlineMs).toBeLessThanOrEqual(4_999);
    take.mockRestore();
  });

  it("is not stopped by a strong policy in shadow mode that cannot be asked", async () => {
    const away = failing(new StoreUnavailable("storage_unavailable"));
    const limiter = open([plain, { ...billing, mode: "shadow" }], withStrongCounters(new MemoryCounters(), away));
    const decision = await limiter.check(user());
    expect([decision.allowed, decision.remaining, decision.degraded]).toEqual([true, 4, undefined]);
  });
});

describe("counters in this process", () => {
  it("answer at once while no policy is strong, and wait while one is", async () => {
    const limiter = open([plain]);
    expect(limiter.checkSync(user()).allowed).toBe(true);
    limiter.usePolicies({ policies: [plain, billing] });
    expect(() => limiter.checkSync(user())).toThrow(expect.objectContaining({ code: "not_local" }));
    expect((await limiter.check(user())).remaining).toBe(2);
    limiter.usePolicies({ policies: [plain] });
    expect(limiter.checkSync(user()).remaining).toBe(4);
  });

  it("refuse a strong policy by its name and field, and keep the policies before", () => {
    const limiter = createLimiter({ policies: { policies: [plain] } });
    const refused = (() => {
      try {
        limiter.usePolicies({ policies: [plain, billing] });
      } catch (error) {
        return error as SluiceError;
      }
      return undefined;
    })();
    expect(refused).toBeInstanceOf(SluiceError);
    expect(refused?.code).toBe("invalid_policies");
    expect(refused?.problems[0]?.path).toEqual(["policies", 1, "counters"]);
    expect(refused?.problems[0]?.message).toContain("policy billing is strong");
    expect(limiter.snapshot.generation).toBe(1);
  });
});

it("refuses to hold an amount of a strong policy", async () => {
  const limiter = open([plain, billing]);
  await expect(limiter.reserve({ ...user(), amount: 1 })).rejects.toMatchObject({ code: "not_holdable" });
});

/** Strong counters that fail in one way. */
function failing(error: Error): SqlCounters {
  const counters = failingCounters(() => error);
  return Object.assign(counters, { open: () => Promise.reject(error) }) as unknown as SqlCounters;
}
