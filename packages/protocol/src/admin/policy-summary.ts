import {
  type BodyOf,
  choice,
  constant,
  described,
  epochMs,
  integer,
  listOf,
  number,
  text,
} from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";
import { pageShape } from "./page.ts";
import { rollout } from "./rollout.ts";

/** How close one limit came to its end. */
const headroom = objectOf({
  share: described(
    number,
    "The largest charged cost of one period, divided by what the window allows in such a period: 0.8 is 80 %. Bursts can take it above 1.",
  ),
  limit: described(text, "The name or the dimensions of the limit that came closest."),
  tier: optional(described(text, "The tier of the subject that came closest, if the limit has windows for it.")),
  window: described(text, "Its window, as policies write it."),
  cost: described(integer, "What was charged in that period."),
  capacity: described(number, "What the window allows in such a period."),
  step: described(choice(["minute", "hour", "day"]), "The length of the period."),
});

/** A policy in a list: what it limits, how much it is used, and how close it came to its limits. */
export const policySummary = objectOf({
  id: text,
  version: integer,
  owner: optional(text),
  author: text,
  changed_ms: epochMs,
  mode: choice(["enforce", "shadow"]),
  rollout: optional(rollout),
  overridden_by: optional(described(constant("file"), "A policy file has the same id, and files win.")),
  prose: described(listOf(text), "What the policy does, in sentences."),
  usage: optional(
    described(
      objectOf({
        from_ms: described(integer, "When the first hour began, in epoch milliseconds."),
        step_ms: integer,
        allowed: described(listOf(integer), "By hour, oldest first; the last one is not over yet."),
        denied: listOf(integer),
        shadow_denied: described(integer, "Of all hours together."),
      }),
      "The last 24 hours. A decision counts for the policy that decided it. " +
        "Absent if the caller is an editor whose team does not own the policy; then `headroom` is absent as well.",
    ),
  ),
  headroom: optional(
    described(
      headroom,
      "The limit that came closest to its end: in the last 24 hours, or for windows shorter than an hour in the last hour. " +
        "From stored usage of limits that count all requests together, or by one tracked dimension (--usage-by). " +
        "Decisions count for the limit that decided them, so a policy with several limits may be closer. " +
        "Each subject is compared with the windows of its tier; subjects with a custom limit or an override are left out. Absent if no limit can be judged.",
    ),
  ),
});
export type PolicySummaryBody = BodyOf<typeof policySummary>;

export const policySummaryPage = pageShape(policySummary);
