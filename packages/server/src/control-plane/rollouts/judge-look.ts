import type { RolloutRecord, TallyRecord } from "@sluice/sql";
import {
  type Baseline,
  type BaselineMinute,
  baselineNeeds,
  denialVariance,
  describeBaseline,
  varianceAfter,
} from "./describe-baseline.ts";
import type { ComparedFigures, LookReason, RingFigures, RolloutVerdict } from "./rollout-figures.ts";
import { addCounts, type Count, nothing, type TrialSums } from "./trial-sums.ts";

/** The fields of a rollout that a look depends on. */
export type LookedAt = Pick<RolloutRecord, "shadow" | "step" | "lookedAtMinute" | "strikes">;

/** One look: at a minute, or at as many minutes up to it as have enough traffic. */
export interface Look {
  readonly minute: number;
  readonly minutes: number;
  readonly verdict: RolloutVerdict;
  /** The reason for a verdict other than `fine` or `strike`. */
  readonly because: "" | LookReason;
  readonly total: ComparedFigures;
  readonly rings: readonly RingFigures[];
}

/** Half a percentage point: less is not worth a rollback, however certain it is. */
export const minExcess = 0.005;
/** A look is a strike beyond this many σ. */
const sigmas = 2;
/** σ from few minutes is itself uncertain: Student's quantile exceeds the normal one by nearly this over T − 1. */
const sigmasOfFewMinutes = 3;
/** Lower traffic is combined with that of the following minutes, up to this many. */
export const minDecided = 10;
const maxLookMinutes = 10;
/** A ring is compared with the last hour before it joined. */
const maxBaselineMinutes = 60;
/**
 * How differently rings respond to an event that affects all of them: σ, as a share of the effect. At 1, a ring is
 * affected twice as much, or not at all.
 */
const unevenness = 1;
/** With fewer denials, the factor by which others are denied more often is unknown. */
const minOthersDenied = 10;
/** For this long after the last ones joined, changes are attributed to that. */
const lastStepMinutes = 5;
/** The minutes that show how many requests are usual. */
const volumeMinutes = 20;

/**
 * Compares subjects under the new version with themselves under the old one. Undefined: there is not enough traffic
 * yet, which is neither a strike nor a pardon.
 *
 * A ring is expected to keep the rate that it had before it joined, times the change since then among others, whose
 * version did not change: the old version's subjects, or on the last step those that joined earlier. σ is over the
 * minutes of that comparison.
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
  if (sumCounts(shown).decided < minDecided) return undefined;
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
  // Strikes that began in time are followed up: otherwise two of them would be pardoned because the third came late.
  if (others.side !== "old" && firstMinute - lastJoined > lastStepMinutes && strikes === 0)
    return { ...look, verdict: "none", because: "old_version_unused" };
  if (beyond) return { ...look, verdict: "strike", because: "" };
  if (beyondWithSurplus) return { ...look, verdict: "unclear", because: "surplus" };
  if (beyondOwn) return { ...look, verdict: "unclear", because: "others" };
  return { ...look, verdict: "fine", because: "" };
}

/** The control group of a ring: subjects whose version is the same before it joined and since. */
interface Others {
  readonly rings: readonly number[];
  readonly side: "old" | "new" | "none";
  /** Earlier minutes are not comparable: some of them were under another version. */
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

/** A ring, and its expected rate. */
interface Part {
  readonly ring: number;
  readonly span: Span;
  readonly count: Count;
  /** The traffic under the old version, even if it is too little for a baseline. */
  readonly seen: BaselineSeen;
  /** Requests beyond the usual number. */
  readonly surplus: number;
  readonly own: Baseline | undefined;
  readonly adjusted: AdjustedBaseline | undefined;
}

/** A ring and its control group. */
interface AdjustedBaseline {
  readonly baseline: Baseline;
  /** How many times as often as in the baseline others are denied. */
  readonly factor: number;
  readonly expected: number;
  /** How much that varies with the chance of counting others. */
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
    return { ring, span, count, seen, surplus: 0, own, adjusted: undefined };
  const seriesWithOthers = alone
    .filter((one) => one.minute >= others.since)
    .map((one) => ({ one, other: countOthers(others, sums, one.minute, one.minute) }));
  const now = countOthers(others, sums, span.from, span.to);
  const adjusted = others.side === "none" ? undefined : describeAdjusted(own, seriesWithOthers, now);
  return { ring, span, count, seen, surplus: findSurplus(span, count, alone), own, adjusted };
}

interface MinuteWithOthers {
  readonly one: BaselineMinute;
  readonly other: Count;
}

function describeAdjusted(
  own: Baseline,
  minutes: readonly MinuteWithOthers[],
  now: Count,
): AdjustedBaseline | undefined {
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
    const variance = denialVariance((denied + now.denied + 1) / (decided + now.decided + 2)) / now.decided;
    const more = Math.max(0, rateNow - usual);
    return { baseline: own, factor: 1, expected: Math.min(1, own.rate + more), variance };
  }
  // For a factor: the variance of a rate, over that rate squared.
  const variance = denialVariance(usual) / (usual * usual);
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
 * How many requests exceed the usual number, if it strays further than its usual spread explains. Limits exist to deny
 * what a few subjects request beyond them, so these requests are excluded as if every one of them had been denied: a
 * bad version lets fewer through than usual.
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

/** How many σ are beyond chance, if σ is known from this many minutes. */
function sigmasAfter(minutes: number): number {
  return sigmas + sigmasOfFewMinutes / (minutes - 1);
}

interface Comparison {
  readonly figures: ComparedFigures;
  /** Beyond the variation of the rings' own minutes. */
  readonly beyondOwn: boolean;
  /** Beyond the changes among others, and the effect of a surplus of requests, too. */
  readonly beyond: boolean;
  readonly beyondWithSurplus: boolean;
}

/** Combines rings: counts are added, and expected rates are weighted by them. */
function compare(parts: readonly Part[], minute: number): Comparison {
  const { decided, denied } = sumCounts(parts);
  const rate = denied / decided;
  const own = expect(parts, minute, false);
  const adjusted = parts.some((part) => part.adjusted !== undefined) ? expect(parts, minute, true) : own;
  // It must exceed its own mean as well: others faring better than before is no fault of the new version.
  const threshold = Math.max(adjusted.threshold, own.expected + minExcess);
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
      others: sum(parts.map((part) => (part.count.decided / decided) * (part.adjusted?.factor ?? 1))),
      sigma: adjusted.sigma,
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
  seriesWithOthers: boolean,
): { readonly expected: number; readonly sigma: number; readonly threshold: number } {
  const { decided } = sumCounts(parts);
  let expected = 0;
  let byChance = 0;
  let strays = 0;
  let minutes = 0;
  for (const { count, own, adjusted } of parts) {
    if (own === undefined) return { expected: 0, sigma: 0, threshold: 1 };
    const by = seriesWithOthers ? adjusted : undefined;
    const baseline = by?.baseline ?? own;
    const share = count.decided / decided;
    const rate = by?.expected ?? own.rate;
    // A baseline without denials does not say that there never are any.
    const chance = denialVariance(Math.min(0.5, Math.max(rate, (baseline.denied + 1) / (baseline.decided + 2))));
    const happened = rate - baseline.rate;
    const growth = Math.max(1, by?.factor ?? 1) ** 2;
    expected += share * rate;
    byChance += share * share * (chance * (1 / count.decided + 1 / baseline.decided) + (by?.variance ?? 0));
    // An event that moves one ring may well move all of them, so these add up, and are not averaged out.
    strays += share * Math.sqrt(varianceAfter(baseline, minute) * growth + (unevenness * happened) ** 2);
    minutes += share * baseline.minutes;
  }
  const sigma = Math.sqrt(byChance + strays * strays);
  const beyond = sigmasAfter(minutes) * sigma;
  // One request more: small counts are skewed, and come in whole numbers.
  return { expected, sigma, threshold: expected + Math.max(minExcess, beyond + 1 / decided) };
}

/**
 * In shadow both versions decide the same requests, so the old one's answers in the same minutes are the baseline. Only
 * the versions themselves differ, so σ consists of chance alone.
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
  const chance = denialVariance(Math.min(0.5, Math.max(baseline, (old.denied + 1) / (old.decided + 2))));
  const sigma = Math.sqrt(chance * (1 / now.decided + 1 / old.decided));
  const threshold = Math.min(1, baseline + Math.max(minExcess, sigmas * sigma + 1 / now.decided));
  return { ...figures, baseline, baselineMinutes: minutes, sigma, threshold };
}

function countOthers({ rings, side }: Others, sums: TrialSums, from: number, to: number): Count {
  return side === "none" ? nothing : addCounts(sums, rings, side satisfies TallyRecord["side"], from, to);
}

function sumCounts(parts: readonly Part[]): Count {
  return parts.reduce((all, { count }) => add(all, count), nothing);
}

function add(a: Count, b: Count): Count {
  return { decided: a.decided + b.decided, denied: a.denied + b.denied };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}

/** How much traffic of a ring the old version has decided. */
export interface BaselineSeen {
  /** Minutes with at least one decision. */
  readonly minutes: number;
  readonly decided: number;
}

/** The baseline that a ring joining now would be compared with. */
export function countBaseline(ring: number, sums: TrialSums): BaselineSeen {
  const minutes = sums.minutes(ring, "old").slice(-maxBaselineMinutes);
  return { minutes: minutes.length, decided: sum(minutes.map((minute) => sums.at(ring, "old", minute).decided)) };
}

/** Whether the old version decided enough of a ring to compare it later. */
export function hasBaseline(ring: number, sums: TrialSums): boolean {
  const { minutes, decided } = countBaseline(ring, sums);
  return minutes >= baselineNeeds.minutes && decided >= baselineNeeds.decided;
}
