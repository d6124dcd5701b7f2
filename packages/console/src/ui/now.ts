import { useSyncExternalStore } from "react";

let nowMs = Date.now();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    nowMs = Date.now();
    for (const one of listeners) one();
  }, 1_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** The time, a second apart: one timer for all that show it. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => nowMs);
}
