import type { Sited } from "../policy/read-policy-document.ts";

/** Names that lead back to the first of them, and the reference that closes the ring. */
export interface Ring {
  readonly names: readonly string[];
  readonly closing: Sited<string>;
}

/** Finds rings among names that refer to others. Each reference is followed once, however long the chains are. */
export function findRings(references: ReadonlyMap<string, readonly Sited<string>[]>): readonly Ring[] {
  const rings: Ring[] = [];
  const done = new Set<string>();
  for (const start of references.keys()) {
    if (done.has(start)) continue;
    const trail = [start];
    /** For each name on the trail, how many of its references were followed. */
    const followed = new Map([[start, 0]]);
    for (let name = trail.at(-1); name !== undefined; name = trail.at(-1)) {
      const next = followed.get(name)!;
      const reference = references.get(name)?.[next];
      followed.set(name, next + 1);
      if (reference === undefined) {
        trail.pop();
        followed.delete(name);
        done.add(name);
      } else if (followed.has(reference.value)) {
        rings.push({ names: trail.slice(trail.indexOf(reference.value)), closing: reference });
      } else if (!done.has(reference.value)) {
        trail.push(reference.value);
        followed.set(reference.value, 0);
      }
    }
  }
  return rings;
}
