import { type RolloutState, rolloutStates } from "@sluice/protocol/admin";
import { choice, described, listOf, readShape, refine, type Shape, text } from "sluice/shape";
import { getRollout, listRolloutMinutes, listRollouts, steerRollout } from "../handlers/rollouts.ts";
import { moveShape } from "../policy-shapes.ts";
import { pageQuery } from "../query-parameters.ts";
import { type AdminRoute, adminRoute } from "../route.ts";

const statesShape = listOf(choice(rolloutStates), { min: 1, max: rolloutStates.length });

/** Parses a list such as `running,paused`. */
const states: Shape<readonly RolloutState[]> = refine(text({ max: 256 }), (words, reading) => {
  const read = readShape(statesShape, words.split(","));
  return read.ok ? read.value : reading.problem(read.problems[0]!.message);
});

const verbs = [
  ["advance", "advance", "Advance a rollout to its next step, or complete it"],
  ["pause", "pause", "Pause a rollout at its current step"],
  ["resume", "resume", "Resume a paused rollout"],
  ["finish", "finish", "Apply the new version to all subjects now"],
  ["roll-back", "rollBack", "Return all subjects to the old version"],
] as const;

export const rolloutRoutes: readonly AdminRoute[] = [
  adminRoute({
    method: "GET",
    path: "/api/v1/rollouts",
    summary: "List rollouts, newest first",
    action: "rollout.list",
    needs: "read",
    query: {
      policy: described(text({ max: 256 }), "Only those of this policy"),
      state: described(states, `Only those in one of these states, separated by commas: ${rolloutStates.join(", ")}`),
      ...pageQuery,
    },
    answers: {
      200: {
        description: "One page",
        content: ["RolloutPage"],
        headers: { Link: "The next page, if there is one" },
      },
    },
    handle: listRollouts,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/rollouts/{id}",
    summary: "Show a rollout, with the metrics of the latest evaluation",
    action: "rollout.get",
    needs: "read",
    answers: { 200: { description: "The rollout", content: ["Rollout"] } },
    handle: getRollout,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/rollouts/{id}/minutes",
    summary: "Show what the old and the new version decided, minute by minute, in the last day",
    action: "rollout.minutes",
    needs: "read",
    answers: { 200: { description: "Oldest first", content: ["RolloutMinutes"] } },
    handle: listRolloutMinutes,
  }),
  ...verbs.map(([word, verb, summary]) =>
    adminRoute({
      method: "POST",
      path: `/api/v1/rollouts/{id}/${word}`,
      summary,
      action: `rollout.${word.replace("-", "_")}`,
      needs: "edit",
      body: moveShape,
      bodyOptional: true,
      answers: {
        200: { description: "The rollout after the change (unchanged in a dry run)", content: ["RolloutChange"] },
      },
      handle: steerRollout(verb),
    }),
  ),
];
