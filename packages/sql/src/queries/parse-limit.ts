/** How many records a page may have. SQLite reads a negative number as no limit, and PostgreSQL refuses it: both refuse it here. */
export function parseLimit(limit: number): number {
  if (!Number.isSafeInteger(limit) || limit < 0)
    throw new RangeError(`\`limit\` must be a whole number, 0 or more, and is ${limit}`);
  return limit;
}
