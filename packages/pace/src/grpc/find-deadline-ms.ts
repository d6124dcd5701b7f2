import { type InterceptorOptions, propagate } from "@grpc/grpc-js";

/** The deadline of a call in epoch milliseconds, its parent's included where that is handed on. Infinity: there is none. */
export function findDeadlineMs({ deadline, parent, propagate_flags }: InterceptorOptions): number {
  const own = deadline === undefined ? Number.POSITIVE_INFINITY : Number(deadline);
  if (parent === undefined || !hands(propagate_flags, propagate.DEADLINE)) return own;
  return Math.min(own, Number(parent.getDeadline()));
}

/** What a call takes over from the one it was made for; all of it, unless its flags say otherwise. */
export function hands(flags: number | undefined, what: propagate): boolean {
  return ((flags ?? propagate.DEFAULTS) & what) !== 0;
}
