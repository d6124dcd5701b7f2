import { anything, type BodyOf, described, integer, listOf, text } from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";
import { changeShape } from "./change.ts";
import { pageShape } from "./page.ts";
import { rollout } from "./rollout.ts";

const windowsAsWritten = described(listOf(anything), "As they are written in the policy.");
const limitName = described(
  text,
  "The limit's name, else its dimensions with commas. A further one of that name: `user#2`.",
);

/** One line of a list of plans. */
export const planSummary = objectOf({
  plan: text,
  version: described(integer, "0: no stored policy has windows for it."),
  policies: described(integer, "Stored policies with windows for it."),
  limits: described(integer, "Limits of these policies with windows for it."),
  subjects: described(integer, "Subjects that have this tier, in the store and in policy files."),
});
export type PlanSummaryBody = BodyOf<typeof planSummary>;

export const planPage = pageShape(planSummary);

/** The windows of one limit for subjects of a plan, as a change of the plan takes them. */
const planLimit = objectOf({ policy: text, limit: limitName, by: listOf(text), windows: windowsAsWritten });
export type PlanLimitBody = BodyOf<typeof planLimit>;

/** A plan: what a tier means in every policy. */
export const plan = objectOf({
  plan: text,
  version: described(integer, "Changes with `limits`. 0: no stored policy has windows for the plan."),
  limits: described(listOf(planLimit), "By policy. May be sent back as it is."),
  without: described(
    listOf(
      objectOf({
        policy: text,
        limit: limitName,
        by: listOf(text),
        windows: optional(described(listOf(anything), "The limit's own. Absent: it is for its plans alone.")),
        plans: described(listOf(text), "Plans that it has windows for."),
      }),
    ),
    "Limits that have windows for other plans, and none for this one.",
  ),
  in_files: described(
    listOf(objectOf({ policy: text, limit: limitName, by: listOf(text), windows: listOf(text) })),
    "Limits in policy files that have windows for it. Change them there.",
  ),
  subjects: described(
    listOf(objectOf({ dimension: text, count: integer })),
    "How many subjects have this tier, in the store and in policy files.",
  ),
});
export type PlanBody = BodyOf<typeof plan>;

/** A policy that a change of a plan changed. */
const planPolicy = objectOf({
  policy: text,
  version: described(integer, "The version that was written."),
  diff: optional(described(text, "As YAML, line by line. Of the first few policies.")),
  rollout: optional(rollout),
});

export const planChange = changeShape({ plan, policies: listOf(planPolicy) });
export type PlanChangeBody = BodyOf<typeof planChange>;
