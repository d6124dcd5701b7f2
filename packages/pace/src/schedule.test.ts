import { expect, it } from "vitest";
import { sleep, systemSchedule } from "./schedule.ts";

it("never wakes before the requested time", async () => {
  const early: number[] = [];
  const wakes = Array.from(
    { length: 400 },
    (_, index) =>
      new Promise<void>((resolve) => {
        const waitMs = 1 + (index % 40) / 4;
        // Timers count from the last turn of the event loop, which may be a while ago.
        for (const untilMs = performance.now() + 0.3; performance.now() < untilMs; );
        const fromMs = performance.now();
        systemSchedule(waitMs, () => {
          if (performance.now() - fromMs < waitMs) early.push(waitMs);
          resolve();
        });
      }),
  );
  await Promise.all(wakes);
  expect(early).toEqual([]);
});

it("can be cancelled", async () => {
  let woken = false;
  const callOff = systemSchedule(1, () => {
    woken = true;
  });
  callOff();
  await sleep(20, systemSchedule);
  expect(woken).toBe(false);
});
