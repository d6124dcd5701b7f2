/** Deeper than any policy, and far from the end of the stack. */
export const maxDepth = 64;

/**
 * Whether data from outside is nested more deeply than `maxDepth`: `JSON.stringify`, for example, would overflow the
 * stack.
 */
export function isTooDeep(value: unknown): boolean {
  return isDeeperThan(value, maxDepth);
}

function isDeeperThan(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (depth === 0) return true;
  if (Array.isArray(value)) return value.some((inner) => isDeeperThan(inner, depth - 1));
  for (const key in value) if (isDeeperThan((value as Record<string, unknown>)[key], depth - 1)) return true;
  return false;
}
