import type { Flavor } from "@sluice/test-servers";
import type { FaultResult } from "./fault-result.ts";

/** A fault that can be played, and its description. */
export interface FaultScenario {
  readonly name: string;
  /** What happens, for people. */
  readonly fault: string;
  /** The assertions besides those for every fault. */
  readonly beside: string;
  play(flavor: Flavor): Promise<FaultResult>;
}
