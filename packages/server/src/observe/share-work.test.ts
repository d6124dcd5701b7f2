import { setImmediate as round } from "node:timers/promises";
import { expect, it } from "vitest";
import { shareWork } from "./share-work.ts";

it("renders once for all concurrent callers, and anew for a caller after it has begun", async () => {
  let count = 0;
  let renderings = 0;
  let finish = (): void => {};
  const page = shareWork(async () => {
    renderings += 1;
    const text = String(count);
    await new Promise<void>((resolve) => {
      finish = resolve;
    });
    return text;
  });
  const first = Promise.all(Array.from({ length: 1_000 }, page));
  await expect.poll(() => renderings).toBe(1);
  count = 7;
  const second = Promise.all(Array.from({ length: 1_000 }, page));
  finish();
  expect(new Set(await first)).toEqual(new Set(["0"]));
  await expect.poll(() => renderings).toBe(2);
  finish();
  expect(new Set(await second)).toEqual(new Set(["7"]));
  expect(renderings).toBe(2);
});

it("rejects for those who asked, and tries again for the next", async () => {
  let isBroken = true;
  const page = shareWork(async () => {
    if (isBroken) throw new Error("broken");
    return "whole";
  });
  await expect(page()).rejects.toThrow("broken");
  isBroken = false;
  expect(await page()).toBe("whole");
});

it("hands a result to a few callers in each round of the event loop", async () => {
  const work = shareWork(async () => "result");
  let answered = 0;
  const asked = Array.from({ length: 1_000 }, () =>
    work().then(() => {
      answered += 1;
    }),
  );
  let most = 0;
  while (answered < 1_000) {
    const before = answered;
    await round();
    most = Math.max(most, answered - before);
  }
  await Promise.all(asked);
  expect(most).toBeLessThanOrEqual(50);
});
