/** Numbers of a decision as whole ones; 0 where there is none, or it never comes. */

const maxInt32 = 2 ** 31 - 1;

export function floorOf(value: number | undefined): number {
  return value === undefined || !Number.isFinite(value) ? 0 : Math.floor(value);
}

export function ceilOf(value: number | undefined): number {
  return value === undefined || !Number.isFinite(value) ? 0 : Math.ceil(value);
}

/** Milliseconds as whole seconds, rounded up: who waits that long has waited long enough. */
export function secondsOf(ms: number | undefined): number {
  return ms === undefined ? 0 : ceilOf(ms / 1_000);
}

/** The nearest that 32 bits hold. */
export function int32Of(value: number): number {
  return Math.min(value, maxInt32);
}
