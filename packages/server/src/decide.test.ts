import { type CounterStore, createLimiter, MemoryCounters, SluiceError } from "sluice";
import { describe, expect, it } from "vitest";
import { createDecide, whenDecided } from "./decide.ts";

const policies = { policies: [{ id: "p", limits: [{ by: ["user"], windows: ["1/h"] }] }] };

function counted(): { readonly seen: string[]; countDecision(): void; countError(code: string): void } {
  const seen: string[] = [];
  return { seen, countDecision: () => seen.push("decision"), countError: (code) => seen.push(code) };
}

/** A store that answers with promises, as one over a network does. */
function remote(): CounterStore {
  const store = new MemoryCounters();
  return {
    local: false,
    take: async (limits, options) => store.take(limits, options),
    peek: async (limits) => store.peek(limits),
    give: async (receipt) => store.give(receipt),
    charge: async (limits) => store.charge(limits),
    block: async (limits, forMs) => store.block(limits, forMs),
    reset: async (limits) => store.reset(limits),
    read: async (limit) => store.read(limit),
    close: async () => store.close(),
  };
}

describe("deciding", () => {
  it("answers at once where counters are local", () => {
    const metrics = counted();
    const decide = createDecide(createLimiter({ policies }), metrics);
    const decision = decide({ dimensions: { user: "u" } });
    expect(decision).not.toBeInstanceOf(Promise);
    expect(whenDecided(decision, ({ allowed }) => allowed)).toBe(true);
    expect(metrics.seen).toEqual(["decision"]);
  });

  it("answers with a promise where they are not", async () => {
    const metrics = counted();
    const decide = createDecide(createLimiter({ policies, counters: remote() }), metrics);
    const decision = decide({ dimensions: { user: "u" } });
    expect(decision).toBeInstanceOf(Promise);
    expect(await whenDecided(decision, ({ allowed }) => allowed)).toBe(true);
    expect(metrics.seen).toEqual(["decision"]);
  });

  it("counts what could not be decided by its code", async () => {
    const metrics = counted();
    const local = createDecide(createLimiter({ policies }), metrics);
    expect(() => local({ policies: ["nowhere"] })).toThrow(SluiceError);
    const away = createDecide(createLimiter({ policies, counters: remote() }), metrics);
    await expect(away({ policies: ["nowhere"] })).rejects.toThrow(SluiceError);
    expect(metrics.seen).toEqual(["policy_not_found", "policy_not_found"]);
  });
});
