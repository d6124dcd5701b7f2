/** More than any policy has, and far from where a stack ends. */
export const maxDepth = 64;

/** Whether data that somebody sent is nested deeper than `maxDepth`: `JSON.stringify`, for one, runs out of stack there. */
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
