import type { Algorithm, Window } from "../policy/policy.ts";

/** A window that never denies anything, because another one of the same limit always denies first. */
export interface NeedlessWindow {
  readonly index: number;
  /** The window that always denies first. */
  readonly stricter: number;
}

export function findNeedlessWindows(windows: readonly Window[], algorithm: Algorithm): readonly NeedlessWindow[] {
  const needless: NeedlessWindow[] = [];
  const isNeedless = (index: number) => needless.some((one) => one.index === index);
  // From the end, so that the later of two equal ones is called needless.
  for (const [index, window] of [...windows.entries()].reverse()) {
    const stricter = windows.findIndex(
      (other, at) => at !== index && !isNeedless(at) && isAlwaysFirst(other, window, algorithm),
    );
    if (stricter !== -1) needless.push({ index, stricter });
  }
  return needless.reverse();
}

function isAlwaysFirst(strict: Window, loose: Window, algorithm: Algorithm): boolean {
  switch (algorithm) {
    case "gcra":
    case "token_bucket":
    case "leaky_bucket":
      // The first has burst − used left, and drains no faster: the second never has less left.
      return strict.burst <= loose.burst && perMillisecond(strict) <= perMillisecond(loose);
    case "fixed_window":
      return loose.limit >= strict.limit * windowsMet(strict, loose);
    case "sliding_window":
      // The estimate also covers the window before.
      return loose.limit >= strict.limit * (windowsMet(strict, loose) + 1);
    case "sliding_log":
      return loose.limit >= strict.limit * windowsToCover(strict, loose);
  }
}

function perMillisecond({ limit, per }: Window): number {
  return per.kind === "ms" ? limit / per.ms : 0;
}

/** How many aligned windows of the one kind a window of the other touches at most. */
function windowsMet(strict: Window, loose: Window): number {
  if (strict.per.kind === "never") return 1;
  if (strict.per.kind === "calendar" && loose.per.kind === "calendar") {
    if (strict.per.timeZone !== loose.per.timeZone) return Number.POSITIVE_INFINITY;
    return strict.per.unit === "day" && loose.per.unit === "month" ? 31 : 1;
  }
  if (strict.per.kind !== "ms" || loose.per.kind !== "ms") return Number.POSITIVE_INFINITY;
  const [strictMs, looseMs] = [strict.per.ms, loose.per.ms];
  if (looseMs % strictMs === 0) return looseMs / strictMs;
  if (strictMs % looseMs === 0) return 1;
  return Math.ceil(looseMs / strictMs) + 1;
}

/** How many stretches of the one length cover any stretch of the other. */
function windowsToCover(strict: Window, loose: Window): number {
  if (strict.per.kind === "never") return 1;
  if (strict.per.kind !== "ms" || loose.per.kind !== "ms") return Number.POSITIVE_INFINITY;
  return Math.ceil(loose.per.ms / strict.per.ms);
}
