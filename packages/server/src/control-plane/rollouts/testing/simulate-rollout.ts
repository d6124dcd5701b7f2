import type { RolloutRecord, TallyRecord } from "@sluice/sql";
import { decideRollout, needsTallies } from "../decide-rollout.ts";
import { type RolloutStart, startRollout } from "../start-rollout.ts";
import { isUnderway } from "../steer-rollout.ts";
import { createSeededRandom, type SeededRandom } from "./seeded-random.ts";

/** The traffic of a policy, with everything that makes one minute unlike another. */
export interface World {
  /** Requests a minute, of all subjects. */
  readonly perMinute: number;
  /** The share that is denied, on average. */
  readonly denied: number;
  /** Fluctuations that all subjects share: σ of the log-odds, and how much of it is left a minute later. */
  readonly swing: number;
  readonly swingLasts: number;
  /** Daily waves: amplitude of the log-odds, and of the number of requests. */
  readonly dayWave: number;
  readonly dayVolume: number;
  /**
   * The chance per minute of a burst that all subjects share; it continues with probability 2/3 from minute to minute.
   */
  readonly bursts: number;
  /** The fifteen busiest subjects: their share of all requests, and how much each of them fluctuates. */
  readonly whales: number;
  readonly whaleSwing: number;
  readonly whaleLasts: number;
  /**
   * The chance per minute that one of them sends ten times as many requests, and is denied nine times out of ten; for
   * five minutes on average.
   */
  readonly floods: number;
}

/** The probability that the new version denies a request, given that of the old one. */
export type NewVersion = (denied: number) => number;

export interface Simulated {
  readonly rollout: RolloutRecord;
  /** The minutes from the first subject under the new version to the end of the rollout. */
  readonly lastedMinutes: number;
}

/** Decides a rollout's next move, like `decideRollout`. */
export type Decide = typeof decideRollout;

const minuteMs = 60_000;
const firstMinute = 28_000_000;
const maxMinutes = 200;
const whaleCount = 15;

/** Traffic of all kinds, one for each seed: quiet and wild, from fifty requests a second to twenty thousand. */
export function drawWorld(seed: number, fixed: Partial<World> = {}): World {
  const { between } = createSeededRandom(seed + 99_991);
  return {
    perMinute: Math.exp(between(Math.log(3_000), Math.log(1_200_000))),
    denied: Math.exp(between(Math.log(0.002), Math.log(0.25))),
    swing: between(0, 0.3),
    swingLasts: between(0.3, 0.97),
    dayWave: between(0, 0.7),
    dayVolume: between(0, 0.6),
    bursts: between(0, 0.02),
    whales: between(0.1, 0.5),
    whaleSwing: between(0, 0.5),
    whaleLasts: between(0.5, 0.95),
    floods: 0.003,
    ...fixed,
  };
}

/** Simulates a rollout from start to end, minute by minute, on this traffic. */
export function simulateRollout(
  world: World,
  seed: number,
  newVersion: NewVersion = (denied) => denied,
  request: Partial<RolloutStart> = {},
  decide: Decide = decideRollout,
): Simulated {
  const random = createSeededRandom(seed);
  const beganMs = firstMinute * minuteMs + Math.floor(random.between(0, minuteMs));
  const start = { id: "r", policy: "p", fromVersion: 1, toVersion: 2, author: "ada", by: "user" };
  let rollout = startRollout({ ...start, ...request }, beganMs);
  const traffic = createTraffic(world, random, rollout.steps);
  const tallies: TallyRecord[] = [];
  let joinedMs = rollout.step >= 0 ? beganMs : undefined;
  for (let minute = firstMinute; minute < firstMinute + maxMinutes; minute++) {
    const atStart = rollout.step;
    // The leader looks every few seconds: at least once after a minute has been reported, and once when a step's time
    // is over.
    const passes = [16_000, (beganMs % minuteMs) + 1_000].map((offsetMs) => minute * minuteMs + offsetMs);
    let movedMs = rollout.stepSinceMs;
    for (const nowMs of passes.sort((a, b) => a - b)) {
      if (nowMs < beganMs) continue;
      rollout = decide(rollout, needsTallies(rollout, nowMs) ? tallies : [], nowMs)?.rollout ?? rollout;
      if (!isUnderway(rollout)) return { rollout, lastedMinutes: (nowMs - (joinedMs ?? nowMs)) / minuteMs };
      movedMs = rollout.stepSinceMs;
    }
    if (rollout.step >= 0) joinedMs ??= movedMs;
    const newShare = rollout.step === atStart ? 1 : 1 - (movedMs % minuteMs) / minuteMs;
    const counts = new Map<string, { ring: number; side: TallyRecord["side"]; decided: number; denied: number }>();
    const count = (ring: number, side: TallyRecord["side"], decided: number, probability: number): void => {
      if (decided === 0) return;
      const key = `${ring} ${side}`;
      const counted = counts.get(key) ?? { ring, side, decided: 0, denied: 0 };
      counted.decided += decided;
      counted.denied += random.binomial(decided, probability);
      counts.set(key, counted);
    };
    for (const { ring, requests, denied } of traffic(minute)) {
      const share = ring > rollout.step ? 0 : ring > atStart ? newShare : 1;
      const underNew = share === 1 ? requests : random.binomial(requests, share);
      count(ring, "old", rollout.shadow ? requests : requests - underNew, denied);
      count(ring, rollout.shadow ? "shadow" : "new", underNew, Math.min(1, newVersion(denied)));
    }
    for (const { ring, ...counted } of counts.values())
      tallies.push({ rollout: "r", node: "n", minute, step: ring, ...counted });
  }
  return { rollout, lastedMinutes: Number.POSITIVE_INFINITY };
}

/** Requests of similar subjects in one minute. */
interface Group {
  readonly ring: number;
  readonly requests: number;
  /** The probability that the old version denies one of them. */
  readonly denied: number;
}

function createTraffic(
  world: World,
  random: SeededRandom,
  steps: readonly { readonly percent: number }[],
): (minute: number) => readonly Group[] {
  const { normal, uniform } = random;
  const average = Math.log(world.denied / (1 - world.denied));
  const dayPhase = random.between(0, 1_440);
  const crowds = steps.map(({ percent }, ring) => ({
    ring,
    share: ((percent - (steps[ring - 1]?.percent ?? 0)) / 100) * (1 - world.whales),
    lean: 0.1 * normal(),
    swing: createSwing(0.05, 0.7, random),
  }));
  const whales = Array.from({ length: whaleCount }, (_, rank) => {
    const place = random.between(0, 100);
    return {
      ring: steps.findIndex(({ percent }) => place < percent),
      share: world.whales / (rank + 1) / harmonic(whaleCount),
      lean: 0.7 * normal(),
      volume: createSwing(world.whaleSwing, world.whaleLasts, random),
      swing: createSwing(world.whaleSwing, world.whaleLasts, random),
      floods: false,
    };
  }).filter(({ ring }) => ring >= 0);
  const swing = createSwing(world.swing, world.swingLasts, random);
  let burst = 0;

  return (minute) => {
    if (burst > 0) burst = uniform() < 1 / 3 ? 0 : burst;
    else if (uniform() < world.bursts) burst = random.between(0.5, 2);
    const day = (2 * Math.PI * (minute + dayPhase)) / 1_440;
    const common = average + swing() + world.dayWave * Math.sin(day + 0.9) + burst;
    const volume =
      world.perMinute * (1 + world.dayVolume * Math.sin(day)) * (1 + 0.3 * burst) * Math.exp(0.05 * normal());
    const flooding = uniform() < world.floods ? whales[Math.floor(uniform() * whales.length)] : undefined;
    if (flooding !== undefined) flooding.floods = true;
    const groups: Group[] = crowds.map(({ ring, share, lean, swing: own }) => {
      return { ring, requests: random.poisson(volume * share), denied: odds(common + lean + own()) };
    });
    for (const whale of whales) {
      if (whale.floods && uniform() < 0.2) whale.floods = false;
      const mean = volume * whale.share * Math.exp(whale.volume()) * (whale.floods ? 10 : 1);
      const denied = odds(common + whale.lean + whale.swing());
      groups.push({ ring: whale.ring, requests: random.poisson(mean), denied: whale.floods ? 0.9 : denied });
    }
    return groups;
  };
}

/** Fluctuation: a first-order autoregression. */
function createSwing(sigma: number, lasts: number, { normal }: SeededRandom): () => number {
  let at = normal();
  return () => {
    at = lasts * at + Math.sqrt(1 - lasts * lasts) * normal();
    return sigma * at;
  };
}

function odds(logOdds: number): number {
  return 1 / (1 + Math.exp(-logOdds));
}

function harmonic(count: number): number {
  let sum = 0;
  for (let i = 1; i <= count; i++) sum += 1 / i;
  return sum;
}
