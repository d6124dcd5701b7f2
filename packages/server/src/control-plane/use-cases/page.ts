import { invalidField } from "../control-errors.ts";
import type { Listed, PageQuery } from "../control-plane.ts";

const defaultLimit = 100;
const maxLimit = 1_000;

/** How many a part of a list has. Throws `invalid_request`. */
export function limitOf({ limit = defaultLimit }: PageQuery): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= maxLimit) return limit;
  throw invalidField(["limit"], `must be a whole number from 1 to ${maxLimit}, but is ${limit}`);
}

/** As much as a part of a list says, but for its last item: a thousand of the longest policies would be a gigabyte. */
const maxPageLength = 2 * 1024 * 1024;

/** How many of these fit into a part of a list, of at most `limit`; one always does. */
export function limitBySize(rows: readonly { readonly document: string }[], limit: number): number {
  let length = 0;
  const cut = rows.findIndex((row) => {
    length += row.document.length;
    return length > maxPageLength;
  });
  return cut < 0 ? limit : Math.min(limit, cut + 1);
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
