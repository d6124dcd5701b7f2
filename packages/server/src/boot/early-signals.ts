/** The part of `process` that tells of signals. */
export interface Signals {
  on(signal: NodeJS.Signals, listener: () => void): unknown;
  off(signal: NodeJS.Signals, listener: () => void): unknown;
}

/** What SIGHUP asks for: in a terminal it tells that the terminal is gone; elsewhere, by custom, to reload. */
export type HangUp = "stop" | "reload";

/**
 * Minds the signals while the server is still being loaded: there is nothing to finish, so a signal to stop calls `stop`,
 * and there is nothing to reload. Each is handed over to the first who listens to it.
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
      const minded = early.get(signal);
      if (minded !== undefined) signals.off(signal, minded);
    },
    off: (signal, listener) => signals.off(signal, listener),
  };
}
