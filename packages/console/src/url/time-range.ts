const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** The ranges that views offer. `step` is the length of one period of usage in them. */
export const timeRanges = {
  "5m": { label: "5 minutes", ms: 5 * minuteMs, step: "minute" },
  "15m": { label: "15 minutes", ms: 15 * minuteMs, step: "minute" },
  "1h": { label: "1 hour", ms: hourMs, step: "minute" },
  "6h": { label: "6 hours", ms: 6 * hourMs, step: "minute" },
  "24h": { label: "24 hours", ms: dayMs, step: "minute" },
  "7d": { label: "7 days", ms: 7 * dayMs, step: "hour" },
  "30d": { label: "30 days", ms: 30 * dayMs, step: "hour" },
} as const satisfies Record<string, { label: string; ms: number; step: Step }>;

export type Step = "minute" | "hour" | "day";
export type TimeRange = keyof typeof timeRanges;

export const stepMs: Readonly<Record<Step, number>> = { minute: minuteMs, hour: hourMs, day: dayMs };

export function isTimeRange(text: unknown): text is TimeRange {
  return typeof text === "string" && Object.hasOwn(timeRanges, text);
}

/** The whole periods of a range that end with the one that `nowMs` is in. */
export function boundsOf(range: TimeRange, nowMs: number): { readonly fromMs: number; readonly toMs: number } {
  const { ms, step } = timeRanges[range];
  const toMs = (Math.floor(nowMs / stepMs[step]) + 1) * stepMs[step];
  return { fromMs: toMs - ms, toMs };
}

/** `before` is as long as the range and ends where it begins, to compare with. */
export function boundsBefore(range: TimeRange, nowMs: number): { readonly fromMs: number; readonly toMs: number } {
  const { fromMs, toMs } = boundsOf(range, nowMs);
  return { fromMs: fromMs - (toMs - fromMs), toMs: fromMs };
}
