import { startServer } from "@sluice/test-servers";
import { StoreUnavailable } from "sluice";
import { compileTestLimit, resolvedLimit, testWindow } from "sluice/testing";
import { expect, it } from "vitest";
import { RedisCounters } from "../redis-counters.ts";
import { nothingAsked, ofItsOwn, tooManyWait } from "./nothing-asked.ts";

it("one error is created per cause, however often, and a bounded number of them is kept", () => {
  const first = nothingAsked("the breaker of a is open");
  expect(nothingAsked("the breaker of a is open")).toBe(first);
  expect(nothingAsked("the breaker of b is open")).not.toBe(first);
  expect(first).toMatchObject({ reason: "storage_unavailable", mayBeDone: false, code: "store_unavailable" });
  expect(first.cause).toMatchObject({ message: "the breaker of a is open" });
  for (let i = 0; i < 200; i++) nothingAsked(`cause ${i}`);
  expect(nothingAsked("the breaker of a is open")).not.toBe(first);
  expect(tooManyWait()).toBe(tooManyWait());
  expect(tooManyWait()).toMatchObject({ reason: "storage_overloaded", mayBeDone: false });
});

it("a copy says the same", () => {
  for (const error of [nothingAsked("there is no connection to a"), tooManyWait()]) {
    const own = ofItsOwn(error);
    expect(own).not.toBe(error);
    expect([own.reason, own.message, own.cause, own.mayBeDone]).toEqual([
      error.reason,
      error.message,
      error.cause,
      error.mayBeDone,
    ]);
  }
});

it("in an outage takes share an error, and callers that see it get a copy", async () => {
  const server = await startServer({ flavor: "valkey" });
  const store = new RedisCounters({ servers: server.url });
  try {
    await store.connected();
    await server.kill();
    await expect.poll(() => store.ready, { timeout: 30_000 }).toBe(false);
    const limits = [resolvedLimit(compileTestLimit({ algorithm: "gcra", windows: [testWindow(5, 1000)] }), "u")];
    const catchError = (asked: Promise<unknown>): Promise<unknown> =>
      asked.then(
        () => undefined,
        (error: unknown) => error,
      );
    const requests = [limits, limits, [...limits, ...limits]];
    const takes = await Promise.all(requests.map((one) => catchError(store.take(one))));
    expect(takes[0]).toBeInstanceOf(StoreUnavailable);
    expect(new Set(takes).size).toBe(1);
    const seen = await Promise.all(
      [0, 1].flatMap(() => [catchError(store.charge(limits)), catchError(store.peek(limits))]),
    );
    expect(new Set([...seen, ...takes]).size).toBe(5);
    for (const error of seen) expect(error).toMatchObject({ reason: "storage_unavailable", mayBeDone: false });
  } finally {
    await store.close();
    await server.close();
  }
});
