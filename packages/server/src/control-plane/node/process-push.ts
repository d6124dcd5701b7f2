import type { Push, PushKind } from "./push.ts";

type Listener = (generation?: number) => void;

/** The listeners in this process, by store. */
const listeners = new Map<string, Set<Listener>>();

/** Push among all parts of this process that have the same store open. `store` is its `where`. */
export function createProcessPush(store: string, kind: Extract<PushKind, "process" | "none"> = "process"): Push {
  let own: Listener | undefined;
  return {
    kind,
    connected: kind === "process",
    announce(generation): void {
      if (kind === "none") return;
      for (const listener of listeners.get(store) ?? []) listener(generation);
    },
    listen(onAnnounced): void {
      if (kind === "none") return;
      own = onAnnounced;
      const all = listeners.get(store) ?? new Set();
      listeners.set(store, all.add(own));
    },
    close(): void {
      const all = listeners.get(store);
      if (all === undefined || own === undefined) return;
      all.delete(own);
      if (all.size === 0) listeners.delete(store);
    },
  };
}
