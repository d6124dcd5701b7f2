import type { PageBody, RolloutBody, RolloutChangeBody, RolloutMinutesBody } from "@sluice/protocol/admin";
import type { ChangeOptions } from "./admin.ts";
import { ask, part } from "./ask.ts";

export const rolloutMoves = ["advance", "pause", "resume", "finish", "roll-back"] as const;
export type RolloutMove = (typeof rolloutMoves)[number];

const pathOf = (id: string) => `rollouts/${part(id)}`;

/** One rollout, and what an operator does with it. */
export const rollouts = {
  list: (query: { readonly limit: number; readonly after?: string | undefined }, signal?: AbortSignal) =>
    ask<PageBody<RolloutBody>>("GET", "rollouts", { query, signal }),
  get: (id: string, signal?: AbortSignal) => ask<RolloutBody>("GET", pathOf(id), { signal }),
  minutes: (id: string, signal?: AbortSignal) => ask<RolloutMinutesBody>("GET", `${pathOf(id)}/minutes`, { signal }),
  /** `step` is the one that the page shows: if it is another by now, nothing is done. */
  move: (id: string, move: RolloutMove, step: number, { why, ...options }: Omit<ChangeOptions, "expected">) =>
    ask<RolloutChangeBody>("POST", `${pathOf(id)}/${move}`, { body: { expected_step: step }, why, ...options }),
} as const;
