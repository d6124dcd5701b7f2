import type { Actor } from "../../data-plane/access/actor.ts";

/** The name under which a caller's share is counted. */
export function actorKey({ caller: { tokenId, name } }: Actor): string {
  return tokenId === undefined ? name : `${name} (${tokenId})`;
}
