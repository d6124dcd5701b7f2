import type { Stalls } from "sluice/store";
import type { KeyNames } from "../place/key-names.ts";
import type { scripts } from "../scripts.generated.ts";
import type { GuardedShard, NowMs } from "./guarded-shard.ts";
import type { RunDelay } from "./run-delay.ts";

/** What has happened, in numbers that only grow. */
export interface AskCounts {
  /** Script calls sent, and the questions in them. */
  calls: number;
  questions: number;
  failedCalls: number;
  /** Questions that were not answered in time, except leases, for which no request waits. */
  timeouts: number;
  /** The same, because this process did not run meanwhile. */
  starved: number;
  /** Questions sent a second time, because that could not charge twice. */
  retries: number;
  /** Scripts sent in full, because a server did not know their digest. */
  loads: number;
  /** Keys that held something that is not ours, and keys without an end that were given one. */
  foreign: number;
  healed: number;
  /** Times that counters went over to another server: a failover, or slots of a cluster that moved. */
  moves: number;
}

export interface LaneOptions {
  readonly slot: number;
  readonly names: KeyNames;
  /** The server that holds the lane now, or undefined while that is not known. */
  readonly shard: () => GuardedShard | undefined;
  /** Whether no server was ever connected: then questions wait for the first one, as long as their time allows. */
  readonly starting: () => boolean;
  /** Weight of one call at most, and how many calls may be under way. */
  readonly maxCallWeight: number;
  readonly maxInFlight: number;
  /** Questions that wait at most; further ones are turned away. */
  readonly maxWaiting: number;
  readonly nowMs: NowMs;
  /** Of all lanes together. */
  readonly stalls: Stalls;
  readonly runDelay: RunDelay;
  readonly counts: AskCounts;
  /** A call failed in a way that reading the topology again may cure. */
  readonly onSuspect: () => void;
  /** A call failed, other than by not being answered. */
  readonly onFailure: (shard: string, error: unknown) => void;
  /** For tests: scripts on another clock, and the arguments that set it. */
  readonly tune?: ScriptTuning | undefined;
}

export interface ScriptTuning {
  readonly scripts: typeof scripts;
  readonly extraArguments: () => readonly string[];
}
