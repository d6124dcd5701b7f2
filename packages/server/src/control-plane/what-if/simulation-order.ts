/** What is to be simulated: plain data. */
export interface SimulationOrder {
  /** A recording's file, or the bytes of a log, compressed or not. */
  readonly path: string | undefined;
  readonly bytes: Uint8Array | undefined;
  readonly format: string | undefined;
  readonly map: readonly string[];
  /** The policies in force, as a policy file in JSON. */
  readonly inForce: string;
  /** A whole policy file, or documents that replace those in force. */
  readonly file: string | undefined;
  readonly policies: readonly string[];
  readonly now: "policies" | "recorded";
  readonly findLimit: string | undefined;
}

/** What the thread gets. */
export interface SimulationInput extends SimulationOrder {
  /** For the counters of the simulation, and again for those of replaying a recording under its own policies. */
  readonly maxCounterBytes: number;
}

/** What the thread answers. */
export type SimulationMessage =
  | { readonly kind: "progress"; readonly share: number; readonly requests: number }
  | { readonly kind: "done"; readonly document: unknown }
  | { readonly kind: "refused"; readonly message: string };
