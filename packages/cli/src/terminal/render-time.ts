const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** From here on a date says more than a number of days. */
const datedFromMs = 60 * 86_400_000;

/** `3m ago`, `in 2h`, `now`; far away a date, in UTC. Undefined: `-`. */
export function renderMoment(atMs: number | undefined | null, nowMs: number): string {
  if (atMs === undefined || atMs === null) return "-";
  const awayMs = atMs - nowMs;
  if (Math.abs(awayMs) < 1_000) return "now";
  if (Math.abs(awayMs) >= datedFromMs) return new Date(atMs).toISOString().slice(0, 10);
  // What was two hours away a moment ago is two hours away.
  const text = renderSpan(Math.round(Math.abs(awayMs) / 1_000) * 1_000);
  return awayMs < 0 ? `${text} ago` : `in ${text}`;
}

/** `1d 4h`, `12m 5s`, `40s`: the largest unit, and the next where it says something. Below a second, `0s`. */
export function renderSpan(ms: number): string {
  const largest = units.findIndex(([, unitMs]) => ms >= unitMs);
  let restMs = ms;
  const parts = units.slice(largest, largest + 2).map(([unit, unitMs]) => {
    const count = Math.floor(restMs / unitMs);
    restMs -= count * unitMs;
    return { count, text: `${count}${unit}` };
  });
  return largest === -1
    ? "0s"
    : parts
        .filter(({ count }) => count > 0)
        .map(({ text }) => text)
        .join(" ");
}

/** `2026-01-31 12:00:00 UTC` */
export function renderInstant(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}
