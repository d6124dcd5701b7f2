import type { Actor } from "../data-plane/access/actor.ts";
import type { ChangeOptions } from "./change.ts";

export const recordingStates = ["recording", "done", "failed"] as const;
export const simulationStates = ["waiting", "running", "done", "failed", "cancelled"] as const;
export type SimulationState = (typeof simulationStates)[number];

/** A recording that this node keeps. */
export interface RecordingView {
  readonly id: string;
  readonly node: string;
  readonly state: (typeof recordingStates)[number];
  readonly startedMs: number;
  readonly endsMs: number;
  readonly endedMs: number | undefined;
  readonly endReason: string | undefined;
  readonly requests: number;
  readonly dropped: number;
  readonly leftOut: number;
  readonly bytes: number;
  readonly maxBytes: number;
  readonly sharePercent: number;
  readonly shareBy: string | undefined;
  readonly hashed: readonly string[];
  readonly startedBy: string;
  readonly generation: number;
}

export interface RecordingStart {
  readonly forMs?: number | undefined;
  readonly maxBytes?: number | undefined;
  readonly sharePercent?: number | undefined;
  readonly shareBy?: string | undefined;
  readonly hash?: readonly string[] | undefined;
}

export interface RecordingControl {
  /** Newest first. `enabled`: whether this server has a folder for them. */
  list(actor: Actor): Promise<{ readonly enabled: boolean; readonly items: readonly RecordingView[] }>;
  get(actor: Actor, id: string): Promise<RecordingView>;
  start(actor: Actor, request: RecordingStart, options?: ChangeOptions): Promise<RecordingView>;
  stop(actor: Actor, id: string, options?: ChangeOptions): Promise<RecordingView>;
  delete(actor: Actor, id: string, options?: ChangeOptions): Promise<RecordingView>;
}

export interface SimulationRequest {
  readonly source: { readonly recording?: string; readonly log?: string; readonly logBase64?: string };
  readonly format?: string | undefined;
  readonly map?: readonly string[] | undefined;
  /** A whole policy file; or documents that replace those of their ids among the policies in force. */
  readonly candidate: { readonly file?: string; readonly policies?: readonly string[] };
  readonly now?: "policies" | "recorded" | undefined;
  readonly findLimit?: string | undefined;
}

export interface SimulationView {
  readonly id: string;
  readonly node: string;
  readonly state: SimulationState;
  readonly createdMs: number;
  readonly startedMs: number | undefined;
  readonly endedMs: number | undefined;
  readonly createdBy: string;
  readonly recording: string | undefined;
  readonly logBytes: number | undefined;
  /** 0 … 1 */
  readonly progress: number;
  readonly requests: number;
  readonly error: { readonly message: string } | undefined;
  readonly document: unknown;
}

export interface SimulationControl {
  /** Without their documents. */
  list(actor: Actor): Promise<readonly SimulationView[]>;
  get(actor: Actor, id: string): Promise<SimulationView>;
  create(actor: Actor, request: SimulationRequest): Promise<SimulationView>;
  /** Cancels one that waits or runs, and forgets one that has ended. */
  delete(actor: Actor, id: string): Promise<SimulationView>;
}
