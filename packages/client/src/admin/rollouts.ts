import type {
  RolloutBody,
  RolloutChangeBody,
  RolloutMinuteBody,
  RolloutMinutesBody,
  RolloutState,
} from "@sluice/protocol/admin";
import { type AdminRequests, type CallOptions, type ChangeOptions, pathPart } from "./admin-requests.ts";
import type { Listing } from "./listing.ts";

/** What a move of a rollout takes. */
export interface RolloutMoveOptions extends ChangeOptions {
  /** The step that you saw, -1 before the first: if two callers advance it at once, it takes one step, not two. */
  readonly expectedStep?: number | undefined;
}

/** Which rollouts to list. */
export interface RolloutFilter extends CallOptions {
  readonly policy?: string | undefined;
  readonly states?: readonly RolloutState[] | undefined;
}

/** New versions of policies on their way. */
export class AdminRollouts {
  readonly #requests: AdminRequests;

  constructor(requests: AdminRequests) {
    this.#requests = requests;
  }

  /** Newest first. */
  list({ policy, states, ...options }: RolloutFilter = {}): Listing<RolloutBody> {
    return this.#requests.list("rollouts", { policy, state: states?.join(",") }, options);
  }

  get(id: string, options?: CallOptions): Promise<RolloutBody> {
    return this.#requests.ask("GET", `rollouts/${pathPart(id)}`, { options });
  }

  /** What each version decided in the last day, minute by minute, oldest first. Minutes without decisions are left out. */
  async minutes(id: string, options?: CallOptions): Promise<readonly RolloutMinuteBody[]> {
    const path = `rollouts/${pathPart(id)}/minutes`;
    const { items } = await this.#requests.ask<RolloutMinutesBody>("GET", path, { options });
    return items;
  }

  /** Takes the next step. */
  advance(id: string, options?: RolloutMoveOptions): Promise<RolloutChangeBody> {
    return this.#move(id, "advance", options);
  }

  /** Stays at this step. */
  pause(id: string, options?: RolloutMoveOptions): Promise<RolloutChangeBody> {
    return this.#move(id, "pause", options);
  }

  resume(id: string, options?: RolloutMoveOptions): Promise<RolloutChangeBody> {
    return this.#move(id, "resume", options);
  }

  /** Applies the new version to all subjects, now. */
  finish(id: string, options?: RolloutMoveOptions): Promise<RolloutChangeBody> {
    return this.#move(id, "finish", options);
  }

  /** Returns all subjects to the old version. */
  rollBack(id: string, options?: RolloutMoveOptions): Promise<RolloutChangeBody> {
    return this.#move(id, "roll-back", options);
  }

  #move(id: string, verb: string, { expectedStep, ...options }: RolloutMoveOptions = {}): Promise<RolloutChangeBody> {
    const body = { expected_step: expectedStep };
    return this.#requests.ask("POST", `rollouts/${pathPart(id)}/${verb}`, { body, options });
  }
}
