/** The clock and the interval of rollouts. */
export interface RolloutTime {
  /** Epoch milliseconds, the same on every node. */
  readonly nowMs: () => number;
  /** How often metrics are written to the store and evaluated, by the machine's clock. */
  readonly everyMs: number;
}
