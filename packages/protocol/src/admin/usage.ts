import { type BodyOf, described, epochMs, integer, listOf, text } from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";
import { pageShape } from "./page.ts";

const denials = objectOf({
  reason: text,
  window: described(text, "The window that denied, as policies write it; empty if none did."),
  denied: integer,
});

/** What was decided in one period. */
export const usagePeriod = objectOf({
  start_ms: epochMs,
  policy: optional(described(text, "Present if usage is grouped by policy.")),
  limit: optional(described(text, "The name or the dimensions of the limit. Present if usage is grouped by limit.")),
  subject: optional(described(text, "Present if usage is grouped by subject.")),
  decided: integer,
  allowed: integer,
  denied: integer,
  cost: described(integer, "What was charged."),
  degraded: described(integer, "Decisions without the counters."),
  shadow_denied: described(integer, "Decisions that a limit in shadow mode would have denied."),
  denials: described(listOf(denials), "Denials by reason and window."),
});
export type UsagePeriodBody = BodyOf<typeof usagePeriod>;

export const usagePage = pageShape(usagePeriod);
