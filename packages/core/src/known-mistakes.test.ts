import { describe, expect, it } from "vitest";
import { ManualClock } from "./clock.ts";
import { MemoryCounters } from "./counters/memory-counters.ts";
import { createLimiter } from "./create-limiter.ts";
import { retryAfterSeconds } from "./decision/retry-after.ts";
import type { Limiter } from "./limiter.ts";
import { createCidrSet } from "./subject/cidr-set.ts";
import { findClientIp } from "./subject/client-ip.ts";

/**
 * Mistakes that rate limiters make, in designs and in the field, each with the test that would have caught it.
 */

const start = Date.UTC(2026, 5, 1);

function open(limit: Record<string, unknown>): { limiter: Limiter; clock: ManualClock; counters: MemoryCounters } {
  const clock = new ManualClock(start);
  const counters = new MemoryCounters({ clock });
  const policies = { policies: [{ id: "p", limits: [{ by: ["user"], ...limit }] }] };
  return { limiter: createLimiter({ policies, clock, counters }), clock, counters };
}

const ask = (limiter: Limiter, cost = 1, user = "u") => limiter.checkSync({ dimensions: { user }, cost });

describe("mistakes of designs", () => {
  it("a leaky bucket that never drains while denials keep coming", () => {
    const { limiter, clock } = open({ algorithm: "leaky_bucket", windows: "1/s burst 2" });
    ask(limiter, 2);
    let allowed = 0;
    for (let ms = 0; ms < 10_000; ms += 10) {
      clock.advance(10);
      if (ask(limiter).allowed) allowed += 1;
    }
    expect(allowed).toBe(10);
  });

  it("a preview of cost 0 that says yes on an empty bucket", () => {
    const { limiter } = open({ windows: "1/h" });
    ask(limiter);
    expect(limiter.checkSync({ dimensions: { user: "u" }, cost: 0, preview: true }).allowed).toBe(false);
  });

  it("limits checked in one phase and consumed in another, which admits what the second phase refuses", async () => {
    const clock = new ManualClock(start);
    const policies = {
      policies: [
        { id: "user", limits: [{ by: "user", windows: "100/h" }] },
        { id: "global", limits: [{ by: [], windows: "10/h" }] },
      ],
    };
    const limiter = createLimiter({ policies, clock });
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) => limiter.check({ dimensions: { user: `u${i % 5}` } })),
    );
    expect(answers.filter((answer) => answer.allowed)).toHaveLength(10);
    for (let i = 0; i < 5; i++) {
      const { limits } = limiter.checkSync({ dimensions: { user: `u${i}` }, preview: true, details: true });
      expect(limits?.find((limit) => limit.policy === "user")?.used).toBe(2);
    }
  });

  it("a retry of 0.25 s truncated to 0", () => {
    const { limiter } = open({ windows: "4/s burst 1" });
    ask(limiter);
    const { retryAfterMs } = ask(limiter);
    expect(retryAfterMs).toBe(250);
    expect(retryAfterSeconds(retryAfterMs!)).toBe(1);
  });

  it("refill capped at an hour, which starves slow buckets", () => {
    const { limiter, clock } = open({ algorithm: "token_bucket", windows: "10/h burst 100" });
    expect(ask(limiter, 100).allowed).toBe(true);
    clock.advance(10 * 3_600_000);
    expect(ask(limiter, 100).allowed).toBe(true);
  });

  it.each(["gcra", "token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log"])(
    "%s that ignores cost",
    (algorithm) => {
      const { limiter } = open({ algorithm, windows: "10/h" });
      expect(ask(limiter, 7)).toMatchObject({ allowed: true, remaining: 3 });
      expect(ask(limiter, 4)).toMatchObject({ allowed: false, remaining: 3 });
    },
  );

  it("a leaky bucket that overfills by a cost larger than its room, and misstates the wait", () => {
    const { limiter } = open({ algorithm: "leaky_bucket", windows: "1/s burst 3" });
    ask(limiter, 2);
    expect(ask(limiter, 3)).toMatchObject({ allowed: false, remaining: 1, retryAfterMs: 2000 });
    expect(ask(limiter, 1)).toMatchObject({ allowed: true, queue: { position: 3, delayMs: 2000 } });
  });

  it("a fixed window that charges denials", () => {
    const { limiter } = open({ algorithm: "fixed_window", windows: "10/h" });
    ask(limiter, 6);
    for (let i = 0; i < 20; i++) ask(limiter, 5);
    expect(ask(limiter, 4).allowed).toBe(true);
  });

  it("a sliding counter that reads, then increments, so that concurrent requests all pass", async () => {
    const { limiter } = open({ algorithm: "sliding_window", windows: "10/h" });
    const answers = await Promise.all(Array.from({ length: 100 }, () => limiter.check({ dimensions: { user: "u" } })));
    expect(answers.filter((answer) => answer.allowed)).toHaveLength(10);
  });

  it("remaining 0 on every denial", () => {
    const { limiter } = open({ windows: "10/h" });
    ask(limiter, 6);
    expect(ask(limiter, 5)).toMatchObject({ allowed: false, remaining: 4 });
  });

  it.each(["gcra", "token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log"])(
    "%s that answers a cost larger than it ever holds with a finite wait",
    (algorithm) => {
      const { limiter } = open({ algorithm, windows: "10/h" });
      expect(ask(limiter, 11)).toMatchObject({ allowed: false, reason: "never_fits", retryAfterMs: undefined });
    },
  );

  it("a one-off quota that silently refills by expiring", () => {
    const { limiter, clock } = open({ windows: "3 once" });
    ask(limiter, 3);
    clock.advance(29 * 24 * 3_600_000);
    expect(ask(limiter)).toMatchObject({ allowed: false, reason: "never_fits" });
  });

  it("a caller's timestamp that is decided by", () => {
    const { limiter } = open({ windows: "1/h" });
    ask(limiter);
    const request = { dimensions: { user: "u", timestamp: String(start + 7_200_000) }, timestamp: start + 7_200_000 };
    expect(limiter.checkSync(request).allowed).toBe(false);
  });
});

describe("mistakes that users report", () => {
  it("IPv6 clients that rotate inside their /64, and IPv4-mapped addresses that collapse into one", () => {
    const clock = new ManualClock(start);
    const limiter = createLimiter({
      policies: { policies: [{ id: "p", limits: [{ by: "ip", windows: "1/h" }] }] },
      clock,
    });
    const allowed = (ip: string): boolean => limiter.checkSync({ dimensions: { ip } }).allowed;
    expect(allowed("2001:db8:1:2::1")).toBe(true);
    expect(allowed("2001:db8:1:2:ffff::9")).toBe(false);
    expect(allowed("::ffff:192.0.2.1")).toBe(true);
    expect(allowed("::ffff:192.0.2.2")).toBe(true);
    expect(allowed("64:ff9b::192.0.2.3")).toBe(true);
    expect(allowed("64:ff9b::192.0.2.4")).toBe(true);
  });

  it("X-Forwarded-For believed from anyone", () => {
    const question = { peer: "203.0.113.9", forwardedFor: "1.2.3.4", trustedProxies: createCidrSet(["10.0.0.0/8"]) };
    expect(findClientIp(question)).toBe("203.0.113.9");
    expect(findClientIp({ ...question, peer: "10.0.0.1" })).toBe("1.2.3.4");
    expect(findClientIp({ ...question, peer: "10.0.0.1", forwardedFor: "6.6.6.6, 1.2.3.4" })).toBe("1.2.3.4");
  });

  it("an end renewed on each hit, which locks out for ever", () => {
    for (const algorithm of ["gcra", "fixed_window", "sliding_window", "sliding_log"]) {
      const { limiter, clock } = open({ algorithm, windows: "5/s" });
      let allowed = 0;
      for (let ms = 0; ms < 20_000; ms += 20) {
        clock.advance(20);
        if (ask(limiter).allowed) allowed += 1;
      }
      expect(allowed).toBeGreaterThanOrEqual(80);
    }
  });

  it("a penalty renewed by each denial, which locks out for ever", () => {
    const { limiter, clock } = open({ windows: "1/s", block_for: "10s" });
    ask(limiter);
    let allowed = 0;
    for (let ms = 0; ms < 60_000; ms += 100) {
      clock.advance(100);
      if (ask(limiter).allowed) allowed += 1;
    }
    expect(allowed).toBeGreaterThanOrEqual(4);
  });

  it.each(["500ms", "1900ms", "1.9s"])("a window of %s floored to whole seconds", (per) => {
    for (const algorithm of ["gcra", "fixed_window", "sliding_log"]) {
      const { limiter, clock } = open({ algorithm, windows: `1/${per}` });
      const ms = per === "500ms" ? 500 : 1900;
      clock.advance(ms - ((start + 0) % ms));
      expect(ask(limiter).allowed).toBe(true);
      clock.advance(ms - 1);
      expect(ask(limiter).allowed).toBe(false);
      clock.advance(1);
      expect(ask(limiter).allowed).toBe(true);
    }
  });

  it("denied requests that are charged, and keep a polite client out", () => {
    const { limiter, clock } = open({ windows: "1/s" });
    ask(limiter);
    for (let i = 0; i < 1000; i++) ask(limiter);
    clock.advance(1000);
    expect(ask(limiter).allowed).toBe(true);
  });

  it("several limits checked one after another, the earlier ones charged", () => {
    const clock = new ManualClock(start);
    const policies = {
      policies: [
        {
          id: "p",
          limits: [
            { by: "tenant", windows: "100/h" },
            { by: "user", windows: "1/h" },
          ],
        },
      ],
    };
    const limiter = createLimiter({ policies, clock });
    const request = { dimensions: { tenant: "t", user: "u" } };
    for (let i = 0; i < 50; i++) limiter.checkSync(request);
    const { limits } = limiter.checkSync({ ...request, preview: true, details: true });
    expect(limits?.[0]).toMatchObject({ scope: "tenant", used: 1 });
  });

  it("one timer per key until memory is gone", () => {
    const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    const before = timers();
    const { limiter, counters } = open({ windows: "1/s" });
    for (let i = 0; i < 10_000; i++) ask(limiter, 1, `u${i}`);
    expect(timers()).toBe(before);
    expect(counters.stats.counters).toBe(10_000);
  });

  it("two limiters that share a key space unseen", () => {
    const clock = new ManualClock(start);
    const counters = new MemoryCounters({ clock });
    const policy = (id: string): Record<string, unknown> => ({
      policies: [{ id, limits: [{ by: "user", windows: "1/h" }] }],
    });
    const [one, other] = [
      createLimiter({ policies: policy("a"), clock, counters }),
      createLimiter({ policies: policy("b"), clock, counters }),
    ];
    expect(ask(one).allowed).toBe(true);
    expect(ask(other).allowed).toBe(true);
    expect(ask(one).allowed).toBe(false);
  });

  it("keys without an end that block for ever: every counter is idle after its windows", () => {
    for (const algorithm of ["gcra", "fixed_window", "sliding_window", "sliding_log"]) {
      const { limiter, clock } = open({ algorithm, windows: ["5/s", "10/m"], block_for: "1s" });
      for (let i = 0; i < 100; i++) ask(limiter);
      clock.advance(120_000);
      expect(ask(limiter, 5)).toMatchObject({ allowed: true });
    }
  });
});
