import { ManualClock } from "../clock.ts";
import { createLimiter } from "../create-limiter.ts";
import type { Limiter, LimiterOptions } from "../limiter.ts";

/** When test limiters begin: noon, 15 January 2026, UTC. */
export const limiterStartMs: number = Date.UTC(2026, 0, 15, 12);

/** A limiter on a clock that stands still. */
export function openLimiter(
  document: Record<string, unknown>,
  options: LimiterOptions = {},
): { readonly limiter: Limiter; readonly clock: ManualClock } {
  const clock = new ManualClock(limiterStartMs);
  return { limiter: createLimiter({ policies: document, clock, ...options }), clock };
}

/** A document of one policy, `p`, with one limit by user. */
export function onePolicy(windows: unknown, more: Record<string, unknown> = {}): Record<string, unknown> {
  return { policies: [{ id: "p", limits: [{ by: ["user"], windows, ...more }] }] };
}

/** A request by a user. */
export function byUser(
  name: string,
  more: Record<string, string> = {},
): { readonly dimensions: Readonly<Record<string, string>> } {
  return { dimensions: { user: name, ...more } };
}
