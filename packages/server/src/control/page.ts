import { invalidField } from "./control-errors.ts";
import type { Listed, PageQuery } from "./control-plane.ts";

const defaultLimit = 100;
const maxLimit = 1_000;

/** How many a part of a list has. Throws `invalid_request`. */
export function limitOf({ limit = defaultLimit }: PageQuery): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= maxLimit) return limit;
  throw invalidField(["limit"], `must be a whole number from 1 to ${maxLimit}, but is ${limit}`);
}

/** A part of a list, from one more than it has: that tells whether another part follows. */
export function pageOf<Row, T>(
  rows: readonly Row[],
  limit: number,
  keyOf: (row: Row) => string,
  render: (row: Row) => T,
): Listed<T> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items: items.map(render), next: rows.length > limit && last !== undefined ? keyOf(last) : undefined };
}
