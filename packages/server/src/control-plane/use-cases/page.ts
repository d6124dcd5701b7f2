import type { Listed, PageQuery } from "../change.ts";
import { invalidField } from "../control-errors.ts";

const defaultLimit = 100;
const maxLimit = 1_000;

/** How many items a page has. Throws `invalid_request`. */
export function parsePageLimit({ limit = defaultLimit }: PageQuery): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= maxLimit) return limit;
  throw invalidField(["limit"], `must be a whole number from 1 to ${maxLimit}, but is ${limit}`);
}

/** The most text in one page, apart from its last item: a thousand of the longest policies would be a gigabyte. */
const maxPageLength = 2 * 1024 * 1024;

/** How many of these fit into a page of at most `limit`; at least one. */
export function limitBySize(rows: readonly { readonly document: string }[], limit: number): number {
  let length = 0;
  const cut = rows.findIndex((row) => {
    length += row.document.length;
    return length > maxPageLength;
  });
  return cut < 0 ? limit : Math.min(limit, cut + 1);
}

/** A page, from one item more than it has, which shows whether another page follows. */
export function renderPage<Row, T>(
  rows: readonly Row[],
  limit: number,
  findKey: (row: Row) => string,
  render: (row: Row) => T,
): Listed<T> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items: items.map(render), next: rows.length > limit && last !== undefined ? findKey(last) : undefined };
}
