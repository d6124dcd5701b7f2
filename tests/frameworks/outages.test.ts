import { connect } from "@sluice/client/http";
import { rateLimit } from "@sluice/middleware/fetch";
import { redis } from "@sluice/redis";
import { createLimiter, type Limiter, limit, MemoryCounters, StoreUnavailable } from "sluice";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

const soon = { timeout: 30_000, interval: 20 };
const ip = (): string => "192.0.2.1";
const nowhere = "redis://127.0.0.1:1";

const codes: (string | undefined)[] = [];
const listener = (warning: Error & { code?: string }): void => void codes.push(warning.code);
beforeEach(() => {
  codes.length = 0;
  process.on("warning", listener);
});
afterEach(() => {
  process.off("warning", listener);
  vi.useRealTimers();
});

const handle = (): Response => new Response("hello");
const get = (): Request => new Request("https://example.com/");

/** Counters that the test can make unavailable. */
class FlakyCounters extends MemoryCounters {
  unavailable = false;
  override takeOne = undefined as never;

  override take(...args: Parameters<MemoryCounters["take"]>): ReturnType<MemoryCounters["take"]> {
    if (this.unavailable) throw new StoreUnavailable("storage_unavailable");
    return super.take(...args);
  }
}

describe("an outage, in an app that fails open", () => {
  it("is one warning for all routes over a Redis that is not there", async () => {
    const counters = redis(nowhere);
    const routes = ["a", "b", "c"].map((name) => rateLimit("1/h", { ip, name, counters })(handle));
    for (let i = 0; i < 5; i++) for (const route of routes) expect((await route(get())).status).toBe(200);
    await expect.poll(() => codes, soon).toEqual(["SLUICE_OUTAGE"]);
    await counters.close();
  });

  it("is reported to onError, once, with the request and the reason", async () => {
    const counters = redis(nowhere, { warn: false });
    const errors: [unknown, Request][] = [];
    const limited = rateLimit("1/h", { ip, name: "api", counters, onError: (...error) => errors.push(error) })(handle);
    const first = get();
    for (const request of [first, get(), get()]) expect((await limited(request)).status).toBe(200);
    expect(errors).toHaveLength(1);
    expect(errors[0]![1]).toBe(first);
    expect(errors[0]![0]).toBeInstanceOf(StoreUnavailable);
    expect(String(errors[0]![0])).toMatch(/counters are unavailable .*; requests pass without being counted$/);
    expect(codes).toEqual([]);
    await counters.close();
  });

  it("is one warning where servers of Sluice are not there", async () => {
    const limiter = connect("http://127.0.0.1:1");
    const limited = rateLimit(limiter, { ip })(handle);
    for (let i = 0; i < 3; i++) expect((await limited(get())).status).toBe(200);
    await expect.poll(() => codes, soon).toEqual(["SLUICE_DEGRADED"]);
    await limiter.close();
  });

  it("ends with another warning, once requests have been counted for a while", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const counters = new FlakyCounters();
    const limiter: Limiter = createLimiter({ counters, policies: limit("100/s").by("ip").limiter.snapshot.policySet });
    const limited = [rateLimit(limiter, { ip })(handle), rateLimit(limiter, { ip })(handle)];
    const askAll = async (): Promise<void> => {
      for (const one of limited) expect((await one(get())).status).toBe(200);
      await new Promise(setImmediate);
    };
    counters.unavailable = true;
    await askAll();
    expect(codes).toEqual(["SLUICE_DEGRADED"]);
    counters.unavailable = false;
    await askAll();
    expect(codes).toEqual(["SLUICE_DEGRADED"]);
    vi.advanceTimersByTime(5000);
    await askAll();
    expect(codes).toEqual(["SLUICE_DEGRADED", "SLUICE_COUNTED_AGAIN"]);
    await askAll();
    expect(codes).toHaveLength(2);
    counters.unavailable = true;
    await askAll();
    expect(codes).toEqual(["SLUICE_DEGRADED", "SLUICE_COUNTED_AGAIN", "SLUICE_DEGRADED"]);
  });
});
