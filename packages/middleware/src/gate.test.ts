import { createLimiter, ManualClock, SluiceError } from "sluice";
import { failingCounters } from "sluice/testing";
import { describe, expect, it } from "vitest";
import { createGate, type Passed, type RequestReader } from "./gate.ts";
import type { RateLimitOptions } from "./rate-limit-options.ts";

const reader: RequestReader<object> = {
  method: () => "POST",
  path: () => "/chat",
  route: () => undefined,
  peer: () => "192.0.2.1",
  ip: () => "192.0.2.1",
  header: () => undefined,
};

function open(options: RateLimitOptions<object>) {
  const policies = { policies: [{ id: "tokens", limits: [{ by: ["ip"], windows: ["1000/h"] }], on_failure: "open" }] };
  const limiter = createLimiter({ policies, clock: new ManualClock() });
  const gate = createGate(reader, limiter, options);
  const left = async (): Promise<number | undefined> =>
    (await limiter.peek({ dimensions: { ip: "192.0.2.1" } })).remaining;
  return { gate, left, admit: async () => (await gate.decide({})) as Passed };
}

describe("a gate that holds amounts", () => {
  it("gives everything back when the client left, and nothing was reported", async () => {
    const { gate, left, admit } = open({ hold: 400 });
    const { ticket } = await admit();
    expect([gate.settles, ticket!.decision.cost, await left()]).toEqual([true, 400, 600]);
    await gate.settle({}, ticket!, { status: 499, bytes: 0 });
    expect(await left()).toBe(1000);
  });

  it("keeps what the handler reported, and what it settled", async () => {
    const { gate, left, admit } = open({ hold: () => ({ estimate: 5000, ttlMs: 1000 }) });
    const one = (await admit()).ticket!;
    expect(one.hold?.amount).toBe(1000);
    await one.hold?.commit(30, { last: false });
    await gate.settle({}, one, { status: 499, bytes: 9 });
    expect(await left()).toBe(970);
    const other = await open({ hold: { amount: 40 } });
    const { ticket } = await other.admit();
    await ticket!.hold?.settle(50);
    await other.gate.settle({}, ticket!, { status: 200, bytes: 9 });
    expect(await other.left()).toBe(950);
  });

  it("settles by what the app says that the answer took", async () => {
    const { gate, left, admit } = open({ hold: 400, charge: (_request, { bytes }) => bytes / 2 });
    const { ticket } = await admit();
    await gate.settle({}, ticket!, { status: 200, bytes: 7 });
    expect(await left()).toBe(996);
  });

  it("charges an answer that took more than a hold can report", async () => {
    const { gate, left, admit } = open({ hold: 400, charge: () => 10_000_001 });
    const { ticket } = await admit();
    await gate.settle({}, ticket!, { status: 200, bytes: 7 });
    expect(await left()).toBe(0);
  });

  it("gives back what was not used, and reports it, if the app's function fails", async () => {
    const errors: unknown[] = [];
    const charge = (): number => {
      throw new Error("no idea");
    };
    const { gate, left, admit } = open({ hold: 400, charge, onError: (error) => errors.push(error) });
    await gate.settle({}, (await admit()).ticket!, { status: 200, bytes: 7 });
    expect([await left(), errors]).toEqual([1000, [new Error("no idea")]]);
  });

  it("refuses requests for which there is no room", async () => {
    const { gate } = open({ hold: { amount: 600 } });
    await gate.decide({});
    expect(await gate.decide({})).toMatchObject({ kind: "refused", status: 429 });
  });

  it("cannot be made with options that contradict it, or without holds", () => {
    const problem = (options: object, limiter: object = createLimiter()): unknown => {
      try {
        return createGate(reader, limiter as never, options);
      } catch (error) {
        return error instanceof SluiceError ? [error.code, error.problems[0]?.path] : error;
      }
    };
    expect(problem({ hold: 1, cost: 1 })).toEqual(["invalid_policies", ["cost"]]);
    expect(problem({ hold: 1, giveBack: () => true })).toEqual(["invalid_policies", ["giveBack"]]);
    expect(problem({ hold: 0 })).toEqual(["invalid_policies", ["hold"]]);
    const { check, charge, give } = createLimiter({ counters: failingCounters() });
    expect(problem({ hold: 1 }, { check, charge, give })).toEqual(["not_holdable", ["hold"]]);
  });
});
