import type { Decision, DecisionReason, SubjectState } from "sluice";
import {
  asIs,
  type BodyOf,
  type BodyShape,
  boolean,
  choice,
  described,
  finite,
  finiteOrNone,
  integer,
  listOf,
  number,
  renderedBy,
  text,
} from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";
import { labelledWindow } from "./window.ts";

const reason = choice([
  "within_limits",
  "over_limit",
  "never_fits",
  "blocked",
  "deny_list",
  "missing_dimension",
  "unlimited",
  "degraded",
] satisfies readonly DecisionReason[]);

const state = choice(["normal", "warning", "throttled"] satisfies readonly SubjectState[]);

const queue = objectOf({ position: number, delay_ms: number });

const finiteMs = finite(integer);

const distinct = described(
  objectOf({ dimension: text, error: number }),
  "Of a limit on distinct values: the dimension, and up to which share of limit more values may pass because they are estimated.",
);

const limitDecision = objectOf({
  policy: text,
  version: integer,
  scope: text,
  subject: text,
  algorithm: text,
  allowed: boolean,
  reason,
  cost: number,
  limit: number,
  remaining: number,
  used: number,
  shadow: boolean,
  window: labelledWindow,
  retry_after_ms: optional(finiteMs),
  reset_after_ms: integer,
  queue: optional(queue),
  distinct: optional(distinct),
});

const shadowDenial = objectOf({
  policy: text,
  version: integer,
  scope: optional(text),
  reason,
  retry_after_ms: optional(finiteMs),
});

const decisionFields = {
  allowed: boolean,
  reason,
  cost: number,
  policy: optional(described(text, "The policy that speaks: the most restrictive one.")),
  version: optional(integer),
  scope: optional(text),
  window: optional(labelledWindow),
  limit: optional(described(number, "The most that the window ever holds.")),
  remaining: optional(
    described(number, "The largest cost that would pass now: the least over every enforced window and limit."),
  ),
  limit_remaining: optional(
    described(number, "The same for the limit that speaks alone. Absent: the same as remaining."),
  ),
  used: optional(number),
  retry_after_ms: optional(
    described(
      integer,
      "The first millisecond at which the same request passes, if no other arrives. Absent: allowed, or never.",
    ),
  ),
  reset_after_ms: optional(integer),
  reset_at_ms: optional(described(integer, "Epoch milliseconds.")),
  more_after_ms: optional(
    described(
      integer,
      "The first millisecond at which the limit that speaks has more left, if no other request arrives. Absent: it never has more, or retry_after_ms says when the same request passes.",
    ),
  ),
  queue: optional(queue),
  distinct: optional(distinct),
  state,
  deny_count: number,
  replayed: described(boolean, "The same id was decided before, and nothing was charged again."),
  preview: boolean,
  degraded: optional(described(text, "Why the counters are unavailable.")),
  shadow: optional(described(listOf(shadowDenial), "Denials by policies in shadow mode.")),
  limits: optional(described(listOf(limitDecision), "Every limit's answer, if details requested it.")),
  receipt: optional(described(text, "For POST /v1/give-back, if receipt requested one and something was taken.")),
};

const decisionBody = objectOf(decisionFields);

/** A decision as JSON. Times are milliseconds. */
export type DecisionBody = BodyOf<typeof decisionBody>;

/** Rendered by hand, because there are many. */
export const decision: BodyShape<Decision, DecisionBody> = renderedBy(decisionBody, (view) => ({
  allowed: view.allowed,
  reason: view.reason,
  cost: view.cost,
  policy: view.policy,
  version: view.version,
  scope: view.scope,
  window: view.window && labelledWindow.render(view.window),
  limit: view.limit,
  remaining: view.remaining,
  limit_remaining: view.limitRemaining === view.remaining ? undefined : view.limitRemaining,
  used: view.used,
  retry_after_ms: finiteOrNone(view.retryAfterMs),
  reset_after_ms: finiteOrNone(view.resetAfterMs),
  reset_at_ms: finiteOrNone(view.resetAtMs),
  more_after_ms: finiteOrNone(view.moreAfterMs),
  queue: view.queue && queue.render(view.queue),
  distinct: view.distinct,
  state: view.state,
  deny_count: view.denyCount,
  replayed: view.replayed,
  preview: view.preview,
  degraded: view.degraded,
  shadow: view.shadow.length === 0 ? undefined : view.shadow.map((one) => shadowDenial.render(one)),
  limits: view.limits?.map((one) => limitDecision.render({ ...one, distinct: one.distinct })),
  receipt: view.receipt,
}));

/** A denial: a problem of RFC 9457, with the decision's fields in the same object. */
export const denial = asIs(
  described(
    objectOf({
      type: text,
      title: text,
      status: integer,
      detail: text,
      "violated-policies": optional(listOf(text)),
      ...decisionFields,
    }),
    "A problem of RFC 9457, with the decision's fields in the same object.",
  ),
);
export type DenialBody = BodyOf<typeof denial>;
