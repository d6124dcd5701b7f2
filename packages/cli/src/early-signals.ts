/** The part of `process` that reports signals. */
export interface Signals {
  on(signal: NodeJS.Signals, listener: () => void): unknown;
  off(signal: NodeJS.Signals, listener: () => void): unknown;
}

/** What SIGHUP means: in a terminal, that the terminal is gone; otherwise, by convention, a request to reload. */
export type HangUp = "stop" | "reload";

/**
 * Handles signals while the server is still being loaded: there is nothing to finish, so a signal to stop calls `stop`,
 * and there is nothing to reload. Each signal is handed over to its first listener.
 */
export function mindEarlySignals(signals: Signals, hangUp: HangUp, stop: () => void): Signals {
  const early = new Map<NodeJS.Signals, () => void>([
    ["SIGTERM", stop],
    ["SIGINT", stop],
    ["SIGHUP", hangUp === "stop" ? stop : () => {}],
  ]);
  for (const [signal, listener] of early) signals.on(signal, listener);
  return {
    on(signal, listener): void {
      signals.on(signal, listener);
      const handler = early.get(signal);
      if (handler !== undefined) signals.off(signal, handler);
    },
    off: (signal, listener) => signals.off(signal, listener),
  };
}
