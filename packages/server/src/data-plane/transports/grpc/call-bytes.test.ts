import { describe, expect, it } from "vitest";
import { Turns } from "../turns.ts";
import { CallBytes, type HeldConnection } from "./call-bytes.ts";

function createLedger(turns: Pick<Turns, "mayGoOn" | "later"> = new Turns()): {
  held: CallBytes;
  closed: string[];
  open(name: string, known?: boolean): HeldConnection;
} {
  const held = new CallBytes({ perConnection: 100, knownCallers: 250, unknownCallers: 50 }, turns);
  const closed: string[] = [];
  return {
    held,
    closed,
    open(name, known = true) {
      const connection = held.open(() => closed.push(name));
      if (known) held.identify(connection);
      return connection;
    },
  };
}

describe("what connections hold", () => {
  it("lets waiting calls go on in order, by turns with others", () => {
    const steps: (() => void)[] = [];
    const { open } = createLedger({ mayGoOn: () => false, later: (step) => void steps.push(step) });
    const one = open("one");
    const begun: number[] = [];
    for (let i = 0; i < 3; i++) one.waiting.add({ proceed: () => void begun.push(i) });
    one.proceedWaiting();
    one.proceedWaiting();
    expect([begun, steps.length]).toEqual([[0], 1]);
    steps.shift()!();
    expect(begun).toEqual([0, 1]);
    one.closed = true;
    steps.shift()!();
    expect([begun, steps.length]).toEqual([[0, 1], 0]);
  });

  it("is refused above the bound of one connection, and not below it", () => {
    const { held, open } = createLedger();
    const one = open("one");
    expect([held.add(one, 100), held.add(one, 1), held.add(one, -1), held.add(one, 0)]).toEqual([
      true,
      false,
      true,
      true,
    ]);
  });

  it("above the bound of all closes the connection that holds the most, not the last to grow", () => {
    const { held, closed, open } = createLedger();
    const [small, large, last] = [open("small"), open("large"), open("last")];
    held.add(small, 60);
    held.add(large, 100);
    held.add(last, 90);
    expect([closed, held.bytes]).toEqual([[], 250]);
    held.add(small, 1);
    expect([closed, held.bytes]).toEqual([["large"], 151]);
    // What it lets go of afterwards has been counted already.
    held.add(large, -100);
    held.close(large);
    expect(held.bytes).toBe(151);
  });

  it("without an identified caller is bounded separately, and closes no identified one", () => {
    const { held, closed, open } = createLedger();
    held.add(open("known"), 100);
    const [one, other] = [open("one", false), open("other", false)];
    held.add(one, 20);
    held.add(other, 31);
    expect(closed).toEqual(["other"]);
    held.identify(one);
    held.add(open("third", false), 50);
    expect([closed, held.bytes]).toEqual([["other"], 170]);
  });

  it("is nothing once all connections are closed", () => {
    const { held, open } = createLedger();
    const connections = [open("one"), open("other", false)];
    for (const connection of connections) held.add(connection, 10);
    for (const connection of connections) held.close(connection);
    expect(held.bytes).toBe(0);
  });
});
