import type { RolloutRecord, TallyRecord } from "@sluice/sql";
import { describe, expect, it } from "vitest";
import { judgeRollout } from "./judge-rollout.ts";
import { parseRolloutFigures, type RolloutFigures } from "./rollout-figures.ts";
import { startRollout, takeStep } from "./start-rollout.ts";
import { createSeededRandom } from "./testing/seeded-random.ts";

const minuteMs = 60_000;
const start = 28_000_000;

function at(minute: number): number {
  return (start + minute) * minuteMs;
}

/** The first moment at which a minute is looked at. */
function lookAt(minute: number): number {
  return at(minute + 1) + 15_000;
}

function rolloutOn(step: number, sinceMinute: number, more: Partial<RolloutRecord> = {}): RolloutRecord {
  const wish = { id: "r", policy: "p", fromVersion: 1, toVersion: 2, author: "ada", by: "user" };
  return { ...takeStep(startRollout(wish, at(0)), step, at(sinceMinute), ""), ...more };
}

type Side = TallyRecord["side"];

function tally(minute: number, step: number, side: Side, decided: number, denied: number, node = "a"): TallyRecord {
  return { rollout: "r", node, minute: start + minute, step, side, decided, denied: Math.round(denied) };
}

/** Minutes in which so many are decided, and of those so many denied, a little more or less. */
function minutesOf(from: number, to: number, step: number, side: Side, decided: number, rate: number): TallyRecord[] {
  const random = createSeededRandom(from * 31 + step * 7 + decided);
  const tallies: TallyRecord[] = [];
  for (let minute = from; minute <= to; minute++)
    tallies.push(tally(minute, step, side, decided, random.binomial(decided, rate)));
  return tallies;
}

/** Ten minutes of everybody under the old version, and then the first ring under the new one from minute 10 on. */
function firstStep(to: number, newRate: number, restRate = 0.02): TallyRecord[] {
  return [
    ...minutesOf(0, 9, 0, "old", 5_000, 0.02),
    ...minutesOf(0, 9, 1, "old", 50_000, 0.02),
    ...minutesOf(10, to, 0, "new", 5_000, newRate),
    ...minutesOf(10, to, 1, "old", 50_000, restRate),
  ];
}

function figuresOf(rollout: RolloutRecord): RolloutFigures {
  const figures = parseRolloutFigures(rollout.figures);
  if (figures === undefined) throw new Error("nothing was looked at");
  return figures;
}

describe("a look", () => {
  it("comes once a whole minute is over and nodes had time to tell", () => {
    const rollout = rolloutOn(0, 10);
    expect(judgeRollout(rollout, firstStep(12, 0.02), lookAt(11) - 1).looks).toBe(0);
    const { looks, rollout: judged } = judgeRollout(rollout, firstStep(12, 0.02), lookAt(11));
    expect(looks).toBe(1);
    expect(judged.lookedAtMinute).toBe(start + 11);
    expect(judgeRollout(judged, firstStep(12, 0.02), lookAt(11)).looks).toBe(0);
  });

  it("leaves out the minute in which subjects join", () => {
    const tallies = [...minutesOf(0, 9, 0, "old", 5_000, 0.02), tally(10, 0, "new", 5_000, 5_000)];
    expect(judgeRollout(rolloutOn(0, 10), tallies, lookAt(10)).looks).toBe(0);
  });

  it("is fine where the new version denies as much as the old one", () => {
    const { rollout, looks, rollBack } = judgeRollout(rolloutOn(0, 10), firstStep(20, 0.02), lookAt(20));
    expect({ looks, rollBack, strikes: rollout.strikes }).toEqual({ looks: 10, rollBack: undefined, strikes: 0 });
    const { verdict, looks: told, total, sentence } = figuresOf(rollout);
    expect({ verdict, told, decided: total.decided, minutes: total.baselineMinutes }).toEqual({
      verdict: "fine",
      told: 10,
      decided: 5_000,
      minutes: 10,
    });
    expect(total.baseline).toBeCloseTo(0.02, 2);
    expect(sentence).toMatch(
      /^In the minute of 2023-03-28 .* denied [12]\.\d\d % of 5000 requests; .* That is as usual\.$/,
    );
  });

  it("makes up for looks that nobody took, in order", () => {
    const { looks, rollBack } = judgeRollout(rolloutOn(0, 10), firstStep(20, 0.1), lookAt(20));
    expect(looks).toBe(3);
    expect(rollBack).toContain("3 times in a row");
  });

  it("adds up what nodes counted", () => {
    const tallies = firstStep(11, 0.02);
    const halves = tallies.flatMap((one) => {
      const decided = Math.floor(one.decided / 3);
      const denied = Math.min(decided, Math.floor(one.denied / 2));
      return [
        { ...one, node: "a", decided, denied },
        { ...one, node: "b", decided: one.decided - decided, denied: one.denied - denied },
      ];
    });
    const whole = judgeRollout(rolloutOn(0, 10), tallies, lookAt(11)).rollout;
    expect(judgeRollout(rolloutOn(0, 10), halves, lookAt(11)).rollout).toEqual(whole);
  });

  it("does not mind a node that still decides by the old version", () => {
    const tallies = firstStep(20, 0.1);
    const late = minutesOf(11, 20, 0, "old", 300, 0.02).map((one) => ({ ...one, node: "late" }));
    expect(judgeRollout(rolloutOn(0, 10), [...tallies, ...late], lookAt(20)).rollBack).toBeDefined();
  });
});

describe("strikes", () => {
  it("roll back at the third in a row, with the figures", () => {
    const tallies = firstStep(20, 0.06);
    let rollout = rolloutOn(0, 10);
    for (const [minute, strikes] of [
      [11, 1],
      [12, 2],
    ] as const) {
      const judged = judgeRollout(rollout, tallies, lookAt(minute));
      expect(judged.rollBack).toBeUndefined();
      expect(judged.rollout.strikes).toBe(strikes);
      rollout = judged.rollout;
    }
    const { rollBack, rollout: judged } = judgeRollout(rollout, tallies, lookAt(13));
    expect(rollBack).toMatch(/denied [56]\.\d\d % of 5000 requests; .* denied [12]\.\d\d % under the old version/);
    const { total, verdict } = figuresOf(judged);
    expect(verdict).toBe("strike");
    expect(total.rate).toBeGreaterThan(total.threshold);
    expect(total.threshold).toBeGreaterThanOrEqual(total.baseline + 0.005);
    expect(total.threshold).toBeGreaterThanOrEqual(total.baseline + 2 * total.sigma);
  });

  it("are pardoned by one look that is fine", () => {
    const tallies = firstStep(20, 0.06).map((one) =>
      one.side === "new" && one.minute === start + 13 ? { ...one, denied: 100 } : one,
    );
    const { rollout, rollBack } = judgeRollout(rolloutOn(0, 10), tallies, lookAt(15));
    expect({ rollBack, strikes: rollout.strikes }).toEqual({ rollBack: undefined, strikes: 2 });
    expect(judgeRollout(rollout, tallies, lookAt(16)).rollBack).toBeDefined();
  });

  it("need half a percentage point, however certain a smaller difference is", () => {
    const huge = (rate: number, restRate = 0.02): TallyRecord[] => [
      ...minutesOf(0, 9, 0, "old", 10_000_000, 0.02),
      ...minutesOf(0, 9, 1, "old", 10_000_000, 0.02),
      ...minutesOf(10, 20, 0, "new", 10_000_000, rate),
      ...minutesOf(10, 20, 1, "old", 10_000_000, restRate),
    ];
    expect(judgeRollout(rolloutOn(0, 10), huge(0.0245), lookAt(20)).rollBack).toBeUndefined();
    expect(judgeRollout(rolloutOn(0, 10), huge(0.0255), lookAt(20)).rollBack).toBeDefined();
    // Of its own mean, also when others fare a little better than before.
    expect(judgeRollout(rolloutOn(0, 10), huge(0.0245, 0.0185), lookAt(20)).rollBack).toBeUndefined();
  });

  it("need more than chance explains, where requests are few", () => {
    const few = (denied: number): TallyRecord[] => [
      ...minutesOf(0, 9, 0, "old", 40, 0.05),
      ...Array.from({ length: 10 }, (_, i) => tally(10 + i, 0, "new", 40, denied)),
    ];
    // 5 % of 40 are two, give or take 1.4.
    expect(judgeRollout(rolloutOn(0, 10), few(4), lookAt(18)).rollBack).toBeUndefined();
    expect(judgeRollout(rolloutOn(0, 10), few(12), lookAt(18)).rollBack).toBeDefined();
  });

  it("are not given for the first denials ever, but for many of them", () => {
    const never = (denied: number): TallyRecord[] => [
      ...minutesOf(0, 9, 0, "old", 100, 0),
      ...Array.from({ length: 10 }, (_, i) => tally(10 + i, 0, "new", 100, denied)),
    ];
    expect(judgeRollout(rolloutOn(0, 10), never(1), lookAt(18)).rollBack).toBeUndefined();
    expect(judgeRollout(rolloutOn(0, 10), never(5), lookAt(18)).rollBack).toBeDefined();
  });

  it("are counted but roll nothing back where more denials are expected", () => {
    const rollout = rolloutOn(0, 10, { expectMoreDenials: true });
    const judged = judgeRollout(rollout, firstStep(20, 0.5), lookAt(20));
    expect(judged.rollBack).toBeUndefined();
    expect(judged.rollout.strikes).toBe(10);
    expect(figuresOf(judged.rollout).sentence).toContain("More denials were expected");
  });

  it("are given while a rollout is paused, too", () => {
    const paused = rolloutOn(0, 10, { state: "paused" });
    expect(judgeRollout(paused, firstStep(20, 0.1), lookAt(20)).rollBack).toBeDefined();
  });
});

describe("what happens to others as well", () => {
  it("is neither a strike nor a pardon", () => {
    const { rollout, looks } = judgeRollout(rolloutOn(0, 10, { strikes: 1 }), firstStep(20, 0.06, 0.06), lookAt(20));
    expect({ looks, strikes: rollout.strikes }).toEqual({ looks: 10, strikes: 1 });
    const { verdict, looks: told, sentence, total } = figuresOf(rollout);
    expect({ verdict, told }).toEqual({ verdict: "unclear", told: 0 });
    expect(total.others).toBeGreaterThan(2.5);
    expect(sentence).toMatch(/others are denied [23]\.\d times as often as before as well/);
  });

  it("does not hide that the new version denies everything", () => {
    expect(judgeRollout(rolloutOn(0, 10), firstStep(20, 1, 0.06), lookAt(20)).rollBack).toBeDefined();
  });

  it("is told also where nobody was ever denied before", () => {
    const tallies = [
      ...minutesOf(0, 9, 0, "old", 5_000, 0),
      ...minutesOf(0, 9, 1, "old", 50_000, 0),
      ...minutesOf(10, 20, 0, "new", 5_000, 0.05),
      ...minutesOf(10, 20, 1, "old", 50_000, 0.05),
    ];
    expect(judgeRollout(rolloutOn(0, 10), tallies, lookAt(20)).rollBack).toBeUndefined();
  });

  it("does not count against the new version when others fare better than before", () => {
    expect(judgeRollout(rolloutOn(0, 10), firstStep(20, 0.02, 0.002), lookAt(20)).rollBack).toBeUndefined();
  });
});

describe("more requests than usual", () => {
  /** The first ring asks `decided` times a minute instead of 5 000 times once it has joined, and so many of those are denied. */
  function crowded(decided: number, denied: number): TallyRecord[] {
    return [
      ...firstStep(9, 0.02),
      ...Array.from({ length: 6 }, (_, i) => tally(10 + i, 0, "new", decided, denied)),
      ...minutesOf(10, 15, 1, "old", 50_000, 0.02),
    ];
  }

  it("are not held against the new version where no fewer pass than usual", () => {
    const { rollout, rollBack } = judgeRollout(rolloutOn(0, 10), crowded(6_000, 1_100), lookAt(15));
    expect(rollBack).toBeUndefined();
    expect(figuresOf(rollout)).toMatchObject({ verdict: "unclear", strikes: 0 });
    expect(figuresOf(rollout).sentence).toContain("More requests came than usual");
  });

  it("do not hide that fewer pass: whoever is denied often asks again", () => {
    expect(judgeRollout(rolloutOn(0, 10), crowded(9_000, 5_000), lookAt(15)).rollBack).toBeDefined();
  });
});

describe("the last step", () => {
  /** Everybody under the new version from minute 20 on; the first ring since minute 10. */
  function lastStep(to: number, newRate: number, firstRate = 0.02, decided = 50_000): TallyRecord[] {
    return [
      ...minutesOf(0, 9, 0, "old", 5_000, 0.02),
      ...minutesOf(10, 19, 0, "new", 5_000, 0.02),
      ...minutesOf(0, 19, 1, "old", 50_000, 0.02),
      ...minutesOf(20, to, 0, "new", 5_000, firstRate),
      ...minutesOf(20, to, 1, "new", decided, newRate),
    ];
  }

  const steps = [
    { percent: 10, holdMs: 600_000 },
    { percent: 100, holdMs: 600_000 },
  ];

  it("compares those who join with those who joined earlier", () => {
    const rollout = rolloutOn(1, 20, { steps });
    expect(judgeRollout(rollout, lastStep(24, 0.06), lookAt(24)).rollBack).toBeDefined();
    const both = judgeRollout(rollout, lastStep(24, 0.06, 0.06), lookAt(24));
    expect(both.rollBack).toBeUndefined();
    expect(figuresOf(both.rollout).verdict).toBe("unclear");
  });

  it("does not hold a flood of requests against the new version", () => {
    // 20 000 requests more than usual, nearly all denied.
    const flood = judgeRollout(rolloutOn(1, 20, { steps }), lastStep(24, 0.27, 0.02, 70_000), lookAt(24));
    expect(flood.rollBack).toBeUndefined();
    const { verdict, sentence } = figuresOf(flood.rollout);
    expect(verdict).toBe("unclear");
    expect(sentence).toContain("More requests came than usual");
  });

  it("is watched longer where the latest look was a strike, so that a third one that comes late counts", () => {
    // Two strikes, a surge that says nothing, and by then five minutes are over.
    const tallies = [
      ...lastStep(22, 0.3),
      ...[23, 24, 25].flatMap((minute) => [
        tally(minute, 0, "new", 5_000, 100),
        tally(minute, 1, "new", 90_000, 40_500),
      ]),
      ...minutesOf(26, 30, 0, "new", 5_000, 0.02),
      ...minutesOf(26, 30, 1, "new", 50_000, 0.3),
    ];
    const atFive = judgeRollout(rolloutOn(1, 20, { steps }), tallies, lookAt(25));
    expect(atFive.rollBack).toBeUndefined();
    expect(figuresOf(atFive.rollout)).toMatchObject({ verdict: "unclear", because: "surplus", strikes: 2 });
    expect(judgeRollout(atFive.rollout, tallies, lookAt(26)).rollBack).toContain("3 times in a row");
  });

  it("is watched for five minutes, since after that nobody can tell the version from the world", () => {
    const rollout = rolloutOn(1, 20, { steps, lookedAtMinute: start + 25 });
    const { rollout: judged, rollBack } = judgeRollout(rollout, lastStep(35, 0.3), lookAt(35));
    expect(rollBack).toBeUndefined();
    expect(figuresOf(judged)).toMatchObject({ verdict: "none", strikes: 0, looks: 0 });
    expect(figuresOf(judged).sentence).toContain("nobody left under the old version");
  });
});

describe("too little to go by", () => {
  it("is put together with the next minutes until it is enough", () => {
    const tallies = [
      ...minutesOf(0, 39, 0, "old", 4, 0.25),
      ...Array.from({ length: 20 }, (_, i) => tally(40 + i, 0, "new", 4, 1)),
    ];
    const rollout = rolloutOn(0, 40);
    expect(judgeRollout(rollout, tallies, lookAt(42)).looks).toBe(0);
    const { looks, rollout: judged } = judgeRollout(rollout, tallies, lookAt(43));
    expect(looks).toBe(1);
    expect(figuresOf(judged)).toMatchObject({ minutes: 3, verdict: "fine", total: { decided: 12 } });
  });

  it("is enough to compare, where a few requests a minute are denied without exception", () => {
    const few = [...minutesOf(0, 5, 0, "old", 6, 0), ...minutesOf(0, 30, 1, "old", 600, 0)];
    const denied = [...few, ...minutesOf(6, 30, 0, "new", 6, 1)];
    expect(judgeRollout(rolloutOn(0, 6), denied, lookAt(12)).rollBack).toContain("denied 100.00 % of 12 requests");
    const fine = [...few, ...minutesOf(6, 30, 0, "new", 6, 0)];
    expect(judgeRollout(rolloutOn(0, 6), fine, lookAt(30))).toMatchObject({ rollBack: undefined, looks: 12 });
  });

  it("is no look where nobody asks", () => {
    const tallies = minutesOf(0, 9, 0, "old", 5_000, 0.02);
    expect(judgeRollout(rolloutOn(0, 10), tallies, lookAt(30))).toMatchObject({ looks: 0, rollBack: undefined });
  });

  it("is nothing to compare with: a few minutes, or a policy that is new", () => {
    const short = [...minutesOf(6, 9, 0, "old", 5_000, 0.02), ...minutesOf(10, 20, 0, "new", 5_000, 1)];
    const judged = judgeRollout(rolloutOn(0, 10), short, lookAt(20));
    expect(judged.rollBack).toBeUndefined();
    expect(figuresOf(judged.rollout)).toMatchObject({
      verdict: "none",
      because: "no_baseline",
      total: { decided: 5_000, denied: 5_000, baselineMinutes: 4, baselineDecided: 20_000 },
    });
    expect(figuresOf(judged.rollout).sentence).toContain(
      "under the old version 20000 requests of these subjects were decided, in 4 minutes, and a comparison needs 20 in 5.",
    );

    const fresh = judgeRollout(
      rolloutOn(0, 10, { fromVersion: 0 }),
      minutesOf(10, 20, 0, "new", 5_000, 0.5),
      lookAt(20),
    );
    expect(fresh.rollBack).toBeUndefined();
    expect(figuresOf(fresh.rollout).sentence).toContain("The policy is new");
  });
});

describe("in shadow", () => {
  function shadow(to: number, oldRate: number, newRate: number): TallyRecord[] {
    return [...minutesOf(0, to, 0, "old", 5_000, oldRate), ...minutesOf(0, to, 0, "shadow", 5_000, newRate)];
  }

  it("both versions are compared over the same minutes, without a baseline before", () => {
    const rollout = rolloutOn(0, 0, { shadow: true });
    const good = judgeRollout(rollout, shadow(10, 0.3, 0.3), lookAt(10));
    expect({ rollBack: good.rollBack, looks: good.looks }).toEqual({ rollBack: undefined, looks: 10 });
    const bad = judgeRollout(rollout, shadow(10, 0.3, 0.36), lookAt(10));
    expect(bad.looks).toBe(3);
    expect(bad.rollBack).toMatch(/would have denied 3\d\.\d\d % of 5000 requests; the old version denied/);
  });
});
