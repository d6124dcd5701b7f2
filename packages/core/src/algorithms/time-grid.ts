/**
 * Instants are milliseconds since the clock's origin, on a grid of 2⁻²⁰ ms (about a nanosecond). On the grid, sums of
 * times are exact for 99 days of uptime, which is what lets "refused before, allowed at" hold to the last bit; after
 * that they round to 2 ns, then 4.
 */
const stepsPerMs = 2 ** 20;
const stepMs = 2 ** -20;

export function floorToGrid(ms: number): number {
  return Math.floor(ms * stepsPerMs) * stepMs;
}

export function ceilToGrid(ms: number): number {
  return Math.ceil(ms * stepsPerMs) * stepMs;
}
