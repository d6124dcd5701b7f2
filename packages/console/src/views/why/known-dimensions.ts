import type { JsonObject } from "@sluice/protocol/admin";

/** Every dimension that policies count or match by, in the order of the alphabet. */
export function dimensionsOf(policies: readonly { readonly document: JsonObject }[]): readonly string[] {
  const names = new Set<string>();
  for (const { document } of policies) {
    const { match, limits } = document as { readonly match?: unknown; readonly limits?: unknown };
    if (typeof match === "object" && match !== null) for (const name of Object.keys(match)) names.add(name);
    for (const limit of Array.isArray(limits) ? (limits as readonly { readonly by?: unknown }[]) : [])
      for (const name of [limit.by].flat()) if (typeof name === "string") names.add(name);
  }
  names.delete("domain");
  return [...names].toSorted();
}
