import type { Stalls } from "sluice/internal";
import type { KeyNames } from "../place/key-names.ts";
import type { scripts } from "../scripts.generated.ts";
import type { GuardedShard, NowMs } from "./guarded-shard.ts";
import type { RunDelay } from "./run-delay.ts";

/** Counts of what has happened; they only grow. */
export interface AskCounts {
  /** Script calls sent, and the questions in them. */
  calls: number;
  questions: number;
  failedCalls: number;
  /** Questions that timed out, except leases, which no request waits for. */
  timeouts: number;
  /** Those that timed out because this process did not run. */
  starved: number;
  /** Questions sent a second time, because that could not charge twice. */
  retries: number;
  /** Scripts sent in full, because a server did not know their digest. */
  loads: number;
  /** Keys that held a value that is not ours, and keys without an expiry that were given one. */
  foreign: number;
  healed: number;
  /** How often counters moved to another server: by a failover, or with the slots of a cluster. */
  moves: number;
}

export interface LaneOptions {
  readonly slot: number;
  readonly names: KeyNames;
  /** The server that holds the lane now; undefined while that is not known. */
  readonly shard: () => GuardedShard | undefined;
  /** Whether no server was ever connected: then questions wait for the first one, as long as their time allows. */
  readonly starting: () => boolean;
  /** The most weight in one call, and the most calls in flight. */
  readonly maxCallWeight: number;
  readonly maxInFlight: number;
  /** The most questions that wait; further ones are rejected. */
  readonly maxWaiting: number;
  readonly nowMs: NowMs;
  /** Shared by all lanes. */
  readonly stalls: Stalls;
  readonly runDelay: RunDelay;
  readonly counts: AskCounts;
  /** Called when a call failed in a way that reading the topology again may cure. */
  readonly onSuspect: () => void;
  /** Called when a call failed, except by timing out. */
  readonly onFailure: (shard: string, error: unknown) => void;
  /** For tests: scripts on another clock, and the arguments that set it. */
  readonly tune?: ScriptTuning | undefined;
}

export interface ScriptTuning {
  readonly scripts: typeof scripts;
  readonly extraArguments: () => readonly string[];
}
