const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** `250 ms`, `3 s`, `4 min 5 s`, `2 h 10 min`, `3 d 4 h`: the two largest units. */
export function formatDuration(ms: number): string {
  const rest = Math.max(0, ms);
  if (rest < second) return `${Math.round(rest)} ms`;
  if (rest < 10 * second) return `${Number((rest / second).toFixed(1))} s`;
  if (rest < minute) return `${Math.round(rest / second)} s`;
  if (rest < hour) return joinUnits(rest, minute, "min", second, "s");
  if (rest < day) return joinUnits(rest, hour, "h", minute, "min");
  return joinUnits(rest, day, "d", hour, "h");
}

function joinUnits(ms: number, large: number, largeName: string, small: number, smallName: string): string {
  const smalls = Math.round(ms / small);
  const perLarge = large / small;
  const rest = smalls % perLarge;
  const larges = `${Math.floor(smalls / perLarge)} ${largeName}`;
  return rest === 0 ? larges : `${larges} ${rest} ${smallName}`;
}

/** `just now`, `5 min ago`, `in 2 h`. */
export function formatAgo(atMs: number, nowMs: number): string {
  const distance = nowMs - atMs;
  const size = Math.abs(distance);
  if (size < 5 * second) return "just now";
  const text = largestUnit(size);
  return distance > 0 ? `${text} ago` : `in ${text}`;
}

function largestUnit(ms: number): string {
  if (ms < minute) return `${Math.floor(ms / second)} s`;
  if (ms < hour) return `${Math.floor(ms / minute)} min`;
  if (ms < 2 * day) return `${Math.floor(ms / hour)} h`;
  return `${Math.floor(ms / day)} d`;
}

/** `2026-11-18 21:04:05`, where the reader is. */
export function formatMoment(ms: number): string {
  const at = new Date(ms);
  const date = [at.getFullYear(), pad(at.getMonth() + 1), pad(at.getDate())].join("-");
  return `${date} ${formatClock(ms)}`;
}

export function formatClock(ms: number): string {
  const at = new Date(ms);
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map(pad).join(":");
}

function pad(number: number): string {
  return String(number).padStart(2, "0");
}
