import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ManualClock } from "../clock.ts";
import { type Hash64, hashText } from "../counters/hash.ts";
import { compileTestLimit, testWindow } from "../testing/test-limit.ts";
import { HotKeys, maxDeniedNames, maxNames, maxSubjectLength } from "./hot-keys.ts";

const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(100, 1000)], policy: "api" });
const hash: Hash64 = { lo: 0, hi: 0 };

function open(): { clock: ManualClock; hot: HotKeys; note: (subject: string, times?: number) => number } {
  const clock = new ManualClock();
  const hot = new HotKeys({ clock });
  return {
    clock,
    hot,
    note(subject, times = 1) {
      hashText(subject, hash);
      let rate = 0;
      for (let i = 0; i < times; i++) rate = hot.note(limit, subject, hash.lo, hash.hi);
      return rate;
    },
  };
}

function deny(hot: HotKeys, subject: string): void {
  hashText(subject, hash);
  hot.note(limit, subject, hash.lo, hash.hi);
  hot.noteDenied(hash.lo, hash.hi);
}

function find(hot: HotKeys, subject: string): ReturnType<HotKeys["find"]> {
  hashText(subject, hash);
  return hot.find(hash.lo, hash.hi);
}

/** Exact numbers that decay as the sketch's do, but without rounding, by key; and those of each set together. */
class ExactRates {
  readonly decisions = new Map<string, number>();
  readonly denials = new Map<string, number>();
  readonly bySet = new Map<number, number>();
  #sinceMs = 0;

  note(lo: number, hi: number, denied: boolean): void {
    const key = `${lo},${hi}`;
    this.decisions.set(key, (this.decisions.get(key) ?? 0) + 1);
    if (denied) this.denials.set(key, (this.denials.get(key) ?? 0) + 1);
    this.bySet.set(lo & 4095, (this.bySet.get(lo & 4095) ?? 0) + 1);
  }

  advance(ms: number): void {
    this.#sinceMs += ms;
    const halvings = Math.floor(this.#sinceMs / 1000);
    this.#sinceMs -= halvings * 1000;
    for (const numbers of [this.decisions, this.denials, this.bySet] as Map<unknown, number>[]) {
      for (const [key, n] of numbers) numbers.set(key, n / 2 ** halvings);
    }
  }

  /** What a number of decisions is per second. */
  perSecond(n: number): number {
    return n / (1 + this.#sinceMs / 1000);
  }
}

describe("hot keys", () => {
  it("report the rate of every counter within the stated error, and miss none that has a quarter of its set's decisions", () => {
    const step = fc.record({
      // Two sets, a handful of tags and one heavy key: entries are replaced all the time.
      lo: fc.constantFrom(5, 5 + 4096, 9),
      hi: fc.oneof(fc.integer({ min: -6, max: 6 }), fc.constant(3)),
      times: fc.constantFrom(1, 1, 1, 3, 40),
      denied: fc.boolean(),
      // Sums of binary fractions are exact, so that both sides halve at the same instant.
      waitMs: fc.constantFrom(0, 0, 0, 0, 0, 0.5, 250, 700.25, 1000, 3500, 40_000),
    });
    fc.assert(
      fc.property(fc.array(step, { minLength: 20, maxLength: 400, size: "max" }), (steps) => {
        const { clock, hot } = open();
        const exact = new ExactRates();
        for (const { lo, hi, times, denied, waitMs } of steps) {
          clock.advance(waitMs);
          exact.advance(waitMs);
          // The sketch sees the set and the tag: 0 and 1 are one tag, and bits above the set's are ignored.
          const key = { lo: lo & 4095, hi: hi || 1 };
          for (let i = 0; i < times; i++) {
            const rate = hot.note(limit, "any", lo, hi);
            if (denied) hot.noteDenied(lo, hi);
            exact.note(key.lo, key.hi, denied);
            const own = exact.perSecond(exact.decisions.get(`${key.lo},${key.hi}`)!);
            if (rate > own + 1e-9) expect.fail(`${rate} are said to be surely its own, of ${own}`);
          }
          const eighth = exact.perSecond(1 / 8) + 1e-9;
          for (const [name, n] of exact.decisions) {
            const [knownLo, knownHi] = name.split(",").map(Number) as [number, number];
            const rate = exact.perSecond(n);
            const deniedRate = exact.perSecond(exact.denials.get(name) ?? 0);
            const told = hot.find(knownLo, knownHi);
            if (told === undefined) {
              const hotter = [...exact.decisions]
                .filter(([other]) => other.startsWith(`${knownLo},`) && hot.find(knownLo, Number(other.split(",")[1])))
                .map(([, decisions]) => exact.perSecond(decisions))
                .sort((one, other) => other - one);
              let rest = exact.perSecond(exact.bySet.get(knownLo)!);
              for (let without = 0; without < 3; without++) {
                const share = rest / (4 - without);
                if (rate > share + 2 * eighth) expect.fail(`${name} with ${rate} a second is missing, at ${share}`);
                if (without === 0 && rate > share + eighth) expect.fail(`${name} with ${rate} is missing, at ${share}`);
                rest -= hotter[without] ?? 0;
              }
              continue;
            }
            const { perSecond, errorPerSecond, deniedPerSecond } = told;
            if (errorPerSecond > perSecond) expect.fail(`${errorPerSecond} of ${perSecond} may be others'`);
            if (perSecond < rate - eighth) expect.fail(`${perSecond} is less than ${rate}`);
            if (perSecond - errorPerSecond > rate + 1e-9) expect.fail(`${perSecond} ± ${errorPerSecond} of ${rate}`);
            if (deniedPerSecond > deniedRate + 1e-9) expect.fail(`${deniedPerSecond} denied of ${deniedRate}`);
            if (deniedPerSecond + errorPerSecond < deniedRate - 2 * eighth)
              expect.fail(`${deniedPerSecond} ± ${errorPerSecond} denied of ${deniedRate}`);
          }
        }
      }),
      { numRuns: 150 },
    );
  });

  it("report a steady rate exactly, whenever they are asked", () => {
    const { clock, hot, note } = open();
    for (let ms = 0; ms < 12_000; ms += 5) {
      note("whale");
      clock.advance(5);
    }
    for (const phaseMs of [0, 250, 250, 250, 245]) {
      for (let ms = 0; ms < phaseMs; ms += 5) {
        clock.advance(5);
        note("whale");
      }
      expect(find(hot, "whale")?.perSecond).toBeCloseTo(200, 0);
    }
  });

  it("forget a burst by half every second, even if they are not asked meanwhile", () => {
    const { clock, hot, note } = open();
    note("burst", 1024);
    expect(find(hot, "burst")?.perSecond).toBe(1024);
    clock.advance(500);
    expect(find(hot, "burst")?.perSecond).toBeCloseTo(1024 / 1.5);
    clock.advance(500);
    expect(find(hot, "burst")?.perSecond).toBe(512);
    clock.advance(5000);
    expect(find(hot, "burst")?.perSecond).toBe(16);
    clock.advance(60_000);
    expect(find(hot, "burst")).toBeUndefined();
    expect(hot.named).toBe(0);
    expect(hot.top({ by: "rate", count: 10 })).toEqual([]);
  });

  it("find the ten hottest of a hundred thousand subjects whose rates fall off like 1/n, in order", () => {
    const { clock, hot, note } = open();
    const subjects = 100_000;
    const cumulative = new Float64Array(subjects);
    let sum = 0;
    for (let i = 0; i < subjects; i++) cumulative[i] = sum += 1 / (i + 1);
    const times = new Map<number, number>();
    const seconds = 8;
    const perSecond = 50_000;
    // A low-discrepancy sequence: no luck in it, and the same every time.
    let at = 0.5;
    for (let i = 0; i < seconds * perSecond; i++) {
      at = (at + 0.618_033_988_749_894_9) % 1;
      const wanted = at * sum;
      let [low, high] = [0, subjects - 1];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (cumulative[middle]! < wanted) low = middle + 1;
        else high = middle;
      }
      times.set(low, (times.get(low) ?? 0) + 1);
      note(`user:${low}`);
      clock.advance(1000 / perSecond);
    }
    const top = hot.top({ by: "rate", count: 10 });
    expect(top.map(({ subject }) => subject)).toEqual(Array.from({ length: 10 }, (_, i) => `user:${i}`));
    for (const [i, { perSecond: told, errorPerSecond, policy, scope }] of top.entries()) {
      expect({ policy, scope }).toEqual({ policy: "api", scope: "user" });
      expect(errorPerSecond).toBeLessThan(told / 20);
      expect(Math.abs(told - times.get(i)! / seconds)).toBeLessThan(told / 20);
    }
    // Names are those of the hottest: by the 256th, rates differ by less than what one has to be better by.
    const named = hot.top({ by: "rate", count: 1000 });
    expect(named).toHaveLength(maxNames);
    expect(named.slice(0, 100).every(({ subject }) => Number(subject.slice(5)) < 200)).toBe(true);
  });

  it("keep whales in sight in a flood of new subjects, none of which looks hot", () => {
    const { clock, hot, note } = open();
    let hottest = 0;
    for (let second = 0; second < 5; second++) {
      for (let i = 0; i < 100_000; i++) {
        hottest = Math.max(hottest, note(`flood:${second}:${i}`));
        if (i % 100 === 0) for (const whale of ["moby", "dick"]) note(whale);
        clock.advance(0.01);
      }
    }
    // Noted once each: what they inherited from others is not theirs.
    expect(hottest).toBeLessThanOrEqual(1);
    const top = hot.top({ by: "rate", count: 2 });
    expect(top.map(({ subject }) => subject).sort()).toEqual(["dick", "moby"]);
    for (const { perSecond, errorPerSecond } of top) {
      expect(perSecond).toBeGreaterThan(950);
      expect(perSecond - errorPerSecond).toBeLessThanOrEqual(1010);
    }
  });

  it("report who is denied most, which is not who asks most", () => {
    const { clock, hot, note } = open();
    for (let second = 0; second < 6; second++) {
      note("customer", 500);
      for (let i = 0; i < 40; i++) deny(hot, "attacker");
      for (let i = 0; i < 8; i++) deny(hot, "beginner");
      clock.advance(1000);
    }
    const top = hot.top({ by: "denials", count: 10 });
    expect(top.map(({ subject }) => subject)).toEqual(["attacker", "beginner"]);
    expect(top[0]!.deniedPerSecond).toBeCloseTo(40, -1);
    expect(top[0]!.perSecond).toBe(top[0]!.deniedPerSecond);
    expect(hot.top({ by: "rate", count: 1 }).map(({ subject }) => subject)).toEqual(["customer"]);
  });

  it("report who is denied most even if more subjects ask more often than there are names", () => {
    const { clock, hot } = open();
    // Each in a separate set.
    const noteAt = (lo: number, subject: string, times: number, denied: boolean): void => {
      for (let i = 0; i < times; i++) {
        hot.note(limit, subject, lo, 7);
        if (denied) hot.noteDenied(lo, 7);
      }
    };
    for (let second = 0; second < 4; second++) {
      for (let i = 0; i < 2 * maxNames; i++) noteAt(i, `customer:${i}`, 100, false);
      noteAt(3000, "attacker", 40, true);
      noteAt(3001, "beginner", 20, true);
      clock.advance(1000);
    }
    expect(hot.top({ by: "denials", count: 10 }).map(({ subject }) => subject)).toEqual(["attacker", "beginner"]);
    // The names of the 128 that are denied most, and they take no place of those that ask most.
    for (let second = 0; second < 3; second++) {
      for (let i = 0; i < 2 * maxNames; i++) noteAt(i, `customer:${i}`, 400, false);
      for (let i = 0; i < maxDeniedNames; i++) {
        // Asked for more often, and denied less often.
        noteAt(2000 + i, `denied:${i}`, 8, true);
        noteAt(2000 + i, `denied:${i}`, 100, false);
      }
      for (let i = maxDeniedNames; i < 2 * maxDeniedNames; i++) noteAt(2000 + i, `denied:${i}`, 64, true);
      clock.advance(1000);
    }
    const denied = hot.top({ by: "denials", count: 1000 }).map(({ subject }) => Number(subject.slice(7)));
    expect(denied).toHaveLength(maxDeniedNames);
    expect(Math.min(...denied)).toBe(maxDeniedNames);
    const asked = hot.top({ by: "rate", count: 1000 }).filter(({ subject }) => subject.startsWith("customer"));
    expect(asked).toHaveLength(maxNames);
    clock.advance(60_000);
    expect(hot.top({ by: "denials", count: 1 })).toEqual([]);
    expect(hot.named).toBe(0);
  });

  it("report the rate of all counters together, including forgotten ones", () => {
    const { clock, hot, note } = open();
    for (let second = 0; second < 8; second++) {
      for (let i = 0; i < 30_000; i++) note(`flood:${second}:${i}`);
      for (let i = 0; i < 100; i++) deny(hot, "attacker");
      clock.advance(1000);
    }
    const { perSecond, deniedPerSecond } = hot.totals();
    // What is rounded off is less than an eighth of each of 16 384.
    expect(perSecond).toBeLessThanOrEqual(30_100);
    expect(perSecond).toBeGreaterThan(27_000);
    expect(deniedPerSecond).toBeCloseTo(100, -1);
  });

  it("count no denial of a counter that they do not know", () => {
    const { hot } = open();
    hot.noteDenied(1, 2);
    expect(hot.find(1, 2)).toBeUndefined();
  });

  it("keep the names of 256, and give the place of the least to one that is hotter by a quarter", () => {
    const { clock, hot, note } = open();
    for (let i = 0; i < maxNames; i++) note(`early:${i}`, i === 17 ? 100 : 200);
    expect(hot.named).toBe(maxNames);
    note("latecomer", 120);
    expect(hot.named).toBe(maxNames);
    // Considered at each power of two: at 64 it was not hotter, and it is not yet at 128.
    expect(hot.top({ by: "rate", count: 300 }).map(({ subject }) => subject)).not.toContain("latecomer");
    note("latecomer", 8);
    const subjects = hot.top({ by: "rate", count: 300 }).map(({ subject }) => subject);
    expect(subjects).toContain("latecomer");
    expect(subjects).not.toContain("early:17");
    expect(subjects).toHaveLength(maxNames);
    // All of them cool, and less is enough.
    clock.advance(4000);
    note("small", 32);
    expect(hot.top({ by: "rate", count: 1 }).map(({ subject }) => subject)).toEqual(["small"]);
  });

  it("give away a free place, and take it back for a hotter counter", () => {
    const { hot } = open();
    const noteAt = (lo: number, hi: number, subject: string, times: number): void => {
      for (let i = 0; i < times; i++) hot.note(limit, subject, lo, hi);
    };
    for (let lo = 0; lo < maxNames; lo++) noteAt(lo, 1, `early:${lo}`, 200);
    // Four in the set of the first, which loses its entry and its name to the last of them.
    for (const hi of [2, 3, 4]) noteAt(0, hi, `other:${hi}`, 210);
    noteAt(0, 5, "weak", 2);
    const subjects = (): string[] => hot.top({ by: "rate", count: 300 }).map(({ subject }) => subject);
    expect(subjects()).toContain("weak");
    expect(subjects()).not.toContain("early:0");
    noteAt(3000, 1, "stronger", 16);
    expect(subjects()).toContain("stronger");
    expect(subjects()).not.toContain("weak");
  });

  it("name counters that come after everything was forgotten", () => {
    const { clock, hot, note } = open();
    for (let i = 0; i < 2 * maxNames; i++) note(`early:${i}`, 1000);
    clock.advance(45_000);
    note("late", 3);
    expect(hot.top({ by: "rate", count: 300 }).map(({ subject }) => subject)).toEqual(["late"]);
  });

  it("are as many as one says, and take as much more", () => {
    const clock = new ManualClock();
    const [few, many] = [256, 65_536].map((sets) => new HotKeys({ clock, sets })) as [HotKeys, HotKeys];
    expect(many.bytes - few.bytes).toBe(72 * (65_536 - 256));
    for (const hot of [few, many]) for (let lo = 0; lo < 65_536; lo++) hot.note(limit, "any", lo, 7 + (lo >> 8));
    // The same hash, with more bits of it told apart.
    expect(few.find(300, 8)?.errorPerSecond).not.toBe(0);
    expect(many.find(300, 8)?.errorPerSecond).toBe(0);
    for (const sets of [0, 128, 300, 131_072, Number.NaN])
      expect(() => new HotKeys({ sets })).toThrow(/sets must be a power of two from 256 to 65536/);
  });

  it("go on when the clock steps back", () => {
    const { clock, hot, note } = open();
    clock.advance(10_000);
    note("whale", 100);
    clock.advance(-8000);
    expect(note("whale", 100)).toBe(200);
    clock.advance(1000);
    expect(find(hot, "whale")?.perSecond).toBe(100);
  });

  it("forget a counter, and give its name to another", () => {
    const { hot, note } = open();
    note("a", 8);
    note("b", 4);
    hashText("a", hash);
    hot.forget(hash.lo, hash.hi);
    hot.forget(hash.lo, hash.hi);
    expect([hot.named, find(hot, "a")]).toEqual([1, undefined]);
    expect(hot.top({ by: "rate", count: 10 }).map(({ subject }) => subject)).toEqual(["b"]);
    note("a", 2);
    expect(find(hot, "a")).toMatchObject({ perSecond: 2, errorPerSecond: 0 });
  });

  it("stop counting before a number overflows", () => {
    const { hot, note } = open();
    // So many decisions in one second no process makes; halved counts add up to less.
    note("whale", 2 ** 27 + 10);
    expect(find(hot, "whale")?.perSecond).toBe(2 ** 27);
    note("other", 2);
    expect(hot.top({ by: "rate", count: 1 })[0]?.subject).toBe("whale");
  });

  it("cut long subjects between characters, and say so", () => {
    const { hot, note } = open();
    note("x".repeat(maxSubjectLength), 4);
    note("y".repeat(maxSubjectLength + 1), 3);
    note(`z${"😀".repeat(maxSubjectLength)}`, 2);
    expect(hot.top({ by: "rate", count: 3 }).map(({ subject }) => subject)).toEqual([
      "x".repeat(maxSubjectLength),
      `${"y".repeat(maxSubjectLength - 1)}…`,
      `z${"😀".repeat((maxSubjectLength - 2) / 2)}…`,
    ]);
  });

  it("take the same few hundred kilobytes for a hundred thousand subjects as for none", () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const used = (): number => {
      collect();
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    };
    const { clock, hot, note } = open();
    const long = "subject ".repeat(500);
    const fill = (from: number, to: number): void => {
      for (let i = from; i < to; i++) {
        note(`${i}${long}`, 1 + (i % 7));
        if (i % 100 === 0) clock.advance(1);
      }
    };
    // What the test itself needs is warm by then, and there are no names yet.
    fill(0, 100);
    clock.advance(60_000);
    expect(find(hot, "nobody")).toBeUndefined();
    const before = used();
    fill(100, 100_000);
    expect(hot.named).toBe(maxNames);
    expect(hot.bytes).toBeLessThan(550_000);
    // Each text has 4 000 units: 256 of them held on to by a slice would be a megabyte.
    expect(used() - before).toBeLessThan(500_000);
  });
});
