import { ManualClock } from "sluice";
import { describe, expect, it } from "vitest";
import type { Caller } from "./access.ts";
import { limitOwnApi } from "./limit-own-api.ts";
import { RateLimited } from "./rate-limited.ts";

const caller = (name: string, tokenId?: string): Caller => ({ name, may: new Set(), tokenId });

/** How often it can be done before it is refused, and the refusal. */
function countUntilRefused(act: () => void): { times: number; refusal: RateLimited } {
  for (let times = 0; times <= 2_000; times++) {
    try {
      act();
    } catch (error) {
      if (error instanceof RateLimited) return { times, refusal: error };
      throw error;
    }
  }
  throw new Error("it is never refused");
}

describe("limits on the API itself", () => {
  it("are 1 000 reads and 100 writes a minute for each token, apart from each other", () => {
    const limits = limitOwnApi({ clock: new ManualClock(1_000_000) });
    expect(countUntilRefused(() => limits.take(caller("a", "1"), "write")).times).toBe(100);
    expect(countUntilRefused(() => limits.take(caller("a", "1"), "read")).times).toBe(1_000);
    expect(countUntilRefused(() => limits.take(caller("a", "2"), "write")).times).toBe(100);
    expect(countUntilRefused(() => limits.take(caller("from a file"), "write")).times).toBe(100);
  });

  it("show how they stand, and when to come back, and let in again then", () => {
    const clock = new ManualClock(1_000_000);
    const limits = limitOwnApi({ clock });
    expect(limits.take(caller("a"), "write")).toMatchObject({
      "x-ratelimit-limit": "100",
      "x-ratelimit-remaining": "99",
    });
    const { refusal } = countUntilRefused(() => limits.take(caller("a"), "write"));
    expect(refusal).toMatchObject({
      code: "rate_limited",
      headers: { "retry-after": "1", ratelimit: expect.any(String) },
    });
    clock.advance(refusal.retryAfterMs!);
    expect(countUntilRefused(() => limits.take(caller("a"), "write")).times).toBe(1);
  });

  it("let ten log-ins fail from one address, and ask no other to wait", () => {
    const clock = new ManualClock(1_000_000);
    const limits = limitOwnApi({ clock });
    const fail = (from: string) => (): void => limits.countFailedLogin(from);
    expect(countUntilRefused(fail("203.0.113.7")).times).toBe(10);
    expect(countUntilRefused(fail("2001:db8::1")).times).toBe(10);
    expect(fail("2001:db8::2")).toThrow(RateLimited);
    expect(fail("2001:db8:0:1::1")).not.toThrow();
    expect(countUntilRefused(fail("")).times).toBe(10);
    clock.advance(60_000);
    expect(countUntilRefused(fail("203.0.113.7")).times).toBe(10);
  });
});
