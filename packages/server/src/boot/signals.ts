/** The part of `process` that reports signals. */
export interface Signals {
  on(signal: NodeJS.Signals, listener: () => void): unknown;
  off(signal: NodeJS.Signals, listener: () => void): unknown;
}

/** What SIGHUP means: in a terminal, that the terminal is gone; otherwise, by convention, a request to reload. */
export type HangUp = "stop" | "reload";
