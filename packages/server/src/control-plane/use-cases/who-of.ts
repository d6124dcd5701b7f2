import type { Actor } from "../../data-plane/access/actor.ts";

/** The name under which a caller's share of something is counted. */
export function whoOf({ caller: { tokenId, name } }: Actor): string {
  return tokenId === undefined ? name : `${name} (${tokenId})`;
}
