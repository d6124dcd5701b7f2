import type { ResolvedLimit } from "../counters/counter-store.ts";
import type { CompiledWindow } from "../limits/compiled-limit.ts";

/**
 * Two limits of one policy may share a counter (linting warns about it). Both have to agree, and the one with the
 * slower rate, to which the cost is worth more time, does the charging: once, and never with an extra admission.
 */
export function chargeOnce(limits: readonly ResolvedLimit[]): readonly ResolvedLimit[] {
  return limits.some(({ limit }) => limit.sharesIdentity) ? chargeEachOnce(limits) : limits;
}

/** The same, for limits that are known to share one. */
export function chargeEachOnce(limits: readonly ResolvedLimit[]): readonly ResolvedLimit[] {
  const slowest = new Map<string, CompiledWindow>();
  const counterKey = (window: CompiledWindow, subject: string): string => `${window.identity}\n${subject}`;
  for (const { windows, subject } of limits) {
    for (const window of windows) {
      const other = slowest.get(counterKey(window, subject));
      if (other === undefined || window.intervalMs > other.intervalMs) slowest.set(counterKey(window, subject), window);
    }
  }
  return limits.map((resolved) => ({
    ...resolved,
    windows: resolved.windows.map((window) =>
      slowest.get(counterKey(window, resolved.subject)) === window ? window : { ...window, charges: false },
    ),
  }));
}
