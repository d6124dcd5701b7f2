import type { StoreNote } from "@sluice/sql";
import type { Access } from "../../data-plane/access/access.ts";

/** Remembers which tokens of the store are used, and writes that to the store at intervals. */
export interface TokenUses {
  /** The same access, recording its callers. */
  watch<A extends Access>(access: A): A;
  /** Writes the uses since the last call. */
  write(note: Pick<StoreNote, "touchToken">): Promise<void>;
  readonly waiting: boolean;
}

/** How often the use of a busy token is written. */
const everyMs = 60_000;

export function createTokenUses(nowMs: () => number = Date.now): TokenUses {
  const used = new Map<string, number>();
  const written = new Map<string, number>();

  function due(): readonly (readonly [id: string, usedMs: number])[] {
    return [...used].filter(([id, usedMs]) => usedMs - (written.get(id) ?? Number.NEGATIVE_INFINITY) >= everyMs);
  }

  return {
    watch: (access) => ({
      ...access,
      identify(token) {
        const caller = access.identify(token);
        if (caller.tokenId !== undefined) used.set(caller.tokenId, nowMs());
        return caller;
      },
    }),
    async write(note): Promise<void> {
      for (const [id, usedMs] of due()) {
        await note.touchToken(id, usedMs);
        used.delete(id);
        written.set(id, usedMs);
      }
    },
    get waiting(): boolean {
      return due().length > 0;
    },
  };
}
