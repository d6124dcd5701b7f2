import { setImmediate as round } from "node:timers/promises";
import { expect, it } from "vitest";
import { Turns } from "./turns.ts";

/** Keeps the event loop for longer than a turn. */
function work(): void {
  const untilMs = performance.now() + 3;
  while (performance.now() < untilMs);
}

it("lets others have their turn once the time of a round is spent", async () => {
  const turns = new Turns();
  expect(turns.mayGoOn()).toBe(true);
  work();
  expect(turns.mayGoOn()).toBe(false);
  await round();
  await round();
  expect(turns.mayGoOn()).toBe(true);
});

it("runs waiting steps in order, as many in a turn as there is time for, and lets none overtake", async () => {
  const turns = new Turns();
  const done: number[] = [];
  for (let i = 0; i < 5; i++)
    turns.later(() => {
      done.push(i);
      work();
    });
  expect(turns.mayGoOn()).toBe(false);
  let rounds = 0;
  while (done.length < 5) {
    const before = done.length;
    await round();
    rounds += 1;
    expect(done.length - before).toBeLessThanOrEqual(1);
  }
  expect(done).toEqual([0, 1, 2, 3, 4]);
  expect(rounds).toBeGreaterThanOrEqual(5);
});
