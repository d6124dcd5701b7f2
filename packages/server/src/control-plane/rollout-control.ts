import type { RolloutRecord, RolloutState, RolloutStep } from "@sluice/sql";
import type { Actor } from "../data-plane/access/actor.ts";
import type { Changed, ChangeOptions, Listed, PageQuery } from "./change.ts";
import type { RolloutWait } from "./rollouts/find-wait.ts";
import type { RolloutFigures } from "./rollouts/rollout-figures.ts";

/** How a new version is rolled out. */
export interface RolloutRequest {
  /** Absent: 1 % and 10 % for ten minutes each, then all subjects. */
  readonly steps?: readonly RolloutStep[] | undefined;
  /** Absent: the policy's `rollout.by`, else the first dimension of its first limit. */
  readonly by?: string | undefined;
  /** Evaluates the new version without enforcing it. */
  readonly shadow?: boolean | undefined;
  /** Absent: the policy's `valid_from`, else now. */
  readonly startsMs?: number | undefined;
  readonly observeForMs?: number | undefined;
  readonly expectMoreDenials?: boolean | undefined;
}

export interface RolloutView extends Omit<RolloutRecord, "figures"> {
  /** The percentage of subjects under the new version now. */
  readonly percent: number;
  readonly figures: RolloutFigures | undefined;
  /** Why it is not advancing now; undefined: it has ended, or this is a list of policies. */
  readonly waitsFor: RolloutViewWait | undefined;
}

/**
 * Also `kill_switch`: while it decides, no rollout advances. `due`: nothing holds it; a node takes the step within
 * seconds.
 */
export type RolloutViewWait =
  | RolloutWait
  | { readonly code: "kill_switch"; readonly untilMs: number }
  | { readonly code: "due" };

/** Options of an action on a rollout. */
export interface RolloutMoveOptions extends ChangeOptions {
  /**
   * The step that the caller saw, −1 before the first, so that two callers that advance it at once take one step, not
   * two. Absent: any step.
   */
  readonly expectedStep?: number | undefined;
}

/** The decisions of one minute, by the version that decided. Undefined: none. */
export interface RolloutMinute {
  readonly startMs: number;
  readonly old: MinuteCount | undefined;
  readonly new: MinuteCount | undefined;
  /** What the new version of a rollout in shadow would have decided. */
  readonly shadow: MinuteCount | undefined;
}

export interface MinuteCount {
  readonly decided: number;
  readonly denied: number;
}

export interface RolloutControl {
  list(
    actor: Actor,
    query?: PageQuery & { readonly policy?: string | undefined; readonly states?: readonly RolloutState[] | undefined },
  ): Promise<Listed<RolloutView>>;
  get(actor: Actor, id: string): Promise<RolloutView>;
  /** What all nodes counted in the last day, minute by minute, oldest first. Minutes without decisions are left out. */
  minutes(actor: Actor, id: string): Promise<readonly RolloutMinute[]>;
  /** Takes the next step, or completes it. */
  advance(actor: Actor, id: string, options?: RolloutMoveOptions): Promise<Changed<RolloutView>>;
  pause(actor: Actor, id: string, options?: RolloutMoveOptions): Promise<Changed<RolloutView>>;
  resume(actor: Actor, id: string, options?: RolloutMoveOptions): Promise<Changed<RolloutView>>;
  /** Applies the new version to all subjects now. */
  finish(actor: Actor, id: string, options?: RolloutMoveOptions): Promise<Changed<RolloutView>>;
  /** Returns all subjects to the old version. */
  rollBack(actor: Actor, id: string, options?: RolloutMoveOptions): Promise<Changed<RolloutView>>;
}
