import type { Flavor } from "@sluice/test-servers";
import type { FaultResult } from "./fault-result.ts";

/** A fault that can be played, and what is to be known of it. */
export interface FaultScenario {
  readonly name: string;
  /** What happens, for people. */
  readonly fault: string;
  /** What is asserted beside what holds for every fault. */
  readonly beside: string;
  play(flavor: Flavor): Promise<FaultResult>;
}
