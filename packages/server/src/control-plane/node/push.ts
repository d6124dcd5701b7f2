/**
 * How nodes learn of a new generation before they poll. A message may be late, lost or duplicated: a node that receives
 * one looks at the store, and a node that receives none looks every second.
 */
export interface Push {
  readonly kind: PushKind;
  /** Whether messages arrive now. */
  readonly connected: boolean;
  /** Notifies all nodes. Does not block, and never throws. */
  announce(generation: number): void;
  /** Called once. Without a generation: listening has restarted, and messages may have been missed. */
  listen(onAnnounced: (generation?: number) => void): void;
  close(): void;
}

/** `process`: within this process. `none`: nodes only poll. */
export type PushKind = "postgres" | "redis" | "kafka" | "process" | "none";

/** The generation that a message announces; undefined if it announces none. */
export function parseGeneration(message: string): number | undefined {
  return /^\d{1,15}$/.test(message) ? Number(message) : undefined;
}
