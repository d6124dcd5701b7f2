import type { RolloutRecord, TallyRecord } from "@sluice/sql";
import { describe, expect, it } from "vitest";
import { type Judgement, judgeRollout } from "./judge-rollout.ts";
import { parseRolloutFigures, type RolloutFigures } from "./rollout-figures.ts";
import { startRollout, takeStep } from "./start-rollout.ts";
import { createSeededRandom } from "./testing/seeded-random.ts";
import { sumTallies } from "./trial-sums.ts";

const minuteMs = 60_000;
const start = 28_000_000;

function judge(rollout: RolloutRecord, tallies: readonly TallyRecord[], nowMs: number): Judgement {
  return judgeRollout(rollout, sumTallies(tallies), nowMs);
}

function at(minute: number): number {
  return (start + minute) * minuteMs;
}

/** The first moment at which a minute can be looked at. */
function lookAt(minute: number): number {
  return at(minute + 1) + 15_000;
}

function rolloutOn(step: number, sinceMinute: number, more: Partial<RolloutRecord> = {}): RolloutRecord {
  const request = { id: "r", policy: "p", fromVersion: 1, toVersion: 2, author: "ada", by: "user" };
  return { ...takeStep(startRollout(request, at(0)), step, at(sinceMinute), ""), ...more };
}

type Side = TallyRecord["side"];

function tally(minute: number, step: number, side: Side, decided: number, denied: number, node = "a"): TallyRecord {
  return { rollout: "r", node, minute: start + minute, step, side, decided, denied: Math.round(denied) };
}

/** Minutes with this many decisions and denials, a little more or less. */
function createMinutes(
  from: number,
  to: number,
  step: number,
  side: Side,
  decided: number,
  rate: number,
): TallyRecord[] {
  const random = createSeededRandom(from * 31 + step * 7 + decided);
  const tallies: TallyRecord[] = [];
  for (let minute = from; minute <= to; minute++)
    tallies.push(tally(minute, step, side, decided, random.binomial(decided, rate)));
  return tallies;
}

/**
 * Ten minutes of all subjects under the old version, and then the first ring under the new one, starting at minute 10.
 */
function firstStep(to: number, newRate: number, restRate = 0.02): TallyRecord[] {
  return [
    ...createMinutes(0, 9, 0, "old", 5_000, 0.02),
    ...createMinutes(0, 9, 1, "old", 50_000, 0.02),
    ...createMinutes(10, to, 0, "new", 5_000, newRate),
    ...createMinutes(10, to, 1, "old", 50_000, restRate),
  ];
}

function parseFigures(rollout: RolloutRecord): RolloutFigures {
  const figures = parseRolloutFigures(rollout.figures);
  if (figures === undefined) throw new Error("there was no look");
  return figures;
}

describe("a look", () => {
  it("comes once a whole minute is over and nodes had time to report", () => {
    const rollout = rolloutOn(0, 10);
    expect(judge(rollout, firstStep(12, 0.02), lookAt(11) - 1).looks).toBe(0);
    const { looks, rollout: judged } = judge(rollout, firstStep(12, 0.02), lookAt(11));
    expect(looks).toBe(1);
    expect(judged.lookedAtMinute).toBe(start + 11);
    expect(judge(judged, firstStep(12, 0.02), lookAt(11)).looks).toBe(0);
  });

  it("leaves out the minute in which subjects join", () => {
    const tallies = [...createMinutes(0, 9, 0, "old", 5_000, 0.02), tally(10, 0, "new", 5_000, 5_000)];
    expect(judge(rolloutOn(0, 10), tallies, lookAt(10)).looks).toBe(0);
  });

  it("is fine if the new version denies as much as the old one", () => {
    const { rollout, looks, rollBack } = judge(rolloutOn(0, 10), firstStep(20, 0.02), lookAt(20));
    expect({ looks, rollBack, strikes: rollout.strikes }).toEqual({ looks: 10, rollBack: undefined, strikes: 0 });
    const { verdict, looks: told, total, sentence } = parseFigures(rollout);
    expect({ verdict, told, decided: total.decided, minutes: total.baselineMinutes }).toEqual({
      verdict: "fine",
      told: 10,
      decided: 5_000,
      minutes: 10,
    });
    expect(total.baseline).toBeCloseTo(0.02, 2);
    expect(sentence).toMatch(
      /^In the minute of 2023-03-28 .* denied [12]\.\d\d % of 5000 requests; .* That is normal\.$/,
    );
  });

  it("catches up on missed looks, in order", () => {
    const { looks, rollBack } = judge(rolloutOn(0, 10), firstStep(20, 0.1), lookAt(20));
    expect(looks).toBe(3);
    expect(rollBack).toContain("3 times in a row");
  });

  it("adds up the counts of nodes", () => {
    const tallies = firstStep(11, 0.02);
    const halves = tallies.flatMap((one) => {
      const decided = Math.floor(one.decided / 3);
      const denied = Math.min(decided, Math.floor(one.denied / 2));
      return [
        { ...one, node: "a", decided, denied },
        { ...one, node: "b", decided: one.decided - decided, denied: one.denied - denied },
      ];
    });
    const whole = judge(rolloutOn(0, 10), tallies, lookAt(11)).rollout;
    expect(judge(rolloutOn(0, 10), halves, lookAt(11)).rollout).toEqual(whole);
  });

  it("tolerates a node that still decides by the old version", () => {
    const tallies = firstStep(20, 0.1);
    const late = createMinutes(11, 20, 0, "old", 300, 0.02).map((one) => ({ ...one, node: "late" }));
    expect(judge(rolloutOn(0, 10), [...tallies, ...late], lookAt(20)).rollBack).toBeDefined();
  });
});

describe("strikes", () => {
  it("roll back at the third in a row, with the metrics", () => {
    const tallies = firstStep(20, 0.06);
    let rollout = rolloutOn(0, 10);
    for (const [minute, strikes] of [
      [11, 1],
      [12, 2],
    ] as const) {
      const judged = judge(rollout, tallies, lookAt(minute));
      expect(judged.rollBack).toBeUndefined();
      expect(judged.rollout.strikes).toBe(strikes);
      rollout = judged.rollout;
    }
    const { rollBack, rollout: judged } = judge(rollout, tallies, lookAt(13));
    expect(rollBack).toMatch(/denied [56]\.\d\d % of 5000 requests; .* denied [12]\.\d\d % under the old version/);
    const { total, verdict } = parseFigures(judged);
    expect(verdict).toBe("strike");
    expect(total.rate).toBeGreaterThan(total.threshold);
    expect(total.threshold).toBeGreaterThanOrEqual(total.baseline + 0.005);
    expect(total.threshold).toBeGreaterThanOrEqual(total.baseline + 2 * total.sigma);
  });

  it("are pardoned by one fine look", () => {
    const tallies = firstStep(20, 0.06).map((one) =>
      one.side === "new" && one.minute === start + 13 ? { ...one, denied: 100 } : one,
    );
    const { rollout, rollBack } = judge(rolloutOn(0, 10), tallies, lookAt(15));
    expect({ rollBack, strikes: rollout.strikes }).toEqual({ rollBack: undefined, strikes: 2 });
    expect(judge(rollout, tallies, lookAt(16)).rollBack).toBeDefined();
  });

  it("need half a percentage point, however certain a smaller difference is", () => {
    const huge = (rate: number, restRate = 0.02): TallyRecord[] => [
      ...createMinutes(0, 9, 0, "old", 10_000_000, 0.02),
      ...createMinutes(0, 9, 1, "old", 10_000_000, 0.02),
      ...createMinutes(10, 20, 0, "new", 10_000_000, rate),
      ...createMinutes(10, 20, 1, "old", 10_000_000, restRate),
    ];
    expect(judge(rolloutOn(0, 10), huge(0.0245), lookAt(20)).rollBack).toBeUndefined();
    expect(judge(rolloutOn(0, 10), huge(0.0255), lookAt(20)).rollBack).toBeDefined();
    // Above its own mean, even when others fare a little better than before.
    expect(judge(rolloutOn(0, 10), huge(0.0245, 0.0185), lookAt(20)).rollBack).toBeUndefined();
  });

  it("need more than chance explains, if requests are few", () => {
    const few = (denied: number): TallyRecord[] => [
      ...createMinutes(0, 9, 0, "old", 40, 0.05),
      ...Array.from({ length: 10 }, (_, i) => tally(10 + i, 0, "new", 40, denied)),
    ];
    // 5 % of 40 are two, give or take 1.4.
    expect(judge(rolloutOn(0, 10), few(4), lookAt(18)).rollBack).toBeUndefined();
    expect(judge(rolloutOn(0, 10), few(12), lookAt(18)).rollBack).toBeDefined();
  });

  it("are not given for the first few denials ever, but for many", () => {
    const never = (denied: number): TallyRecord[] => [
      ...createMinutes(0, 9, 0, "old", 100, 0),
      ...Array.from({ length: 10 }, (_, i) => tally(10 + i, 0, "new", 100, denied)),
    ];
    expect(judge(rolloutOn(0, 10), never(1), lookAt(18)).rollBack).toBeUndefined();
    expect(judge(rolloutOn(0, 10), never(5), lookAt(18)).rollBack).toBeDefined();
  });

  it("are counted but roll nothing back if more denials are expected", () => {
    const rollout = rolloutOn(0, 10, { expectMoreDenials: true });
    const judged = judge(rollout, firstStep(20, 0.5), lookAt(20));
    expect(judged.rollBack).toBeUndefined();
    expect(judged.rollout.strikes).toBe(10);
    expect(parseFigures(judged.rollout).sentence).toContain("More denials were expected");
  });

  it("are given while a rollout is paused, too", () => {
    const paused = rolloutOn(0, 10, { state: "paused" });
    expect(judge(paused, firstStep(20, 0.1), lookAt(20)).rollBack).toBeDefined();
  });
});

describe("a change that affects others as well", () => {
  it("is neither a strike nor a pardon", () => {
    const { rollout, looks } = judge(rolloutOn(0, 10, { strikes: 1 }), firstStep(20, 0.06, 0.06), lookAt(20));
    expect({ looks, strikes: rollout.strikes }).toEqual({ looks: 10, strikes: 1 });
    const { verdict, looks: told, sentence, total } = parseFigures(rollout);
    expect({ verdict, told }).toEqual({ verdict: "unclear", told: 0 });
    expect(total.others).toBeGreaterThan(2.5);
    expect(sentence).toMatch(/other subjects are also denied [23]\.\d times as often as before/);
  });

  it("does not hide that the new version denies everything", () => {
    expect(judge(rolloutOn(0, 10), firstStep(20, 1, 0.06), lookAt(20)).rollBack).toBeDefined();
  });

  it("is reported even if there were no denials before", () => {
    const tallies = [
      ...createMinutes(0, 9, 0, "old", 5_000, 0),
      ...createMinutes(0, 9, 1, "old", 50_000, 0),
      ...createMinutes(10, 20, 0, "new", 5_000, 0.05),
      ...createMinutes(10, 20, 1, "old", 50_000, 0.05),
    ];
    expect(judge(rolloutOn(0, 10), tallies, lookAt(20)).rollBack).toBeUndefined();
  });

  it("does not count against the new version when others fare better than before", () => {
    expect(judge(rolloutOn(0, 10), firstStep(20, 0.02, 0.002), lookAt(20)).rollBack).toBeUndefined();
  });
});

describe("more requests than usual", () => {
  /**
   * The first ring sends `decided` requests a minute instead of 5 000 once it has joined, and `denied` of those are
   * denied.
   */
  function crowded(decided: number, denied: number): TallyRecord[] {
    return [
      ...firstStep(9, 0.02),
      ...Array.from({ length: 6 }, (_, i) => tally(10 + i, 0, "new", decided, denied)),
      ...createMinutes(10, 15, 1, "old", 50_000, 0.02),
    ];
  }

  it("are not held against the new version if no fewer pass than usual", () => {
    const { rollout, rollBack } = judge(rolloutOn(0, 10), crowded(6_000, 1_100), lookAt(15));
    expect(rollBack).toBeUndefined();
    expect(parseFigures(rollout)).toMatchObject({ verdict: "unclear", strikes: 0 });
    expect(parseFigures(rollout).sentence).toContain("More requests arrived than usual");
  });

  it("do not hide that fewer pass: denied clients often retry", () => {
    expect(judge(rolloutOn(0, 10), crowded(9_000, 5_000), lookAt(15)).rollBack).toBeDefined();
  });
});

describe("the last step", () => {
  /** All subjects under the new version starting at minute 20; the first ring since minute 10. */
  function lastStep(to: number, newRate: number, firstRate = 0.02, decided = 50_000): TallyRecord[] {
    return [
      ...createMinutes(0, 9, 0, "old", 5_000, 0.02),
      ...createMinutes(10, 19, 0, "new", 5_000, 0.02),
      ...createMinutes(0, 19, 1, "old", 50_000, 0.02),
      ...createMinutes(20, to, 0, "new", 5_000, firstRate),
      ...createMinutes(20, to, 1, "new", decided, newRate),
    ];
  }

  const steps = [
    { percent: 10, holdMs: 600_000 },
    { percent: 100, holdMs: 600_000 },
  ];

  it("compares subjects that join with those that joined earlier", () => {
    const rollout = rolloutOn(1, 20, { steps });
    expect(judge(rollout, lastStep(24, 0.06), lookAt(24)).rollBack).toBeDefined();
    const both = judge(rollout, lastStep(24, 0.06, 0.06), lookAt(24));
    expect(both.rollBack).toBeUndefined();
    expect(parseFigures(both.rollout).verdict).toBe("unclear");
  });

  it("does not hold a flood of requests against the new version", () => {
    // 20 000 requests more than usual, nearly all denied.
    const flood = judge(rolloutOn(1, 20, { steps }), lastStep(24, 0.27, 0.02, 70_000), lookAt(24));
    expect(flood.rollBack).toBeUndefined();
    const { verdict, sentence } = parseFigures(flood.rollout);
    expect(verdict).toBe("unclear");
    expect(sentence).toContain("More requests arrived than usual");
  });

  it("is watched longer if the latest look was a strike, so that a late third one counts", () => {
    // Two strikes and an inconclusive surge, and by then five minutes are over.
    const tallies = [
      ...lastStep(22, 0.3),
      ...[23, 24, 25].flatMap((minute) => [
        tally(minute, 0, "new", 5_000, 100),
        tally(minute, 1, "new", 90_000, 40_500),
      ]),
      ...createMinutes(26, 30, 0, "new", 5_000, 0.02),
      ...createMinutes(26, 30, 1, "new", 50_000, 0.3),
    ];
    const atFive = judge(rolloutOn(1, 20, { steps }), tallies, lookAt(25));
    expect(atFive.rollBack).toBeUndefined();
    expect(parseFigures(atFive.rollout)).toMatchObject({ verdict: "unclear", because: "surplus", strikes: 2 });
    expect(judge(atFive.rollout, tallies, lookAt(26)).rollBack).toContain("3 times in a row");
  });

  it("is watched for five minutes, because later changes may have other causes", () => {
    const rollout = rolloutOn(1, 20, { steps, lookedAtMinute: start + 25 });
    const { rollout: judged, rollBack } = judge(rollout, lastStep(35, 0.3), lookAt(35));
    expect(rollBack).toBeUndefined();
    expect(parseFigures(judged)).toMatchObject({ verdict: "none", strikes: 0, looks: 0 });
    expect(parseFigures(judged).sentence).toContain("No subject is left under the old version");
  });
});

describe("too little traffic", () => {
  it("is combined with the next minutes until it is enough", () => {
    const tallies = [
      ...createMinutes(0, 39, 0, "old", 4, 0.25),
      ...Array.from({ length: 20 }, (_, i) => tally(40 + i, 0, "new", 4, 1)),
    ];
    const rollout = rolloutOn(0, 40);
    expect(judge(rollout, tallies, lookAt(42)).looks).toBe(0);
    const { looks, rollout: judged } = judge(rollout, tallies, lookAt(43));
    expect(looks).toBe(1);
    expect(parseFigures(judged)).toMatchObject({ minutes: 3, verdict: "fine", total: { decided: 12 } });
  });

  it("is enough to compare if a few requests a minute are all denied", () => {
    const few = [...createMinutes(0, 5, 0, "old", 6, 0), ...createMinutes(0, 30, 1, "old", 600, 0)];
    const denied = [...few, ...createMinutes(6, 30, 0, "new", 6, 1)];
    expect(judge(rolloutOn(0, 6), denied, lookAt(12)).rollBack).toContain("denied 100.00 % of 12 requests");
    const fine = [...few, ...createMinutes(6, 30, 0, "new", 6, 0)];
    expect(judge(rolloutOn(0, 6), fine, lookAt(30))).toMatchObject({ rollBack: undefined, looks: 12 });
  });

  it("is no look if there are no requests", () => {
    const tallies = createMinutes(0, 9, 0, "old", 5_000, 0.02);
    expect(judge(rolloutOn(0, 10), tallies, lookAt(30))).toMatchObject({ looks: 0, rollBack: undefined });
  });

  it("cannot be compared: a few minutes, or a policy that is new", () => {
    const short = [...createMinutes(6, 9, 0, "old", 5_000, 0.02), ...createMinutes(10, 20, 0, "new", 5_000, 1)];
    const judged = judge(rolloutOn(0, 10), short, lookAt(20));
    expect(judged.rollBack).toBeUndefined();
    expect(parseFigures(judged.rollout)).toMatchObject({
      verdict: "none",
      because: "no_baseline",
      total: { decided: 5_000, denied: 5_000, baselineMinutes: 4, baselineDecided: 20_000 },
    });
    expect(parseFigures(judged.rollout).sentence).toContain(
      "the old version decided 20000 requests of these subjects in 4 minutes, and a comparison needs 20 in 5.",
    );

    const fresh = judge(rolloutOn(0, 10, { fromVersion: 0 }), createMinutes(10, 20, 0, "new", 5_000, 0.5), lookAt(20));
    expect(fresh.rollBack).toBeUndefined();
    expect(parseFigures(fresh.rollout).sentence).toContain("The policy is new");
  });
});

describe("in shadow", () => {
  function shadow(to: number, oldRate: number, newRate: number): TallyRecord[] {
    return [...createMinutes(0, to, 0, "old", 5_000, oldRate), ...createMinutes(0, to, 0, "shadow", 5_000, newRate)];
  }

  it("both versions are compared over the same minutes, without an earlier baseline", () => {
    const rollout = rolloutOn(0, 0, { shadow: true });
    const good = judge(rollout, shadow(10, 0.3, 0.3), lookAt(10));
    expect({ rollBack: good.rollBack, looks: good.looks }).toEqual({ rollBack: undefined, looks: 10 });
    const bad = judge(rollout, shadow(10, 0.3, 0.36), lookAt(10));
    expect(bad.looks).toBe(3);
    expect(bad.rollBack).toMatch(/would have denied 3\d\.\d\d % of 5000 requests; the old version denied/);
  });
});
