import { type InterceptorOptions, propagate } from "@grpc/grpc-js";

/** The deadline of a call in epoch milliseconds, including its parent's if that propagates. Infinity: none. */
export function findDeadlineMs({ deadline, parent, propagate_flags }: InterceptorOptions): number {
  const own = deadline === undefined ? Number.POSITIVE_INFINITY : Number(deadline);
  if (parent === undefined || !hands(propagate_flags, propagate.DEADLINE)) return own;
  return Math.min(own, Number(parent.getDeadline()));
}

/** What a call inherits from its parent; everything, unless its flags say otherwise. */
export function hands(flags: number | undefined, what: propagate): boolean {
  return ((flags ?? propagate.DEFAULTS) & what) !== 0;
}
