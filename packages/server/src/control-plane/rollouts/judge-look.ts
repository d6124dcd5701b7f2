import type { RolloutRecord, TallyRecord } from "@sluice/sql";
import {
  type Baseline,
  type BaselineMinute,
  baselineNeeds,
  chanceOf,
  describeBaseline,
  varianceAfter,
} from "./describe-baseline.ts";
import type { ComparedFigures, LookReason, RingFigures, RolloutVerdict } from "./rollout-figures.ts";
import { addCounts, type Count, nothing, type TrialSums } from "./trial-sums.ts";

/** What of a rollout a look depends on. */
export type LookedAt = Pick<RolloutRecord, "shadow" | "step" | "lookedAtMinute" | "strikes">;

/** One look: at a minute, or at as many up to it as have enough traffic. */
export interface Look {
  readonly minute: number;
  readonly minutes: number;
  readonly verdict: RolloutVerdict;
  /** What the verdict rests on, where it is neither `fine` nor `strike`. */
  readonly because: "" | LookReason;
  readonly total: ComparedFigures;
  readonly rings: readonly RingFigures[];
}

/** Half a percentage point: less is not worth a rollback, however certain it is. */
export const minExcess = 0.005;
/** A look strikes beyond so many σ. */
const sigmas = 2;
/** σ from few minutes is itself uncertain: Student's quantile exceeds the normal one by nearly this over T − 1. */
const sigmasOfFewMinutes = 3;
/** Less traffic is put together with that of the next minute, and so on for so many minutes. */
export const minDecided = 10;
const maxLookMinutes = 10;
/** A ring is compared with the last hour before it joined. */
const maxBaselineMinutes = 60;
/** How differently rings take what happens to all of them: σ, as a share of it. At 1 a ring takes it twice as hard, or not at all. */
const unevenness = 1;
/** Fewer denials do not tell by which factor others are denied more often. */
const minOthersDenied = 10;
/** For so long after the last ones joined, what happens is put down to that. */
const lastStepMinutes = 5;
/** Minutes that tell how many requests are usual. */
const volumeMinutes = 20;

/**
 * Compares subjects under the new version with themselves under the old one. Undefined: there is not enough traffic yet, which
 * is neither a strike nor a pardon.
 *
 * What is expected of a ring is its own rate before it joined, times what happened meanwhile to others, whose version did not
 * change: the old version's subjects, or on the last step those that joined earlier. σ is over the minutes of that comparison.
 */
export function judgeLook(rollout: LookedAt, sums: TrialSums, minute: number): Look | undefined {
  const from = Math.max(rollout.lookedAtMinute + 1, minute - maxLookMinutes + 1);
  const side = rollout.shadow ? "shadow" : "new";
  const joined = sums.rings.filter((ring) => ring <= rollout.step && sums.minutes(ring, side).length > 0);
  const spans = joined.map((ring): Span => {
    const firstMinute = sums.minutes(ring, side)[0] ?? minute;
    // The minute in which it joins belongs to both versions, and so to neither.
    return { ring, joinedAt: firstMinute, from: Math.max(from, firstMinute + 1), to: minute };
  });
  return rollout.shadow ? judgeShadow(spans, sums, minute) : judgeJoined(rollout, spans, sums, minute);
}

interface Span {
  readonly ring: number;
  readonly joinedAt: number;
  readonly from: number;
  readonly to: number;
}

function judgeJoined(
  { step, strikes }: LookedAt,
  spans: readonly Span[],
  sums: TrialSums,
  minute: number,
): Look | undefined {
  const others = findOthers(step, spans, sums);
  const parts: Part[] = [];
  const unjudged: Part[] = [];
  for (const span of spans) {
    const count = addCounts(sums, [span.ring], "new", span.from, span.to);
    if (count.decided === 0) continue;
    const part = describePart(span, count, others, sums);
    if (part.own === undefined || others.rings.includes(span.ring)) unjudged.push(part);
    else parts.push(part);
  }
  const shown = parts.length === 0 ? unjudged.filter(({ ring }) => !others.rings.includes(ring)) : parts;
  if (countOf(shown).decided < minDecided) return undefined;
  const rings = [...parts, ...unjudged]
    .sort((a, b) => a.ring - b.ring)
    .map(
      (part): RingFigures => ({ step: part.ring, judged: parts.includes(part), ...compare([part], minute).figures }),
    );
  const firstMinute = Math.min(...shown.map(({ span }) => span.from));
  const { figures: total, beyondOwn, beyond, beyondWithSurplus } = compare(shown, minute);
  const look = { minute, minutes: minute - firstMinute + 1, total, rings };
  if (parts.length === 0) return { ...look, verdict: "none", because: "no_baseline" };
  const lastJoined = Math.max(...parts.map(({ span }) => span.joinedAt));
  // Strikes that began in time are followed up: else two of them would be pardoned because the third came late.
  if (others.side !== "old" && firstMinute - lastJoined > lastStepMinutes && strikes === 0)
    return { ...look, verdict: "none", because: "old_version_unused" };
  if (beyond) return { ...look, verdict: "strike", because: "" };
  if (beyondWithSurplus) return { ...look, verdict: "unclear", because: "surplus" };
  if (beyondOwn) return { ...look, verdict: "unclear", because: "others" };
  return { ...look, verdict: "fine", because: "" };
}

/** Whom a ring is compared beside: those whose version is the same before it joined and since. */
interface Others {
  readonly rings: readonly number[];
  readonly side: "old" | "new" | "none";
  /** Minutes before are not comparable: some of them were under another version. */
  readonly since: number;
}

function findOthers(step: number, spans: readonly Span[], sums: TrialSums): Others {
  const rest = sums.rings.filter((ring) => ring > step);
  if (rest.length > 0) return { rings: rest, side: "old", since: 0 };
  const earlier = spans.filter(({ ring }) => ring < step);
  if (earlier.length === 0) return { rings: [], side: "none", since: 0 };
  const since = Math.max(...earlier.map(({ joinedAt }) => joinedAt)) + 1;
  return { rings: earlier.map(({ ring }) => ring), side: "new", since };
}

/** A ring, and what is expected of it. */
interface Part {
  readonly ring: number;
  readonly span: Span;
  readonly count: Count;
  /** What was seen under the old version, also where it is too little for a baseline. */
  readonly seen: BaselineSeen;
  /** Requests beyond the usual number. */
  readonly surplus: number;
  readonly own: Baseline | undefined;
  readonly beside: Beside | undefined;
}

/** A ring beside others. */
interface Beside {
  readonly baseline: Baseline;
  /** How many times as often as in the baseline others are denied. */
  readonly factor: number;
  readonly expected: number;
  /** By how much that varies with the chance of counting others. */
  readonly variance: number;
}

function describePart(span: Span, count: Count, others: Others, sums: TrialSums): Part {
  const { ring, joinedAt } = span;
  const before = sums.minutes(ring, "old").filter((at) => at < joinedAt && at >= joinedAt - maxBaselineMinutes);
  const alone = before.map((at): BaselineMinute => {
    return { minute: at, ...sums.at(ring, "old", at), others: 1, othersVariance: 0 };
  });
  const own = describeBaseline(alone);
  const seen = { minutes: alone.length, decided: sum(alone.map((one) => one.decided)) };
  if (own === undefined || others.rings.includes(ring))
    return { ring, span, count, seen, surplus: 0, own, beside: undefined };
  const besideOthers = alone
    .filter((one) => one.minute >= others.since)
    .map((one) => ({ one, other: countOthers(others, sums, one.minute, one.minute) }));
  const now = countOthers(others, sums, span.from, span.to);
  const beside = others.side === "none" ? undefined : describeBeside(own, besideOthers, now);
  return { ring, span, count, seen, surplus: findSurplus(span, count, alone), own, beside };
}

interface MinuteBeside {
  readonly one: BaselineMinute;
  readonly other: Count;
}

function describeBeside(own: Baseline, minutes: readonly MinuteBeside[], now: Count): Beside | undefined {
  const seen = minutes.filter(({ other }) => other.decided > 0);
  let decided = 0;
  let denied = 0;
  for (const { other } of seen) {
    decided += other.decided;
    denied += other.denied;
  }
  if (decided === 0 || now.decided < minDecided) return undefined;
  const usual = denied / decided;
  const rateNow = now.denied / now.decided;
  if (denied < minOthersDenied) {
    const variance = chanceOf((denied + now.denied + 1) / (decided + now.decided + 2)) / now.decided;
    const more = Math.max(0, rateNow - usual);
    return { baseline: own, factor: 1, expected: Math.min(1, own.rate + more), variance };
  }
  // Of a factor: the variance of a rate, over that rate squared.
  const variance = chanceOf(usual) / (usual * usual);
  const series = seen.map(({ one, other }): BaselineMinute => {
    return { ...one, others: other.denied / other.decided / usual, othersVariance: variance / other.decided };
  });
  const baseline = describeBaseline(series);
  if (baseline === undefined) return undefined;
  const factor = rateNow / usual;
  const factorVariance = factor * variance * (1 / now.decided + 1 / decided);
  return {
    baseline,
    factor,
    expected: Math.min(1, baseline.rate * factor),
    variance: baseline.rate * baseline.rate * factorVariance,
  };
}

/**
 * How many requests are more than usual, where the number strays further than its usual spread explains. To deny what a few
 * subjects ask beyond their limits is what limits are for, so these requests are taken out as if every one of them had been
 * denied: a bad version lets fewer through than usual.
 */
function findSurplus({ from, to }: Span, { decided }: Count, minutes: readonly BaselineMinute[]): number {
  const volumes = minutes.slice(-volumeMinutes).map((one) => one.decided);
  const perMinute = sum(volumes) / volumes.length;
  const spread = Math.sqrt(sum(volumes.map((one) => (one / perMinute - 1) ** 2)) / (volumes.length - 1));
  const usual = perMinute * (to - from + 1);
  return decided > usual * (1 + sigmasAfter(volumes.length) * spread)
    ? Math.min(decided - 1, Math.round(decided - usual))
    : 0;
}

/** How many σ are beyond chance, where σ is known from so many minutes. */
function sigmasAfter(minutes: number): number {
  return sigmas + sigmasOfFewMinutes / (minutes - 1);
}

interface Comparison {
  readonly figures: ComparedFigures;
  /** Beyond what the rings' own minutes explain. */
  readonly beyondOwn: boolean;
  /** And beyond what others explain, and what a surplus of requests does. */
  readonly beyond: boolean;
  readonly beyondWithSurplus: boolean;
}

/** Rings together: counts are added, and what is expected is weighed by them. */
function compare(parts: readonly Part[], minute: number): Comparison {
  const { decided, denied } = countOf(parts);
  const rate = denied / decided;
  const own = expect(parts, minute, false);
  const beside = parts.some((part) => part.beside !== undefined) ? expect(parts, minute, true) : own;
  // Beyond its own mean as well: that others fare better than before is no fault of the new version.
  const threshold = Math.max(beside.threshold, own.expected + minExcess);
  const surplus = sum(parts.map((part) => part.surplus));
  const usualDecided = decided - surplus;
  const usualDenied = Math.min(usualDecided, Math.max(0, denied - surplus));
  return {
    figures: {
      decided,
      denied,
      rate,
      baseline: own.expected,
      baselineMinutes: Math.min(...parts.map((part) => part.seen.minutes)),
      baselineDecided: sum(parts.map((part) => part.seen.decided)),
      others: sum(parts.map((part) => (part.count.decided / decided) * (part.beside?.factor ?? 1))),
      sigma: beside.sigma,
      threshold: Math.min(1, threshold),
    },
    beyondOwn: rate > own.threshold,
    beyondWithSurplus: rate > threshold,
    beyond: usualDenied / usualDecided > threshold,
  };
}

function expect(
  parts: readonly Part[],
  minute: number,
  besideOthers: boolean,
): { readonly expected: number; readonly sigma: number; readonly threshold: number } {
  const { decided } = countOf(parts);
  let expected = 0;
  let byChance = 0;
  let strays = 0;
  let minutes = 0;
  for (const { count, own, beside } of parts) {
    if (own === undefined) return { expected: 0, sigma: 0, threshold: 1 };
    const by = besideOthers ? beside : undefined;
    const baseline = by?.baseline ?? own;
    const share = count.decided / decided;
    const rate = by?.expected ?? own.rate;
    // A baseline without denials does not say that there never are any.
    const chance = chanceOf(Math.min(0.5, Math.max(rate, (baseline.denied + 1) / (baseline.decided + 2))));
    const happened = rate - baseline.rate;
    const growth = Math.max(1, by?.factor ?? 1) ** 2;
    expected += share * rate;
    byChance += share * share * (chance * (1 / count.decided + 1 / baseline.decided) + (by?.variance ?? 0));
    // What moves one ring may well move all of them, so these add up, and are not averaged out.
    strays += share * Math.sqrt(varianceAfter(baseline, minute) * growth + (unevenness * happened) ** 2);
    minutes += share * baseline.minutes;
  }
  const sigma = Math.sqrt(byChance + strays * strays);
  const beyond = sigmasAfter(minutes) * sigma;
  // One request more: small counts are lopsided, and come in whole numbers.
  return { expected, sigma, threshold: expected + Math.max(minExcess, beyond + 1 / decided) };
}

/**
 * In shadow both versions are asked about the same requests, so the old one's answers in the same minutes are the baseline.
 * There is nothing that could happen to one and not to the other but the versions themselves: chance is all there is to σ.
 */
function judgeShadow(spans: readonly Span[], sums: TrialSums, minute: number): Look | undefined {
  const pairs = spans.flatMap((span) => {
    const now = addCounts(sums, [span.ring], "shadow", span.from, span.to);
    const old = addCounts(sums, [span.ring], "old", span.from, span.to);
    return now.decided === 0 ? [] : [{ span, now, old, minutes: span.to - span.from + 1 }];
  });
  const now = pairs.reduce((all, pair) => add(all, pair.now), nothing);
  if (now.decided < minDecided) return undefined;
  const old = pairs.reduce((all, pair) => add(all, pair.old), nothing);
  const minutes = Math.max(...pairs.map((pair) => pair.minutes));
  const rings = pairs.map((pair): RingFigures => {
    return { step: pair.span.ring, judged: pair.old.decided > 0, ...compareShadow(pair.now, pair.old, pair.minutes) };
  });
  const total = compareShadow(now, old, minutes);
  const look = { minute, minutes, total, rings };
  if (old.decided === 0) return { ...look, verdict: "none", because: "no_baseline" };
  return { ...look, verdict: total.rate > total.threshold ? "strike" : "fine", because: "" };
}

function compareShadow(now: Count, old: Count, minutes: number): ComparedFigures {
  const rate = now.denied / now.decided;
  const figures = { decided: now.decided, denied: now.denied, rate, others: 1, baselineDecided: old.decided };
  if (old.decided === 0) return { ...figures, baseline: 0, baselineMinutes: 0, sigma: 0, threshold: 1 };
  const baseline = old.denied / old.decided;
  const chance = chanceOf(Math.min(0.5, Math.max(baseline, (old.denied + 1) / (old.decided + 2))));
  const sigma = Math.sqrt(chance * (1 / now.decided + 1 / old.decided));
  const threshold = Math.min(1, baseline + Math.max(minExcess, sigmas * sigma + 1 / now.decided));
  return { ...figures, baseline, baselineMinutes: minutes, sigma, threshold };
}

function countOthers({ rings, side }: Others, sums: TrialSums, from: number, to: number): Count {
  return side === "none" ? nothing : addCounts(sums, rings, side satisfies TallyRecord["side"], from, to);
}

function countOf(parts: readonly Part[]): Count {
  return parts.reduce((all, { count }) => add(all, count), nothing);
}

function add(a: Count, b: Count): Count {
  return { decided: a.decided + b.decided, denied: a.denied + b.denied };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}

/** How much of a ring was seen under the old version. */
export interface BaselineSeen {
  /** In which something was decided. */
  readonly minutes: number;
  readonly decided: number;
}

/** What a ring that joined now would be compared with. */
export function countBaseline(ring: number, sums: TrialSums): BaselineSeen {
  const minutes = sums.minutes(ring, "old").slice(-maxBaselineMinutes);
  return { minutes: minutes.length, decided: sum(minutes.map((minute) => sums.at(ring, "old", minute).decided)) };
}

/** Whether enough of a ring was seen under the old version to compare it later. */
export function hasBaseline(ring: number, sums: TrialSums): boolean {
  const { minutes, decided } = countBaseline(ring, sums);
  return minutes >= baselineNeeds.minutes && decided >= baselineNeeds.decided;
}
