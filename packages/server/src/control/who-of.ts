import type { Actor } from "./control-plane.ts";

/** By what callers are told apart where each has a share. */
export function whoOf({ caller: { tokenId, name } }: Actor): string {
  return tokenId === undefined ? name : `${name} (${tokenId})`;
}
