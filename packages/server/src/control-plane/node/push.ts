/**
 * How nodes hear of a new generation before they look for one. A message may be late, lost or doubled: who hears looks at the
 * store, and who hears nothing looks every second.
 */
export interface Push {
  readonly kind: PushKind;
  /** Whether messages are heard now. */
  readonly connected: boolean;
  /** Tells all nodes. Waits for nothing, and never throws. */
  announce(generation: number): void;
  /** Called once. Without a generation: listening has begun anew, and something may have been missed. */
  listen(onHeard: (generation?: number) => void): void;
  close(): void;
}

/** `process`: among what runs in this process. `none`: nodes only look. */
export type PushKind = "postgres" | "redis" | "process" | "none";

/** The generation that a message tells of; undefined where it is none. */
export function parseGeneration(message: string): number | undefined {
  return /^\d{1,15}$/.test(message) ? Number(message) : undefined;
}
