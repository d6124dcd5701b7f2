import type { Window } from "sluice";

/** What was charged, next to what a window of a limit allows. */
export interface WindowUsage {
  readonly values: readonly number[];
  /** What the window allows in what each value stands for. */
  readonly capacity: number;
  /** What a value stands for, in words. */
  readonly meaning: string;
  /** Whether each value is of one period alone, so that one that is not over yet says nothing. */
  readonly isPerPeriod: boolean;
}

/** How far back a window looks beyond the first period that is shown; nothing if it is shorter than one. */
export function lookBackMs({ per }: Pick<Window, "per">, stepMs: number): number {
  if (per.kind === "ms") return per.ms > stepMs ? per.ms : 0;
  return per.kind === "calendar" ? (per.unit === "day" ? 86_400_000 : 31 * 86_400_000) : 0;
}

/**
 * What was charged per period, against a window. A window shorter than a period is compared by what it allows in a period: bursts
 * within it do not show. A longer one is compared by what was charged in the time that it spans, up to each period; a calendar
 * window by what was charged since it began.
 */
export function compareWithWindow(
  { limit, per }: Pick<Window, "limit" | "per">,
  times: readonly number[],
  costs: readonly number[],
  stepMs: number,
): WindowUsage {
  if (per.kind === "never")
    return { values: runningSums(costs), capacity: limit, meaning: "charged so far in this range", isPerPeriod: false };
  if (per.kind === "calendar")
    return {
      values: sumsSince(times, costs, calendarKey(per.unit, per.timeZone)),
      capacity: limit,
      meaning: `charged since the ${per.unit} began in ${per.timeZone}`,
      isPerPeriod: false,
    };
  if (per.ms <= stepMs)
    return {
      values: costs,
      capacity: (limit * stepMs) / per.ms,
      meaning: `charged per ${stepName(stepMs)}`,
      isPerPeriod: true,
    };
  const span = Math.max(1, Math.round(per.ms / stepMs));
  return {
    values: slidingSums(costs, span),
    capacity: limit,
    meaning: "charged in the window that ends then",
    isPerPeriod: false,
  };
}

function stepName(stepMs: number): string {
  return stepMs === 60_000 ? "minute" : stepMs === 3_600_000 ? "hour" : "day";
}

function runningSums(values: readonly number[]): readonly number[] {
  let total = 0;
  return values.map((value) => {
    total += value;
    return total;
  });
}

function slidingSums(values: readonly number[], span: number): readonly number[] {
  let total = 0;
  return values.map((value, at) => {
    total += value - (values[at - span] ?? 0);
    return total;
  });
}

function sumsSince(
  times: readonly number[],
  values: readonly number[],
  keyOf: (ms: number) => string,
): readonly number[] {
  let total = 0;
  let key = "";
  return values.map((value, at) => {
    const now = keyOf(times[at]!);
    if (now !== key) total = 0;
    key = now;
    total += value;
    return total;
  });
}

function calendarKey(unit: "day" | "month", timeZone: string): (ms: number) => string {
  const format = new Intl.DateTimeFormat("en-CA", {
    timeZone,
    year: "numeric",
    month: "2-digit",
    ...(unit === "day" && { day: "2-digit" }),
  });
  return (ms) => format.format(ms);
}
