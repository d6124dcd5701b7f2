/** More than any policy has, and far from where a stack ends. */
export const maxDepth = 64;

/** Whether data that somebody sent is nested deeper than `maxDepth`: `JSON.stringify`, for one, runs out of stack there. */
export function isTooDeep(value: unknown): boolean {
  let level: readonly unknown[] = [value];
  for (let depth = 0; depth <= maxDepth; depth++) {
    const below: unknown[] = [];
    for (const one of level)
      if (typeof one === "object" && one !== null) for (const inner of Object.values(one)) below.push(inner);
    if (below.length === 0) return false;
    level = below;
  }
  return true;
}
