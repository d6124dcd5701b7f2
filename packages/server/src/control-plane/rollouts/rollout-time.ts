/** By which rollouts are begun, counted and looked at. */
export interface RolloutTime {
  /** Epoch milliseconds, the same on every node. */
  readonly nowMs: () => number;
  /** How often figures are told to the store and looked at, by the machine's clock. */
  readonly everyMs: number;
}
