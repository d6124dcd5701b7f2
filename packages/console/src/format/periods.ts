/** What the server stores of a period of usage, as far as charts need it. */
export interface UsagePeriod {
  readonly start_ms: number;
  readonly decided: number;
  readonly allowed: number;
  readonly denied: number;
  readonly degraded: number;
  readonly shadow_denied: number;
  readonly cost: number;
}

/** Periods next to one another, in columns. */
export interface PeriodColumns {
  /** When each begins. */
  readonly times: readonly number[];
  readonly allowed: readonly number[];
  readonly denied: readonly number[];
  readonly degraded: readonly number[];
  readonly shadowDenied: readonly number[];
  readonly cost: readonly number[];
}

/** Every period from `fromMs` until before `toMs`, in columns: those that the server left out had no decisions. Alike ones are added up. */
export function fillPeriods(
  periods: readonly UsagePeriod[],
  fromMs: number,
  toMs: number,
  stepMs: number,
): PeriodColumns {
  const count = Math.max(0, Math.ceil((toMs - fromMs) / stepMs));
  const zeros = () => new Array<number>(count).fill(0);
  const columns = { allowed: zeros(), denied: zeros(), degraded: zeros(), shadowDenied: zeros(), cost: zeros() };
  for (const period of periods) {
    const at = Math.floor((period.start_ms - fromMs) / stepMs);
    if (at < 0 || at >= count) continue;
    columns.allowed[at]! += period.allowed;
    columns.denied[at]! += period.denied;
    columns.degraded[at]! += period.degraded;
    columns.shadowDenied[at]! += period.shadow_denied;
    columns.cost[at]! += period.cost;
  }
  return { times: Array.from({ length: count }, (_, at) => fromMs + at * stepMs), ...columns };
}

/** Servers store what they decided every ten seconds. */
const storedAfterMs = 10_000;
/** Less than this says nothing about a rate. */
const leastMs = 60_000;

/** Sums per second. The period that is not over yet is divided by the part of it that is stored, and is unknown if that is too short. */
export function perSecond(
  values: readonly number[],
  times: readonly number[],
  stepMs: number,
  nowMs: number,
): readonly (number | null)[] {
  return values.map((value, at) => {
    const storedMs = nowMs - storedAfterMs - times[at]!;
    return storedMs < leastMs ? null : value / (Math.min(stepMs, storedMs) / 1_000);
  });
}

/** Sums of periods that are over and stored. One that is not is unknown: a part of it would look like a sudden fall. */
export function wholePeriods(
  values: readonly number[],
  times: readonly number[],
  stepMs: number,
  nowMs: number,
): readonly (number | null)[] {
  return values.map((value, at) => (nowMs - storedAfterMs - times[at]! < stepMs ? null : value));
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
