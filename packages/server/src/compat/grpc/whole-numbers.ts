/** Numbers of a decision as whole numbers; 0 if there is none, or it never comes. */

const maxInt32 = 2 ** 31 - 1;

export function floorOrZero(value: number | undefined): number {
  return value === undefined || !Number.isFinite(value) ? 0 : Math.floor(value);
}

export function ceilOrZero(value: number | undefined): number {
  return value === undefined || !Number.isFinite(value) ? 0 : Math.ceil(value);
}

/** Milliseconds as whole seconds, rounded up, so that waiting that long is enough. */
export function wholeSeconds(ms: number | undefined): number {
  return ms === undefined ? 0 : ceilOrZero(ms / 1_000);
}

/** The nearest value that 32 bits hold. */
export function int32Of(value: number): number {
  return Math.min(value, maxInt32);
}
